"""An encoder that encodes nothing twice, and knows how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..models.dialogue import Dialogue
from .encoders import Encoder, TfidfEncoder

Result = TypeVar("Result")


class RememberingEncoder:
    """An encoder that remembers vectors, so that several tasks on the same texts cost one pass over them.

    A dialogue is known by who says what; its labels make no difference. Vectors of `TfidfEncoder`, which is fitted on
    what it encodes, depend on all dialogues of a call, and are remembered for that very list.

    Attributes:
        encoder: The encoder that does the work.
        seconds: How long it took so far.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.seconds = 0.0
        self._vectors: dict[Hashable, NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """What result tables call it."""
        return self.encoder.name

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)``; equal dialogues get the same one."""
        keys = [tuple((turn.role, turn.content) for turn in dialogue.turns) for dialogue in dialogues]
        if isinstance(self.encoder, TfidfEncoder) or not keys:
            whole = tuple(keys)
            if whole not in self._vectors:
                self._vectors[whole] = self._encode(dialogues)
            return self._vectors[whole]
        missing = {key: dialogue for key, dialogue in zip(keys, dialogues, strict=True) if key not in self._vectors}
        if missing:
            self._vectors.update(zip(missing, self._encode(list(missing.values())), strict=True))
        return np.stack([self._vectors[key] for key in keys])

    def timed(self, work: Callable[[], Result]) -> Result:
        """Does what the encoder is asked for beside vectors, counts how long it took, and returns its result."""
        started = time.perf_counter()
        result = work()
        self.seconds += time.perf_counter() - started
        return result

    def forget(self) -> None:
        """Frees the vectors."""
        self._vectors.clear()

    def _encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        return self.timed(lambda: self.encoder.encode(dialogues))
