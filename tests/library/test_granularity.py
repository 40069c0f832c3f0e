"""Segments of responses by cosine: what is drawn, against ranking the whole pool."""

import numpy as np
import pytest

from hf_dialemb.methods.granularity import Segments

LEVELS = range(1, 6)


def clustered(count: int, width: int = 24, seed: int = 0) -> np.ndarray:
    """Vectors around centres that have very different shares of them."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((40, width)) + 0.5
    shares = 1 / np.arange(1, 41)
    chosen = generator.choice(40, count, p=shares / shares.sum())
    return (centres[chosen] + 0.6 * generator.standard_normal((count, width))).astype(np.float32)


def ranked(vectors: np.ndarray, row: int) -> np.ndarray:
    """Return the other rows, closest first."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-(unit @ unit[row]), kind="stable")
    return order[order != row]


def draws(
    segments: Segments, rows, level: int, count: int, generator: np.random.Generator
) -> np.ndarray:
    return np.stack([segments.draw(int(row), level, count, generator) for row in rows])


@pytest.fixture(scope="module")
def pool() -> Segments:
    return Segments(clustered(20_000))


@pytest.fixture(scope="module")
def places(pool) -> dict[int, np.ndarray]:
    """Of some rows: the place of every other row in their ranking."""
    rows = np.random.default_rng(1).choice(len(pool), 200, replace=False)
    return {row: np.argsort([row, *ranked(pool.vectors, row)]) - 1 for row in rows}


@pytest.mark.parametrize(("count", "levels"), [(101, 5), (1000, 5), (97, 3), (40, 1), (6, 5)])
def test_exact_segments_are_those_of_a_ranking(count, levels):
    vectors = clustered(count)
    segments = Segments(vectors, levels)
    for row in (0, count // 2, count - 1):
        order = ranked(vectors, row)
        edges = [(count - 1) * level // levels for level in range(levels + 1)]
        for level in range(1, levels + 1):
            expected = order[edges[level - 1] : edges[level]]
            drawn = segments.draw(row, level, len(expected), np.random.default_rng(0))
            assert sorted(drawn) == sorted(
                expected
            )  # as many as there are: the draw is the segment
            more = segments.draw(row, level, 20 * len(expected), np.random.default_rng(0))
            assert set(more) == set(expected)  # more than there are: they come again


@pytest.mark.parametrize("level", LEVELS)
def test_a_sample_draws_from_the_true_segment_and_all_of_it(pool, places, level):
    drawn = draws(pool, places, level, 75, np.random.default_rng(level))
    ranks = np.array([places[row][drawn[number]] for number, row in enumerate(places)])
    parts = ranks * 5 / (len(pool) - 1) - (level - 1)  # 0 to 1 within the segment
    inside = (parts >= 0) & (parts < 1)
    assert inside.mean() >= 0.94
    shares = np.bincount((parts[inside] * 10).astype(int), minlength=10) / inside.sum()
    assert np.abs(shares[1:-1] - 0.1).max() < 0.015  # four standard errors
    assert (shares[[0, -1]] > 0.07).all()  # the sample's own error at the ends


def test_draws_depend_on_the_generator_and_hold_no_row_twice(pool):
    rows = np.arange(600)
    for level in LEVELS:
        drawn = draws(pool, rows, level, 9, np.random.default_rng(0))
        assert (drawn.shape, drawn.dtype) == ((600, 9), np.int64)
        assert 0 <= drawn.min() <= drawn.max() < len(pool)
        assert (drawn != rows[:, None]).all()
        assert (np.diff(np.sort(drawn, axis=1), axis=1) > 0).all()
    first, second, other = (pool.draw(7, 3, 9, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert (first == second).all()
    assert (first != other).any()


def test_zeros_have_cosine_0_and_lengths_do_not_matter():
    vectors = clustered(30)
    vectors[:10], vectors[10:, 0] = 0, np.abs(vectors[10:, 0])
    segments = Segments(vectors, 2)
    lengths = np.linalg.norm(segments.vectors, axis=1)
    assert lengths == pytest.approx([0.0] * 10 + [1.0] * 20, abs=1e-6)
    assert draws(segments, [0, 15], 2, 5, np.random.default_rng(0)).shape == (2, 5)
    vectors, scales = (
        clustered(300),
        np.float32(2.0) ** np.arange(-60, 60, 0.4, dtype=np.float32)[:, None],
    )
    assert Segments(vectors * scales).vectors == pytest.approx(Segments(vectors).vectors, abs=1e-6)
