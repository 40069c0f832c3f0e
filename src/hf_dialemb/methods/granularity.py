"""Negatives by granularity: responses as far from the true one as a level asks (Mehri & Eskenazi, section 3.3).

For a response i, the other N - 1 responses in the order of their cosine to it, descending, are cut into L equal
segments: P_i^1 holds the closest (the highest granularity), P_i^L the furthest (the highest abstraction). The ranker of
level l learns to tell i from members of P_i^l, drawn uniformly (equation 12). The paper sorts a matrix of all pairs;
here each response has L - 1 bounds between its segments instead, and a draw keeps those random responses whose cosine
lies between two bounds. That needs memory for N x (D + L) numbers, and time linear in N.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import NormalDist

import numpy as np
from tqdm.auto import tqdm

from ..errors import InputError

_COSINES = 2**21  # that a thread computes at once (8 MiB): large matrix products are faster
_THREADS = min(8, os.cpu_count() or 1)  # numpy sorts and multiplies without holding the interpreter's lock
_ROUNDS = 8  # of candidates for a draw, before the whole pool is ranked; a segment of its right size needs one or two
_FEW = 32  # segments of fewer than so many times the negatives wanted are ranked: candidates would often be the same
_DIRECTIONS = 16  # leading principal directions along which a sample is balanced
_TIE = 4e-7  # cosines of equal vectors differ by less in float32
_CODES = 2**16 - 1  # sampled cosines are sorted as codes between the row's extremes: a radix sort, 5 times as fast


class Segments:
    """The segments of every response of a pool.

    Args:
        vectors: (N, D), of N distinct responses; they are copied and brought to unit length. A vector of zeros has
            cosine 0 with every other.
        num_segments: L, 1 or more.
        sample_size: S; bounds of pools of more than 2 S responses are quantiles of the cosines to so many of them. With
            8192, some 99 % of what is drawn lies in the segment that ranking the pool would give. Those of smaller
            pools come from the cosines of all pairs, in N² time and linear memory.
        seed: Chooses the sample.

    Attributes:
        bounds: (N, L + 1) float32: segment l, from 1, has the cosines in (bounds[:, l], bounds[:, l - 1]]. A bound that
            runs through a tie is not a number: the segments beside it are found by ranking the pool.

    Raises:
        InputError: Too few responses, or vectors that are not finite.
    """

    def __init__(self, vectors: np.ndarray, num_segments: int = 5, *, sample_size: int = 8192, seed: int = 0) -> None:
        self.num_segments = num_segments
        self.vectors = _unit(np.asarray(vectors))
        count = len(self.vectors)
        if count < num_segments + 1:
            raise InputError(
                f"Got {count} distinct responses, expected at least {num_segments + 1} to cut the others of each into "
                f"{num_segments} segments; add dialogues or lower num_granularities"
            )
        self.edges = [(count - 1) * level // num_segments for level in range(num_segments + 1)]
        self.exact = count <= 2 * sample_size
        self.bounds = np.empty((count, num_segments + 1), dtype=np.float32)
        self.bounds[:, 0], self.bounds[:, -1] = np.inf, -np.inf
        if self.exact:
            width, bounds = count, self._exact_bounds
        else:
            sample = balanced_sample(self.vectors, sample_size, np.random.default_rng(seed))
            width, bounds = len(sample), _SampledBounds(self.vectors, self.vectors[sample], num_segments).compute

        def fill(rows: slice) -> None:
            self.bounds[rows, 1:-1] = bounds(rows)

        _in_blocks(fill, count, max(1, _COSINES // width))

    def __len__(self) -> int:
        return len(self.vectors)

    def draw(self, row: int, level: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """Draws negatives uniformly from a segment of a response (equation 12), the response itself left out.

        The level l goes from 1 (closest) to L (furthest); another is an InputError. What is returned, (count,) int64,
        differs unless the segment has fewer; it is a function of the generator's state.
        """
        if not 1 <= level <= self.num_segments:
            raise InputError(
                f"granularity: got {level}, expected 1 (closest) to {self.num_segments} (furthest); choose a level in "
                "this range or raise num_granularities"
            )
        upper, lower = self.bounds[row, level - 1], self.bounds[row, level]
        width = self.edges[level] - self.edges[level - 1]
        found: dict[int, None] = {}
        # What is not a number is not larger either; one in L candidates is kept, so they are a few more than needed.
        for _ in range(_ROUNDS if upper > lower and width >= _FEW * count else 0):
            drawn = generator.integers(len(self) - 1, size=int(1.3 * self.num_segments * count) + 8)
            drawn += drawn >= row
            cosines = self.vectors[drawn] @ self.vectors[row]
            found |= dict.fromkeys(drawn[(cosines > lower) & (cosines <= upper)].tolist())
            if len(found) >= count:
                return np.array([*found][:count], dtype=np.int64)
        return self._rank(row, level, count, generator)

    def _rank(self, row: int, level: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """Draws from a segment found by ranking the whole pool, ties in random order."""
        others = generator.permutation(len(self) - 1)
        others += others >= row
        cosines = np.round((self.vectors @ self.vectors[row])[others] / _TIE)
        first, end = self.edges[level - 1], self.edges[level]
        segment = others[np.argpartition(-cosines, (first, end - 1))[first:end]]
        return np.asarray(generator.choice(segment, count, replace=end - first < count))

    def _exact_bounds(self, rows: slice) -> np.ndarray:
        """Puts each bound half-way between the last cosine of a segment and the first of the next."""
        cosines = self.vectors[rows] @ self.vectors.T  # (n, N)
        cosines[np.arange(len(cosines)), np.arange(len(self))[rows]] = -np.inf
        cosines.sort(axis=1)
        edges = len(self) - np.array(self.edges[1:-1], dtype=np.int64)
        above, below = cosines[:, edges], cosines[:, edges - 1]
        return np.where(above - below > _TIE, (above + below) / 2, np.nan)


class _SampledBounds:
    """Bounds as quantiles of the cosines to a sample.

    The mean and the variance of a response's cosines to the whole pool follow from the pool's mean and covariance. How
    far the sample's are from them tells, were the cosines normally distributed, how far its quantiles are off; the rank
    that is read off moves by as much.
    """

    def __init__(self, vectors: np.ndarray, sample: np.ndarray, num_segments: int) -> None:
        self.vectors, self.sample = vectors, sample
        shares = np.arange(1, num_segments) / num_segments
        self.ranks = len(sample) * shares
        normal = NormalDist()
        self.scores = np.array([normal.inv_cdf(1 - share) for share in shares], dtype=np.float32)
        self.densities = np.array([normal.pdf(score) for score in self.scores], dtype=np.float32)
        pool_mean, self.covariance = _moments(vectors)
        mean, covariance = _moments(sample)
        self.mean_gap, self.covariance_gap = pool_mean - mean, self.covariance - covariance

    def compute(self, rows: slice) -> np.ndarray:
        """Returns the bounds of some rows, (n, L - 1)."""
        vectors = self.vectors[rows]
        cosines = vectors @ self.sample.T  # (n, S)
        low, high = cosines.min(1, keepdims=True), cosines.max(1, keepdims=True)
        step = np.maximum(high - low, _TIE) / _CODES
        cosines -= low
        cosines /= step
        codes = cosines.astype(np.uint16)
        codes.sort(axis=1, kind="stable")  # 16-bit integers: by radix
        size, margin = len(self.sample), 1 + len(self.sample) // 1000  # a tie is as wide as the margins
        edges = np.rint(self.ranks - size * self._excess(vectors)).astype(np.int64)
        edges = size - edges.clip(1 + margin, size - 1 - margin)  # from the lowest
        above, below, far_above, far_below = (
            np.take_along_axis(codes, edges + offset, 1).astype(np.float32) for offset in (0, -1, margin, -1 - margin)
        )
        return np.where((far_above - far_below) * step > _TIE, low + (above + below + 1) / 2 * step, np.nan)

    def _excess(self, vectors: np.ndarray) -> np.ndarray:
        """By how much the pool's share above each bound exceeds the sample's, (n, L - 1), at most 2 %."""
        variance = np.maximum(np.einsum("nd,nd->n", vectors @ self.covariance, vectors), _TIE**2)[:, None]
        mean_gap = (vectors @ self.mean_gap)[:, None] / np.sqrt(variance)
        deviation_gap = np.einsum("nd,nd->n", vectors @ self.covariance_gap, vectors)[:, None] / (2 * variance)
        excess: np.ndarray = self.densities * (mean_gap + self.scores * deviation_gap)
        return excess.clip(-0.02, 0.02)


def balanced_sample(vectors: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """Draws a sample that has its share of every region, so that its quantiles are nearer to the pool's.

    The pool (N, D) is halved at the median of the principal direction along which it is widest, and so is each half,
    until there are as many cells as the sample has members; in the order of the cells, one member is drawn from each
    stretch of N / S. Every vector is as likely to be drawn as any other. Returns (S,) int64 rows, at most N.
    """
    count = len(vectors)
    size = min(size, count)
    directions = np.linalg.eigh(_moments(vectors)[1])[1][:, -_DIRECTIONS:]
    coordinates = vectors @ directions  # (N, 16)
    cells = [generator.permutation(count)]
    while len(cells) < size and count // len(cells) > 1:
        halves = []
        for cell in cells:
            own = coordinates[cell]
            half = len(cell) // 2
            order = np.argpartition(own[:, own.var(axis=0).argmax()], half)
            halves += [cell[order[:half]], cell[order[half:]]]
        cells = halves
    places = (np.arange(size) + generator.random(size)) * (count / size)
    return np.concatenate(cells)[np.minimum(places.astype(np.int64), count - 1)]


def _moments(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean (D,) and the covariance (D, D)."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean, vectors.T @ vectors / np.float32(len(vectors)) - np.outer(mean, mean)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Returns a copy (N, D) in float32 whose rows have unit length, or are zero."""
    vectors = np.array(vectors, dtype=np.float32, order="C")
    scale = np.abs(vectors).max(axis=1, initial=0.0)
    broken = np.flatnonzero(~np.isfinite(scale))
    if len(broken):
        raise InputError(
            f"Response vectors: got nan or inf in {len(broken):,} of {len(vectors):,} (first in row {broken[0]}), "
            "expected finite numbers; the model that made them diverged, train it with a lower learning rate"
        )
    vectors /= np.where(scale > 0, scale, 1)[:, None]  # squares of very small numbers would vanish
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    vectors /= np.where(lengths > 0, lengths, 1)[:, None]
    return vectors


def _in_blocks(work: Callable[[slice], None], count: int, size: int) -> None:
    """Lets several threads work on so many rows in blocks; a bar comes only if that takes more than 5 seconds."""
    blocks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    with (
        tqdm(total=count, desc="segments", unit="response", delay=5) as progress,
        ThreadPoolExecutor(min(_THREADS, len(blocks))) as pool,
    ):
        for block, _ in zip(blocks, pool.map(work, blocks), strict=True):
            progress.update(block.stop - block.start)
