"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]],
        "references": ["hotel", "hotel", "taxi", "taxi"],
        "result": {"map": 1.0, "mrr": 1.0, "queries": 4, "skipped": 0},
    },
    {
        "predictions": [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
        "references": [0, 0, 1, 2],
        "result": {"map": 1 / 3, "mrr": 1 / 3, "queries": 2, "skipped": 2},
    },
]
