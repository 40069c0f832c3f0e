"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 2.0]],
        "references": ["inform", "inform", "inform", "request", "request", "request"],
        "result": {"intra": 1.0, "inter": 0.0, "difference": 1.0},
    },
    {
        "predictions": [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
        "references": [0, 0, 1, 1],
        "min_members": 2,
        "result": {"intra": 0.0, "inter": 0.0, "difference": 0.0},
    },
]
