"""Short dialogues made of texts."""

from hf_dialemb.models.dialogue import Dialogue, Turn


def dialogue(*contents, roles=("user", "assistant")):
    return Dialogue(tuple(Turn(roles[place % len(roles)], content) for place, content in enumerate(contents)))


DIALOGUES = [
    dialogue("book hotel", "cheap hotel"),
    dialogue("taxi north please"),
    dialogue("book hotel", "thanks", "book hotel"),
    dialogue("train north", "train north please"),
]
