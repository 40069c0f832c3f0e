"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]],
        "references": ["hotel", "hotel", "taxi", "taxi"],
        "result": {
            "clusters": 2,
            "purity": 1.0,
            "purity_std": 0.0,
            "nmi": 1.0,
            "nmi_std": 0.0,
            "ari": 1.0,
            "ari_std": 0.0,
        },
    },
    {
        "predictions": [[0.0], [0.1], [9.0], [9.1]],
        "references": [0, 1, 0, 1],
        "seeds": [0],
        "result": {
            "clusters": 2,
            "purity": 0.5,
            "purity_std": 0.0,
            "nmi": 0.0,
            "nmi_std": 0.0,
            "ari": -0.5,
            "ari_std": 0.0,
        },
    },
]
