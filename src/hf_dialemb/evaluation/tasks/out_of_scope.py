"""Few-shot out-of-scope detection (DSE, section 4.2.2): what is far from the means of all intents belongs to none.

The paper's text takes the threshold from "the similarity scores between every sample and its most similar prototype",
its program from those of the test set itself, out-of-scope utterances and all; and it gives them a prototype too, of
labelled examples, and brings the similarities of an utterance to length 1. That is the setting "official". Otherwise
the threshold comes from utterances in scope that are not tested on, and nothing is known of what is out of scope.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...corpora import get_corpus
from ..results.rows import Row
from .intents import OUT_OF_SCOPE, in_scope, intent, load_utterances, out_of_scope
from .sampling import SHOTS, draw_examples, few_of_each
from .task import CorpusPart, Problem, percentage

THRESHOLDS = {"mean-std": -1.0, "mean": 0.0}  # how many standard deviations are added to the mean similarity


class Parts(NamedTuple):
    """The rows of the utterances by what they are for.

    Examples are drawn from those in scope, in the official setting also from ``strangers``, out of scope. The threshold
    is taken from ``reference``, in scope, or if it is empty from `examples` without those drawn.
    """

    examples: NDArray[np.intp]
    strangers: NDArray[np.intp]
    reference: NDArray[np.intp]
    tested: NDArray[np.intp]


def load_out_of_scope(part: CorpusPart) -> Problem:
    """Load the utterances of a corpus, those that are out of scope too."""
    train, loaded = load_utterances(part)
    separate = "dev" in get_corpus(part.place).splits and part.split != "dev"
    reference = in_scope(part.dialogues("dev")) if separate else []
    tested = part.sample([item for item in loaded if item.turns[0].intents])
    examples, strangers = (few_of_each(of(train), intent, part.limit) for of in (in_scope, out_of_scope))
    groups = (examples, strangers, part.sample(reference), tested)
    if not groups[1] or not out_of_scope(tested) or not in_scope(tested):
        raise part.error(
            f"got {len(groups[1])} utterances out of scope to train on and {len(out_of_scope(tested))} of "
            f"{len(tested)} to test on, expected some of each kind; choose clinc150"
        )
    dialogues = [item for group in groups for item in group]
    labels = [OUT_OF_SCOPE if OUT_OF_SCOPE in item.turns[0].intents else intent(item) for item in dialogues]
    parts = Parts(*np.split(np.arange(len(dialogues)), np.cumsum([len(group) for group in groups])[:-1]))
    intents = len(set(labels) - {OUT_OF_SCOPE})
    sizes = {"utterances": len(tested), "out_of_scope": len(out_of_scope(tested)), "labels": intents}
    drawn_from = {"examples_from": "train", "threshold_from": "dev" if separate else "train", "shots": list(SHOTS)}
    config = {**sizes, **drawn_from}
    return Problem(config, lambda encoder, seeds: detect(encoder.encode(dialogues), labels, parts, seeds))


def detect(
    embeddings: NDArray[Any], labels: Sequence[str], parts: Parts, seeds: Sequence[int] = range(10)
) -> list[Row]:
    """Find the utterances out of scope and classify the rest, by the means of few examples."""
    from ...metrics.out_of_scope import out_of_scope_scores

    names = np.array(labels)
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for shots in SHOTS:
        for seed in seeds:
            for setting, guessed in _guesses(embeddings, names, parts, shots, seed):
                scores = out_of_scope_scores(guessed, names[parts.tested], OUT_OF_SCOPE)
                for metric, share in scores.items():
                    shares[metric, setting].append(share)
    return [percentage("out-of-scope-detection", *figure, values) for figure, values in shares.items()]


def _guesses(
    embeddings: NDArray[Any], names: NDArray[Any], parts: Parts, shots: int, seed: int
) -> Iterator[tuple[str, NDArray[Any]]]:
    from sklearn.preprocessing import normalize

    from ...metrics.out_of_scope import detect_out_of_scope, score_threshold
    from ...metrics.vectors import prototype_products

    generator = np.random.default_rng([seed, shots])
    drawn = draw_examples(names, parts.examples, shots, shots, generator)
    rest = parts.reference if len(parts.reference) else np.setdiff1d(parts.examples, drawn)
    both = embeddings[np.concatenate([rest, parts.tested])]
    classes, products = prototype_products(embeddings[drawn], names[drawn], both)
    strangers = generator.choice(parts.strangers, min(shots, len(parts.strangers)), replace=False)
    drawn = np.concatenate([drawn, strangers])
    official_classes, official = prototype_products(embeddings[drawn], names[drawn], embeddings[parts.tested])
    official = normalize(official)
    for ending, known, scored, reference in (
        ("", classes, products[len(rest) :], products[: len(rest)]),
        (" official", official_classes, official, official),
    ):
        for name, deviations in THRESHOLDS.items():
            threshold = score_threshold(reference.max(axis=1), deviations)
            yield f"{shots}-shot {name}{ending}", detect_out_of_scope(scored, known, threshold, OUT_OF_SCOPE)
