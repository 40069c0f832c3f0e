"""What tasks draw: fixed samples of a corpus, and the few examples of each label that a repeat is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...models.errors import InputError

UNIT_PROTOTYPES = ", unit prototypes"
"""Ends the setting in which prototypes have length 1, so that cosines decide; with one example they always have."""

SHOTS = (1, 5)
"""How many labelled examples each label gets, as in the papers of DSE and Dialog2Flow."""

Item = TypeVar("Item")


def fixed_sample(items: Sequence[Item], limit: int | None) -> list[Item]:
    """Draws at most ``limit`` items, always the same ones."""
    if limit is None or limit >= len(items):
        return list(items)
    chosen = np.sort(np.random.default_rng(0).choice(len(items), limit, replace=False))
    return [items[row] for row in chosen]


def draw_examples(
    labels: NDArray[Any], pool: NDArray[np.intp], shots: int, needed: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Draws examples of each label that has enough of them."""
    counts = Counter(labels[pool].tolist())
    classes = sorted(label for label, count in counts.items() if count >= needed)
    if len(classes) < 2:
        raise InputError(
            f"examples: got {len(classes)} labels with {needed} utterances to draw {shots} examples from, expected at "
            "least two; choose another corpus or raise the limit"
        )
    drawn = [generator.choice(pool[labels[pool] == label], shots, replace=False) for label in classes]
    return np.sort(np.concatenate(drawn))
