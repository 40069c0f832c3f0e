"""Learns what dialogues are about, with scikit-learn.

Python examples/classify_dialogues.py [MODEL [FILE]].

FILE is your own conversations, by default made-up ones. It needs `domains`, each on four dialogues
or more. A quarter of the dialogues is kept for the test.
"""

import sys
from collections import Counter

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import DialogueVectorizer

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

model, source = [*sys.argv[1:], *("all-MiniLM-L6-v2", "sample")[len(sys.argv) - 1 :]]
if source == "sample":
    train, test = (load_dialogues("sample", split=split)[:30] for split in ("train", "test"))
else:
    dialogues = [dialogue for dialogue in load_dialogues(source) if dialogue.domains]
    counts = Counter(dialogue.domains[0] for dialogue in dialogues)
    dialogues = [dialogue for dialogue in dialogues if counts[dialogue.domains[0]] >= 4]
    labels = [dialogue.domains[0] for dialogue in dialogues]
    if len(set(labels)) < 2:
        raise SystemExit(
            f"{source}: expected two domains or more, each on four dialogues or more; add labels"
        )
    train, test = train_test_split(dialogues, random_state=0, stratify=labels)
pipeline = make_pipeline(DialogueVectorizer(model), LogisticRegression(max_iter=1000))
search = GridSearchCV(pipeline, {"logisticregression__C": [1, 100]}, cv=2)
search.fit(
    [dialogue.to_messages() for dialogue in train], [dialogue.domains[0] for dialogue in train]
)
accuracy = search.score(
    [dialogue.to_messages() for dialogue in test], [dialogue.domains[0] for dialogue in test]
)
print(f"accuracy {accuracy:.2f} with C={search.best_params_['logisticregression__C']}")
