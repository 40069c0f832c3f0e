"""A dialogue as text for a terminal, and the search for a dialogue by its id."""

import re
from collections.abc import Iterable

import yaml

from ...dialogue import Dialogue
from ...display import visible
from ...errors import InputError, nearest


def render_dialogue(dialogue: Dialogue) -> str:
    """Write a dialogue with its labels as YAML; what could command a terminal becomes escapes."""
    text = yaml.safe_dump(dialogue.to_json(), sort_keys=False, allow_unicode=True, width=100)
    return "\n".join(map(visible, text.split("\n"))).rstrip()


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
    others = set()
    count = 0
    for count, dialogue in enumerate(dialogues, start=1):
        if count == int(position[1]) if position else dialogue.id == id:
            return dialogue
        others.add(dialogue.id)
    raise InputError(
        f"id: got {id!r}, which none of {count:,} dialogues has; give an id, or a position such as "
        f"'#12'.{nearest(id, others)}"
    )
