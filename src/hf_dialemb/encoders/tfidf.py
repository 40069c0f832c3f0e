"""TF-IDF, fitted without labels on the very dialogues that it encodes: vectors of two calls do not compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError

WORD = r"(?u)[\u3400-\u9fff]|\b\w\w+\b"
"""A word: scikit-learn's own pattern of two letters or more, or a Chinese character."""

_FEW = 100  # a word of one dialogue tells nothing about any other, but fewer dialogues cannot afford to lose it


@dataclass(frozen=True)
class TfidfEncoder:
    """TF-IDF reduced by a truncated SVD to ``components``; smaller vocabularies keep all of theirs."""

    fitted_on_input: ClassVar[bool] = True

    name: str = "tfidf"
    components: int = 256
    seed: int = 0

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fit on the dialogues and return their vectors, ``(N, D)`` float32 with D <= components."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = joined_turns(dialogues)
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=least_count(texts), token_pattern=WORD)
        counts = count_words(vectorizer, texts, "tfidf")
        if counts.shape[1] <= self.components:
            return np.asarray(counts.toarray(), dtype=np.float32)
        reduction = TruncatedSVD(min(self.components, len(texts)), random_state=self.seed)
        return np.asarray(reduction.fit_transform(counts), dtype=np.float32)


def joined_turns(dialogues: Sequence[Dialogue]) -> list[str]:
    """Return the turns of each dialogue joined by spaces."""
    return [" ".join(turn.content for turn in dialogue.turns) for dialogue in dialogues]


def least_count(texts: Sequence[str]) -> int:
    """Return the number of texts that must hold a word for it to count."""
    return 2 if len(texts) >= _FEW else 1


def count_words(vectorizer: Any, texts: Sequence[str], name: str) -> Any:  # noqa: ANN401 - scikit-learn's, sparse
    """Fit a vectorizer of scikit-learn and return its counts; refuse texts without a common word."""
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:
        raise InputError(f"{name}: got dialogues without common words ({error}); use a neural encoder") from error
