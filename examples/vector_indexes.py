"""Keeps dialogues in an index of faiss and of usearch: python examples/vector_indexes.py [MODEL [FOLDER]].

Needs both: pip install "hf-dialemb[faiss,usearch]". The indexes hold vectors by number; what is known of the dialogues
lies beside them, a line each in the same order. Each index is built, saved, loaded, and asked for the dialogues nearest
to another, then for those of one domain alone. `datasets.Dataset.add_faiss_index` does the first of it for a dataset.
"""

import sys
import tempfile
from pathlib import Path

import faiss
import numpy as np
import usearch.index

from hf_dialemb import Dialogue, load_dialogues
from hf_dialemb.corpora.own.jsonl import read_jsonl, write_jsonl
from hf_dialemb.evaluation import load_encoder

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

encoder = load_encoder(sys.argv[1] if len(sys.argv) > 1 else "all-MiniLM-L6-v2")
folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
query = Dialogue.from_messages(
    [
        {"role": "user", "content": "I would like to fly to Athens with two bags."},
        {"role": "assistant", "content": "Shall I change your ticket?"},
    ]
)


def encode(dialogues):
    """Returns vectors of length 1, so that products are cosines, (N, D)."""
    vectors = encoder.encode(dialogues)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


corpus = load_dialogues("sample", split="dev")
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
hotels = np.array([row for row, dialogue in enumerate(dialogues) if "hotel" in dialogue.domains])
(asked,) = encode([query])


def show(title, rows, cosines):
    """Prints what was found."""
    print(title)
    for row, cosine in zip(rows, cosines, strict=True):
        print(f"{cosine:7.3f} {dialogues[row].id} {dialogues[row].domains[0]}: {dialogues[row].turns[0].content}")


cosines, rows = flat.search(asked[None], 3)
show("faiss", rows[0], cosines[0])
cosines, rows = flat.search(asked[None], 3, params=faiss.SearchParameters(sel=faiss.IDSelectorBatch(hotels)))
show("faiss, hotels", rows[0], cosines[0])
found = graph.search(asked, 3)
show("usearch", found.keys, 1 - found.distances)
# usearch has no filter in Python: those that pass are compared one by one.
found = usearch.index.search(np.stack(graph.get(hotels)), asked, 3, exact=True)
show("usearch, hotels", hotels[found.keys], 1 - found.distances)
