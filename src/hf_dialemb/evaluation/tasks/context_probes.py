"""Probes of any encoder: what a linear layer can read from its vector of a dialogue so far.

The tasks are those of `context_labels` (Mehri and Eskenazi, 2019, section 5.2). `probes` measures the members of an
ensemble side by side on all contexts; here every encoder, an ensemble as well, gives one vector of a context, of a
fixed sample of contexts, so that encoders that take their time can be compared too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import numpy as np

from ...corpora import get_corpus
from ...encoders.encoder import Encoder
from ...models.dialogue import Dialogue
from ...models.errors import InputError
from .context_labels import ACTS, DEV, PARTS, TEST, TRAIN, WORDS, assistant_contexts, context_labels
from .linear_layer import fit, outcome
from .probes import SETTINGS, FrozenVectors
from .sampling import fixed_sample
from .task import CorpusPart, Measurement, Problem

VOCABULARY = 1_261  # how many words are known, with the marks of a ranker's tokenizer; the paper's number for MultiWOZ
CONTEXTS = {TRAIN: 2_500, DEV: 500, TEST: 1_000}  # contexts of each part: a fixed random sample, unless there are fewer
REPEATS = 3  # trainings of the layer: the first so many seeds


def load(part: CorpusPart, target: str) -> Problem:
    """Loads contexts and what is to be told of them: the words of the last turn, or the acts of the next."""
    from ...models.words import word_tokenizer

    part.check_of_catalogue("train and dev splits the layer learns from")
    missing = [name for name in (TRAIN, DEV) if name not in get_corpus(part.corpus).splits]
    if missing or part.split in (TRAIN, DEV, "all"):
        got = f"no split {missing[0]}" if missing else f"split {part.split}, which the layer learns from"
        raise InputError(
            f"corpus {part.corpus}: got {got}, expected train and dev, and another to measure on; choose others"
        )
    dialogues = {each: part.dialogues(name) for each, name in zip(PARTS, (TRAIN, DEV, part.split), strict=True)}
    contexts = {}
    for each, most in CONTEXTS.items():
        found = assistant_contexts(dialogues[each])
        kept = [row for row, acts in enumerate(found.acts) if acts or target == WORDS]  # acts: of turns that have some
        contexts[each] = found.at(fixed_sample(kept, min(part.limit or most, most)))
    labels = context_labels(target, contexts, word_tokenizer(dialogues[TRAIN], VOCABULARY))
    config = {"target": target, "vocabulary": VOCABULARY, "repeats": REPEATS, "layer": asdict(SETTINGS)}

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Measurement]:
        import torch

        vectors = encoder.encode([Dialogue(turns) for each in PARTS for turns in contexts[each].turns])
        ends = np.cumsum([len(contexts[each].turns) for each in PARTS])[:-1]
        source = FrozenVectors(dict(zip(PARTS, np.split(vectors, ends), strict=True)), torch.device("cpu"))
        fitted = [fit(source, labels, SETTINGS, seed=seed) for seed in list(seeds)[:REPEATS]]
        return outcome(encoder.name, f"{target}-probe", {}, fitted).measurements

    return Problem({**config, **labels.describe()}, measure)


load_words, load_acts = (partial(load, target=target) for target in (WORDS, ACTS))
