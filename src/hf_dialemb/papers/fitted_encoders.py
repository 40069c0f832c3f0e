"""Baselines of the dial2vec paper (section 4.3), fitted on the dialogues that they encode."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..encoders.word_vectors import WORD, count_words, dialogue_texts, least_count
from ..errors import InputError


@dataclass(frozen=True)
class LdaEncoder:
    """Latent Dirichlet allocation (Blei et al., 2003).

    A dialogue's vector holds its shares of topics, which sum to 1.

    The dial2vec paper does not give the number of topics; our default is close to the number of
    domains in a corpus.
    """

    fitted_on_input: ClassVar[bool] = True

    name: str = "lda"
    topics: int = 20

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fit to the dialogues and return their shares of topics, ``(N, topics)`` in [0, 1]."""
        from sklearn.decomposition import LatentDirichletAllocation
        from sklearn.feature_extraction.text import CountVectorizer

        counts = count_words(CountVectorizer(), dialogue_texts(dialogues), "lda")
        model = LatentDirichletAllocation(self.topics, max_iter=20, random_state=0)
        return np.asarray(model.fit_transform(counts), dtype=np.float32)


@dataclass(frozen=True)
class Doc2VecEncoder:
    """Vectors that predict the words of their dialogue (PV-DBOW; Le and Mikolov, 2014), by gensim.

    Each word is contrasted with five random ones.
    """

    fitted_on_input: ClassVar[bool] = True

    name: str = "doc2vec"
    size: int = 300

    def __post_init__(self) -> None:
        if find_spec("gensim") is None:
            raise InputError(
                "model 'doc2vec': the package gensim is missing; "
                'pip install "hf-dialemb[baselines]"'
            )

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fit to the dialogues and return their vectors, ``(N, size)`` float32.

        Zeros where no word is known.
        """
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument

        texts = dialogue_texts(dialogues)
        documents = [
            TaggedDocument(
                re.findall(WORD, text.lower()), [row]
            )  # numeric tags are the rows of the result
            for row, text in enumerate(texts)
        ]
        model = Doc2Vec(
            vector_size=self.size,
            dm=0,
            negative=5,
            epochs=40,
            min_count=least_count(texts),
            seed=0,
            workers=1,  # with more threads, every run gives other vectors
        )
        model.build_vocab(documents)
        if not len(model.wv):
            raise InputError("doc2vec: got dialogues without common words; use a neural encoder")
        model.train(documents, total_examples=model.corpus_count, epochs=model.epochs)
        known = [any(word in model.wv for word in document.words) for document in documents]
        return (
            np.asarray(model.dv.vectors, dtype=np.float32)
            * np.array(known, dtype=np.float32)[:, None]
        )


ENCODERS = {"lda": LdaEncoder, "doc2vec": Doc2VecEncoder}
"""By name, for the entry-point group ``hf_dialemb.encoders``."""
