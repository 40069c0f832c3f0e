"""A dialogue as text for a terminal, and the search for a dialogue by its id."""

import re
import textwrap
from collections.abc import Iterable
from difflib import get_close_matches

from ..dialogue import Dialogue, Turn
from ..drawing import visible
from ..errors import InputError

MIN_TEXT_WIDTH = 20  # least columns of the text of a turn, however narrow the page


def render_dialogue(dialogue: Dialogue, width: int = 100) -> str:
    """Write a dialogue as plain text.

    Id, domains, turns, then each turn's speaker, text and labels.

    Texts are wrapped to ``width`` characters, but not below `MIN_TEXT_WIDTH`. Labels stand under
    them in brackets, such as ``[inform: area=north, price | intent: book_hotel]``. Lines of an
    utterance stay lines; other white space becomes one space, and invisible characters become
    escapes.
    """
    speakers = [
        f"{role} {sum(turn.role == role for turn in dialogue.turns):,}" for role in dialogue.roles
    ]
    known = ", ".join(f"{name}={value}" for name, value in dialogue.metadata.items())
    lines = [
        *_block("id       ", visible(dialogue.id) or "(none)", width),
        *_block("domains  ", visible(", ".join(dialogue.domains)) or "(none)", width),
        *(_block("metadata ", visible(known), width) if known else []),
        *_block("turns    ", f"{len(dialogue.turns):,} ({', '.join(speakers)})", width),
    ]
    column = max(map(len, dialogue.roles)) + 2
    for turn in dialogue.turns:
        text = turn.content.replace("\r\n", "\n").replace("\t", " ")
        lines += [
            "",
            *_block(turn.role.ljust(column), "\n".join(map(visible, text.split("\n"))), width),
        ]
        if labels := _labels(turn):
            # Four columns further in, so that an utterance in brackets is not taken for labels.
            lines += _block(" " * (column + 4), visible(f"[{labels}]"), width)
    return "\n".join(lines)


def turn_lines(dialogues: Iterable[Dialogue], most: int) -> list[str]:
    """Return a line for each of the first turns, as they were read.

    Speaker, time and how the text begins.
    """
    turns = [(dialogue, turn) for dialogue in dialogues for turn in dialogue.turns][:most]
    names = [f"{turn.name} ({turn.role})" if turn.name else turn.role for _, turn in turns]
    width = min(max(map(len, names), default=0), 40)
    times = [
        turn.time or (dialogue.time if turn is dialogue.turns[0] else "")
        for dialogue, turn in turns
    ]
    column = max(map(len, times), default=0)
    rows = zip(names, times, turns, strict=True)
    lines = (
        f"{name:{width}}  {time:{column}}  {' '.join(turn.content.split())[:60]}"
        for name, time, (_, turn) in rows
    )
    return [f"  {visible(line)}" for line in lines]


def find_dialogue(dialogues: Iterable[Dialogue], id: str) -> Dialogue:
    """Return the dialogue of an id, or of a position such as ``"#12"``, which is never taken for an
    id.

    A stream is read no further than needed. If there is none, an InputError names near ids.
    """
    match = re.fullmatch(r"#(\d{1,18})", id)
    if match and int(match[1]) == 0:
        raise InputError(
            "id: got the position '#0', but positions count from one; the first dialogue is '#1'"
        )
    count = 0
    others: dict[str, None] = {}
    for count, dialogue in enumerate(dialogues, start=1):
        if count == int(match[1]) if match else dialogue.id == id:
            return dialogue
        others[dialogue.id] = None
    if match:
        raise InputError(
            f"id: got the position {id!r}, expected at most '#{count}': there are {count:,} "
            "dialogues"
        )
    near, first = get_close_matches(id, sorted(others)), next(filter(None, others), "")
    ids = f"ids look like {first!r}; give such an id, or" if first else "they have no ids; give"
    ids = f"the nearest: {', '.join(map(repr, near))}; give one of them, or" if near else ids
    raise InputError(
        f"id: got {id!r}, which none of {count:,} dialogues has; {ids} a position such as '#12'"
    )


def _labels(turn: Turn) -> str:
    acts = ", ".join(turn.dialogue_acts)
    slots = ", ".join(f"{name}={value}" if value else name for name, value in turn.slots)
    parts = [f"{acts or 'slots'}: {slots}" if slots else acts]
    if turn.intents:
        parts.append(f"intent: {', '.join(turn.intents)}")
    return " | ".join(part for part in parts if part)


def _block(head: str, text: str, width: int) -> list[str]:
    """Put a text to the right of its head, and its further lines below."""
    lines = []
    for line in text.split("\n"):
        options = {"break_on_hyphens": False, "width": max(width - len(head), MIN_TEXT_WIDTH)}
        lines += textwrap.wrap(" ".join(line.split()), **options) or [""]  # type: ignore[arg-type]
    return [
        f"{' ' * len(head) if number else head}{line}".rstrip() for number, line in enumerate(lines)
    ]
