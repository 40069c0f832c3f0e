"""One linear layer that tells which classes hold for a context, and how it is trained (Mehri and Eskenazi, section 5).

The paper says no more than that it is linear. Here each class has a logistic loss, Adam takes the steps, a class is
told where its probability is above 0.5, and the epoch with the best micro F1 on dev is what is measured on test.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils import clip_grad_norm_

from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import percentage
from .context_labels import DEV, TEST, TRAIN, ContextLabels, LabelScores, label_scores

logger = logging.getLogger(__name__)

_POOL = 50  # batches whose contexts are sorted by length together, so that little is padded
_PREDICTED_AT_ONCE = 1024


@dataclass(frozen=True)
class LayerSettings:
    """How a layer is trained, and encoders that learn along; ``patience`` counts epochs without a new best."""

    learning_rate: float = 0.005
    batch_size: int = 32
    epochs: int = 20
    patience: int = 5
    max_grad_norm: float = 5.0


class VectorSource(Protocol):
    """Where a layer's vectors of length W come from, on which device; ``layers`` learn along with the layer."""

    width: int
    device: torch.device
    layers: torch.nn.ModuleList

    def lengths(self, part: str) -> NDArray[np.intp]:
        """Return how long the contexts of a part are; batches are of like length."""

    def vectors(self, part: str, rows: NDArray[np.intp]) -> torch.Tensor:
        """Return the vectors of some contexts of a part, float32 (B, W)."""


class Fitted(NamedTuple):
    """What one training came to: scores on test, the best epoch, from 1 on, and its micro F1 on dev, in [0, 1]."""

    scores: LabelScores
    epoch: int
    dev: float


@dataclass(frozen=True)
class Outcome:
    """How well one system did in one task, over all seeds.

    ``config`` is what decides the figures, micro_f1 and macro_f1. ``counts``, (S, N, 3), are TP, FP and FN of each
    context of test for each seed; their sum over seeds is what `papers.significance.paired_bootstrap_f1` compares.
    """

    system: str
    task: str
    config: dict[str, Any]
    measurements: list[Row]
    counts: NDArray[np.int32]


def outcome(system: str, task: str, config: dict[str, Any], fitted: Sequence[Fitted]) -> Outcome:
    """Sum up the trainings of one system, one for each seed."""
    trained = {"best_epochs": [item.epoch for item in fitted], "dev_micro_f1": [100 * item.dev for item in fitted]}
    measurements = [
        percentage(task, name, "", [getattr(item.scores, name) for item in fitted]) for name in ("micro_f1", "macro_f1")
    ]
    return Outcome(system, task, config | trained, measurements, np.stack([item.scores.counts for item in fitted]))


def train_layers(
    layers: torch.nn.Module,
    loss: Callable[[], torch.Tensor],
    optimiser: torch.optim.Optimizer,
    score: Callable[[], float],
    scored_at: Sequence[int],
    patience: int,
    *,
    schedule: Any = None,  # noqa: ANN401 - a scheduler of learning rates
    max_grad_norm: float = math.inf,
) -> dict[int, float]:
    """Take a step for each ``loss`` of the next batch; the layers end with the weights of the best score.

    Scores are taken after the ascending steps ``scored_at``, of which the last ends the training, and returned by step.
    It stops after ``patience`` scores in a row that are not better than the best, the first of equal ones.
    """
    scores: dict[int, float] = {}
    best, best_score, waited = layers.state_dict(), -math.inf, 0
    for step in range(scored_at[-1] + 1):
        if step in scored_at:
            scores[step] = score()
            waited += 1
            if scores[step] > best_score:
                best, best_score, waited = copy.deepcopy(layers.state_dict()), scores[step], 0
            if waited >= patience or step == scored_at[-1]:
                break
        layers.train()
        loss().backward()
        if max_grad_norm < math.inf:
            clip_grad_norm_(layers.parameters(), max_grad_norm)
        optimiser.step()
        if schedule is not None:
            schedule.step()
        optimiser.zero_grad()
    layers.load_state_dict(best)
    return scores


def fit(source: VectorSource, labels: ContextLabels, settings: LayerSettings, *, seed: int) -> Fitted:
    """Train a layer, and what learns along with it, and measure the weights of the epoch that was best on dev.

    The seed decides the layer's first weights, the order of contexts, and dropout in encoders.
    """
    rows, marks = labels.rows[TRAIN], labels.labels[TRAIN]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer = torch.nn.Linear(source.width, labels.learned).to(source.device)
        modules = torch.nn.ModuleList([layer, source.layers])
        batches = _batches(source.lengths(TRAIN)[rows], settings.batch_size, np.random.default_rng(seed))

        def loss() -> torch.Tensor:
            batch = next(batches)
            targets = torch.from_numpy(marks[batch].toarray()[:, : labels.learned].astype(np.float32))
            logits = layer(source.vectors(TRAIN, rows[batch]))
            return binary_cross_entropy_with_logits(logits, targets.to(source.device))

        def scores(part: str) -> LabelScores:
            return label_scores(_predict(source, labels, modules, part), labels.labels[part])

        length = math.ceil(len(rows) / settings.batch_size)  # of an epoch, in steps
        epochs, most = range(length, settings.epochs * length + 1, length), settings.max_grad_norm
        optimiser = torch.optim.Adam(modules.parameters(), settings.learning_rate, fused=True)
        results = train_layers(
            modules, loss, optimiser, lambda: scores(DEV).micro_f1, epochs, settings.patience, max_grad_norm=most
        )
        on_test = scores(TEST)
    best = max(results, key=lambda step: results[step])
    fitted = Fitted(on_test, best // length, results[best])
    logger.info("%s, seed %d: best of %d epochs is %d: %.4f on dev", labels.target, seed, len(results), *fitted[1:])
    return fitted


def _predict(source: VectorSource, labels: ContextLabels, modules: torch.nn.ModuleList, part: str) -> Any:  # noqa: ANN401
    """Return which classes are told, sparse (N, C)."""
    rows = labels.rows[part]
    order = np.argsort(source.lengths(part)[rows], kind="stable")
    modules.eval()
    parts = []
    with torch.inference_mode():
        for start in range(0, len(rows), _PREDICTED_AT_ONCE):
            logits = modules[0](source.vectors(part, rows[order[start : start + _PREDICTED_AT_ONCE]]))
            predicted = np.zeros((len(logits), len(labels.classes)), dtype=np.int32)
            predicted[:, : labels.learned] = (logits > 0).cpu().numpy()  # the logistic function is 0.5 at 0
            parts.append(csr_array(predicted))
    return vstack(parts, format="csr")[np.argsort(order)]


def _batches(lengths: NDArray[np.intp], size: int, generator: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Yield all rows in random batches of like length, epoch after epoch."""
    while True:
        order = generator.permutation(len(lengths))
        batches = []
        for start in range(0, len(order), _POOL * size):
            pool = order[start : start + _POOL * size]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches += [pool[at : at + size] for at in range(0, len(pool), size)]
        for place in generator.permutation(len(batches)):
            yield batches[place]
