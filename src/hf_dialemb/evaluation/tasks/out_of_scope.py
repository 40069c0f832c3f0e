"""Few-shot out-of-scope detection (DSE, section 4.2.2): what is far from the means of all intents belongs to none.

The paper's text takes the threshold from "the similarity scores between every sample and its most similar prototype",
its program from those of the test set itself, out-of-scope utterances and all; and it gives them a prototype too, of
labelled examples, and brings the similarities of an utterance to length 1. That is the setting "official". Otherwise
the threshold comes from utterances in scope that are not tested on, and nothing is known of what is out of scope.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...encoders.specs import Encoder
from ...models.errors import InputError
from .intents import OUT_OF_SCOPE, in_scope, intent, load_utterances, out_of_scope
from .sampling import SHOTS, draw_examples, fixed_sample
from .task import Measurement, Problem, Task, percentage

THRESHOLDS = {"mean-std": -1.0, "mean": 0.0}
"""From the name of a threshold to the number of standard deviations that are added to the mean similarity."""


class Parts(NamedTuple):
    """The rows of the utterances by what they are for.

    Attributes:
        examples: In scope; what examples are drawn from.
        strangers: Out of scope, from the same split; the official setting draws examples from them.
        reference: In scope; what the threshold is taken from. If empty, that is `examples` without those drawn.
        tested: What is tested on.
    """

    examples: NDArray[np.intp]
    strangers: NDArray[np.intp]
    reference: NDArray[np.intp]
    tested: NDArray[np.intp]


def load_out_of_scope(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads the utterances of a corpus, those that are out of scope too."""
    from ...corpora import get_corpus, load_dialogues

    train, loaded = load_utterances(corpus, data_dir, split)
    separate = "dev" in get_corpus(corpus).splits and split != "dev"
    reference = in_scope(load_dialogues(corpus, data_dir, "dev")) if separate else []
    tested = fixed_sample([each for each in loaded if each.turns[0].intents], limit)
    groups = (in_scope(train), out_of_scope(train), reference, tested)
    if not groups[1] or not out_of_scope(tested) or not in_scope(tested):
        raise InputError(
            f"corpus {corpus}, split {split}: got {len(groups[1])} utterances out of scope to train on and "
            f"{len(out_of_scope(tested))} of {len(tested)} to test on, expected some of each kind; choose clinc150"
        )
    dialogues = [each for group in groups for each in group]
    labels = [OUT_OF_SCOPE if OUT_OF_SCOPE in each.turns[0].intents else intent(each) for each in dialogues]
    ends = np.cumsum([len(group) for group in groups])
    parts = Parts(*(np.arange(end - len(group), end) for group, end in zip(groups, ends, strict=True)))
    config = {
        "corpus": corpus,
        "split": split,
        "limit": limit,
        "utterances": len(tested),
        "out_of_scope": len(out_of_scope(tested)),
        "labels": len(set(labels) - {OUT_OF_SCOPE}),
        "examples_from": "train",
        "threshold_from": "dev" if separate else "train",
        "shots": list(SHOTS),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        return detect(encoder.encode(dialogues), labels, parts, seeds)

    return Problem(config, measure)


def detect(
    embeddings: NDArray[Any], labels: Sequence[str], parts: Parts, seeds: Sequence[int] = range(10)
) -> list[Measurement]:
    """Finds what is out of scope and classifies the rest, by the means of few examples."""
    from ...metrics.out_of_scope.functional import out_of_scope_scores

    names = np.array(labels)
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for shots in SHOTS:
        for seed in seeds:
            for setting, guessed in _guesses(embeddings, names, parts, shots, seed):
                scores = out_of_scope_scores(guessed, names[parts.tested], OUT_OF_SCOPE)
                for metric, share in scores.items():
                    shares[metric, setting].append(share)
    return [percentage(TASK.name, metric, setting, values) for (metric, setting), values in shares.items()]


def _guesses(
    embeddings: NDArray[Any], names: NDArray[Any], parts: Parts, shots: int, seed: int
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yields each setting and what is guessed of the tested utterances in it."""
    from sklearn.preprocessing import normalize

    from ...metrics.out_of_scope.functional import detect_out_of_scope, prototype_similarities, score_threshold

    generator = np.random.default_rng([seed, shots])
    drawn = draw_examples(names, parts.examples, shots, shots, generator)
    rest = parts.reference if len(parts.reference) else np.setdiff1d(parts.examples, drawn)
    classes, products = prototype_similarities(
        embeddings[drawn], names[drawn], embeddings[np.concatenate([rest, parts.tested])]
    )
    largest, products = products[: len(rest)].max(axis=1), products[len(rest) :]
    for name, deviations in THRESHOLDS.items():
        threshold = score_threshold(largest, deviations)
        yield f"{shots}-shot {name}", detect_out_of_scope(products, classes, threshold, OUT_OF_SCOPE)
    strangers = generator.choice(parts.strangers, min(shots, len(parts.strangers)), replace=False)
    drawn = np.concatenate([drawn, strangers])
    classes, products = prototype_similarities(embeddings[drawn], names[drawn], embeddings[parts.tested])
    products = normalize(products)
    for name, deviations in THRESHOLDS.items():
        threshold = score_threshold(products.max(axis=1), deviations)
        yield f"{shots}-shot {name} official", detect_out_of_scope(products, classes, threshold, OUT_OF_SCOPE)


TASK = Task("out-of-scope-detection", load_out_of_scope, "DSE, section 4.2.2", kinds=("utterances",))
