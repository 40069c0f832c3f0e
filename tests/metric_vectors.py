"""Vectors that the tests of the metrics share."""

import numpy as np


def clouds(random, count=60, width=8, labels=4):
    """Noisy vectors around one centre per label; every label has several members."""
    codes = np.arange(count) % labels
    return random.normal(size=(labels, width))[codes] + random.normal(size=(count, width)), codes


def copies(random):
    """Ten vectors, each twenty times, whose products, summed in another order, would differ in the last digits."""
    return np.tile(random.normal(size=(10, 33)).astype(np.float32), (20, 1)), np.arange(200) % 7


def corners(random, count=60, labels=4):
    """Vectors with few distinct values, so that many cosines are exactly equal."""
    return random.integers(-1, 2, size=(count, 3)).astype(float), random.integers(0, labels, size=count)
