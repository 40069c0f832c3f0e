"""What other libraries hand over, read as dialogues, and the encoder that what is made for them shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpora.loading import listed
from ..dialogue import ROLES, Dialogue, Turn
from ..encoders.baselines import BASELINES
from ..encoders.specs import Encoder, find_encoder, load_encoder
from ..errors import InputError

_START = re.compile(rf"({'|'.join(ROLES)}): ")
_FURTHER = "  "  # what a turn's second and later lines begin with, so that none is taken for another's turn


def as_dialogues(items: Iterable[Any], field: str = "dialogues") -> list[Dialogue]:
    """Reads dialogues; an InputError says that there is none, or which one of ``field`` is malformed.

    Each is a text, which becomes a dialogue of one turn of the user; a list of chat messages; an object with
    ``messages``; or a `Dialogue`. A column of a table or an array of objects does as well.
    """
    if isinstance(items, str | Mapping | Dialogue):
        raise InputError(f"{field}: got one {type(items).__name__}, expected a list of dialogues; put it into a list")
    dialogues = each_read(_as_dialogue, items, field)
    if not dialogues:
        raise InputError(f"{field}: got none, expected at least one; look at what is handed over")
    return dialogues


def each_read(read: Callable[[Any], Any], items: Iterable[Any], field: str) -> list[Any]:
    """Reads each item; the place of one that is refused goes before the sentence."""
    found = []
    for place, item in enumerate(items):
        try:
            found.append(read(item))
        except InputError as error:
            raise InputError(f"{field}[{place}]: {error}") from None
    return found


def in_chat_messages(item: Any, kind: type, read: Callable[[Any], dict[str, Any] | None]) -> Any:  # noqa: ANN401
    """Puts chat messages into the place of another library's ones, wherever a dialogue may have them.

    ``read`` makes one of a message of that ``kind``, or None of what is no turn. System prompts, tool calls and what
    tools return are none and left out; what is anything else stays.
    """
    if isinstance(item, kind):
        item = [item]
    if isinstance(item, Mapping) and "messages" in item:
        return {**item, "messages": in_chat_messages(item["messages"], kind, read)}
    if isinstance(item, str) or not isinstance(item, Sequence):
        return item
    messages = (read(each) if isinstance(each, kind) else each if _is_turn(each) else None for each in item)
    return [message for message in messages if message is not None]


def check_lengths(first: Sequence[Any], field: str, second: Sequence[Any], other: str) -> None:
    """Makes sure that two lists that belong together are of one length."""
    if len(first) != len(second):
        raise InputError(
            f"{field} and {other}: got {len(first)} and {len(second)}, expected as many; give each of {field} its own"
        )


def _is_turn(message: Any) -> bool:  # noqa: ANN401 - whatever a list may hold
    if not isinstance(message, Mapping):
        return True
    called = bool(message.get("tool_calls")) and not message.get("content")
    return message.get("role") not in ("system", "developer", "tool", "function") and not called


def _as_dialogue(item: Any) -> Dialogue:  # noqa: ANN401 - whatever a list may hold
    if isinstance(item, Dialogue):
        return item
    if isinstance(item, str):
        return Dialogue((Turn("user", item),))
    item = listed(item)
    if isinstance(item, Mapping):
        return Dialogue.from_json(item)
    if not isinstance(item, Sequence):
        raise InputError(
            f"got {type(item).__name__}, expected a text, a list of chat messages or a Dialogue; leave it out"
        )
    return Dialogue.from_messages(item)


class TrainedEncoder:
    """An encoder whose vector of a dialogue depends on that dialogue alone, so that it may come in any batch.

    Weights are loaded at the first use, and again where the settings are pickled or copied to. Threads wait for each
    other. An InputError refuses a model that is not found, or is fitted on what it encodes.
    """

    def __init__(self, model: str, batch_size: int = 32, device: str | None = None) -> None:
        found = find_encoder(model)
        if found.whitened or found.kind in BASELINES:
            raise InputError(
                f"model '{model}': got an encoder that is fitted on the very dialogues that it encodes, expected one "
                "whose vectors do not depend on what else is encoded; choose a trained model"
            )
        self.model = model
        self.batch_size = batch_size
        self.device = device
        self._encoder: Encoder | None = None
        self._lock = Lock()

    def encode(self, items: Iterable[Any], field: str = "dialogues") -> NDArray[np.float32]:
        """Returns one vector, ``(N, D)`` float32, of each text, transcript or what else `as_dialogues` reads."""
        if not isinstance(items, str):  # which is refused
            items = each_read(lambda item: from_transcript(item) if isinstance(item, str) else item, items, field)
        dialogues = as_dialogues(items, field)
        with self._lock:  # fast tokenizers refuse two threads at once
            if self._encoder is None:
                self._encoder = load_encoder(self.model, batch_size=self.batch_size, device=self.device)
            return np.asarray(self._encoder.encode(dialogues), dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _encoder=None, _lock=Lock())


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
