"""Tasks on single utterances: few-shot intent classification (DSE) and similarity of actions (Dialog2Flow)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..models.dialogue import Dialogue
from ..models.errors import InputError
from .tasks import Measurement, percentage

SHOTS = (1, 5)
"""How many labelled examples each class gets, as in both papers."""

OUT_OF_SCOPE = "oos"
"""The label of utterances that belong to no intent; they are no class here."""

_MARGIN = 5  # the Dialog2Flow program leaves labels out that have less than five utterances besides the examples


class Utterances(NamedTuple):
    """Labelled utterances to classify, and those that examples are drawn from.

    Attributes:
        dialogues: All of them, a dialogue of one turn each.
        labels: The first intent of each.
        supports: How many of them, from the first on, are only there to draw examples from; 0 if every utterance is
            to be classified that is not drawn as an example.
        config: What the results file says about them.
    """

    dialogues: list[Dialogue]
    labels: list[str]
    supports: int
    config: dict[str, Any]


def load_utterances(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Utterances:
    """Loads a corpus of utterances.

    Args:
        corpus: Its name.
        data_dir: Where it lies.
        split: What is to be classified. Examples come from train, or from the split itself if there is no train.
        limit: At most so many utterances to classify, a fixed random sample; None means all.

    Returns:
        The utterances with an intent, without those out of scope.

    Raises:
        InputError: The corpus is not at hand, ``split`` is train, or nothing has an intent.
    """
    from ..corpora import get_corpus, load_dialogues

    drawn_from = "train" if "train" in get_corpus(corpus).splits else split
    if split == "train":
        raise InputError(f"corpus {corpus}: got split train, which examples are drawn from; choose dev or test")
    loaded = load_dialogues(corpus, data_dir, split)
    queries = _in_scope(loaded)
    if limit is not None and limit < len(queries):
        chosen = np.sort(np.random.default_rng(0).choice(len(queries), limit, replace=False))
        queries = [queries[row] for row in chosen]
    supports = _in_scope(load_dialogues(corpus, data_dir, drawn_from)) if drawn_from != split else []
    dialogues = [*supports, *queries]
    labels = [dialogue.turns[0].intents[0] for dialogue in dialogues]
    if len(set(labels)) < 2:
        raise InputError(f"corpus {corpus}, split {split}: got {len(set(labels))} intents, expected at least two")
    config = {
        "corpus": corpus,
        "split": split,
        "limit": limit,
        "utterances": len(queries),
        "labels": len(set(labels)),
        "examples_from": drawn_from,
        "out_of_scope": len(loaded) - len(_in_scope(loaded)),
    }
    return Utterances(dialogues, labels, len(supports), config)


def measure_utterances(
    embeddings: NDArray[Any], utterances: Utterances, seeds: Iterable[int] = range(10)
) -> list[Measurement]:
    """Classifies utterances by prototypes of few examples, and measures how labels lie to each other.

    Args:
        embeddings: One vector per utterance, ``(N, D)``.
        utterances: What `load_utterances` returned.
        seeds: Repeats of drawing the examples.

    Returns:
        With examples from train ``intent-classification`` (accuracy), otherwise ``action-similarity`` (f1, accuracy,
        intra, inter, difference); accuracy and f1 as percentages for each of `SHOTS`.

    Raises:
        InputError: A label has too few examples for every shot.
        ValueError: A vector is not finite.
    """
    from ..metrics.anisotropy.functional import anisotropy
    from ..metrics.prototype_classification.functional import prototype_classification

    labels, draws = np.array(utterances.labels), list(seeds)
    task = "intent-classification" if utterances.supports else "action-similarity"
    found: list[Measurement] = []
    for shots in SHOTS:
        figures = []
        for seed in draws:
            examples, queries = _draw(utterances, labels, shots, np.random.default_rng([seed, shots]))
            figures.append(
                prototype_classification(embeddings[examples], labels[examples], embeddings[queries], labels[queries])
            )
        if not utterances.supports:
            found.append(percentage(task, "f1", f"{shots}-shot", [figure["macro_f1"] for figure in figures]))
        found.append(percentage(task, "accuracy", f"{shots}-shot", [figure["accuracy"] for figure in figures]))
    if not utterances.supports:
        spread = anisotropy(embeddings, labels)
        found += [Measurement(task, metric, "", value, None, 1) for metric, value in spread.items()]
    return found


def _in_scope(dialogues: Sequence[Dialogue]) -> list[Dialogue]:
    return [
        dialogue
        for dialogue in dialogues
        if dialogue.turns[0].intents and OUT_OF_SCOPE not in dialogue.turns[0].intents
    ]


def _draw(
    utterances: Utterances, labels: NDArray[Any], shots: int, generator: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draws examples of each label; returns their rows and those of the utterances to classify."""
    rows = np.arange(len(labels))
    pool, queries = (rows[: utterances.supports], rows[utterances.supports :]) if utterances.supports else (rows, rows)
    counts = Counter(labels[pool].tolist())
    needed = shots if utterances.supports else max(2 * shots, shots + _MARGIN)
    classes = sorted(label for label, count in counts.items() if count >= needed)
    if len(classes) < 2:
        raise InputError(
            f"corpus {utterances.config['corpus']}: got {len(classes)} labels with {needed} utterances to draw "
            f"{shots} examples from, expected at least two; choose another corpus"
        )
    drawn = [generator.choice(pool[labels[pool] == label], shots, replace=False) for label in classes]
    examples = np.sort(np.concatenate(drawn))
    left = queries[np.isin(labels[queries], classes) & ~np.isin(queries, examples)]
    return examples, left
