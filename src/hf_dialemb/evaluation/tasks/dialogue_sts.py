"""Similarity of sentences from dialogues (DialogueCSE, section 5.1.2): cosines of pairs against people's scores."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ...encoders.specs import Encoder
from ...models.errors import InputError
from .sampling import fixed_sample
from .task import Measurement, Problem, Task, percentage
from .texts import TextVectors, name_of, row_cosines

logger = logging.getLogger(__name__)

_NAME = "dialogue-sts"


def load_scored_pairs(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads pairs of sentences that people scored."""
    from ...corpora import load_examples

    pairs = [pair for pair in load_examples(corpus, data_dir, split) if pair.score is not None]
    sample = fixed_sample(pairs, limit)
    scores = [pair.score for pair in sample]
    if len(set(scores)) < 2:
        raise InputError(
            f"corpus {corpus}, split {split}: got {len(sample)} pairs with {len(set(scores))} different scores, "
            "expected at least two; choose a corpus of scored pairs or raise the limit"
        )

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        from scipy.stats import pearsonr, spearmanr

        first, second = [pair.first for pair in sample], [pair.second for pair in sample]
        vectors = TextVectors(encoder, [*first, *second])
        cosines = row_cosines(vectors.of(first), vectors.of(second))
        if cosines.min() == cosines.max():
            logger.warning("All cosines are equal: their correlation with the scores is undefined and counts as 0")
            return [percentage(_NAME, metric, "", [0.0]) for metric in ("spearman", "pearson")]
        return [
            percentage(_NAME, "spearman", "", [float(spearmanr(cosines, scores).statistic)]),
            percentage(_NAME, "pearson", "", [float(pearsonr(cosines, scores).statistic)]),
        ]

    return Problem({"corpus": name_of(corpus), "split": split, "limit": limit, "pairs": len(sample)}, measure)


TASK = Task(_NAME, load_scored_pairs, "DialogueCSE, section 5.1.2", kinds=("sentence-pairs",))
