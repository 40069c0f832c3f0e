"""The tasks of the dial2vec benchmark.

Dialogues of one domain each in, figures out (sections 4.1 and 5.3.3).
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import single_domain
from ...encoders import Encoder
from ...metrics.alignment_uniformity import alignment_uniformity
from ...metrics.purity import N_INIT, cluster_purity
from ...metrics.semantic_relatedness import binary_spearman, pair_relatedness
from ...metrics.vectors import average_precision, query_scores, reciprocal_rank
from ..results.rows import Row
from .task import CorpusPart, Problem, item_percentage, percentage

logger = logging.getLogger(__name__)


def load_domains(part: CorpusPart) -> Problem:
    """Load the single-domain dialogues of a corpus."""
    given = part.dialogues()
    results = single_domain(given)
    if not results:
        raise part.error(
            "no dialogue of it has exactly one domain label; give the dialogues a 'domains' list "
            "of one name, or name "
            "the column of a table that holds it, as in --columns domain=category"
        )
    if left_out := len(given) - len(results):
        unlabelled = sum(not dialogue.domains for dialogue in given)
        logger.warning(
            "%s: left out %d of %d dialogues: %d have no label, %d have several",
            part.name,
            left_out,
            len(given),
            unlabelled,
            left_out - unlabelled,
        )
    dialogues = part.sample(results)
    labels = [dialogue.domains[0] for dialogue in dialogues]
    counts = Counter(labels)
    if len(counts) < 2 or max(counts.values()) < 2:
        raise part.error(
            f"got {len(dialogues)} dialogues with {len(counts)} distinct labels, expected at least "
            "two labels and two "
            "dialogues of one of them; add dialogues or raise the limit"
        )
    config = {
        "dialogues": len(dialogues),
        "labels": len(counts),
        "labels_of_one_dialogue": sum(count == 1 for count in counts.values()),
        "n_init": N_INIT,
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        return evaluate_embeddings(encoder.encode(dialogues), labels, seeds=seeds)

    return Problem(config, measure, dialogues, labels)


def evaluate_embeddings(
    embeddings: NDArray[Any], labels: Sequence[str], *, seeds: Iterable[int] = range(10)
) -> list[Row]:
    """Run every task of the benchmark on vectors ``(N, D)``.

    Vectors are clustered as they are, and normalised for everything else.

    It measures domain categorization (purity, nmi, ari), semantic relatedness (spearman over
    ``pairs`` as in the paper and ``per-query`` as in its program), dialogue retrieval (map, mrr),
    alignment and uniformity. ``seeds`` are repeats of k-means and of drawing pairs. A ValueError
    says that the labels, one for each vector, are all equal or all different, or that anything does
    not fit.
    """
    draws = list(seeds)
    pairs = pair_relatedness(embeddings, labels, draws)
    # products and sorting, which take time, done once
    scores = (average_precision, reciprocal_rank, binary_spearman)
    (precision, reciprocal, spearman), skipped = query_scores(embeddings, labels, *scores)
    geometry = alignment_uniformity(embeddings, labels)
    clusters = cluster_purity(embeddings, labels, draws)
    if skipped:
        logger.warning(
            "%d of %d dialogues have a label of their own: no query", skipped, len(labels)
        )
    undefined = np.isnan(pairs).sum(), np.isnan(spearman).sum()
    if any(undefined):
        logger.warning(
            "Spearman is undefined and counts as 0 for %d draws of pairs and %d queries", *undefined
        )
    return [
        *(
            percentage("domain-categorization", metric, "", clusters[metric])
            for metric in ("purity", "nmi", "ari")
        ),
        percentage("semantic-relatedness", "spearman", "pairs", np.nan_to_num(pairs)),
        item_percentage("semantic-relatedness", "spearman", "per-query", np.nan_to_num(spearman)),
        item_percentage("dialogue-retrieval", "map", "", precision),
        item_percentage("dialogue-retrieval", "mrr", "", reciprocal),
        *(
            Row(task="alignment-uniformity", metric=metric, mean=geometry[metric])
            for metric in ("adjusted_alignment", "uniformity")
        ),
    ]
