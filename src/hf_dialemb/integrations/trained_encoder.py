"""What the classes for other libraries share: an encoder that is trained already, and loaded where it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..encoders.baselines import BASELINES
from ..encoders.specs import Encoder, find_encoder, load_encoder
from ..models.errors import InputError
from .inputs import as_dialogues, each_read
from .transcripts import from_transcript


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
        dialogues = as_dialogues(_with_transcripts(items, field), field)
        with self._lock:  # fast tokenizers refuse two threads at once
            if self._encoder is None:
                self._encoder = load_encoder(self.model, batch_size=self.batch_size, device=self.device)
            return np.asarray(self._encoder.encode(dialogues), dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _encoder=None, _lock=Lock())


def _with_transcripts(items: Iterable[Any], field: str) -> Iterable[Any]:
    if isinstance(items, str):
        return items  # which is refused as one
    return each_read(lambda item: from_transcript(item) if isinstance(item, str) else item, items, field)
