"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]],
        "references": ["balance", "transfer", "oos", "balance"],
        "supports": [[1.0, 0.0], [0.0, 1.0]],
        "support_labels": ["balance", "transfer"],
        "calibration": [[1.0, 0.0], [3.0, 4.0]],
        "result": {"accuracy": 0.75, "in_accuracy": 2 / 3, "oos_accuracy": 0.75, "oos_recall": 1.0, "threshold": 0.8},
    },
    {
        "predictions": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]],
        "references": [0, 1, -1, -1],
        "supports": [[1.0, 0.0], [0.0, 1.0]],
        "support_labels": [0, 1],
        "calibration": [[1.0, 0.0], [3.0, 4.0]],
        "deviations": 0.0,
        "out_of_scope": -1,
        "result": {"accuracy": 1.0, "in_accuracy": 1.0, "oos_accuracy": 1.0, "oos_recall": 1.0, "threshold": 0.9},
    },
]
