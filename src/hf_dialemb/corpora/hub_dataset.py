"""Dialogues to and from a Hugging Face dataset: columns ``id``, ``messages``, ``domains``, with explicit features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..models.dialogue import Dialogue
from .records import convert_records

if TYPE_CHECKING:
    from datasets import Dataset, Features


def dialogue_features() -> Features:
    """Returns the features of a dataset of dialogues.

    Returns:
        ``id``, ``messages`` (role, content, dialogue_acts, slots, intents) and ``domains``.
    """
    from datasets import Features, List, Value

    string = Value("string")
    message = {
        "role": string,
        "content": string,
        "dialogue_acts": List(string),
        "slots": List({"name": string, "value": string}),
        "intents": List(string),
    }
    return Features({"id": string, "messages": List(message), "domains": List(string)})


def to_dataset(dialogues: Iterable[Dialogue]) -> Dataset:
    """Makes a dataset of dialogues.

    Args:
        dialogues: The dialogues; there may be none.

    Returns:
        A dataset with the features of `dialogue_features`, one row per dialogue.
    """
    from datasets import Dataset

    columns: dict[str, list[Any]] = {"id": [], "messages": [], "domains": []}
    for dialogue in dialogues:
        columns["id"].append(dialogue.id)
        columns["messages"].append([_message(turn) for turn in dialogue.turns])
        columns["domains"].append(list(dialogue.domains))
    return Dataset.from_dict(columns, features=dialogue_features())


def from_dataset(dataset: Dataset) -> list[Dialogue]:
    """Takes the dialogues out of a dataset.

    Args:
        dataset: A dataset with the column ``messages`` (mappings with ``role`` and ``content``); ``id``, ``domains``
            and the messages' labels may be missing or None.

    Returns:
        The dialogues, in the order of the rows.

    Raises:
        InputError: A row is malformed; the sentence names the row and the field.
    """
    return list(convert_records(_rows(dataset), Dialogue.from_json))


def _rows(dataset: Dataset) -> Iterator[tuple[str, Any]]:
    for index, row in enumerate(dataset):
        yield f"row {index}", row


def _message(turn: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "role": turn.role,
        "content": turn.content,
        "dialogue_acts": list(turn.dialogue_acts),
        "slots": [{"name": name, "value": value} for name, value in turn.slots],
        "intents": list(turn.intents),
    }
