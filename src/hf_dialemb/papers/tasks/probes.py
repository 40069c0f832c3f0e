"""What rankers know, by one linear layer on their vectors of contexts (Mehri and Eskenazi, sections
5.2 and 5.3).

In probes the encoders never learn; in fine-tuning they learn along. Vectors of an ensemble's
members are laid end to end, so that the layer may weigh each; an ensemble of L is to be compared
with another of L. Each of the W numbers of a frozen vector is scaled to mean 0 and deviation 1 /
sqrt(W) over train: the layer stays linear, and a learning rate means the same whatever the width.
As tasks, probes are of any encoder, on a fixed sample of contexts.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...dialogue import ROLES, Dialogue
from ...encoders import Encoder
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.sampling import fixed_sample
from ...evaluation.tasks.task import CorpusPart, Problem
from ...methods.layout import Truncation
from ...methods.ranker import LoadedRanker, context_ids, encode_contexts
from ...methods.vocabulary import word_tokenizer
from .linear_layer import (
    ACTS,
    DEV,
    PARTS,
    TEST,
    TRAIN,
    WORDS,
    Contexts,
    LayerSettings,
    Outcome,
    VectorSource,
    assistant_contexts,
    context_labels,
    fit,
    outcome,
)

# ours, as the paper names none
PROBES = LayerSettings(learning_rate=0.05, batch_size=64, epochs=60, patience=10)
# of section 4.2.1; patience: ours
TUNING = LayerSettings(learning_rate=0.005, batch_size=32, epochs=20, patience=5)
# how many words are known, with the marks of a ranker's tokenizer; the paper's number for MultiWOZ
VOCABULARY = 1_261
# contexts of each part: a fixed random sample, unless there are fewer
CONTEXTS = {TRAIN: 2_500, DEV: 500, TEST: 1_000}
REPEATS = 3  # trainings of the layer, one for each of the first seeds

_CONSTANT = 1e-6  # smaller deviations are a rounding


def frozen_vectors(parts: Mapping[str, NDArray[np.float32]], device: torch.device) -> VectorSource:
    """Standardise vectors that were computed once, by part (N, W) float32, to learn from.

    All count as equally long.
    """
    for part, vectors in parts.items():
        if not np.isfinite(vectors).all():
            raise ValueError(
                f"got a vector with NaN or infinity among those of {part}, expected finite numbers"
            )
    width = parts[TRAIN].shape[1]
    shift = parts[TRAIN].mean(axis=0, dtype=np.float64)
    scale = np.maximum(parts[TRAIN].std(axis=0, dtype=np.float64), _CONSTANT) * math.sqrt(width)
    scaled = {
        part: ((vectors - shift) / scale).astype(np.float32) for part, vectors in parts.items()
    }
    tensors = {part: torch.from_numpy(vectors).to(device) for part, vectors in scaled.items()}
    return VectorSource(
        width,
        device,
        lengths=lambda part: np.zeros(len(tensors[part]), dtype=np.intp),
        vectors=lambda part, rows: tensors[part][torch.from_numpy(rows).to(device)],
    )


class ContextTokens:
    """Contexts as token ids, (N, L) and padded on the right, as a ranker reads them."""

    def __init__(self, member: LoadedRanker, contexts: Contexts) -> None:
        config = member.model.config
        speakers = (config.marker_ids or [])[: len(ROLES)]
        batch = context_ids(
            contexts.turns, member.tokenizer, speakers, config.max_context_tokens, Truncation()
        )
        self.ids = batch["input_ids"].int()  # half the memory
        self.lengths = batch["attention_mask"].sum(-1)

    def batch(self, rows: torch.Tensor, device: torch.device) -> dict[str, torch.Tensor]:
        """Return ``input_ids`` and ``attention_mask`` of some contexts, each (B, L) for the longest
        of them.
        """
        lengths = self.lengths[rows]
        longest = max(1, int(lengths.max()))
        mask = (torch.arange(longest) < lengths[:, None]).long()
        return {
            "input_ids": self.ids[rows, :longest].long().to(device),
            "attention_mask": mask.to(device),
        }


def learning_encoders(
    members: Sequence[LoadedRanker],
    tokens: Sequence[Mapping[str, ContextTokens]],
    seed: int,
    trained: bool = True,
    bfloat16: bool = False,
) -> VectorSource:
    """Copy rankers, which then learn along with a layer.

    Each member reads ``tokens`` of its own, by part.

    They start from the members' weights or, unless ``trained``, from random ones that the seed
    decides. With ``bfloat16`` they compute in that; their weights and the layer are float32 all the
    same.
    """
    device = members[0].model.device
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        models = [
            copy.deepcopy(member.model)
            if trained
            else type(member.model)(copy.deepcopy(member.model.config))
            for member in members
        ]
    layers = torch.nn.ModuleList(models).to(device)

    def vectors(part: str, rows: NDArray[np.intp]) -> torch.Tensor:
        chosen = torch.from_numpy(rows)
        with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
            results = [
                model(**of_member[part].batch(chosen, device)).pooler_output
                for model, of_member in zip(layers, tokens, strict=True)
            ]
        return torch.cat(results, dim=-1).float()

    return VectorSource(
        _width(members), device, lambda part: tokens[0][part].lengths.numpy(), vectors, layers
    )


def measure_rankers(
    kind: str,
    rankers: Mapping[str, Sequence[LoadedRanker]],
    parts: Mapping[str, Sequence[Dialogue]],
    target: str,
    seeds: Sequence[int],
    *,
    settings: LayerSettings | None = None,
    untrained: str | None = None,
    bfloat16: bool = False,
    finished: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Train a layer on each system of rankers, its members side by side, for each seed.

    Each outcome goes to ``finished`` at once. In fine-tuning the system that is named as
    ``untrained`` starts from random weights, as does the first row of the paper's Table 6, and the
    row "Fine-tuned" of Table 5.
    """
    for name, member in ((name, member) for name, members in rankers.items() for member in members):
        if not member.model.embeds:
            raise InputError(
                f"ranker {name}: got {type(member.model).__name__}, which embeds no contexts, "
                "expected a dual encoder; "
                "leave it out"
            )
    contexts = {part: assistant_contexts(parts[part]) for part in PARTS}
    labels = context_labels(target, contexts, next(iter(rankers.values()))[0].tokenizer)
    frozen, results = kind == "probe", []
    settings = settings or (PROBES if frozen else TUNING)
    # by member, as several ensembles may share it
    known: dict[int, dict[str, NDArray[np.float32]]] = {}
    with tqdm(total=len(rankers) * len(seeds), desc=kind, unit="training") as progress:
        for name, members in rankers.items():
            config = {"members": len(members), "width": _width(members), "seeds": list(seeds)}
            config |= {"layer": asdict(settings), **labels.describe()}
            sources: Iterable[VectorSource]
            if frozen:
                sources = repeat(
                    frozen_vectors(_joined(members, contexts, known), members[0].model.device)
                )
            else:
                trained = name != untrained
                config |= {"trained": trained, "precision": "bfloat16" if bfloat16 else "float32"}
                tokens = [
                    {part: ContextTokens(member, contexts[part]) for part in PARTS}
                    for member in members
                ]
                sources = (
                    learning_encoders(members, tokens, seed, trained, bfloat16) for seed in seeds
                )
            fitted = []
            for seed, source in zip(seeds, sources, strict=False):
                fitted.append(fit(source, labels, settings, seed=seed))
                progress.update()
            results.append(outcome(name, f"{target}-{kind}", config, fitted))
            finished(results[-1])
    return results


run_probes, run_act_fine_tuning = (
    partial(measure_rankers, "probe"),
    partial(measure_rankers, "fine-tuning"),
)


def _joined(
    members: Sequence[LoadedRanker],
    contexts: Mapping[str, Contexts],
    known: dict[int, dict[str, NDArray[np.float32]]],
) -> dict[str, NDArray[np.float32]]:
    for member in members:
        if id(member) not in known:
            known[id(member)] = {
                part: encode_contexts(member, contexts[part].turns) for part in PARTS
            }
    return {
        part: np.concatenate([known[id(member)][part] for member in members], axis=1)
        for part in PARTS
    }


def _width(members: Sequence[LoadedRanker]) -> int:
    return sum(member.model.config.hidden_size for member in members)


def load_probe(part: CorpusPart, target: str) -> Problem:
    """Load contexts and what is to be told of them.

    The words of the last turn, or the acts of the next.
    """
    part.check_splits(TRAIN, DEV)
    dialogues = {
        item: part.dialogues(name)
        for item, name in zip(PARTS, (TRAIN, DEV, part.split), strict=True)
    }
    contexts = {}
    for item, most in CONTEXTS.items():
        results = assistant_contexts(dialogues[item])
        kept = [row for row, acts in enumerate(results.acts) if acts or target == WORDS]
        contexts[item] = results.at(part.sample(fixed_sample(kept, most)))
    labels = context_labels(target, contexts, word_tokenizer(dialogues[TRAIN], VOCABULARY))
    config = {
        "target": target,
        "vocabulary": VOCABULARY,
        "repeats": REPEATS,
        "layer": asdict(PROBES),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = encoder.encode(
            [Dialogue(turns) for item in PARTS for turns in contexts[item].turns]
        )
        ends = np.cumsum([len(contexts[item].turns) for item in PARTS])[:-1]
        source = frozen_vectors(
            dict(zip(PARTS, np.split(vectors, ends), strict=True)), torch.device("cpu")
        )
        fitted = [fit(source, labels, PROBES, seed=seed) for seed in list(seeds)[:REPEATS]]
        return outcome(encoder.name, f"{target}-probe", {}, fitted).measurements

    return Problem({**config, **labels.describe()}, measure)


load_words, load_acts = (partial(load_probe, target=target) for target in (WORDS, ACTS))
