"""Baselines that are fitted on the dialogues that they encode: words counted, topics, and document vectors.

None of them sees a label. As they are fitted on their own input, their vectors of two calls do not compare.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..models.dialogue import Dialogue
from ..models.errors import InputError
from .text_models import dialogue_texts

WORD = r"(?u)[\u3400-\u9fff]|\b\w\w+\b"
"""What counts as a word: scikit-learn's own pattern, two letters or more; and each Chinese character."""

_FEW = 100  # a word of one dialogue tells nothing about any other, but fewer dialogues cannot afford to lose it


@dataclass(frozen=True)
class TfidfEncoder:
    """TF-IDF reduced by a truncated SVD: a baseline without any neural network.

    Attributes:
        name: What result tables call it.
        components: Most dimensions of a vector; smaller vocabularies keep all of theirs.
        seed: The random state of the SVD.
    """

    name: str = "tfidf"
    components: int = 256
    seed: int = 0

    fitted_on_input: ClassVar[bool] = True

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fits on the dialogues and returns their vectors, ``(N, D)`` float32 with D <= components.

        Raises:
            InputError: There is no dialogue, or no word to count.
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = dialogue_texts(dialogues)
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=_fewest(texts), token_pattern=WORD)
        counts = _counted(vectorizer, texts, "tfidf")
        if counts.shape[1] <= self.components:
            return np.asarray(counts.toarray(), dtype=np.float32)
        reduction = TruncatedSVD(min(self.components, len(texts)), random_state=self.seed)
        return np.asarray(reduction.fit_transform(counts), dtype=np.float32)


@dataclass(frozen=True)
class LdaEncoder:
    """Latent Dirichlet allocation (Blei et al., 2003): a dialogue's vector are its shares of topics, which sum to one.

    dial2vec compares itself with it (section 4.3) without saying how many topics there are; here they are about as many
    as a corpus has domains.

    Attributes:
        name: What result tables call it.
        topics: How many topics there are, the dimensions of a vector.
        passes: How often the fit goes over the dialogues.
        seed: Of the random start.
    """

    name: str = "lda"
    topics: int = 20
    passes: int = 20
    seed: int = 0

    fitted_on_input: ClassVar[bool] = True

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fits on the dialogues and returns their shares of topics, ``(N, topics)`` float32 in [0, 1].

        Raises:
            InputError: There is no dialogue, or no word to count.
        """
        from sklearn.decomposition import LatentDirichletAllocation
        from sklearn.feature_extraction.text import CountVectorizer

        texts = dialogue_texts(dialogues)
        counts = _counted(CountVectorizer(min_df=_fewest(texts), token_pattern=WORD), texts, "lda")
        model = LatentDirichletAllocation(self.topics, max_iter=self.passes, random_state=self.seed)
        return np.asarray(model.fit_transform(counts), dtype=np.float32)


@dataclass(frozen=True)
class Doc2VecEncoder:
    """Vectors that predict the words of their dialogue (PV-DBOW; Le and Mikolov, 2014), by gensim.

    dial2vec compares itself with it (section 4.3).

    Attributes:
        name: What result tables call it.
        size: The dimensions of a vector.
        passes: How often the fit goes over the dialogues.
        negatives: Words drawn against each word of a document.
        seed: Of vectors and draws; with the one thread that it runs on, it makes the vectors repeatable.
    """

    name: str = "doc2vec"
    size: int = 300
    passes: int = 40
    negatives: int = 5
    seed: int = 0

    fitted_on_input: ClassVar[bool] = True

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fits on the dialogues and returns their vectors, ``(N, size)`` float32, zero for one without a known word.

        Raises:
            InputError: There is no dialogue, or no word to learn from.
        """
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument

        texts = dialogue_texts(dialogues)
        documents = [
            TaggedDocument(re.findall(WORD, text.lower()), [place])  # tags that count from 0 are rows of the result
            for place, text in enumerate(texts)
        ]
        model = Doc2Vec(
            vector_size=self.size, dm=0, negative=self.negatives, epochs=self.passes, min_count=_fewest(texts),
            seed=self.seed, workers=1,
        )  # fmt: skip
        model.build_vocab(documents)
        if not len(model.wv):
            raise InputError("doc2vec: got dialogues without common words; use a neural encoder")
        model.train(documents, total_examples=model.corpus_count, epochs=model.epochs)
        known = [any(word in model.wv for word in document.words) for document in documents]
        return np.asarray(model.dv.vectors, dtype=np.float32) * np.array(known, dtype=np.float32)[:, None]


BASELINES: Mapping[str, type[TfidfEncoder | LdaEncoder | Doc2VecEncoder]] = {
    "tfidf": TfidfEncoder,
    "lda": LdaEncoder,
    "doc2vec": Doc2VecEncoder,
}
"""What a spec calls them."""


def _fewest(texts: Sequence[str]) -> int:
    return 2 if len(texts) >= _FEW else 1


def _counted(vectorizer: Any, texts: Sequence[str], name: str) -> Any:  # noqa: ANN401 - scikit-learn's, sparse
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:
        raise InputError(f"{name}: got dialogues without common words ({error}); use a neural encoder") from error
