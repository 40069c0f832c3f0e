"""Probes of any encoder: what a linear layer can read from its vector of a dialogue so far.

The tasks are those of `context_labels` (Mehri and Eskenazi, 2019, section 5.2): the words of the last turn, and the
dialogue acts of the assistant's next one. `probes` measures the members of an ensemble side by side on all contexts;
here every encoder, an ensemble as well, gives one vector of a context, of a fixed sample of contexts, so that encoders
that take their time can be compared too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ...encoders.specs import Encoder
from ...models.dialogue import Dialogue
from ...models.errors import InputError
from .context_labels import ACTS, DEV, PARTS, TEST, TRAIN, WORDS, Contexts, assistant_contexts, context_labels
from .linear_layer import fit, outcome
from .probes import SETTINGS, FrozenVectors
from .sampling import fixed_sample
from .task import Measurement, Problem, Task
from .texts import name_of

VOCABULARY = 1_261
"""How many words are known, with the marks of a ranker's tokenizer; the paper's number for MultiWOZ."""

CONTEXTS = {TRAIN: 2_500, DEV: 500, TEST: 1_000}
"""Contexts of each part: a fixed random sample, unless there are fewer."""

REPEATS = 3
"""Trainings of the layer: the first so many seeds."""


def load(corpus: str, data_dir: str | Path | None, split: str, limit: int | None, target: str) -> Problem:
    """Loads contexts and what is to be told of them.

    Args:
        corpus: A corpus of dialogues with the splits train and dev.
        data_dir: Where it lies.
        split: What is measured on; neither of these.
        limit: At most so many contexts of each part; None means `CONTEXTS`.
        target: The words of the last turn, or the acts of the next.

    Returns:
        The problem.

    Raises:
        InputError: The corpus is not at hand, lacks a split, or has no labels.
    """
    from ...corpora import REGISTERED, form_of, get_corpus, load_dialogues
    from ...models.words import word_tokenizer

    if form_of(corpus) != REGISTERED:
        raise InputError(
            f"corpus {corpus}: got one's own or the Hub's, expected one of the catalogue (dialemb corpus list), whose "
            "train and dev splits the layer learns from; choose one"
        )
    missing = [part for part in (TRAIN, DEV) if part not in get_corpus(corpus).splits]
    if missing or split in (TRAIN, DEV, "all"):
        got = f"no split {missing[0]}" if missing else f"split {split}, which the layer learns from"
        raise InputError(
            f"corpus {corpus}: got {got}, expected train and dev, and another to measure on; choose others"
        )
    dialogues = {
        part: load_dialogues(corpus, data_dir, name) for part, name in zip(PARTS, (TRAIN, DEV, split), strict=True)
    }
    contexts = {part: _sampled(dialogues[part], target, min(limit or CONTEXTS[part], CONTEXTS[part])) for part in PARTS}
    labels = context_labels(target, contexts, word_tokenizer(dialogues[TRAIN], VOCABULARY))
    config: dict[str, Any] = {
        "corpus": name_of(corpus),
        "split": split,
        "limit": limit,
        "target": target,
        "vocabulary": VOCABULARY,
        "repeats": REPEATS,
        "layer": asdict(SETTINGS),
        **labels.describe(),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        import torch

        vectors = encoder.encode([Dialogue(turns) for part in PARTS for turns in contexts[part].turns])
        ends = np.cumsum([len(contexts[part].turns) for part in PARTS])[:-1]
        source = FrozenVectors(dict(zip(PARTS, np.split(vectors, ends), strict=True)), torch.device("cpu"))
        fitted = [fit(source, labels, SETTINGS, seed=seed) for seed in list(seeds)[:REPEATS]]
        return outcome(encoder.name, f"{target}-probe", {}, fitted).measurements

    return Problem(config, measure)


def _sampled(dialogues: Sequence[Dialogue], target: str, limit: int) -> Contexts:
    """Collects contexts, for acts only those whose next turn has some, and keeps a sample."""
    found = assistant_contexts(dialogues)
    rows = [row for row, acts in enumerate(found.acts) if acts or target == WORDS]
    kept = fixed_sample(rows, limit)
    return Contexts([found.turns[row] for row in kept], [found.acts[row] for row in kept])


def _task(target: str) -> Task:
    return Task(
        f"{target}-probe",
        lambda corpus, data_dir, split, limit: load(corpus, data_dir, split, limit, target),
        "Mehri and Eskenazi (2019), section 5.2",
    )


TASKS = (_task(WORDS), _task(ACTS))
