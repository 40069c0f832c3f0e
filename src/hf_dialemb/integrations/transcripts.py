"""Dialogues as texts and back, for tools that keep texts alone: ``user: ...``, ``assistant: ...``, a line a turn."""

from __future__ import annotations

import re

from ..models.dialogue import ROLES, Dialogue, Turn

_START = re.compile(rf"({'|'.join(ROLES)}): ")
_FURTHER = "  "  # what a turn's second and later lines begin with, so that none is taken for another's turn


def to_transcript(dialogue: Dialogue) -> str:
    """Writes a dialogue as a text that `from_transcript` reads back, word for word, but for its labels.

    A line for each turn, such as ``user: A room, please.``; further lines of a turn are indented.
    """
    return "\n".join(f"{turn.role}: " + turn.content.replace("\n", f"\n{_FURTHER}") for turn in dialogue.turns)


def from_transcript(text: str) -> Dialogue:
    """Reads what `to_transcript` wrote; a text of any other form is one turn of the user; blank, an InputError."""
    turns: list[tuple[str, list[str]]] = []
    for line in text.strip("\n").split("\n"):
        if start := _START.match(line):
            turns.append((start[1], [line[start.end() :]]))
        elif turns and line.startswith(_FURTHER):
            turns[-1][1].append(line.removeprefix(_FURTHER))
        else:
            return Dialogue((Turn("user", text),))
    return Dialogue(tuple(Turn(role, "\n".join(lines)) for role, lines in turns))
