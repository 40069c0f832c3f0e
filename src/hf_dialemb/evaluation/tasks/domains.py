"""The tasks of the dial2vec benchmark: dialogues of one domain each in, figures out (sections 4.1 and 5.3.3)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...encoders.specs import Encoder
from ...models.errors import InputError
from .all_pairs import pair_scores
from .sampling import fixed_sample
from .task import Measurement, Problem, Task, percentage
from .texts import name_of

logger = logging.getLogger(__name__)

N_INIT = 10
"""Random starts of each k-means, as in the papers' time (see `hf_dialemb.metrics.purity.functional.cluster_purity`)."""


def load_domains(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads the single-domain dialogues of a corpus."""
    from ...corpora import load_dialogues, single_domain

    dialogues = single_domain(load_dialogues(corpus, data_dir, split))
    if not dialogues:
        raise InputError(
            f"corpus {corpus}, split {split}: no dialogue of it has exactly one domain label; "
            "give the dialogues a 'domains' list of one name"
        )
    dialogues = fixed_sample(dialogues, limit)
    labels = [dialogue.domains[0] for dialogue in dialogues]
    counts = Counter(labels)
    if len(counts) < 2 or max(counts.values()) < 2:
        raise InputError(
            f"corpus {corpus}, split {split}: got {len(dialogues)} dialogues with {len(counts)} distinct labels, "
            "expected at least two labels and two dialogues of one of them; add dialogues or raise the limit"
        )
    config = {
        "corpus": name_of(corpus),
        "split": split,
        "limit": limit,
        "dialogues": len(dialogues),
        "labels": len(counts),
        "labels_of_one_dialogue": sum(count == 1 for count in counts.values()),
        "n_init": N_INIT,
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        return evaluate_embeddings(encoder.encode(dialogues), labels, seeds=seeds, n_init=N_INIT)

    return Problem(config, measure, dialogues, labels)


def evaluate_embeddings(
    embeddings: NDArray[Any], labels: Sequence[str], *, seeds: Iterable[int] = range(10), n_init: int = 10
) -> list[Measurement]:
    """Runs every task of the benchmark on one matrix of embeddings.

    Args:
        embeddings: One vector per dialogue, ``(N, D)``; clustered as they are, normalised for everything else.
        labels: One domain label per dialogue, N of them.
        seeds: Repeats of k-means and of drawing pairs.
        n_init: Random starts of each k-means (see `hf_dialemb.metrics.purity.functional.cluster_purity`).

    Returns:
        Domain categorization (purity, nmi, ari), semantic relatedness (spearman over ``pairs`` as in the paper and
        ``per-query`` as in its program), dialogue retrieval (map, mrr), alignment and uniformity.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, or labels are all equal or all different.
    """
    from ...metrics.alignment_uniformity.functional import alignment_uniformity
    from ...metrics.purity.functional import cluster_purity
    from ...metrics.semantic_relatedness.functional import pair_relatedness

    draws = list(seeds)
    pairs = pair_relatedness(embeddings, labels, draws)
    queries = pair_scores(embeddings, labels)
    geometry = alignment_uniformity(embeddings, labels)
    clusters = cluster_purity(embeddings, labels, draws, n_init=n_init)
    if queries.skipped:
        logger.warning("%d of %d dialogues have a label of their own: no query", queries.skipped, len(labels))
    if pairs["undefined"] or queries.undefined:
        logger.warning(
            "Spearman is undefined and counts as 0 for %d draws of pairs and %d queries",
            pairs["undefined"],
            queries.undefined,
        )
    return [
        percentage("domain-categorization", "purity", "", clusters["purity"]),
        percentage("domain-categorization", "nmi", "", clusters["nmi"]),
        percentage("domain-categorization", "ari", "", clusters["ari"]),
        percentage("semantic-relatedness", "spearman", "pairs", pairs["spearman"]),
        *(
            percentage(task, metric, setting, [float(values.mean())], values)
            for task, metric, setting, values in (
                ("semantic-relatedness", "spearman", "per-query", queries.spearman),
                ("dialogue-retrieval", "map", "", queries.average_precision),
                ("dialogue-retrieval", "mrr", "", queries.reciprocal_rank),
            )
        ),
        Measurement("alignment-uniformity", "adjusted_alignment", "", geometry["adjusted_alignment"], None, 1),
        Measurement("alignment-uniformity", "uniformity", "", geometry["uniformity"], None, 1),
    ]


TASK = Task("domains", load_domains, "dial2vec, sections 4.1 and 5.3.3", kinds=("dialogues",))
