"""Similarity of sentences from dialogues (DialogueCSE, section 5.1.2): cosines of pairs against people's scores."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import CorpusPart, Problem, percentage
from ...evaluation.tasks.texts import TextVectors, row_cosines

logger = logging.getLogger(__name__)


def load_scored_pairs(part: CorpusPart) -> Problem:
    """Load pairs of sentences that people scored."""
    pairs = part.sample([pair for pair in part.examples() if pair.score is not None])
    scores = [pair.score for pair in pairs]
    if len(set(scores)) < 2:
        raise part.error(
            f"got {len(pairs)} pairs with {len(set(scores))} different scores, expected at least two; choose a corpus "
            "of scored pairs or raise the limit"
        )

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        from scipy.stats import pearsonr, spearmanr

        first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
        vectors = TextVectors(encoder, [*first, *second])
        cosines = row_cosines(vectors.of(first), vectors.of(second))
        constant = cosines.min() == cosines.max()
        if constant:
            logger.warning("All cosines are equal: their correlation with the scores is undefined and counts as 0")
        return [
            percentage("dialogue-sts", name, "", [0.0 if constant else float(correlate(cosines, scores).statistic)])
            for name, correlate in (("spearman", spearmanr), ("pearson", pearsonr))
        ]

    return Problem({"pairs": len(pairs)}, measure)
