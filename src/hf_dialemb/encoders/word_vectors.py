"""Averaged word vectors: of text files, as GloVe's are, and of tables in sentence-transformers' form, without torch."""

import logging
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..checkpoints.pretrained import short_reason
from ..errors import InputError
from .tfidf import WORD

logger = logging.getLogger(__name__)

_MODULE = "0_StaticEmbedding"
_PART = 2_000  # texts that are tokenized at once


class WordVectors:
    """Embed texts as the mean over their words that a file has.

    A word is looked up as it is written, then in lower case. Memory holds only the words of the texts; the file is read
    again for new ones. See `hf_dialemb.methods.words.read_word_vectors` for its forms.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._size = 0
        self._known: set[str] = set()
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed N texts, ``(N, D)`` float32; texts without a word of the file get zeros, and a warning counts them."""
        written = [re.findall(WORD, text) for text in texts]
        self._look_up({form for words in written for word in words for form in (word, word.lower())})
        result = np.zeros((len(texts), self._size), dtype=np.float32)
        unknown = 0
        for row, words in enumerate(written):
            forms = (word if word in self._vectors else word.lower() for word in words)
            known = [self._vectors[form] for form in forms if form in self._vectors]
            if known:
                result[row] = np.mean(known, axis=0)
            unknown += not known
        if unknown:
            logger.warning("%d of %d texts hold no word of %s: their vectors are zero", unknown, len(texts), self._path)
        return result

    def _look_up(self, words: set[str]) -> None:
        from ..methods.words import read_word_vectors

        new = sorted(words - self._known)
        if not new and self._size:
            return
        vectors, there = read_word_vectors(self._path, new)
        self._size = vectors.shape[1]
        self._known.update(new)
        self._vectors.update((new[place], vectors[place]) for place in np.flatnonzero(there))


class StaticVectors:
    """Embed texts as the mean over their word pieces, stored as 8-bit integers with a scale for each piece."""

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
        """Embed N texts, ``(N, D)`` float32; texts without a word piece get zeros."""
        result = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), _PART):
            part = list(texts[start : start + _PART])
            for row, encoded in enumerate(self._tokenizer.encode_batch_fast(part, add_special_tokens=False), start):
                if pieces := encoded.ids:  # numpy's mean of the same takes half as long again
                    np.divide(np.add.reduce(self._table.take(pieces, axis=0), axis=0), len(pieces), out=result[row])
        return result


def is_static(path: str) -> bool:
    """Return whether a folder holds such a table; other static models are left to sentence-transformers."""
    file = Path(path) / _MODULE / "model.safetensors"
    if not file.is_file():
        return False
    from safetensors import safe_open

    try:
        with safe_open(str(file), framework="np") as tensors:
            return {"embeddings", "weights"} == set(tensors.keys())
    except Exception:  # StaticVectors says what is wrong with it
        return True
