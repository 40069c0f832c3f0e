"""The tasks of the dial2vec benchmark: vectors and domain labels in, figures out (sections 4.1 and 5.3.3)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)


class Measurement(NamedTuple):
    """One figure of one task.

    Attributes:
        task: The task's name.
        metric: The metric's name.
        setting: The variant of the metric; empty for the usual one.
        mean: The figure; a percentage for purity, nmi, spearman, map and mrr.
        std: The sample standard deviation over ``n`` repeats, None where there was one.
        n: The number of repeats.
    """

    task: str
    metric: str
    setting: str
    mean: float
    std: float | None
    n: int


def evaluate_embeddings(
    embeddings: NDArray[Any], labels: Sequence[str], *, seeds: Iterable[int] = range(10), n_init: int = 10
) -> list[Measurement]:
    """Runs every task on one matrix of embeddings.

    Args:
        embeddings: One vector per dialogue, ``(N, D)``; clustered as they are, normalised for everything else.
        labels: One domain label per dialogue, N of them.
        seeds: Repeats of k-means and of drawing pairs.
        n_init: Random starts of each k-means (see `hf_dialemb.metrics.purity.functional.cluster_purity`).

    Returns:
        Domain categorization (purity, nmi), semantic relatedness (spearman over ``pairs`` as in the paper and
        ``per-query`` as in its program), dialogue retrieval (map, mrr), alignment and uniformity.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, or labels are all equal or all different.
    """
    from ..metrics.alignment_uniformity.functional import alignment_uniformity
    from ..metrics.dialogue_retrieval.functional import retrieval_scores
    from ..metrics.purity.functional import cluster_purity
    from ..metrics.semantic_relatedness.functional import pair_relatedness, query_relatedness

    draws = list(seeds)
    pairs = pair_relatedness(embeddings, labels, draws)
    queries = query_relatedness(embeddings, labels)
    retrieval = retrieval_scores(embeddings, labels)
    geometry = alignment_uniformity(embeddings, labels)
    clusters = cluster_purity(embeddings, labels, draws, n_init=n_init)
    if queries["skipped"]:
        logger.warning("%d of %d dialogues have a label of their own: no query", queries["skipped"], len(labels))
    if pairs["undefined"] or queries["undefined"]:
        logger.warning(
            "Spearman is undefined and counts as 0 for %d draws of pairs and %d queries",
            pairs["undefined"],
            queries["undefined"],
        )
    return [
        percentage("domain-categorization", "purity", "", clusters["purity"]),
        percentage("domain-categorization", "nmi", "", clusters["nmi"]),
        percentage("semantic-relatedness", "spearman", "pairs", pairs["spearman"]),
        percentage("semantic-relatedness", "spearman", "per-query", [queries["spearman"]]),
        percentage("dialogue-retrieval", "map", "", [retrieval["map"]]),
        percentage("dialogue-retrieval", "mrr", "", [retrieval["mrr"]]),
        Measurement("alignment-uniformity", "adjusted_alignment", "", geometry["adjusted_alignment"], None, 1),
        Measurement("alignment-uniformity", "uniformity", "", geometry["uniformity"], None, 1),
    ]


def percentage(task: str, metric: str, setting: str, values: Sequence[float]) -> Measurement:
    """Makes the measurement of repeated shares.

    Args:
        task: The task's name.
        metric: The metric's name.
        setting: The variant.
        values: One share in ``[0, 1]`` per repeat.

    Returns:
        Their mean and sample standard deviation as percentages.
    """
    scaled = 100 * np.asarray(values)
    std = float(scaled.std(ddof=1)) if len(scaled) > 1 else None
    return Measurement(task, metric, setting, float(scaled.mean()), std, len(scaled))
