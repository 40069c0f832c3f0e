"""Tells what dialogues are about from a few examples.

Python examples/few_shot_classifier.py [FOLDER [FILE]].

As in SetFit, training on pairs first draws examples of one label together; then a logistic
regression reads the vectors. FOLDER is any sentence-transformers model, such as `dialemb export`
writes: dialogues go in as chat messages if it reads them (SetFit's own package takes texts alone).
Without one it is all-MiniLM-L6-v2, which gets the turns joined by blanks. FILE is your own
conversations with `domains`, by default made-up ones. Two dialogues of each domain are the
examples, and others are the test.
"""

import sys
import tempfile
from itertools import combinations

import numpy as np
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from sklearn.linear_model import LogisticRegression

import hf_dialemb
from hf_dialemb.storage.pretrained import MINILM, resolve_backbone

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

SHOTS = 2
PAIRS = 48
STEPS = 12

folder, source = [*sys.argv[1:], *("", "sample")[len(sys.argv) - 1 :]]
model = SentenceTransformer(folder or resolve_backbone(MINILM), device="cpu")
model.max_seq_length = 96


def as_input(dialogue):
    """Returns chat messages, or a text for a model that reads no messages."""
    return (
        dialogue.to_messages()
        if model.supports("message")
        else " ".join(turn.content for turn in dialogue.turns)
    )


shots = {}
test = []
for dialogue in hf_dialemb.load_dialogues(source):  # of the made-up ones, those to train on
    if dialogue.domains:
        chosen = shots.setdefault(dialogue.domains[0], [])
        (chosen if len(chosen) < SHOTS else test).append(dialogue)
test = test[:: len(test) // 200 + 1]  # some hundred are enough
if source == "sample":
    test = hf_dialemb.load_dialogues("sample", split="test")[:40]
if len(shots) < 2 or not test:
    raise SystemExit(
        f"{source}: expected two domains or more, and more than {SHOTS} dialogues of one; add "
        "labels"
    )
examples = [
    (as_input(dialogue), label) for label, dialogues in shots.items() for dialogue in dialogues
]

generator = np.random.default_rng(0)
pairs = [(a, b, float(one == other)) for (a, one), (b, other) in combinations(examples, 2)]
alike, apart = ([pair for pair in pairs if pair[2] == score] for score in (1.0, 0.0))
# as many of both
drawn = [kind[row] for kind in (alike, apart) for row in generator.integers(len(kind), size=PAIRS)]
train = Dataset.from_list([{"first": a, "second": b, "score": score} for a, b, score in drawn])


def accuracy():
    """Fits a classifier on the examples and returns its share of right answers on the test
    dialogues."""
    vectors = model.encode([text for text, _ in examples])
    classifier = LogisticRegression(max_iter=1000).fit(vectors, [label for _, label in examples])
    found = model.encode([as_input(dialogue) for dialogue in test])
    return classifier.score(found, [dialogue.domains[0] for dialogue in test])


print(f"accuracy before: {accuracy():.2f} with {SHOTS} examples of each of {len(shots)} labels")
arguments = SentenceTransformerTrainingArguments(
    tempfile.mkdtemp(),
    max_steps=STEPS,
    per_device_train_batch_size=8,
    learning_rate=2e-5,
    use_cpu=True,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
)
SentenceTransformerTrainer(
    model, arguments, train_dataset=train, loss=CosineSimilarityLoss(model)
).train()
print(f"accuracy after:  {accuracy():.2f}")
