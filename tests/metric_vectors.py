"""Vectors that the tests of the metrics share."""

from __future__ import annotations

import numpy as np


def clouds(random, count=60, width=8, labels=4):
    """Noisy vectors around one centre per label; every label has several members."""
    codes = np.arange(count) % labels
    return random.normal(size=(labels, width))[codes] + random.normal(size=(count, width)), codes


def corners(random, count=60, labels=4):
    """Vectors with few distinct values, so that many cosines are exactly equal."""
    return random.integers(-1, 2, size=(count, 3)).astype(float), random.integers(0, labels, size=count)
