"""A dialogue as text for a terminal, and the search for a dialogue by its id."""

import re
import textwrap
from collections.abc import Iterable
from difflib import get_close_matches

from ...dialogue import Dialogue, Turn
from ...display import visible
from ...errors import InputError

MIN_TEXT_WIDTH = 20  # least columns of the text of a turn, however narrow the page


def render_dialogue(dialogue: Dialogue, width: int = 100) -> str:
    """Write a dialogue as plain text: id, domains, then each turn's speaker, text and labels.

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
        *_block("id       ", dialogue.id or "(none)", width),
        *_block("domains  ", ", ".join(dialogue.domains) or "(none)", width),
        *(_block("metadata ", known, width) if known else []),
        *_block("turns    ", f"{len(dialogue.turns):,} ({', '.join(speakers)})", width),
    ]
    column = max(map(len, dialogue.roles)) + 2
    for turn in dialogue.turns:
        text = turn.content.replace("\r\n", "\n").replace("\t", " ")
        lines.append("")
        for number, line in enumerate(text.split("\n")):
            lines += _block(("" if number else turn.role).ljust(column), line, width)
        if labels := _labels(turn):
            # Four columns further in, so that an utterance in brackets is not taken for labels.
            lines += _block(" " * (column + 4), f"[{labels}]", width)
    return "\n".join(lines)


def turn_lines(dialogues: Iterable[Dialogue], most: int) -> list[str]:
    """Return a line for each of the first turns: speaker, time and how the text begins."""
    turns = []
    for dialogue in dialogues:
        for place, turn in enumerate(dialogue.turns):
            name = f"{turn.name} ({turn.role})" if turn.name else turn.role
            time = turn.time or ("" if place else dialogue.time)
            turns.append((name, time, " ".join(turn.content.split())[:60]))
    turns = turns[:most]
    names = min(max((len(name) for name, _, _ in turns), default=0), 40)
    times = max((len(time) for _, time, _ in turns), default=0)
    return ["  " + visible(f"{name:{names}}  {time:{times}}  {text}") for name, time, text in turns]


def find_dialogue(dialogues: Iterable[Dialogue], id: str) -> Dialogue:
    """Return the dialogue of an id, or of a position such as ``"#12"``, which is no id.

    A stream is read no further than needed. If there is none, an InputError names near ids.
    """
    position = re.fullmatch(r"#([1-9]\d{0,17})", id)
    others: dict[str, None] = {}
    count = 0
    for count, dialogue in enumerate(dialogues, start=1):
        if count == int(position[1]) if position else dialogue.id == id:
            return dialogue
        others[dialogue.id] = None
    if id.startswith("#"):
        raise InputError(f"id: got the position {id!r}, expected one from '#1' to '#{count}'")
    near = get_close_matches(id, sorted(others)) or list(filter(None, others))[:1]
    known = f"such as {', '.join(map(repr, near))}, " if near else ""
    raise InputError(
        f"id: got {id!r}, which none of {count:,} dialogues has, expected an id, {known}or a "
        "position such as '#12'"
    )


def _labels(turn: Turn) -> str:
    acts = ", ".join(turn.dialogue_acts)
    slots = ", ".join(f"{name}={value}" if value else name for name, value in turn.slots)
    parts = [f"{acts or 'slots'}: {slots}" if slots else acts]
    if turn.intents:
        parts.append(f"intent: {', '.join(turn.intents)}")
    return " | ".join(part for part in parts if part)


def _block(head: str, text: str, width: int) -> list[str]:
    """Put a text of one line, wrapped and safe to print, to the right of its head."""
    lines = textwrap.wrap(
        " ".join(visible(text).split()),
        max(width - len(head), MIN_TEXT_WIDTH),
        break_on_hyphens=False,
    )
    first, *others = lines or [""]
    return [f"{head}{first}".rstrip(), *(" " * len(head) + line for line in others)]
