"""Few-shot intents (DSE, section 4.2.2).

The nearest mean of a few examples gives the intent, or none is near enough.

Of what has no intent the paper's text takes the threshold from "the similarity scores between every
sample and its most similar prototype", its program from those of the test set itself, out-of-scope
utterances and all; and it gives them a prototype too, of labelled examples, and brings the
similarities of an utterance to length 1. That is the setting "official". Otherwise the threshold
comes from utterances in scope that are not tested on, and nothing is known of what is out of scope.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ...data import get_corpus
from ...dialogue import Dialogue
from ...encoders import Encoder
from ...metrics.out_of_scope import detect_out_of_scope, out_of_scope_scores
from ...metrics.prototype_classification import prototype_classification
from ...metrics.vectors import prototype_products
from ..results.rows import Row
from .sampling import SHOTS, draw_examples, few_of_each
from .task import CorpusPart, Problem, percentage

NAME = "intent-classification"

OUT_OF_SCOPE = (
    "oos"  # the intent of utterances that belong to none; for classification they are no class
)
# how many standard deviations are added to the mean similarity
THRESHOLDS = {"mean-std": -1.0, "mean": 0.0}


def load_intents(part: CorpusPart) -> Problem:
    """Load the utterances of a corpus that have an intent.

    First the examples, then what is to be classified.
    """
    train, loaded = load_utterances(part)
    examples = few_of_each(in_scope(train), intent, part.limit)
    queries = part.sample(in_scope(loaded))
    dialogues = [*examples, *queries]
    labels = [intent(dialogue) for dialogue in dialogues]
    if len(set(labels)) < 2:
        raise part.error(f"got {len(set(labels))} intents, expected at least two")
    config = {
        "utterances": len(queries),
        "labels": len(set(labels)),
        "examples_from": "train",
        "out_of_scope": len(loaded) - len(in_scope(loaded)),
        "shots": list(SHOTS),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        return classify_intents(encoder.encode(dialogues), labels, len(examples), seeds)

    return Problem(config, measure, dialogues, labels)


def classify_intents(
    embeddings: NDArray[Any], labels: Sequence[str], examples: int, seeds: Sequence[int] = range(10)
) -> list[Row]:
    """Classify utterances by the means of few of the first ``examples`` rows of each intent."""
    names = np.array(labels)
    pool = np.arange(examples)
    results = []
    for shots in SHOTS:
        repeats = []
        for seed in seeds:
            drawn = draw_examples(names, pool, shots, shots, np.random.default_rng([seed, shots]))
            queries = np.flatnonzero(
                np.isin(names, names[drawn]) & (np.arange(len(names)) >= examples)
            )
            repeats.append((drawn, queries))
        results += by_prototypes(NAME, {"accuracy": "accuracy"}, embeddings, names, repeats, shots)
    return results


def by_prototypes(
    task: str,
    metrics: Mapping[str, str],
    embeddings: NDArray[Any],
    names: NDArray[Any],
    repeats: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    shots: int,
) -> list[Row]:
    """Measure, by the names of ``metrics``, how examples classify queries.

    A repeat has rows of both.

    In a setting of its own prototypes have length 1, so that cosines decide; with one example they
    always have it.
    """
    results = []
    for unit in (False, True) if shots > 1 else (False,):
        setting = f"{shots}-shot, unit prototypes" if unit else f"{shots}-shot"
        figures = []
        for rows, asked in repeats:
            parts = embeddings[rows], names[rows], embeddings[asked], names[asked]
            figures.append(prototype_classification(*parts, unit_prototypes=unit))
        results += [
            percentage(task, name, setting, [item[key] for item in figures])
            for name, key in metrics.items()
        ]
    return results


def load_utterances(part: CorpusPart) -> tuple[list[Dialogue], list[Dialogue]]:
    """Load the examples of a corpus of utterances, and what is to be classified."""
    part.check_splits("train")
    return part.dialogues("train"), part.dialogues()


def in_scope(utterances: Sequence[Dialogue]) -> list[Dialogue]:
    """Keep the utterances that have an intent and are not out of scope."""
    return [
        item
        for item in utterances
        if item.turns[0].intents and OUT_OF_SCOPE not in item.turns[0].intents
    ]


def out_of_scope(utterances: Sequence[Dialogue]) -> list[Dialogue]:
    """Keep the utterances that are marked as out of scope."""
    return [item for item in utterances if OUT_OF_SCOPE in item.turns[0].intents]


def intent(utterance: Dialogue) -> str:
    """Return the first intent of an utterance that has one."""
    return utterance.turns[0].intents[0]


class Parts(NamedTuple):
    """The rows of the utterances by what they are for.

    Examples are drawn from those in scope, in the official setting also from ``strangers``, out of
    scope. The threshold is taken from ``reference``, in scope, or if it is empty from `examples`
    without those drawn.
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
    examples = few_of_each(in_scope(train), intent, part.limit)
    strangers = few_of_each(out_of_scope(train), intent, part.limit)
    groups = (examples, strangers, part.sample(reference), tested)
    if not strangers or not out_of_scope(tested) or not in_scope(tested):
        raise part.error(
            f"got {len(strangers)} utterances out of scope to train on and "
            f"{len(out_of_scope(tested))} of "
            f"{len(tested)} to test on, expected some of each kind; choose clinc150"
        )
    dialogues = [item for group in groups for item in group]
    labels = [
        OUT_OF_SCOPE if OUT_OF_SCOPE in item.turns[0].intents else intent(item)
        for item in dialogues
    ]
    parts = Parts(
        *np.split(np.arange(len(dialogues)), np.cumsum([len(group) for group in groups])[:-1])
    )
    config = {
        "utterances": len(tested),
        "out_of_scope": len(out_of_scope(tested)),
        "labels": len(set(labels) - {OUT_OF_SCOPE}),
        "examples_from": "train",
        "threshold_from": "dev" if separate else "train",
        "shots": list(SHOTS),
    }
    return Problem(
        config, lambda encoder, seeds: detect(encoder.encode(dialogues), labels, parts, seeds)
    )


def detect(
    embeddings: NDArray[Any], labels: Sequence[str], parts: Parts, seeds: Sequence[int] = range(10)
) -> list[Row]:
    """Find the utterances out of scope and classify the rest, by the means of few examples."""
    names = np.array(labels)
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for shots in SHOTS:
        for seed in seeds:
            for setting, guessed in _guesses(embeddings, names, parts, shots, seed):
                scores = out_of_scope_scores(guessed, names[parts.tested], OUT_OF_SCOPE)
                for metric, share in scores.items():
                    shares[metric, setting].append(share)
    return [
        percentage("out-of-scope-detection", *figure, values) for figure, values in shares.items()
    ]


def _guesses(
    embeddings: NDArray[Any], names: NDArray[Any], parts: Parts, shots: int, seed: int
) -> Iterator[tuple[str, NDArray[Any]]]:
    generator = np.random.default_rng([seed, shots])
    drawn = draw_examples(names, parts.examples, shots, shots, generator)
    rest = parts.reference if len(parts.reference) else np.setdiff1d(parts.examples, drawn)
    both = embeddings[np.concatenate([rest, parts.tested])]
    classes, products = prototype_products(embeddings[drawn], names[drawn], both)
    strangers = generator.choice(parts.strangers, min(shots, len(parts.strangers)), replace=False)
    drawn = np.concatenate([drawn, strangers])
    official_classes, official = prototype_products(
        embeddings[drawn], names[drawn], embeddings[parts.tested]
    )
    official = normalize(official)
    for ending, known, scored, reference in (
        ("", classes, products[len(rest) :], products[: len(rest)]),
        (" official", official_classes, official, official),
    ):
        nearest = reference.max(axis=1)
        for name, deviations in THRESHOLDS.items():
            threshold = nearest.mean() + deviations * nearest.std()
            yield (
                f"{shots}-shot {name}{ending}",
                detect_out_of_scope(scored, known, threshold, OUT_OF_SCOPE),
            )
