"""What readers share that make turns out of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...models.dialogue import Turn
from ..records import convert_each, field, names

Slots = tuple[tuple[str, str], ...]
"""Names and values."""

Label = tuple[str, str, str]
"""Act, slot and value."""


def turns_of(raw: Any, name: str, turn: Callable[[Any], Turn]) -> tuple[Turn, ...]:  # noqa: ANN401
    """Converts a list of turns, the field `name` of a record."""
    return convert_each(field(raw, name, list), name, turn)


def exchanges_of(raw: Any, name: str, said: Callable[[Any], Iterable[Turn]]) -> tuple[Turn, ...]:  # noqa: ANN401
    """Converts a list, the field `name` of a record, each element of which holds no turn, one or several."""
    return tuple(turn for turns in convert_each(field(raw, name, list), name, said) for turn in turns)


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Names in lower case, each once."""
    return tuple(dict.fromkeys(name.lower() for name in names))


def labelled(role: str, text: str, labels: Iterable[Label]) -> Turn:
    """Makes a turn of labels; one without a slot says nothing of any slot and is left out."""
    named = [label for label in labels if label[1]]
    slots = tuple((slot.lower(), value) for _, slot, value in named)
    return Turn(role, text, tuple(dict.fromkeys(act for act, _, _ in named)), slots)


def marked(utterance: Any) -> Slots:  # noqa: ANN401
    """Reads the slots of an utterance: stretches of its ``tokens``."""
    spans = field(utterance, "slots", list)
    tokens = names(utterance, "tokens") if spans else ()
    return tuple(
        (
            field(span, "slot", str).lower(),
            " ".join(tokens[field(span, "start", int) : field(span, "exclusive_end", int)]),
        )
        for span in spans
    )
