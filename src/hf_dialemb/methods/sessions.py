"""How turns are read, in sessions, and questions to them.

Given, of slots, or of what speakers ask each other.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from ..dialogue import Dialogue, Turn

GAP = 4.0
"""Hours without a word after which a conversation begins anew: nothing is read across."""

DOCUMENTS = ("document", "passage", "corpus")
"""What sentence-transformers calls the prompt before what is sought."""

BESIDE = {1: 0.4, 2: 0.3, -1: 0.3, -2: 0.2}
"""What the vectors of turns so far before, or after, count for beside the turn's own.

Chosen on LoCoMo (dev).
"""

THEM = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for the name of whoever is asked."""

# the words of a question that makes sense alone; the fewest of an answer
_ASKED_WORDS = range(4, 26)
_ANSWER_WORDS = 5
_QUESTION = re.compile(r"(?:^|(?<=[.!?])\s+)([^.!?]+\?)\s*$")
_TO_YOU = re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE)
_ABOUT_THEM = {
    r"are you": "is ~",
    r"do you": "does ~",
    r"have you": "has ~",
    r"were you": "was ~",
    r"you are": "~ is",
    r"you're": "~ is",
    r"you have": "~ has",
    r"your|yours": "~'s",
    r"you|yourself": "~",
}


def spoken(turn: Turn) -> str:
    """Return a turn as it is read: after its speaker's name and a colon, if the name is known."""
    return f"{turn.name}: {turn.content}" if turn.name else turn.content


def sessions(dialogue: Dialogue) -> Iterator[tuple[Turn, ...]]:
    """Divide a dialogue where `GAP` hours or more pass between two turns whose times are known."""
    begun = 0
    known = ""
    for place, turn in enumerate(dialogue.turns):
        if parted(known, turn.time):
            yield dialogue.turns[begun:place]
            begun = place
        known = turn.time or known
    yield dialogue.turns[begun:]


def parted(first: str, second: str) -> bool:
    """Return whether two times in ISO 8601 are known and lie `GAP` hours apart."""
    if not first or not second:
        return False
    earlier = datetime.fromisoformat(first)
    later = datetime.fromisoformat(second)
    if (earlier.tzinfo is None) != (
        later.tzinfo is None
    ):  # an offset that one lacks is not guessed
        earlier = earlier.replace(tzinfo=None)
        later = later.replace(tzinfo=None)
    return abs((later - earlier).total_seconds()) >= 3600 * GAP


class Question(NamedTuple):
    """A question, its answers' places, and that of the first turn that is no candidate."""

    text: str
    turns: tuple[int, ...]
    before: int


def questions_of(dialogue: Dialogue) -> Iterator[Question]:
    """Yield the questions that a dialogue brings, or ask for its slots.

    Those with no wrong candidate are left out.
    """
    given: Any = dialogue.metadata.get("questions")
    if given is None:
        first: dict[str, int] = {}
        for place, turn in enumerate(dialogue.turns):
            for name, value in turn.slots:
                if value:
                    first.setdefault(name, place)
        given = [
            {"question": f"What is the {_plain(name)}?", "turns": [place]}
            for name, place in first.items()
        ]
    for entry in given:
        before = min(entry.get("before", len(dialogue.turns)), len(dialogue.turns))
        turns = tuple(sorted({place for place in entry["turns"] if place < before}))
        if 0 < len(turns) < before:
            yield Question(entry["question"], turns, before)


def asked_of_each_other(turns: Sequence[Turn]) -> Iterator[tuple[str, int]]:
    """Yield questions between speakers, in the third person, and the place of each turn.

    The next turn answers. `THEM` stands for whoever is asked.
    """
    for place, (turn, reply) in enumerate(pairwise(turns)):
        asked = _QUESTION.search(turn.content)
        words = len(reply.content.split())
        if (
            asked
            and turn.role != reply.role
            and words >= _ANSWER_WORDS
            and not reply.content.rstrip().endswith("?")
        ):
            text = asked[1].strip()
            if len(text.split()) in _ASKED_WORDS and _TO_YOU.search(text):
                for ours, theirs in _ABOUT_THEM.items():
                    text = re.sub(
                        rf"\b(?:{ours})\b", theirs.replace("~", THEM), text, flags=re.IGNORECASE
                    )
                yield text[0].upper() + text[1:], place


def _plain(slot: str) -> str:
    return slot.rpartition("-")[2].replace("_", " ")
