"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[2.0, 1.0], [1.0, 3.0], [5.0, 4.0]],
        "references": ["inform", "request", "request"],
        "supports": [[1.0, 0.0], [0.0, 1.0]],
        "support_labels": ["inform", "request"],
        "result": {"accuracy": 2 / 3, "macro_f1": 2 / 3},
    },
    {
        # The supports of 0 differ, so that its mean is short; brought to length 1, it is the nearest.
        "predictions": [[1.0, 1.0]],
        "references": [0],
        "supports": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
        "support_labels": [0, 0, 1],
        "unit_prototypes": True,
        "result": {"accuracy": 1.0, "macro_f1": 1.0},
    },
]
