"""Keeps dialogues in an index of faiss and of usearch.

Python examples/vector_indexes.py [MODEL [FILE [FOLDER]]].

Needs both: pip install faiss-cpu usearch. The indexes hold vectors by number; what is
known of the dialogues lies beside them, a line each in the same order. Each index is built, saved,
loaded, and asked for the dialogues nearest to another, then for those of one domain alone.
`datasets.Dataset.add_faiss_index` does the first of it for a dataset. FILE is your own
conversations, by default made-up ones; of yours, the first one is the query. FOLDER is where the
indexes go.
"""

import sys
import tempfile
from pathlib import Path

import faiss
import numpy as np
import usearch.index

from hf_dialemb import Dialogue, load_dialogues
from hf_dialemb.data import read_jsonl, write_jsonl
from hf_dialemb.evaluation import load_encoder

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

model, source, folder = [*sys.argv[1:], *("all-MiniLM-L6-v2", "sample", "")[len(sys.argv) - 1 :]]
encoder = load_encoder(model)
folder = Path(folder or tempfile.mkdtemp())
if source == "sample":
    corpus = load_dialogues("sample", split="dev")
    domains = ("hotel",)
    asks = {"role": "user", "content": "I would like to fly to Athens with two bags."}
    query = Dialogue.from_messages(
        [asks, {"role": "assistant", "content": "Shall I change your ticket?"}]
    )
else:
    corpus = load_dialogues(source)
    query = corpus[0]
    domains = corpus[0].domains


def encode(dialogues):
    """Returns vectors of length 1, so that products are cosines, (N, D)."""
    vectors = encoder.encode(dialogues)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


vectors = encode(corpus)
write_jsonl(corpus, folder / "dialogues.jsonl")

flat = faiss.IndexFlatIP(vectors.shape[1])  # exact; faiss.IndexHNSWFlat for a million and more
flat.add(vectors)
faiss.write_index(flat, str(folder / "vectors.faiss"))

graph = usearch.index.Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
graph.add(np.arange(len(vectors)), vectors)
graph.save(str(folder / "vectors.usearch"))

# Another process would begin here.
dialogues = list(read_jsonl(folder / "dialogues.jsonl"))
flat = faiss.read_index(str(folder / "vectors.faiss"))
graph = usearch.index.Index.restore(str(folder / "vectors.usearch"))
alike = np.array([row for row, dialogue in enumerate(dialogues) if dialogue.domains == domains])
top = min(3, len(alike))
(asked,) = encode([query])


def show(title, rows, cosines):
    """Prints what was found."""
    print(title)
    for row, cosine in zip(rows, cosines, strict=True):
        print(
            f"{cosine:7.3f} {dialogues[row].id} {' '.join(dialogues[row].domains)}: "
            f"{dialogues[row].turns[0].content}"
        )


cosines, rows = flat.search(asked[None], top)
show("faiss", rows[0], cosines[0])
cosines, rows = flat.search(
    asked[None], top, params=faiss.SearchParameters(sel=faiss.IDSelectorBatch(alike))
)
show("faiss, one domain", rows[0], cosines[0])
found = graph.search(asked, top)
show("usearch", found.keys, 1 - found.distances)
# usearch has no filter in Python: those that pass are compared one by one.
found = usearch.index.search(np.stack(graph.get(alike)), asked, top, exact=True)
show("usearch, one domain", alike[found.keys], 1 - found.distances)
