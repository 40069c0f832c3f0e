"""Averaged word vectors, from files that hold a word and its numbers on each line, as GloVe's and word2vec's do."""

import logging
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .baselines import WORD

logger = logging.getLogger(__name__)


class WordVectors:
    """Embeds texts as the mean over their words that a file has.

    A word is looked up as it is written, then in lower case. Of the file only the words that are needed are kept; it is
    read again when a text brings new ones. See `hf_dialemb.models.words.read_word_vectors` for its forms.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._size = 0
        self._sought: set[str] = set()
        self._found: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds N texts, ``(N, D)`` float32; zero for one without any word of the file, and a warning counts those."""
        written = [re.findall(WORD, text) for text in texts]
        self._look_up({form for words in written for word in words for form in (word, word.lower())})
        result = np.zeros((len(texts), self._size), dtype=np.float32)
        unknown = 0
        for row, words in enumerate(written):
            forms = (word if word in self._found else word.lower() for word in words)
            known = [self._found[form] for form in forms if form in self._found]
            if known:
                result[row] = np.mean(known, axis=0)
            unknown += not known
        if unknown:
            logger.warning("%d of %d texts hold no word of %s: their vectors are zero", unknown, len(texts), self._path)
        return result

    def _look_up(self, words: set[str]) -> None:
        from ..models.words import read_word_vectors

        new = sorted(words - self._sought)
        if not new and self._size:
            return
        vectors, found = read_word_vectors(self._path, new)
        self._size = vectors.shape[1]
        self._sought.update(new)
        self._found.update((new[place], vectors[place]) for place in np.flatnonzero(found))
