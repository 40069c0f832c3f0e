"""Tables of word vectors in sentence-transformers' form: a lookup and a mean, without torch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..models.backbones import short_reason
from ..models.errors import InputError

_MODULE = "0_StaticEmbedding"
_PART = 2_000  # texts that are tokenized at once


class StaticVectors:
    """Embeds texts as the mean over their word pieces, of whole numbers of eight bits with a scale for each piece."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        try:
            tensors = load_file(folder / _MODULE / "model.safetensors")
            self._tokenizer = Tokenizer.from_file(str(folder / _MODULE / "tokenizer.json"))
        except Exception as error:  # the libraries below are of Rust, and raise what they like
            reason = short_reason(error)
            raise InputError(f"'{folder}' cannot be read ({reason}); fetch or make the model again") from None
        self._table = tensors["embeddings"].astype(np.float32) * tensors["weights"][:, None]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds N texts, ``(N, D)`` float32; zero for one without a word piece."""
        result = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), _PART):
            part = list(texts[start : start + _PART])
            for row, encoded in enumerate(self._tokenizer.encode_batch(part, add_special_tokens=False), start):
                if encoded.ids:
                    result[row] = self._table[encoded.ids].mean(axis=0)
        return result


def is_static(path: str) -> bool:
    """Says whether a folder holds such a table; other static models are left to sentence-transformers."""
    file = Path(path) / _MODULE / "model.safetensors"
    if not file.is_file():
        return False
    from safetensors import safe_open

    try:
        with safe_open(str(file), framework="np") as tensors:
            return {"embeddings", "weights"} == set(tensors.keys())
    except Exception:  # StaticVectors says what is wrong with it
        return True
