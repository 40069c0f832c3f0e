"""Few-shot intent classification (DSE, section 4.2.2): the nearest mean of a few examples gives the intent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialogue import Dialogue
from ...encoders import Encoder
from ..results.rows import Row
from .sampling import SHOTS, draw_examples, few_of_each
from .task import CorpusPart, Problem, percentage

NAME = "intent-classification"

OUT_OF_SCOPE = "oos"  # the intent of utterances that belong to none; for this task they are no class


def load_intents(part: CorpusPart) -> Problem:
    """Load the utterances of a corpus that have an intent: first the examples, then what is to be classified."""
    train, loaded = load_utterances(part)
    examples, queries = few_of_each(in_scope(train), intent, part.limit), part.sample(in_scope(loaded))
    dialogues = [*examples, *queries]
    labels = [intent(dialogue) for dialogue in dialogues]
    if len(set(labels)) < 2:
        raise part.error(f"got {len(set(labels))} intents, expected at least two")
    sizes = {"utterances": len(queries), "labels": len(set(labels)), "examples_from": "train"}
    config = {**sizes, "out_of_scope": len(loaded) - len(in_scope(loaded)), "shots": list(SHOTS)}

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        return classify_intents(encoder.encode(dialogues), labels, len(examples), seeds)

    return Problem(config, measure, dialogues, labels)


def classify_intents(
    embeddings: NDArray[Any], labels: Sequence[str], examples: int, seeds: Sequence[int] = range(10)
) -> list[Row]:
    """Classify utterances by the means of few of the first ``examples`` rows of each intent."""
    names, pool = np.array(labels), np.arange(examples)
    results = []
    for shots in SHOTS:
        repeats = []
        for seed in seeds:
            drawn = draw_examples(names, pool, shots, shots, np.random.default_rng([seed, shots]))
            queries = np.flatnonzero(np.isin(names, names[drawn]) & (np.arange(len(names)) >= examples))
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
    """Measure, by the names of ``metrics``, how examples classify queries; a repeat has rows of both.

    In a setting of its own prototypes have length 1, so that cosines decide; with one example they always have it.
    """
    from ...metrics.prototype_classification import prototype_classification

    results = []
    for unit in (False, True)[: 1 + (shots > 1)]:
        setting = f"{shots}-shot, unit prototypes" if unit else f"{shots}-shot"
        figures = []
        for rows, asked in repeats:
            parts = embeddings[rows], names[rows], embeddings[asked], names[asked]
            figures.append(prototype_classification(*parts, unit_prototypes=unit))
        results += [percentage(task, name, setting, [item[key] for item in figures]) for name, key in metrics.items()]
    return results


def load_utterances(part: CorpusPart) -> tuple[list[Dialogue], list[Dialogue]]:
    """Load the examples of a corpus of utterances, and what is to be classified."""
    part.check_splits("train")
    return part.dialogues("train"), part.dialogues()


def in_scope(utterances: Sequence[Dialogue]) -> list[Dialogue]:
    """Keep the utterances that have an intent and are not out of scope."""
    return [item for item in utterances if item.turns[0].intents and OUT_OF_SCOPE not in item.turns[0].intents]


def out_of_scope(utterances: Sequence[Dialogue]) -> list[Dialogue]:
    """Keep the utterances that are marked as out of scope."""
    return [item for item in utterances if OUT_OF_SCOPE in item.turns[0].intents]


def intent(utterance: Dialogue) -> str:
    """Return the first intent of an utterance that has one."""
    return utterance.turns[0].intents[0]
