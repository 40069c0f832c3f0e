"""A sentence-transformers model that is at hand, as an encoder that every task of the benchmark can measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..encoders.text_models import TextEncoder
from ..errors import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SentenceEncoder:
    """Makes an encoder of dialogues from a sentence-transformers model, whose weights may change between two calls.

    A model that reads chat messages gets them as they are. To any other a dialogue is its turns joined by blanks, as it
    is to the encoders that `hf_dialemb.evaluation.load_encoder` makes of such models. Result tables call it ``name``.
    """

    def __init__(self, model: SentenceTransformer, batch_size: int = 32, name: str = "sentence-transformers") -> None:
        self.model = model
        self.batch_size = batch_size
        self.name = name

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32; an InputError says that there is none."""
        if not self.model.supports("message"):
            return TextEncoder(self.name, self._embed).encode(dialogues)
        if not dialogues:
            raise InputError("dialogues: got none, expected at least one; look at what is handed over")
        return self._embed([dialogue.to_messages() for dialogue in dialogues])

    def _embed(self, inputs: Sequence[Any]) -> NDArray[np.float32]:
        vectors = self.model.encode(list(inputs), batch_size=self.batch_size, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)
