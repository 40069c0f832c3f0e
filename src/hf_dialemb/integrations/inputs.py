"""Items of other libraries as dialogues: texts, transcripts and chat messages."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..data.loading import load_all
from ..dialogue import ROLES, Dialogue, Turn
from ..errors import InputError

_START = re.compile(rf"({'|'.join(ROLES)}): ")
_FURTHER = "  "  # before a turn's second and later lines, so that none reads as another turn


def read_items(items: Iterable[Any]) -> list[Dialogue]:
    """Read items as `load_dialogues` does, and texts as transcripts."""
    if isinstance(items, str | Mapping | Dialogue):
        raise InputError(
            f"dialogues: got one {type(items).__name__}, expected a list of dialogues; put it into "
            "a list"
        )
    # `load_all` refuses what is blank, by its place
    return load_all(
        [
            from_transcript(item) if isinstance(item, str) and item.strip() else item
            for item in items
        ]
    )


def to_transcript(dialogue: Dialogue) -> str:
    """Write a dialogue, without its labels, as a text that `from_transcript` reads back.

    Each turn is a line such as ``user: A room, please.``; further lines of a turn are indented.
    """
    return "\n".join(
        f"{turn.role}: " + turn.content.replace("\n", f"\n{_FURTHER}") for turn in dialogue.turns
    )


def from_transcript(text: str) -> Dialogue:
    """Read a text of `to_transcript`; a text of any other form is one turn of the user.

    Refuse a blank one.
    """
    turns: list[tuple[str, list[str]]] = []
    for line in text.strip("\n").split("\n"):
        if start := _START.match(line):
            turns.append((start[1], [line[start.end() :]]))
        elif turns and line.startswith(_FURTHER):
            turns[-1][1].append(line.removeprefix(_FURTHER))
        else:
            return Dialogue((Turn("user", text),))
    return Dialogue(tuple(Turn(role, "\n".join(lines)) for role, lines in turns))
