"""Few-shot intent classification by fine-tuning (DSE, section 4.2.1 and appendix C).

Of every intent 2k utterances are drawn from train: k to learn from, k to stop early by. What is measured is accuracy on
the utterances of the split that are not out of scope, as in the task ``intent-classification``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.intents import NAME, load_intents
from ...evaluation.tasks.sampling import SHOTS, draw_examples
from ...evaluation.tasks.task import CorpusPart, Problem, percentage
from .fine_tuning import RUNS, Examples, FineTuning, fine_tune, load_backbone, precision

SETTINGS = FineTuning(  # those of the paper's appendix B.1; the patience and the warm-up are its program's
    learning_rate=3e-5, epochs=50, batch_size=16, evaluate_every=10, patience=5, max_length=64, dropout=0.1
)


class Parts(NamedTuple):
    """Rows of utterances: k of each intent, k others of each to stop by, and what is to be classified."""

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    queries: NDArray[np.intp]


def load_fine_tuning(part: CorpusPart) -> Problem:
    """Load the utterances of a corpus that have an intent."""
    whole = load_intents(part)
    texts, labels = [item.turns[0].content for item in whole.dialogues], np.array(whole.labels)
    examples = len(labels) - whole.config["utterances"]

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        backbone = load_backbone(encoder.name)

        def run(shots: int, seed: int) -> float:
            parts = draw_parts(labels, examples, shots, np.random.default_rng([seed, shots]))
            intents = np.unique(labels[parts.train])
            train, validation, queries = (
                Examples([texts[row] for row in rows], np.searchsorted(intents, labels[rows])) for rows in parts
            )
            tuned = fine_tune(backbone, train, validation, len(intents), SETTINGS, accuracy, seed=seed)
            return accuracy(tuned.classifier.predict(queries.texts), queries.targets)

        return [
            percentage(NAME, "accuracy", f"{shots}-shot fine-tuned", [run(shots, seed) for seed in seeds[:RUNS]])
            for shots in SHOTS
        ]

    how = {"runs": RUNS, "precision": precision(), "fine_tuning": asdict(SETTINGS)}
    return Problem({**whole.config, **how}, measure)


def draw_parts(labels: NDArray[Any], examples: int, shots: int, generator: np.random.Generator) -> Parts:
    """Draw what to learn from and what to stop by."""
    drawn = draw_examples(labels, np.arange(examples), 2 * shots, 2 * shots, generator)
    train = draw_examples(labels, drawn, shots, shots, generator)
    queries = np.arange(examples, len(labels))
    return Parts(train, np.setdiff1d(drawn, train), queries[np.isin(labels[queries], labels[train])])


def accuracy(logits: NDArray[np.float32], targets: NDArray[Any]) -> float:
    """Return the share of utterances ``(N, C)`` whose highest logit is that of their class ``(N,)``."""
    return float((logits.argmax(axis=1) == targets).mean())
