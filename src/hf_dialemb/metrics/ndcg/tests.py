"""Example cases: the arguments of compute, and what it returns."""

from __future__ import annotations

import math
from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [[0.9, 0.5, 0.1]],
        "references": [[True, False, False]],
        "result": {"ndcg": 1.0, "official_ndcg": (1.25 + 0.5 / math.log2(3)) / (1 + 1 / math.log2(3))},
    },
    {
        "predictions": [[0.9, 0.5, 0.1], [0.5, 0.5, 0.5]],
        "references": [[False, True, True], [True, True, True]],
        "k": 2,
        "result": {"ndcg": (1 / math.log2(3) / (1 + 1 / math.log2(3)) + 1) / 2, "official_ndcg": 1.0},
    },
]
