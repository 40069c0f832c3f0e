"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [9, 10],
        "references": [10, 8],
        "result": {"size_difference": 0.175, "signed_size_difference": 0.075},
    },
    {"predictions": [12], "references": [12], "result": {"size_difference": 0.0, "signed_size_difference": 0.0}},
    {"predictions": [0, 30], "references": [10, 10], "result": {"size_difference": 1.5, "signed_size_difference": 0.5}},
]
