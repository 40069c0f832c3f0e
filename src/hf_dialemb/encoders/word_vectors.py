"""Encoders that know words but not their order: TF-IDF, and tables of word pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError
from ..storage.pretrained import short_reason

WORD = r"(?u)[\u3400-\u9fff]|\b\w\w+\b"
"""A word: scikit-learn's own pattern of two letters or more, or a Chinese character."""

# a word of one dialogue tells nothing about any other, but fewer dialogues cannot afford to lose it
_FEW = 100
_TABLE = Path("0_StaticEmbedding", "model.safetensors")
_PART = 2_000  # texts that are tokenized at once


@dataclass(frozen=True)
class TfidfEncoder:
    """TF-IDF, fitted without labels on the very dialogues that it encodes.

    Vectors of two calls do not compare.

    A truncated SVD reduces it to ``components``; smaller vocabularies keep all of theirs.
    """

    fitted_on_input: ClassVar[bool] = True

    name: str = "tfidf"
    components: int = 256
    seed: int = 0

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fit on N dialogues and return their vectors, ``(N, D)`` float32, D <= components."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        counts = count_words(TfidfVectorizer(sublinear_tf=True), dialogue_texts(dialogues), "tfidf")
        if counts.shape[1] <= self.components:
            return np.asarray(counts.toarray(), dtype=np.float32)
        reduction = TruncatedSVD(min(self.components, len(dialogues)), random_state=self.seed)
        return np.asarray(reduction.fit_transform(counts), dtype=np.float32)


def dialogue_texts(dialogues: Sequence[Dialogue]) -> list[str]:
    """Return each dialogue as one text, its turns joined by spaces."""
    return [" ".join(turn.content for turn in dialogue.turns) for dialogue in dialogues]


def least_count(texts: Sequence[str]) -> int:
    """Return the number of texts that must hold a word for it to count."""
    return 2 if len(texts) >= _FEW else 1


def count_words(vectorizer: Any, texts: Sequence[str], name: str) -> Any:
    """Fit a vectorizer of scikit-learn and return its counts.

    Refuse texts without a common word.
    """
    try:
        return vectorizer.set_params(min_df=least_count(texts), token_pattern=WORD).fit_transform(
            texts
        )
    except ValueError as error:
        raise InputError(
            f"{name}: got dialogues without common words ({error}); use a neural encoder"
        ) from error


class StaticVectors:
    """Embed texts as the mean over their word pieces.

    The table holds 8-bit integers with a scale for each piece.
    """

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        try:
            tensors = load_file(folder / _TABLE)
            self._tokenizer = Tokenizer.from_file(str(folder / _TABLE.with_name("tokenizer.json")))
        except Exception as error:  # the libraries below are of Rust, and raise what they like
            reason = short_reason(error)
            raise InputError(
                f"'{folder}' cannot be read ({reason}); fetch or make the model again"
            ) from None
        self._table = tensors["embeddings"].astype(np.float32) * tensors["weights"][:, None]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed N texts, ``(N, D)`` float32; texts without a word piece get zeros."""
        result = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), _PART):
            part = list(texts[start : start + _PART])
            for row, encoded in enumerate(
                self._tokenizer.encode_batch_fast(part, add_special_tokens=False), start
            ):
                if pieces := encoded.ids:  # numpy's mean of the same takes half as long again
                    np.divide(
                        np.add.reduce(self._table.take(pieces, axis=0), axis=0),
                        len(pieces),
                        out=result[row],
                    )
        return result


def is_static(path: str) -> bool:
    """Return whether a folder holds such a table.

    Other static models are left to sentence-transformers.
    """
    from safetensors import safe_open

    if not Path(path, _TABLE).is_file():
        return False
    try:
        with safe_open(Path(path, _TABLE), framework="np") as tensors:
            return {"embeddings", "weights"} == set(tensors.keys())
    except Exception:  # StaticVectors says what is wrong with it
        return True
