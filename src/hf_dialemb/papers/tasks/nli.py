"""Entailment without training (DSE, section 4.5): is a sentence closer to what it entails than to what contradicts it?

An anchor is a first sentence that has both a second sentence that agrees with it and one that contradicts it. A triple
is an anchor with one of each; it is right if the cosine of the anchor and the former is greater. The paper makes
triples without saying which: here an anchor's share of right triples is over all of its own, and accuracy is the mean
over anchors, that is what one triple per anchor gives on average. The setting ``triples`` is the share of all triples,
in which anchors of many sentences count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...corpora.examples import SentencePair
from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import CorpusPart, Problem, percentage
from ...evaluation.tasks.texts import TextVectors, row_cosines

AGREES, CONTRADICTS = "positive", "negative"  # how Dialogue NLI labels pairs


class Anchor(NamedTuple):
    """A sentence with some that agree and some that contradict it, distinct ones and at least one of each."""

    text: str
    agreeing: tuple[str, ...]
    contradicting: tuple[str, ...]


def anchors_of(pairs: Sequence[SentencePair]) -> list[Anchor]:
    """Gather the pairs of each first sentence."""
    results: dict[str, dict[str, dict[str, None]]] = {}
    for pair in pairs:
        labels = results.setdefault(pair.first, {AGREES: {}, CONTRADICTS: {}})
        if pair.label in labels:
            labels[pair.label][pair.second] = None
    anchors = [Anchor(text, tuple(labels[AGREES]), tuple(labels[CONTRADICTS])) for text, labels in results.items()]
    return [anchor for anchor in anchors if anchor.agreeing and anchor.contradicting]


def load_anchors(part: CorpusPart) -> Problem:
    """Load sentences with what agrees and what contradicts them."""
    pairs = part.examples()
    anchors = part.sample(anchors_of(pairs))
    if not anchors:
        raise part.error(
            f"got no first sentence with pairs labelled {AGREES} and {CONTRADICTS} among {len(pairs)} pairs, expected "
            "at least one; choose another corpus or split"
        )

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = TextVectors(encoder, (text for item in anchors for text in (item[0], *item[1], *item[2])))
        right = []
        for anchor in anchors:
            asked = vectors.of([anchor.text])
            agreeing, contradicting = (row_cosines(vectors.of(texts), asked) for texts in anchor[1:])
            right.append((agreeing[:, None] > contradicting).ravel())
        return [
            percentage("dialogue-nli", "accuracy", setting, [float(np.mean(shares))])
            for setting, shares in (("", [item.mean() for item in right]), ("triples", np.concatenate(right)))
        ]

    triples = sum(len(anchor.agreeing) * len(anchor.contradicting) for anchor in anchors)
    return Problem({"anchors": len(anchors), "triples": triples}, measure)
