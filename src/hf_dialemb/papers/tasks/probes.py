"""Probes of rankers: what a linear layer can read from the vectors of contexts (Mehri and Eskenazi, section 5.2).

The encoders never learn. Vectors of an ensemble's members are laid end to end, as they are: the paper does not say how
it joins them, and this way the layer may weigh each member for itself. So an ensemble of L gives the layer L times as
many weights as a single ranker does, and is to be compared with another ensemble of L.

Each of the W numbers of a vector is shifted and scaled, to mean 0 and deviation 1 / sqrt(W) over train. The layer stays
a linear one on the vectors themselves, but a learning rate then means the same whatever their scale and their width.

`run_probes` measures the members of ensembles side by side on all contexts. As tasks, probes are of any encoder, an
ensemble as well, by its vector of a context, and of a fixed sample, so that those that take their time can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...dialogue import Dialogue
from ...encoders import Encoder
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.sampling import fixed_sample
from ...evaluation.tasks.task import CorpusPart, Problem
from ...methods.ranking import LoadedRanker, encode_contexts
from ...methods.words import word_tokenizer
from .context_labels import ACTS, DEV, PARTS, TEST, TRAIN, WORDS, Contexts, assistant_contexts, context_labels
from .linear_layer import LayerSettings, Outcome, VectorSource, fit, outcome

Rankers = Mapping[str, Sequence[LoadedRanker]]  # systems by name: the members of each, one or several
SETTINGS = LayerSettings(learning_rate=0.05, batch_size=64, epochs=60, patience=10)  # ours, as the paper names none
VOCABULARY = 1_261  # how many words are known, with the marks of a ranker's tokenizer; the paper's number for MultiWOZ
CONTEXTS = {TRAIN: 2_500, DEV: 500, TEST: 1_000}  # contexts of each part: a fixed random sample, unless there are fewer
REPEATS = 3  # trainings of the layer, one for each of the first seeds

_CONSTANT = 1e-6  # smaller deviations are a rounding


class FrozenVectors:
    """Vectors that were computed once, by part (N, W) float32, standardised; a `VectorSource`."""

    def __init__(self, parts: Mapping[str, NDArray[np.float32]], device: torch.device) -> None:
        for part, vectors in parts.items():
            if not np.isfinite(vectors).all():
                raise ValueError(f"got a vector with NaN or infinity among those of {part}, expected finite numbers")
        self.width = parts[TRAIN].shape[1]
        self.device = device
        self.layers = torch.nn.ModuleList()
        shift = parts[TRAIN].mean(axis=0, dtype=np.float64)
        scale = np.maximum(parts[TRAIN].std(axis=0, dtype=np.float64), _CONSTANT) * math.sqrt(self.width)
        scaled = {part: ((vectors - shift) / scale).astype(np.float32) for part, vectors in parts.items()}
        self._parts = {part: torch.from_numpy(vectors).to(device) for part, vectors in scaled.items()}

    def lengths(self, part: str) -> NDArray[np.intp]:
        """Return zeros (N,): all vectors are of one length."""
        return np.zeros(len(self._parts[part]), dtype=np.intp)

    def vectors(self, part: str, rows: NDArray[np.intp]) -> torch.Tensor:
        """Return some of them, (B, W)."""
        return self._parts[part][torch.from_numpy(rows).to(self.device)]


class System(NamedTuple):
    """What a layer is trained on: for a seed the source of vectors; and what an outcome says of it."""

    source: Callable[[int], VectorSource]
    config: dict[str, Any]


def run_probes(
    rankers: Rankers,
    parts: Mapping[str, Sequence[Dialogue]],
    target: str,
    seeds: Sequence[int],
    settings: LayerSettings = SETTINGS,
    finished: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Measure what is to be read from the vectors of rankers."""
    known: dict[int, dict[str, NDArray[np.float32]]] = {}

    def system_of(members: Sequence[LoadedRanker], contexts: Mapping[str, Contexts], name: str) -> System:
        source = FrozenVectors(_vectors(members, contexts, known), members[0].model.device)
        return System(lambda seed: source, {})

    return measure_rankers("probe", rankers, parts, target, seeds, settings, system_of, finished)


def measure_rankers(
    kind: str,
    rankers: Rankers,
    parts: Mapping[str, Sequence[Dialogue]],
    target: str,
    seeds: Sequence[int],
    settings: LayerSettings,
    system_of: Callable[[Sequence[LoadedRanker], Mapping[str, Contexts], str], System],
    finished: Callable[[Outcome], None],
) -> list[Outcome]:
    """Train a layer on each system of rankers, for each seed; each outcome goes to ``finished`` at once."""
    for name, member in ((name, member) for name, members in rankers.items() for member in members):
        if not member.model.embeds:
            raise InputError(
                f"ranker {name}: got {type(member.model).__name__}, which embeds no contexts, expected a dual encoder; "
                "leave it out"
            )
    contexts = {part: assistant_contexts(parts[part]) for part in PARTS}
    labels = context_labels(target, contexts, next(iter(rankers.values()))[0].tokenizer)
    results = []
    with tqdm(total=len(rankers) * len(seeds), desc=kind, unit="training") as progress:
        for name, members in rankers.items():
            system = system_of(members, contexts, name)
            fitted = []
            for seed in seeds:
                fitted.append(fit(system.source(seed), labels, settings, seed=seed))
                progress.update()
            width = sum(member.model.config.hidden_size for member in members)
            config = {"members": len(members), "width": width, "seeds": list(seeds), "layer": asdict(settings)}
            config |= {**system.config, **labels.describe()}
            results.append(outcome(name, f"{target}-{kind}", config, fitted))
            finished(results[-1])
    return results


def _vectors(
    members: Sequence[LoadedRanker], contexts: Mapping[str, Contexts], known: dict[int, dict[str, NDArray[np.float32]]]
) -> dict[str, NDArray[np.float32]]:
    """Return (N, W) by part; ``known`` keeps those of each member, as several ensembles may share it."""
    for member in members:
        if id(member) not in known:
            known[id(member)] = {part: encode_contexts(member, contexts[part].turns) for part in PARTS}
    return {part: np.concatenate([known[id(member)][part] for member in members], axis=1) for part in PARTS}


def load_probe(part: CorpusPart, target: str) -> Problem:
    """Load contexts and what is to be told of them: the words of the last turn, or the acts of the next."""
    part.check_splits(TRAIN, DEV)
    dialogues = {item: part.dialogues(name) for item, name in zip(PARTS, (TRAIN, DEV, part.split), strict=True)}
    contexts = {}
    for item, most in CONTEXTS.items():
        results = assistant_contexts(dialogues[item])
        kept = [
            row for row, acts in enumerate(results.acts) if acts or target == WORDS
        ]  # acts: of turns that have some
        contexts[item] = results.at(part.sample(fixed_sample(kept, most)))
    labels = context_labels(target, contexts, word_tokenizer(dialogues[TRAIN], VOCABULARY))
    config = {"target": target, "vocabulary": VOCABULARY, "repeats": REPEATS, "layer": asdict(SETTINGS)}

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = encoder.encode([Dialogue(turns) for item in PARTS for turns in contexts[item].turns])
        ends = np.cumsum([len(contexts[item].turns) for item in PARTS])[:-1]
        source = FrozenVectors(dict(zip(PARTS, np.split(vectors, ends), strict=True)), torch.device("cpu"))
        fitted = [fit(source, labels, SETTINGS, seed=seed) for seed in list(seeds)[:REPEATS]]
        return outcome(encoder.name, f"{target}-probe", {}, fitted).measurements

    return Problem({**config, **labels.describe()}, measure)


load_words, load_acts = (partial(load_probe, target=target) for target in (WORDS, ACTS))
