"""Short dialogues made of texts."""

import json

from datasets import Dataset

from hf_dialemb.dialogue import Dialogue, Turn


def dialogue(*contents, id="", domains=(), roles=("user", "assistant")):
    turns = tuple(
        Turn(roles[place % len(roles)], content) for place, content in enumerate(contents)
    )
    return Dialogue(turns, id, domains)


def to_dataset(dialogues):
    """A dataset as people make one: a row for each dialogue, with its metadata as JSON."""
    rows = [
        {
            "domains": [],
            "time": "",
            **dialogue.to_json(),
            "metadata": json.dumps(dict(dialogue.metadata)),
        }
        for dialogue in dialogues
    ]
    return Dataset.from_list(rows)


CHATS = [
    [
        {"role": "user", "content": "I need a cheap hotel."},
        {"role": "assistant", "content": "For how many nights?"},
    ],
    [{"role": "user", "content": "My card was stolen!"}],
]
DIALOGUES = [
    dialogue("book hotel", "cheap hotel"),
    dialogue("taxi north please"),
    dialogue("book hotel", "thanks", "book hotel"),
    dialogue("train north", "train north please"),
]
