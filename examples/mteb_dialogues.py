"""Runs MTEB on the dialogues of a corpus.

Python examples/mteb_dialogues.py [CORPUS [SPLIT [MODEL]]].

Without words, all-MiniLM-L6-v2 is measured on the synthetic corpus that the package generates.
Nothing is downloaded or sent anywhere, and results are not cached.
"""

import sys

import mteb
from sentence_transformers import SentenceTransformer

from hf_dialemb.integrations import dialogue_tasks
from hf_dialemb.storage.pretrained import resolve_backbone

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

corpus, split, model = (*sys.argv[1:], *("sample", "dev", "all-MiniLM-L6-v2")[len(sys.argv) - 1 :])
tasks = dialogue_tasks(corpus, split=split, limit=240)
encoder = SentenceTransformer(resolve_backbone(model))
results = mteb.evaluate(encoder, tasks, cache=None, show_progress_bar=False)
for result in results:
    scores = result.scores[split][0]
    print(f"{result.task_name}: {scores['main_score']:.3f}")
