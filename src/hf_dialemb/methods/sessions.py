"""How turns are read: after their speakers' names, and in sessions, within which they lend each other meaning."""

from collections.abc import Iterator
from datetime import datetime

from ..dialogue import Dialogue, Turn

GAP = 4.0
"""Hours without a word after which a conversation begins anew: nothing is read across."""

BESIDE = {1: 0.4, 2: 0.3, -1: 0.3, -2: 0.2}
"""What the vectors of turns so far before, or after, count for beside the turn's own; chosen on LoCoMo (dev)."""


def spoken(turn: Turn) -> str:
    """Return a turn as it is read: after its speaker's name and a colon, if the name is known."""
    return f"{turn.name}: {turn.content}" if turn.name else turn.content


def sessions(dialogue: Dialogue) -> Iterator[tuple[Turn, ...]]:
    """Divide a dialogue where `GAP` hours or more pass between two turns whose times are known."""
    begun, known = 0, ""
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
    earlier, later = datetime.fromisoformat(first), datetime.fromisoformat(second)
    if (earlier.tzinfo is None) != (later.tzinfo is None):  # an offset that one lacks is not guessed
        earlier, later = earlier.replace(tzinfo=None), later.replace(tzinfo=None)
    return abs((later - earlier).total_seconds()) >= 3600 * GAP
