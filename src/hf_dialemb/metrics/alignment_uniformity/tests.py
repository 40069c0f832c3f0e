"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

import math
from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]],
        "references": ["hotel", "hotel", "taxi", "taxi"],
        "result": {
            "adjusted_alignment": -2.0,
            "alignment": 0.0,
            "separation": 2.0,
            "uniformity": math.log((2 + 4 * math.exp(-4)) / 6),
        },
    },
    {
        "predictions": [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
        "references": [0, 0, 1],
        "result": {"adjusted_alignment": 0.0, "alignment": 0.0, "separation": 0.0, "uniformity": 0.0},
    },
]
