"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[1.0, 0.0], [0.0, 1.0]],
        "references": [[True, False], [False, True]],
        "candidates": [[2.0, 1.0], [1.0, 2.0]],
        "result": {"top1": 1.0, "top3": 1.0, "top10": 1.0, "mrr": 1.0},
    },
    {
        "predictions": [[3.0, 0.0]],
        "references": [[True, False, False, False]],
        "candidates": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]],
        "result": {"top1": 0.5, "top3": 1.0, "top10": 1.0, "mrr": 0.75},
    },
    {
        "predictions": [[3.0, 0.0]],
        "references": [[True, False, False, False]],
        "candidates": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]],
        "ignored": [[False, True, False, False]],
        "result": {"top1": 1.0, "top3": 1.0, "top10": 1.0, "mrr": 1.0},
    },
]
