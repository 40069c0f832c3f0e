"""What tasks on single texts share: each distinct text embedded once, cosines of pairs, and texts cut to words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...encoders import Encoder
from ...metrics.vectors import COSINE_STEPS

_WORD = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")  # Chinese has no blanks: each of its characters is a word


class TextVectors:
    """The vectors of texts, each distinct text encoded once."""

    def __init__(self, encoder: Encoder, texts: Iterable[str]) -> None:
        self._places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        self._vectors = encoder.encode_utterances(list(self._places))

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some of them, ``(N, D)``."""
        return self._vectors[[self._places[text] for text in texts]]


def row_cosines(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the cosine of each row with the same, or the only, row of another matrix, (N,); of zero vectors 0."""
    entry, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not (np.isfinite(entry).all() and np.isfinite(other).all()):
        raise ValueError("embeddings: got a vector with NaN or infinity, expected finite numbers; look at the encoder")
    lengths = np.linalg.norm(entry, axis=1) * np.linalg.norm(other, axis=1)
    cosines: NDArray[np.float64] = np.einsum("nd,nd->n", entry, np.broadcast_to(other, entry.shape))
    return np.rint(cosines / np.where(lengths == 0, 1, lengths) * COSINE_STEPS) / COSINE_STEPS


def first_words(text: str, count: int) -> str:
    """Keep the beginning of a text, at most ``count`` words; a Chinese character counts as a word."""
    words = list(_WORD.finditer(text))
    return text if len(words) <= count else text[: words[count - 1].end()]


def last_words(text: str, count: int) -> str:
    """Keep the end of a text, at most ``count`` words; a Chinese character counts as a word."""
    words = list(_WORD.finditer(text))
    return text if len(words) <= count else text[words[-count].start() :]
