"""Negatives by granularity.

Responses as far from the true one as a level asks (Mehri & Eskenazi, section 3.3).

For a response i, the other N - 1 responses in the order of their cosine to it, descending, are cut
into L equal
segments: P_i^1 holds the closest (the highest granularity), P_i^L the furthest (the highest
abstraction). The ranker of level l learns to tell i from members of P_i^l, drawn uniformly
(equation 12). The paper sorts a matrix of all pairs. Here each response has L - 1 bounds between
its segments, and a draw keeps random responses whose cosine lies between two bounds. That needs
memory for N x (D + L) numbers, and linear time for large pools.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tqdm.auto import tqdm

from ..errors import InputError
from ..metrics.vectors import unit

_COSINES = 2**21  # cosines that a thread computes at once (8 MiB): large matrix products are faster
# numpy sorts and multiplies without holding the interpreter's lock
_THREADS = min(8, os.cpu_count() or 1)
# of candidates for a draw, before the whole pool is ranked; a segment of its right size needs one
# or two
_ROUNDS = 8
# smaller segments, in multiples of the wanted negatives, are ranked: candidates would often be the
# same
_FEW = 32
_TIE = 4e-7  # cosines of equal vectors differ by less in float32


class Segments:
    """The segments of every response of a pool, by vectors (N, D) of N distinct responses.

    Bounds in pools of at most 2 S responses are exact and take N² time. In larger pools they are
    quantiles of the cosines to S random responses (``sample_size``): with 8192, about 98 % of the
    draws lie in the true segment.

    Attributes:
        bounds: (N, L + 1) float32: segment l, from 1, has the cosines in (bounds[:, l], bounds[:, l
            - 1]]. A bound that runs through a tie is not a number: the segments beside it are found
            by ranking the pool.

    Raises:
        InputError: Vectors are not finite.
    """

    def __init__(
        self, vectors: np.ndarray, num_segments: int = 5, *, sample_size: int = 8192, seed: int = 0
    ) -> None:
        self.num_segments = num_segments
        if broken := (~np.isfinite(vectors).all(axis=1)).sum():
            raise InputError(
                f"Response vectors: got nan or inf in {broken:,} of {len(vectors):,}, expected "
                "finite numbers; train the model that made them with a lower learning rate"
            )
        self.vectors = unit(vectors)
        count = len(self.vectors)
        self.edges = [(count - 1) * level // num_segments for level in range(num_segments + 1)]
        self.exact = count <= 2 * sample_size
        self._sample = self.vectors
        if not self.exact:
            self._sample = self.vectors[
                np.random.default_rng(seed).choice(count, sample_size, replace=False)
            ]
        self.bounds = np.empty((count, num_segments + 1), dtype=np.float32)
        self.bounds[:, 0], self.bounds[:, -1] = np.inf, -np.inf
        size = max(1, _COSINES // len(self._sample))
        blocks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
        with (
            tqdm(total=count, desc="segments", unit="response", delay=5) as progress,
            ThreadPoolExecutor(min(_THREADS, len(blocks))) as pool,
        ):
            for block, bounds in zip(blocks, pool.map(self._bounds, blocks), strict=True):
                self.bounds[block, 1:-1] = bounds
                progress.update(block.stop - block.start)

    def __len__(self) -> int:
        return len(self.vectors)

    def draw(self, row: int, level: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """Draw negatives uniformly from a segment of a response (equation 12), without itself.

        The level goes from 1 (closest) to L (furthest). Return rows of the pool, (count,) int64,
        which differ unless the segment has fewer.
        """
        upper, lower = self.bounds[row, level - 1], self.bounds[row, level]
        width = self.edges[level] - self.edges[level - 1]
        negatives: dict[int, None] = {}
        # The comparison is false for bounds that are not a number. One in L candidates is kept.
        for _ in range(_ROUNDS if upper > lower and width >= _FEW * count else 0):
            drawn = generator.integers(len(self) - 1, size=int(1.3 * self.num_segments * count) + 8)
            drawn += drawn >= row
            cosines = self.vectors[drawn] @ self.vectors[row]
            negatives |= dict.fromkeys(drawn[(cosines > lower) & (cosines <= upper)].tolist())
            if len(negatives) >= count:
                return np.array([*negatives][:count], dtype=np.int64)
        return self._rank(row, level, count, generator)

    def _rank(self, row: int, level: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """Draw from a segment by ranking the whole pool, ties in random order."""
        others = generator.permutation(len(self) - 1)
        others += others >= row
        cosines = np.round((self.vectors @ self.vectors[row])[others] / _TIE)
        first, end = self.edges[level - 1], self.edges[level]
        segment = others[np.argpartition(-cosines, (first, end - 1))[first:end]]
        return np.asarray(generator.choice(segment, count, replace=end - first < count))

    def _bounds(self, rows: slice) -> np.ndarray:
        """Return bounds (n, L - 1) half-way between the last cosine of a segment and the next."""
        cosines = self.vectors[rows] @ self._sample.T  # (n, S)
        size = len(self._sample)
        margin = 0
        if self.exact:
            cosines[np.arange(len(cosines)), np.arange(len(self))[rows]] = -np.inf
            edges = size - np.array(self.edges[1:-1], dtype=np.int64)
        else:
            # quantiles of a sample are this far off, so a tie must be as wide
            margin = 1 + size // 1000
            edges = size - np.rint(
                size * np.arange(1, self.num_segments) / self.num_segments
            ).astype(np.int64)
        places = [edges, edges - 1, edges + margin, edges - 1 - margin]
        if len(edges):
            cosines.partition(np.unique(places), axis=1)
        above, below, far_above, far_below = (cosines[:, place] for place in places)
        return np.where(far_above - far_below > _TIE, (above + below) / 2, np.nan)
