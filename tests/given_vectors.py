"""Encoders whose vectors a test gives, and what the figures are that they get."""

import numpy as np

from hf_dialemb.models.dialogue import Dialogue, Turn


class Given:
    """An encoder that gives each text the vector that a function says, and remembers what it was asked."""

    name = "given"

    def __init__(self, vector):
        self.vector, self.calls = vector, []

    def encode(self, dialogues):
        self.calls.append([dialogue.turns[0].content for dialogue in dialogues])
        return np.array([self.vector(text) for text in self.calls[-1]], dtype=np.float32)


def hashed(text):
    """A random vector, the same for the same text."""
    return np.random.default_rng(list(text.encode())).normal(size=16)


def said(*labelled):
    """Dialogues of one utterance each, from texts and their intents."""
    return [Dialogue((Turn("user", text, intents=tuple(intents.split())),)) for text, intents in labelled]


def figures(found):
    """Means by metric and setting."""
    return {(each.metric, each.setting): each.mean for each in found}
