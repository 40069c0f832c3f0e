"""Vectors and figures that tests share: given by hand, and around centres."""

import numpy as np

from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.evaluation.results.rows import Row


class Given:
    """An encoder that gives each text the vector that a function says, and remembers what it was
    asked."""

    name = "given"

    def __init__(self, vector):
        self.vector, self.calls = vector, []

    def encode(self, dialogues):
        self.calls.append([dialogue.turns[0].content for dialogue in dialogues])
        return np.array([self.vector(text) for text in self.calls[-1]], dtype=np.float32)

    def encode_utterances(self, texts):
        return self.encode([Dialogue((Turn("user", text),)) for text in texts])


class Sought(Given):
    """One that knows queries and documents, as encoders do."""

    encode_query = encode_document = Given.encode_utterances


def hashed(text):
    """A random vector, the same for the same text."""
    return np.random.default_rng(list(text.encode())).normal(size=16)


def said(*labelled):
    """Dialogues of one utterance each, from texts and their intents."""
    return [
        Dialogue((Turn("user", text, intents=tuple(intents.split())),))
        for text, intents in labelled
    ]


def figures(found):
    """Means by metric and setting."""
    return {(each.metric, each.setting): each.mean for each in found}


def clouds(random, count=60, width=8, labels=4):
    """Noisy vectors around one centre per label; every label has several members."""
    codes = np.arange(count) % labels
    return random.normal(size=(labels, width))[codes] + random.normal(size=(count, width)), codes


def copies(random):
    """Ten vectors, each twenty times, whose products, summed in another order, would differ in the
    last digits."""
    return np.tile(random.normal(size=(10, 33)).astype(np.float32), (20, 1)), np.arange(200) % 7


def corners(random, count=60, labels=4):
    """Vectors with few distinct values, so that many cosines are exactly equal."""
    return random.integers(-1, 2, size=(count, 3)).astype(float), random.integers(
        0, labels, size=count
    )


RUN = {
    "command": "dialemb papers benchmark --suite small --model one two",
    "config": {},
    "seeds": [0, 1],
    "versions": {"python": "3.11.7", "numpy": "2.4.6"},
    "hardware": "a machine, 2 cores",
    "seconds": 3725.0,
}


def row(
    model="ours",
    mean=50.0,
    corpus="sgd",
    task="dialogue-retrieval",
    metric="map",
    setting="",
    **more,
):
    what = {"corpus": corpus, "split": "test", "task": task, "metric": metric, "setting": setting}
    return Row(model=model, mean=mean, **what, **more)
