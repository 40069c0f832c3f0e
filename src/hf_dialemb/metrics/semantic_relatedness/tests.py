"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]],
        "references": ["hotel", "hotel", "taxi", "taxi"],
        "seeds": [1, 2],
        "result": {
            "spearman": 1.0,
            "queries": 4,
            "skipped": 0,
            "undefined": 0,
            "pair_spearman": 1.0,
            "pair_spearman_std": 0.0,
            "pair_undefined": 0,
        },
    },
    {
        "predictions": [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
        "references": [0, 0, 1],
        "seeds": [0],
        "result": {
            "spearman": 0.0,
            "queries": 2,
            "skipped": 1,
            "undefined": 2,
            "pair_spearman": 0.0,
            "pair_spearman_std": 0.0,
            "pair_undefined": 1,
        },
    },
]
