"""An index over vectors that finds those of the largest product with another, by faiss.

Vectors of any length are brought to length one by a further number each (Bachrach et al., 2014),
which leaves the order of their products with a query as it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dialemb.errors import InputError

EXACT = 20_000
"""Up to so many vectors are all compared.

More are cut into cells, of which the nearest eighth is searched.
"""

_PER_CELL = 64  # vectors, of which the cells are found; faiss asks for 39 at least
_ADDED = 8_192  # vectors that are brought to length one at once


def check_index() -> None:
    """Make sure that there can be an index."""
    try:
        import faiss  # noqa: F401
    except ImportError as error:
        raise InputError(
            'An index needs faiss, which is not installed; run: pip install "hf-dialemb[faiss]"'
        ) from error


class VectorIndex:
    """Finds vectors, (P, D) float32, by their product with another; it holds a copy of them."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        check_index()
        import faiss

        parts = [vectors[start : start + _ADDED] for start in range(0, len(vectors), _ADDED)]
        self._longest = max(1e-12, *(float(np.linalg.norm(part, axis=1).max()) for part in parts))
        width = vectors.shape[1] + 1
        index: Any = faiss.IndexFlatIP(width)
        if len(vectors) > EXACT:
            cells = math.isqrt(len(vectors))
            self._cells = index  # faiss keeps no reference of its own
            index = faiss.IndexIVFFlat(index, width, cells, faiss.METRIC_INNER_PRODUCT)
            rows = np.random.default_rng(0).choice(
                len(vectors), min(len(vectors), cells * _PER_CELL), replace=False
            )
            index.train(self._units(vectors[np.sort(rows)]))
            index.nprobe = max(1, cells // 8)
        for part in parts:  # a second copy of all beside the index's is not needed
            index.add(self._units(part))
        self._index = index

    def _units(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        units = np.empty((len(vectors), vectors.shape[1] + 1), dtype=np.float32)
        np.divide(vectors, self._longest, out=units[:, :-1])
        units[:, -1] = np.sqrt(np.clip(1 - (units[:, :-1] ** 2).sum(axis=1), 0, None))
        return units

    def nearest(self, query: NDArray[np.float32], top: int) -> list[tuple[int, float]]:
        """Return rows and their products with a query, (D,) float32, the largest first, of equal
        ones the earlier.
        """
        asked = np.append(query, np.float32(0))[None]
        # equal ones may be cut off
        products, rows = self._index.search(asked, min(2 * top, self._index.ntotal))
        found = zip(
            rows[0].tolist(), (products[0].astype(np.float64) * self._longest).tolist(), strict=True
        )
        # cells may hold fewer than asked for
        ranked = sorted((-product, row) for row, product in found if row >= 0)
        return [(row, -product) for product, row in ranked[:top]]
