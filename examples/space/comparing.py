"""The model behind the page.

Vectors, neighbours and a map of dialogues, and replies where the model ranks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hf_dialemb import Dialogue, InputError, load_dialogues
from hf_dialemb.apps.search.rank import Ranked, rank_pool
from hf_dialemb.evaluation import load_encoder
from hf_dialemb.metrics.vectors import unit

FEWEST = 10  # vectors that t-SNE needs; fewer are projected by PCA


def method_of(count: int) -> str:
    """Name the method that projects ``count`` vectors."""
    return "PCA" if count < FEWEST else "t-SNE"


def project(embeddings: np.ndarray) -> np.ndarray:
    """Map vectors (N, D) to the plane, (N, 2), so that distance means cosine."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import normalize

    vectors = normalize(np.asarray(embeddings, dtype=np.float64))
    if np.ptp(vectors, axis=0).max() < 1e-12:
        return np.zeros((len(vectors), 2))
    vectors = np.pad(vectors, ((0, 0), (0, max(0, 2 - vectors.shape[1]))))
    if method_of(len(vectors)) == "PCA":
        return PCA(2, svd_solver="full").fit_transform(vectors)
    tsne = TSNE(2, perplexity=min(30.0, (len(vectors) - 1) / 3), init="pca", random_state=0)
    return tsne.fit_transform(vectors)


EXAMPLES = 60
NEIGHBOURS = 5
REPLIES = 5
MAX_POOL = 300
MAX_CHARACTERS = 500  # of a reply


@dataclass(frozen=True)
class Comparison:
    """What is known of a visitor's dialogues.

    Attributes:
        dialogues: N of them, the visitor's first.
        own: How many are the visitor's.
        vectors: (N, D), or none where the model has no vectors.
        points: (N, 2), likewise.
        method: What the map was made by.
    """

    dialogues: list[Dialogue]
    own: int
    vectors: np.ndarray | None = None
    points: np.ndarray | None = None
    method: str = ""

    def neighbours(self, row: int) -> list[tuple[int, float]]:
        """Returns the rows of the dialogues nearest to one, and their cosines."""
        if self.vectors is None:
            return []
        cosines = unit(self.vectors) @ unit(self.vectors[[row]])[0]
        best = np.argsort(-cosines, kind="stable").tolist()
        best.remove(row)
        return [(other, float(cosines[other])) for other in best[:NEIGHBOURS]]


class Comparer:
    """A model that compares dialogues, ranks replies, or does both.

    Attributes:
        name: The folder or Hub id.
        encoder: The model.
        ranker: It again, if it ranks replies.
        embeds: Whether it has vectors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.encoder = load_encoder(name)
        self.ranker = getattr(self.encoder, "ranker", None)
        self.embeds = self.ranker is None or self.ranker.model.embeds

    @cached_property
    def examples(self) -> list[Dialogue]:
        """The synthetic dialogues that the package generates."""
        return load_dialogues("sample", split="dev")[:EXAMPLES]

    @cached_property
    def _example_vectors(self) -> np.ndarray:
        return self.encoder.encode(self.examples)

    def compare(self, dialogues: list[Dialogue], with_examples: bool) -> Comparison:
        """Embeds dialogues, with the examples if wanted, and lays them out on a map."""
        if not self.embeds:
            return Comparison(dialogues, len(dialogues))
        vectors = self.encoder.encode(dialogues)
        if with_examples:
            vectors = np.concatenate([vectors, self._example_vectors])
        everything = [*dialogues, *(self.examples if with_examples else ())]
        return Comparison(
            everything, len(dialogues), vectors, project(vectors), method_of(len(vectors))
        )

    def replies(self, comparison: Comparison, row: int, pool: str) -> Ranked:
        """Ranks replies after a dialogue.

        Args:
            comparison: The dialogues.
            row: Which of them.
            pool: A reply a line; if it is blank, all that the assistants say in the dialogues and
                the examples.

        Returns:
            The best replies with their scores.

        Raises:
            InputError: There are too many replies, one is too long, or a speaker is unknown to the
                model.
        """
        texts = [line.strip() for line in pool.splitlines() if line.strip()]
        if len(texts) > MAX_POOL:
            raise InputError(
                f"Got {len(texts):,} replies, expected at most {MAX_POOL}; leave some out"
            )
        longest = max(map(len, texts), default=0)
        if longest > MAX_CHARACTERS:
            raise InputError(
                f"Got a reply of {longest:,} characters, expected at most {MAX_CHARACTERS}; cut it"
            )
        if not texts:
            known = [*comparison.dialogues[: comparison.own], *self.examples]
            texts = [
                turn.content
                for dialogue in known
                for turn in dialogue.turns
                if turn.role == "assistant"
            ]
        distinct = list(dict.fromkeys(texts))[:MAX_POOL]
        (ranked,) = rank_pool(self.ranker, [comparison.dialogues[row]], distinct, REPLIES)
        return ranked
