"""Baselines that are fitted on the dialogues that they encode: words counted, topics, and document vectors.

None of them sees a label. As they are fitted on their own input, their vectors of two calls do not compare.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError
from .encoder import DialogueReader
from .text_models import dialogue_texts

WORD = r"(?u)[\u3400-\u9fff]|\b\w\w+\b"
"""What counts as a word: scikit-learn's own pattern, two letters or more; and each Chinese character."""

_FEW = 100  # a word of one dialogue tells nothing about any other, but fewer dialogues cannot afford to lose it


class _Fitted(DialogueReader):
    fitted_on_input: ClassVar[bool] = True


@dataclass(frozen=True)
class TfidfEncoder(_Fitted):
    """TF-IDF reduced by a truncated SVD to so many components; smaller vocabularies keep all of theirs."""

    name: str = "tfidf"
    components: int = 256
    seed: int = 0

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fits on the dialogues and returns their vectors, ``(N, D)`` float32 with D <= components."""
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
class LdaEncoder(_Fitted):
    """Latent Dirichlet allocation (Blei et al., 2003): a dialogue's vector are its shares of topics, which sum to one.

    dial2vec compares itself with it (section 4.3) without saying how many topics there are; here they are about as many
    as a corpus has domains. The fit goes over the dialogues so many ``passes``.
    """

    name: str = "lda"
    topics: int = 20
    passes: int = 20
    seed: int = 0

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fits on the dialogues and returns their shares of topics, ``(N, topics)`` float32 in [0, 1]."""
        from sklearn.decomposition import LatentDirichletAllocation
        from sklearn.feature_extraction.text import CountVectorizer

        texts = dialogue_texts(dialogues)
        counts = _counted(CountVectorizer(min_df=_fewest(texts), token_pattern=WORD), texts, "lda")
        model = LatentDirichletAllocation(self.topics, max_iter=self.passes, random_state=self.seed)
        return np.asarray(model.fit_transform(counts), dtype=np.float32)


@dataclass(frozen=True)
class Doc2VecEncoder(_Fitted):
    """Vectors that predict the words of their dialogue (PV-DBOW; Le and Mikolov, 2014), by gensim.

    dial2vec compares itself with it (section 4.3). ``negatives`` words are drawn against each word of a document.
    """

    name: str = "doc2vec"
    size: int = 300
    passes: int = 40
    negatives: int = 5
    seed: int = 0

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fits on the dialogues and returns their vectors, ``(N, size)`` float32, zero for one without a known word."""
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument

        texts = dialogue_texts(dialogues)
        documents = [
            TaggedDocument(re.findall(WORD, text.lower()), [place])  # tags that count from 0 are rows of the result
            for place, text in enumerate(texts)
        ]
        model = Doc2Vec(
            vector_size=self.size, dm=0, negative=self.negatives, epochs=self.passes, min_count=_fewest(texts),
            seed=self.seed, workers=1,  # more threads would make other vectors each time
        )  # fmt: skip
        model.build_vocab(documents)
        if not len(model.wv):
            raise InputError("doc2vec: got dialogues without common words; use a neural encoder")
        model.train(documents, total_examples=model.corpus_count, epochs=model.epochs)
        known = [any(word in model.wv for word in document.words) for document in documents]
        return np.asarray(model.dv.vectors, dtype=np.float32) * np.array(known, dtype=np.float32)[:, None]


BASELINES: Mapping[str, type[TfidfEncoder | LdaEncoder | Doc2VecEncoder]]
BASELINES = {each.name: each for each in (TfidfEncoder, LdaEncoder, Doc2VecEncoder)}
"""What a spec calls them."""


def _fewest(texts: Sequence[str]) -> int:
    return 2 if len(texts) >= _FEW else 1


def _counted(vectorizer: Any, texts: Sequence[str], name: str) -> Any:  # noqa: ANN401 - scikit-learn's, sparse
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:
        raise InputError(f"{name}: got dialogues without common words ({error}); use a neural encoder") from error
