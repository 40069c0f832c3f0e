"""What other libraries hand over, read as dialogues: texts, chat messages, records and `Dialogue` objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError


def as_dialogues(items: Iterable[Any], field: str = "dialogues") -> list[Dialogue]:
    """Reads a list of dialogues.

    Args:
        items: Each a text, which becomes a dialogue of one turn of the user; a list of chat messages; an object with
            ``messages``; or a `Dialogue`. A column of a table or an array of objects does as well.
        field: What an error calls the list.

    Returns:
        The dialogues, in order.

    Raises:
        InputError: There is none, or one is malformed; the sentence names its place.
    """
    if isinstance(items, str | Mapping | Dialogue):
        raise InputError(f"{field}: got one {type(items).__name__}, expected a list of dialogues; put it into a list")
    dialogues = []
    for place, item in enumerate(items):
        try:
            dialogues.append(_as_dialogue(item))
        except InputError as error:
            raise InputError(f"{field}[{place}]: {error}") from None
    if not dialogues:
        raise InputError(f"{field}: got none, expected at least one; look at what is handed over")
    return dialogues


def is_turn(message: Any) -> bool:  # noqa: ANN401 - whatever a list may hold
    """Says whether a chat message may be a turn: no prompt, no call of a tool, and not what a tool returned."""
    if not isinstance(message, Mapping):
        return True
    called = bool(message.get("tool_calls")) and not message.get("content")
    return message.get("role") not in ("system", "developer", "tool", "function") and not called


def check_lengths(first: Sequence[Any], field: str, second: Sequence[Any], other: str) -> None:
    """Makes sure that two lists that belong together are of one length.

    Raises:
        InputError: They are not.
    """
    if len(first) != len(second):
        raise InputError(
            f"{field} and {other}: got {len(first)} and {len(second)}, expected as many; give each of {field} its own"
        )


def _as_dialogue(item: Any) -> Dialogue:  # noqa: ANN401 - whatever a list may hold
    if isinstance(item, Dialogue):
        return item
    if isinstance(item, str):
        return Dialogue((Turn("user", item),))
    item = _listed(item)
    if isinstance(item, Mapping):
        return Dialogue.from_json(item)
    if not isinstance(item, Sequence):
        raise InputError(
            f"got {type(item).__name__}, expected a text, a list of chat messages or a Dialogue; leave it out"
        )
    return Dialogue.from_messages(item)


def _listed(value: Any) -> Any:  # noqa: ANN401
    """Makes lists of arrays at any depth, as which tables give lists back."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _listed(inner) for name, inner in value.items()}
    return [_listed(inner) for inner in value] if isinstance(value, list | tuple) else value
