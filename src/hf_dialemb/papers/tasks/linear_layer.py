"""One linear layer that tells the words of a context's last turn, or the acts of the assistant's
next turn.

These are the tasks of Mehri and Eskenazi (2019), section 5.2, which names neither words, acts, loss
nor the average of F1. Here the words are those that a ranker's tokenizer knows, and the acts the
corpus's own without slots and domains. Each class has a logistic loss, is told where its
probability is above 0.5, and counts as missed where it holds if it never occurs in train. F1 is
over all pairs of a context and a class (micro), and the mean over the classes that occur in what is
scored (macro). The epoch with the best micro F1 on dev is what is measured on test.
"""

import copy
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils import clip_grad_norm_
from transformers import PreTrainedTokenizerBase

from ...dialogue import Dialogue, Turn, response_places
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import percentage
from ...methods.layout import escape, special_texts

# What a layer learns from, what says when it is best, and what it is measured on.
PARTS = TRAIN, DEV, TEST = "train", "dev", "test"
# what is to be told: the words of the last turn, the acts of the next
WORDS, ACTS = ("bag-of-words", "dialogue-act")


class Contexts(NamedTuple):
    """Contexts, each all turns so far, and the acts of the assistant's turn that is asked for.

    Empty without labels.
    """

    turns: list[tuple[Turn, ...]]
    acts: list[frozenset[str]]

    def at(self, rows: Sequence[int]) -> Self:
        """Return some of them."""
        return type(self)([self.turns[row] for row in rows], [self.acts[row] for row in rows])


@dataclass(frozen=True)
class ContextLabels:
    """What is to be told of the contexts of each part, `WORDS` or `ACTS`.

    Of C ``classes`` those that were ``learned`` from, which occur in train, come first. By part:
    ``rows`` (N,) are the contexts that have labels, ``labels`` says in a sparse array (N, C) which
    classes hold for each, and ``unlabelled`` how many were left out, as the turn that follows has
    no acts.
    """

    target: str
    classes: tuple[str, ...]
    learned: int
    rows: Mapping[str, NDArray[np.intp]]
    labels: Mapping[str, Any]
    unlabelled: Mapping[str, int]

    def describe(self) -> dict[str, Any]:
        """Return what a results file says of it."""
        contexts = {part: len(self.rows[part]) for part in PARTS}
        more = {"contexts": contexts, "contexts_without_labels": dict(self.unlabelled)}
        return {
            "classes": self.learned,
            "classes_not_in_train": len(self.classes) - self.learned,
            **more,
        }


class LabelScores(NamedTuple):
    """F1 in [0, 1], micro and macro, and TP, FP and FN of each context, (N, 3)."""

    micro_f1: float
    macro_f1: float
    counts: NDArray[np.int32]


def assistant_contexts(dialogues: Sequence[Dialogue]) -> Contexts:
    """Collect the contexts of dialogues that an assistant's turn follows."""
    results = Contexts([], [])
    for dialogue in dialogues:
        for place in response_places(dialogue, "assistant"):
            results.turns.append(dialogue.turns[:place])
            results.acts.append(frozenset(dialogue.turns[place].dialogue_acts))
    return results


def context_labels(
    target: str, contexts: Mapping[str, Contexts], tokenizer: PreTrainedTokenizerBase
) -> ContextLabels:
    """Label contexts."""
    names: dict[str, list[frozenset[str]]] = {}
    rows: dict[str, NDArray[np.intp]] = {}
    for part in PARTS:
        results = (
            last_words(contexts[part].turns, tokenizer) if target == WORDS else contexts[part].acts
        )
        kept = [row for row, labels in enumerate(results) if target == WORDS or labels]
        if not kept:
            raise InputError(
                f"{target}: got no labelled context among the {len(results)} of {part}, expected "
                "at least one; add "
                "dialogues whose assistant speaks after a user, with dialogue acts if these are "
                "asked for"
            )
        names[part], rows[part] = [results[row] for row in kept], np.array(kept, dtype=np.intp)
    known = sorted(frozenset().union(*names[TRAIN]))
    classes = (*known, *sorted(frozenset().union(*names[DEV], *names[TEST]) - set(known)))
    labels = {part: _sparse(names[part], classes) for part in PARTS}
    unlabelled = {part: len(contexts[part].turns) - len(rows[part]) for part in PARTS}
    return ContextLabels(target, classes, len(known), rows, labels, unlabelled)


def last_words(
    contexts: Sequence[Sequence[Turn]], tokenizer: PreTrainedTokenizerBase
) -> list[frozenset[str]]:
    """Return which of a tokenizer's words occur in the last turn of each context."""
    specials, unwanted = special_texts(tokenizer), set(tokenizer.all_special_ids)
    texts = list(dict.fromkeys(context[-1].content for context in contexts))
    escaped = [escape(text, specials) for text in texts]
    ids = tokenizer(escaped, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
    words = {
        text: frozenset(tokenizer.convert_ids_to_tokens(sorted(set(places) - unwanted)))
        for text, places in zip(texts, ids, strict=True)
    }
    return [words[context[-1].content] for context in contexts]


def label_scores(predicted: Any, labels: Any) -> LabelScores:
    """Compare predicted classes with the right ones."""
    tables = (predicted.multiply(labels), predicted, labels)
    hits, claims, truths = (np.asarray(table.sum(axis=0), dtype=np.int64) for table in tables)
    occurring = truths > 0
    by_class = 2 * hits[occurring] / (claims + truths)[occurring]
    micro = 2 * hits.sum() / max(1, claims.sum() + truths.sum())
    right, claimed, true = (np.asarray(table.sum(axis=1), dtype=np.int32) for table in tables)
    counts = np.stack([right, claimed - right, true - right], axis=1)
    return LabelScores(float(micro), float(by_class.mean()) if len(by_class) else 0.0, counts)


def _sparse(names: Sequence[frozenset[str]], classes: Sequence[str]) -> Any:
    places = {name: place for place, name in enumerate(classes)}
    columns = [place for labels in names for place in sorted(map(places.__getitem__, labels))]
    ends = np.cumsum([0, *map(len, names)])
    return csr_array(
        (np.ones(len(columns), dtype=np.int32), columns, ends), shape=(len(names), len(classes))
    )


logger = logging.getLogger(__name__)

_POOL = 50  # batches whose contexts are sorted by length together, so that little is padded
_PREDICTED_AT_ONCE = 1024


@dataclass(frozen=True)
class LayerSettings:
    """How a layer is trained, and encoders that learn along.

    ``patience`` counts epochs without a new best.
    """

    learning_rate: float = 0.005
    batch_size: int = 32
    epochs: int = 20
    patience: int = 5
    max_grad_norm: float = 5.0


@dataclass(frozen=True)
class VectorSource:
    """Where a layer's vectors of length W come from, on which device.

    ``layers`` learn along with the layer.

    ``lengths`` says how long the contexts of a part are, as batches are of like length; ``vectors``
    gives those of some contexts of a part, float32 (B, W).
    """

    width: int
    device: torch.device
    lengths: Callable[[str], NDArray[np.intp]]
    vectors: Callable[[str, NDArray[np.intp]], torch.Tensor]
    layers: torch.nn.ModuleList = field(default_factory=torch.nn.ModuleList)


class Fitted(NamedTuple):
    """What one training came to.

    Scores on test, the best epoch, from 1 on, and its micro F1 on dev, in [0, 1].
    """

    scores: LabelScores
    epoch: int
    dev: float


@dataclass(frozen=True)
class Outcome:
    """How well one system did in one task, over all seeds.

    ``config`` is what decides the figures, micro_f1 and macro_f1. ``counts``, (S, N, 3), are TP, FP
    and FN of each context of test for each seed; their sum over seeds is what
    `papers.significance.paired_bootstrap_f1` compares.
    """

    system: str
    task: str
    config: dict[str, Any]
    measurements: list[Row]
    counts: NDArray[np.int32]


def outcome(system: str, task: str, config: dict[str, Any], fitted: Sequence[Fitted]) -> Outcome:
    """Sum up the trainings of one system, one for each seed."""
    trained = {
        "best_epochs": [item.epoch for item in fitted],
        "dev_micro_f1": [100 * item.dev for item in fitted],
    }
    measurements = [
        percentage(task, name, "", [getattr(item.scores, name) for item in fitted])
        for name in ("micro_f1", "macro_f1")
    ]
    return Outcome(
        system,
        task,
        config | trained,
        measurements,
        np.stack([item.scores.counts for item in fitted]),
    )


def train_layers(
    layers: torch.nn.Module,
    loss: Callable[[], torch.Tensor],
    optimiser: torch.optim.Optimizer,
    score: Callable[[], float],
    scored_at: Sequence[int],
    patience: int,
    *,
    schedule: Any = None,
    max_grad_norm: float = math.inf,
) -> dict[int, float]:
    """Take a step for each ``loss`` of the next batch.

    The layers end with the weights of the best score.

    Scores are taken after the steps ``scored_at``, in ascending order, and returned by step. The
    last one ends it. It stops after ``patience`` scores in a row that are not better than the best,
    the first of equal ones.
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


def fit(
    source: VectorSource, labels: ContextLabels, settings: LayerSettings, *, seed: int
) -> Fitted:
    """Train a layer, and what learns along with it, and measure the weights of the epoch that was
    best on dev.

    The seed decides the layer's first weights, the order of contexts, and dropout in encoders.
    """
    rows, marks = labels.rows[TRAIN], labels.labels[TRAIN]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer = torch.nn.Linear(source.width, labels.learned).to(source.device)
        modules = torch.nn.ModuleList([layer, source.layers])
        batches = _batches(
            source.lengths(TRAIN)[rows], settings.batch_size, np.random.default_rng(seed)
        )

        def loss() -> torch.Tensor:
            batch = next(batches)
            targets = torch.from_numpy(
                marks[batch].toarray()[:, : labels.learned].astype(np.float32)
            )
            logits = layer(source.vectors(TRAIN, rows[batch]))
            return binary_cross_entropy_with_logits(logits, targets.to(source.device))

        def scores(part: str) -> LabelScores:
            return label_scores(_predict(source, labels, modules, part), labels.labels[part])

        length = math.ceil(len(rows) / settings.batch_size)  # of an epoch, in steps
        epochs, most = range(length, settings.epochs * length + 1, length), settings.max_grad_norm
        optimiser = torch.optim.Adam(modules.parameters(), settings.learning_rate, fused=True)
        results = train_layers(
            modules,
            loss,
            optimiser,
            lambda: scores(DEV).micro_f1,
            epochs,
            settings.patience,
            max_grad_norm=most,
        )
        on_test = scores(TEST)
    best = max(results, key=lambda step: results[step])
    fitted = Fitted(on_test, best // length, results[best])
    logger.info(
        "%s, seed %d: best of %d epochs is %d: %.4f on dev",
        labels.target,
        seed,
        len(results),
        *fitted[1:],
    )
    return fitted


def _predict(
    source: VectorSource, labels: ContextLabels, modules: torch.nn.ModuleList, part: str
) -> Any:
    """Return which classes are told, sparse (N, C)."""
    rows = labels.rows[part]
    order = np.argsort(source.lengths(part)[rows], kind="stable")
    modules.eval()
    parts = []
    with torch.inference_mode():
        for start in range(0, len(rows), _PREDICTED_AT_ONCE):
            logits = modules[0](
                source.vectors(part, rows[order[start : start + _PREDICTED_AT_ONCE]])
            )
            predicted = np.zeros((len(logits), len(labels.classes)), dtype=np.int32)
            # the logistic function is 0.5 at 0
            predicted[:, : labels.learned] = (logits > 0).cpu().numpy()
            parts.append(csr_array(predicted))
    return vstack(parts, format="csr")[np.argsort(order)]


def _batches(
    lengths: NDArray[np.intp], size: int, generator: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
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
