"""The paired bootstrap: closed forms, all possible draws, and scipy."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from hf_dialemb.papers.significance import paired_bootstrap


def scores(count: int, gain: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    second = generator.random(count)
    return second + gain + generator.normal(0, 0.2, count), second


def counts(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, (count, 3))


def test_closed_forms():
    ranks = 1 / np.arange(1, 30)
    same = paired_bootstrap(ranks, ranks)
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    assert paired_bootstrap(counts(20, 0), counts(20, 0)).p_value == 1
    better = paired_bootstrap(np.linspace(0.5, 1, 40), np.linspace(0.2, 0.6, 40))
    assert better.p_value == 1 / 10_001  # the floor
    assert better.low > 0
    assert (better.examples, better.resamples) == (40, 10_000)


def test_p_and_f1_agree_with_all_possible_draws():
    first, second = counts(4, 5), counts(4, 6)

    def gain(rows: tuple[int, ...]) -> float:
        sums = [table[list(rows)].sum(axis=0) for table in (first, second)]
        one, other = (2 * hits / max(1, 2 * hits + wrong + missed) for hits, wrong, missed in sums)
        return one - other

    drawn = np.array([gain(rows) for rows in product(range(4), repeat=4)])
    observed = gain((0, 1, 2, 3))
    exact = np.mean(np.abs(drawn - observed) >= abs(observed) - 1e-12)
    comparison = paired_bootstrap(first, second)
    assert comparison.difference == pytest.approx(observed)
    assert comparison.p_value == pytest.approx(exact, abs=0.02)


def test_interval_and_p_are_scipys():
    first, second = scores(80, 0.04)
    comparison = paired_bootstrap(first, second)
    interval = stats.bootstrap(
        (first - second,), np.mean, method="percentile", rng=1
    ).confidence_interval
    assert (comparison.low, comparison.high) == pytest.approx(
        (interval.low, interval.high), abs=0.004
    )
    permuted = stats.permutation_test((first - second,), np.mean, permutation_type="samples", rng=1)
    assert comparison.p_value == pytest.approx(permuted.pvalue, abs=0.02)
