"""A dialogue as text for a terminal, and the search for a dialogue by its id."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches

from ..dialogue import Dialogue, Turn
from ..drawing import visible
from ..errors import InputError

MIN_TEXT_WIDTH = 20  # columns that the text of a turn has at least, however narrow the page
_SUGGESTIONS = 3
_SIMILARITY = 0.6  # below it, a suggestion is no longer a misspelling


def render_dialogue(dialogue: Dialogue, width: int = 100) -> str:
    """Write a dialogue as plain text: id, domains, turns, then each turn's speaker, text and labels.

    Texts are wrapped to ``width`` columns, of which a Chinese or Japanese character takes two, but not below
    `MIN_TEXT_WIDTH`. Labels stand under them in brackets, such as ``[inform: area=north, price | intent: book_hotel]``.
    Lines of an utterance stay lines; other white space becomes one space, and `visible` holds for the rest.
    """
    turns = len(dialogue.turns)
    speakers = [f"{role} {sum(turn.role == role for turn in dialogue.turns):,}" for role in dialogue.roles]
    lines = [
        *_block("id       ", visible(dialogue.id) or "(none)", width),
        *_block("domains  ", visible(", ".join(dialogue.domains)) or "(none)", width),
        *_block("turns    ", f"{turns:,} ({', '.join(speakers)})", width),
    ]
    column = max(len(role) for role in dialogue.roles) + 2
    for turn in dialogue.turns:
        lines += ["", *_block(turn.role.ljust(column), _readable(turn.content), width)]
        labels = _labels(turn)
        if labels:
            # Four columns further in, so that an utterance in brackets is not taken for labels.
            lines += _block(" " * (column + 4), visible(f"[{labels}]"), width)
    return "\n".join(lines)


def find_dialogue(dialogues: Iterable[Dialogue], id: str) -> Dialogue:
    """Return the dialogue of an id, or of a position such as ``"#12"``, which is never taken for an id.

    A stream is read no further than needed. If there is none, an InputError names the nearest ids.
    """
    match = re.fullmatch(r"#(\d{1,18})", id)
    position = int(match[1]) if match else None
    if position == 0:
        raise InputError("id: got the position '#0', but positions count from one; the first dialogue is '#1'")
    count = 0
    others: dict[str, None] = {}
    for count, dialogue in enumerate(dialogues, start=1):
        if position == count if match else dialogue.id == id:
            return dialogue
        if not match:
            others[dialogue.id] = None
    if position is not None:
        raise InputError(f"id: got the position {id!r}, expected at most '#{count}': there are {count:,} dialogues")
    raise InputError(f"id: got {id!r}, which none of {count:,} dialogues has; {_remedy(id, others)}")


def _remedy(wanted: str, ids: Collection[str]) -> str:
    # Of equally near ones the first in the alphabet are named, where difflib alone would take the last.
    near = get_close_matches(wanted, ids, max(1, len(ids)), _SIMILARITY)
    if near:
        nearest = sorted(near, key=lambda id: (-SequenceMatcher(None, id, wanted).ratio(), id))
        names = ", ".join(map(repr, nearest[:_SUGGESTIONS]))
        return f"the nearest: {names}; give one of them, or a position such as '#12'"
    if first := next(filter(None, ids), ""):
        return f"ids look like {first!r}; give such an id, or a position such as '#12'"
    return "they have no ids; give a position such as '#12'"


def _labels(turn: Turn) -> str:
    acts = ", ".join(turn.dialogue_acts)
    slots = ", ".join(f"{name}={value}" if value else name for name, value in turn.slots)
    parts = [f"{acts or 'slots'}: {slots}" if slots else acts]
    if turn.intents:
        parts.append(f"intent: {', '.join(turn.intents)}")
    return " | ".join(part for part in parts if part)


def _readable(content: str) -> str:
    """Keep the lines of an utterance, which are harmless since they are indented."""
    text = content.replace("\r\n", "\n").replace("\t", " ")
    return "\n".join(visible(line) for line in text.split("\n"))


def _block(head: str, text: str, width: int) -> list[str]:
    """Put a text to the right of its head, and its further lines below."""
    wrapped = list(_wrap(text, max(width - len(head), MIN_TEXT_WIDTH)))
    return [f"{head if number == 0 else ' ' * len(head)}{line}".rstrip() for number, line in enumerate(wrapped)]


def _wrap(text: str, width: int) -> Iterator[str]:
    """Break a text at its spaces, and a longer word than a line wherever the line ends."""
    for line in text.split("\n"):
        parts: list[str] = []
        free = width
        for word in line.split():
            space = 1 if parts else 0
            if parts and space + _columns(word) > free:
                yield "".join(parts)
                parts, free, space = [], width, 0
            parts.append(" " * space)
            free -= space
            for character in word:
                columns = _columns(character)
                if columns > free:
                    yield "".join(parts)
                    parts, free = [], width
                parts.append(character)
                free -= columns
        yield "".join(parts)


def _columns(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(character) in {"Mn", "Me", "Cf"}
        else 2 if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )  # fmt: skip
