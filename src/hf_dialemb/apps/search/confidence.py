"""How probable it is that a turn answers a question.

A logistic regression of what an index has anyway, fitted by ``benchmarks/turn_confidence.py`` on
questions that a conversation answers, that it does not, and that were asked of another.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .turn_scores import SPEAKER, Scored
from .word_index import WordIndex, words_of

WEIGHTS = Path(__file__).with_suffix(".json")
"""By the names of encoders; the last of each is the constant."""

FEATURES = ("cosine", "standard", "words", "lead", "rival", "own", "covered", "unknown")
"""What is known of a turn and a question.

The cosine; its standard score; what the words add; how far the score is above the mean of the ten
best; how far the best turn by another is above it, but for the speaker, if one is named;
whether the named speaker near it; which part of the question's words stand in the turn or the one
before it; and which part stands nowhere.
"""


def evidence(
    query: str, rows: Sequence[int], scored: Scored, words: WordIndex
) -> NDArray[np.float64]:
    """Return the features of K turns as answers of a query, (K, F).

    Args:
        query: The query.
        rows: The turns.
        scored: The scores of all turns.
        words: The words of all turns.
    """
    asked = set(words_of(query))
    own = np.array(rows)
    total = np.where(scored.of, scored.meaning + scored.beside, -np.inf)  # without its session
    best = np.partition(total, -10)[-10:] if len(total) > 10 else total
    plain = total - SPEAKER * scored.spoken
    other = plain[~scored.spoken].max(initial=-np.inf)
    known = scored.reading.speaker and np.isfinite(other)
    rival = other - plain[own] if known else np.zeros(len(rows))
    near = [
        {*words.words(row), *(words.words(earlier) if earlier >= 0 else ())}
        for row, earlier in zip(rows, scored.before[own].tolist(), strict=True)
    ]
    count = max(1, len(asked))
    columns = [
        scored.cosines[own],
        scored.meaning[own],
        scored.words[own],
        total[own] - best[np.isfinite(best)].mean(),
        rival,
        scored.spoken[own].astype(float),
        np.array([len(asked & there) / count for there in near]),
        np.full(
            len(rows), sum(not (words.having([word]) & scored.of).any() for word in asked) / count
        ),
    ]
    return np.stack(columns, axis=1)


def probabilities(
    features: NDArray[np.float64], encoder: str, *, needed: bool = False
) -> list[float] | list[None]:
    """Return the probability that each of K turns answers by its features (K, F).

    There is none with an encoder for which nothing was fitted; if it is ``needed``, an InputError
    says so.
    """
    fitted = json.loads(WEIGHTS.read_text("utf-8")).get(encoder)
    if fitted:
        return logistic(features, fitted).tolist()  # type: ignore[no-any-return]
    if needed:
        raise InputError(
            f"at_least: got it with {encoder}, whose probabilities are not fitted; leave it out"
        )
    return [None] * len(features)


def logistic(features: NDArray[np.float64], weights: Sequence[float]) -> NDArray[np.float64]:
    """Return the probabilities by weights, the last of which is the constant."""
    result: NDArray[np.float64] = 1 / (1 + np.exp(-(features @ weights[:-1] + weights[-1])))
    return result
