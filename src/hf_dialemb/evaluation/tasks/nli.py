"""Entailment without training (DSE, section 4.5): is a sentence closer to what it entails than to what contradicts it?

An anchor is a first sentence that has both a second sentence that agrees with it and one that contradicts it. A triple
is an anchor with one of each; it is right if the cosine of the anchor and the former is greater. Neutral pairs take no
part. The paper makes triples without saying which: here an anchor's share of right triples is over all of its own, and
accuracy is the mean over anchors, that is what one triple per anchor gives on average. The setting ``triples`` is the
share of all triples, in which anchors of many sentences count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...corpora.examples import SentencePair
from ...encoders.specs import Encoder
from ...models.errors import InputError
from .sampling import fixed_sample
from .task import Measurement, Problem, Task, percentage
from .texts import TextVectors, name_of, row_cosines

AGREES, CONTRADICTS = "positive", "negative"
"""How Dialogue NLI labels pairs."""

_NAME = "dialogue-nli"


class Anchor(NamedTuple):
    """A sentence with some that agree and some that contradict it.

    Attributes:
        text: The sentence.
        agreeing: Distinct sentences, at least one.
        contradicting: Distinct sentences, at least one.
    """

    text: str
    agreeing: tuple[str, ...]
    contradicting: tuple[str, ...]


def anchors_of(pairs: Sequence[SentencePair]) -> list[Anchor]:
    """Gathers the pairs of each first sentence."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for pair in pairs:
        labels = found.setdefault(pair.first, {AGREES: {}, CONTRADICTS: {}})
        if pair.label in labels:
            labels[pair.label][pair.second] = None
    return [
        Anchor(text, tuple(labels[AGREES]), tuple(labels[CONTRADICTS]))
        for text, labels in found.items()
        if labels[AGREES] and labels[CONTRADICTS]
    ]


def load_anchors(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads sentences with what agrees and what contradicts them."""
    from ...corpora import load_examples

    pairs = load_examples(corpus, data_dir, split)
    anchors = fixed_sample(anchors_of(pairs), limit)
    if not anchors:
        raise InputError(
            f"corpus {corpus}, split {split}: got no first sentence with pairs labelled {AGREES} and {CONTRADICTS} "
            f"among {len(pairs)} pairs, expected at least one; choose another corpus or split"
        )
    config = {
        "corpus": name_of(corpus),
        "split": split,
        "limit": limit,
        "anchors": len(anchors),
        "triples": sum(len(anchor.agreeing) * len(anchor.contradicting) for anchor in anchors),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        vectors = TextVectors(
            encoder, (text for anchor in anchors for text in (anchor.text, *anchor.agreeing, *anchor.contradicting))
        )
        right = []
        for anchor in anchors:
            asked = vectors.of([anchor.text])
            agreeing = row_cosines(vectors.of(anchor.agreeing), asked)
            contradicting = row_cosines(vectors.of(anchor.contradicting), asked)
            right.append((agreeing[:, None] > contradicting).ravel())
        return [
            percentage(_NAME, "accuracy", "", [float(np.mean([each.mean() for each in right]))]),
            percentage(_NAME, "accuracy", "triples", [float(np.concatenate(right).mean())]),
        ]

    return Problem(config, measure)


TASK = Task(_NAME, load_anchors, "DSE, section 4.5", kinds=("sentence-pairs",))
