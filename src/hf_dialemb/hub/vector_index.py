"""An index over vectors that finds those of the largest product with another, by faiss.

Vectors of any length are brought to length one by a further number each (Bachrach et al., 2014), which leaves the order
of their products with a query as it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.errors import InputError

EXACT = 20_000
"""Up to so many vectors are all compared; more are cut into cells, of which the nearest eighth is searched."""


def check_index() -> None:
    """Makes sure that there can be an index.

    Raises:
        InputError: faiss is not installed.
    """
    try:
        import faiss  # noqa: F401
    except ImportError as error:
        raise InputError(
            'An index needs faiss, which is not installed; run: pip install "hf-dialemb[faiss]"'
        ) from error


class VectorIndex:
    """Finds vectors by their product with another.

    Args:
        vectors: P of them, (P, D) float32; the index holds a copy.

    Raises:
        InputError: faiss is not installed.
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        check_index()
        import faiss

        lengths = np.linalg.norm(vectors, axis=1)
        self._longest = max(float(lengths.max()), 1e-12)
        units = np.empty((len(vectors), vectors.shape[1] + 1), dtype=np.float32)
        np.divide(vectors, self._longest, out=units[:, :-1])
        units[:, -1] = np.sqrt(np.clip(1 - (lengths / self._longest) ** 2, 0, None))
        index: Any = faiss.IndexFlatIP(units.shape[1])
        if len(vectors) > EXACT:
            cells = math.isqrt(len(vectors))
            self._cells = index  # faiss keeps no reference of its own
            index = faiss.IndexIVFFlat(index, units.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
            index.train(units)
            index.nprobe = max(1, cells // 8)
        index.add(units)
        self._index = index

    def nearest(self, query: NDArray[np.float32], top: int) -> list[tuple[int, float]]:
        """Finds the vectors of the largest product with a query.

        Args:
            query: (D,) float32.
            top: How many, at most P.

        Returns:
            Pairs of a row and its product, the largest first; of equal ones the earlier row.
        """
        asked = np.append(query, np.float32(0))[None]
        products, rows = self._index.search(asked, min(2 * top, self._index.ntotal))  # equal ones may be cut off
        found = zip(rows[0].tolist(), (products[0].astype(np.float64) * self._longest).tolist(), strict=True)
        ranked = sorted((-product, row) for row, product in found if row >= 0)  # cells may hold fewer than asked for
        return [(row, -product) for product, row in ranked[:top]]
