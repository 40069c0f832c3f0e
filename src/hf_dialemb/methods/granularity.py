"""Negatives by granularity.

Responses as far from the true one as a level asks (Mehri & Eskenazi, section 3.3).

For a response i, the other N - 1 responses in the order of their cosine to it, descending, are cut
into L equal segments: P_i^1 holds the closest (the highest granularity), P_i^L the furthest (the
highest abstraction). The ranker of level l learns to tell i from members of P_i^l, drawn uniformly
(equation 12). The paper sorts a matrix of all pairs. Here each draw ranks some random responses,
so that nothing grows with the square of the pool.
"""

import numpy as np

from ..metrics.vectors import unit

_SAMPLE = 1024  # others that a draw ranks
_TIE = 4e-7  # cosines of equal vectors differ by less in float32


class Segments:
    """The segments of every response of a pool, by vectors (N, D) of N distinct responses.

    In pools of more than 1,025 responses a draw ranks 1,024 random others: about 96 % of what it
    draws lies in the true segment.
    """

    def __init__(self, vectors: np.ndarray, num_segments: int = 5) -> None:
        self.num_segments = num_segments
        self.vectors = unit(vectors)

    def __len__(self) -> int:
        return len(self.vectors)

    def draw(self, row: int, level: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """Draw negatives uniformly from a segment of a response (equation 12), without itself.

        The level goes from 1 (closest) to L (furthest); ties are in random order. Return rows of
        the pool, (count,) int64, which differ unless the segment has fewer.
        """
        size = min(len(self) - 1, _SAMPLE)
        others = generator.choice(len(self) - 1, size, replace=False)
        others += others >= row
        cosines = np.round(self.vectors[others] @ self.vectors[row] / _TIE)
        first = size * (level - 1) // self.num_segments
        end = size * level // self.num_segments
        segment = others[np.argsort(-cosines, kind="stable")[first:end]]
        return np.asarray(generator.choice(segment, count, replace=len(segment) < count))
