"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[0.9, 0.1], [0.2, 0.8]],
        "references": [[True, False], [True, False]],
        "result": {"mrr": 0.75, "hits1": 0.5, "r2@1": 0.5},
    },
    {"predictions": [[1.0, 1.0]], "references": [[True, False]], "result": {"mrr": 0.75, "hits1": 0.5, "r2@1": 0.5}},
    {
        "predictions": [[1.0, 1.0], [0.3, 0.2, 0.1]],
        "references": [[True, False], [False, False, True]],
        "ties": "official",
        "result": {"mrr": 2 / 3, "hits1": 0.5, "r2@1": 0.5},
    },
]
