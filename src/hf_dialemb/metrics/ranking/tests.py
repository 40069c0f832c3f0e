"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[2.0, 0.0], [0.0, 1.0]],
        "candidates": [[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0.0, 3.0], [1.0, 0.0]]],
        "references": [[False, False, True], [True, False]],
        "result": {"map": 0.75, "mrr": 0.75, "queries": 2},
    },
    {
        "predictions": [[1.0, 1.0]],
        "candidates": [[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]],
        "references": [[True, False, False]],
        "result": {"map": 1 / 3, "mrr": 1 / 3, "queries": 1},
    },
]
