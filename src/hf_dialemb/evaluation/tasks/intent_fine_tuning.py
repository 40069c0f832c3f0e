"""Few-shot intent classification by fine-tuning (DSE, section 4.2.1 and appendix C).

Of every intent 2k utterances are drawn from train: k to learn from, k to stop early by. What is measured is accuracy
on the utterances of the split that are not out of scope, as in the task ``intent-classification``.

A seed takes all-MiniLM-L6-v2 half a minute of one core on snips, and minutes where there are many intents: a step
takes a sixth of a second, and k-shot training has up to 50 k of them for every 16 intents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...encoders.specs import Encoder
from ...models.errors import InputError
from .fine_tuning import RUNS, Examples, FineTuning, fine_tune, load_backbone, precision
from .intents import in_scope, intent, load_utterances
from .sampling import SHOTS, draw_examples, fixed_sample
from .task import Measurement, Problem, Task, percentage

SETTINGS = FineTuning(
    learning_rate=3e-5, epochs=50, batch_size=16, evaluate_every=10, patience=5, max_length=64, dropout=0.1
)
"""Those of the paper's appendix B.1; the patience and the warm-up are its program's."""


class Parts(NamedTuple):
    """Rows of utterances.

    Attributes:
        train: k of each intent.
        validation: k others of each intent.
        queries: What is to be classified.
    """

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    queries: NDArray[np.intp]


def load_fine_tuning(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads the utterances of a corpus that have an intent."""
    train, loaded = load_utterances(corpus, data_dir, split)
    examples, queries = in_scope(train), fixed_sample(in_scope(loaded), limit)
    utterances = [*examples, *queries]
    texts, labels = [each.turns[0].content for each in utterances], [intent(each) for each in utterances]
    if len(set(labels)) < 2:
        raise InputError(f"corpus {corpus}, split {split}: got {len(set(labels))} intents, expected at least two")
    config = {
        "corpus": corpus,
        "split": split,
        "limit": limit,
        "utterances": len(queries),
        "labels": len(set(labels)),
        "examples_from": "train",
        "out_of_scope": len(loaded) - len(in_scope(loaded)),
        "shots": list(SHOTS),
        "runs": RUNS,
        "precision": precision(),
        "fine_tuning": asdict(SETTINGS),
    }
    return Problem(config, partial(classify_fine_tuned, texts, labels, len(examples)))


def classify_fine_tuned(
    texts: Sequence[str], labels: Sequence[str], examples: int, encoder: Encoder, seeds: Sequence[int]
) -> list[Measurement]:
    """Fine-tunes a model for each number of shots and each seed, and classifies utterances with it."""
    backbone = load_backbone(encoder.name)
    names = np.array(labels)
    found = []
    for shots in SHOTS:
        accuracies = []
        for seed in seeds[:RUNS]:
            parts = draw_parts(names, examples, shots, np.random.default_rng([seed, shots]))
            intents = np.unique(names[parts.train])
            train, validation, queries = (
                Examples([texts[row] for row in rows], np.searchsorted(intents, names[rows])) for rows in parts
            )
            tuned = fine_tune(backbone, train, validation, len(intents), SETTINGS, accuracy, seed=seed)
            accuracies.append(accuracy(tuned.classifier.predict(queries.texts), queries.targets))
        found.append(percentage("intent-classification", "accuracy", f"{shots}-shot fine-tuned", accuracies))
    return found


def draw_parts(labels: NDArray[Any], examples: int, shots: int, generator: np.random.Generator) -> Parts:
    """Draws what to learn from and what to stop by."""
    drawn = draw_examples(labels, np.arange(examples), 2 * shots, 2 * shots, generator)
    train = draw_examples(labels, drawn, shots, shots, generator)
    queries = np.arange(examples, len(labels))
    return Parts(train, np.setdiff1d(drawn, train), queries[np.isin(labels[queries], labels[train])])


def accuracy(logits: NDArray[np.float32], targets: NDArray[Any]) -> float:
    """Returns the share of utterances ``(N, C)`` whose highest logit is that of their class ``(N,)``."""
    return float((logits.argmax(axis=1) == targets).mean())


TASK = Task(
    "intent-fine-tuning", load_fine_tuning, "DSE, section 4.2.1 and appendix C", kinds=("utterances",), fine_tunes=True
)
