"""Learns to tell what dialogues are about, with scikit-learn: python examples/classify_dialogues.py [MODEL]."""

import sys

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import DialogueVectorizer

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

model = sys.argv[1] if len(sys.argv) > 1 else "all-MiniLM-L6-v2"
train, test = (load_dialogues("sample", split=split)[:30] for split in ("train", "test"))
pipeline = make_pipeline(DialogueVectorizer(model), LogisticRegression(max_iter=1000))
search = GridSearchCV(pipeline, {"logisticregression__C": [1, 100]}, cv=2)
search.fit([dialogue.to_messages() for dialogue in train], [dialogue.domains[0] for dialogue in train])
accuracy = search.score([dialogue.to_messages() for dialogue in test], [dialogue.domains[0] for dialogue in test])
print(f"accuracy {accuracy:.2f} with C={search.best_params_['logisticregression__C']}")
