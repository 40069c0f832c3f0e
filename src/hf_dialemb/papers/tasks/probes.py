"""Probes of the vector of a dialogue so far (Mehri and Eskenazi, section 5.2).

One linear layer tells the words of the last turn, or the acts of the assistant's next turn. The
paper names neither words, acts, loss nor the average of F1. Here the words are those that a
tokenizer knows, and the acts the corpus's own without slots and domains. Each class has a logistic
loss and is told where its probability is above 0.5. F1 is over all pairs of a context and a class
(micro), and the mean over the classes that occur in the split (macro). The epoch with the best
micro F1 on dev is measured on test.

Encoders never learn. The vectors of an ensemble's members are laid end to end, so that the layer
may weigh each. Each of the W numbers of a vector is scaled to mean 0 and deviation 1 / sqrt(W) over
train: the layer stays linear, and a learning rate means the same whatever the width.
"""

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, multilabel_confusion_matrix
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from ...dialogue import Dialogue, Turn, response_places
from ...encoders import Encoder
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.sampling import fixed_sample
from ...evaluation.tasks.task import CorpusPart, Problem, percentage
from ...methods.layout import escape, special_texts
from ...methods.ranker import LoadedRanker, encode_contexts
from ...methods.vocabulary import word_tokenizer

# What the layer learns from, what says when it is best, and what it is measured on.
TRAIN = "train"
DEV = "dev"
TEST = "test"
PARTS = (TRAIN, DEV, TEST)
WORDS = "bag-of-words"
ACTS = "dialogue-act"
# Ours, as the paper names none; the patience counts epochs without a new best.
LEARNING_RATE = 0.05
BATCH_SIZE = 64
EPOCHS = 60
PATIENCE = 10
# The number of known words, with the marks of a ranker's tokenizer; the paper's for MultiWOZ.
VOCABULARY = 1_261
# Contexts of each part: a fixed random sample, unless there are fewer.
CONTEXTS = {TRAIN: 2_500, DEV: 500, TEST: 1_000}
REPEATS = 3  # trainings of the layer, one for each of the first seeds


@dataclass(frozen=True)
class Contexts:
    """Contexts, each all turns so far, and the acts of the assistant's turn that follows."""

    turns: list[tuple[Turn, ...]]
    acts: list[frozenset[str]]

    def at(self, rows: Iterable[int]) -> "Contexts":
        """Return some of them."""
        rows = list(rows)
        return Contexts([self.turns[row] for row in rows], [self.acts[row] for row in rows])

    def labelled(self, target: str) -> "Contexts":
        """Return those with labels: all for words, those before a turn with acts for acts."""
        return self.at(row for row, acts in enumerate(self.acts) if acts or target == WORDS)


@dataclass(frozen=True)
class Probed:
    """How well the layer told the classes from the vectors of one system, over all seeds.

    ``counts`` (S, N, 3) are TP, FP and FN of each context of test for each seed; their sum over
    seeds is what `papers.significance.paired_bootstrap_f1` compares.
    """

    config: dict[str, Any]
    rows: list[Row]
    counts: NDArray[np.intp]


def assistant_contexts(dialogues: Sequence[Dialogue]) -> Contexts:
    """Collect the contexts of dialogues that an assistant's turn follows."""
    places = [
        (dialogue.turns, place)
        for dialogue in dialogues
        for place in response_places(dialogue, "assistant")
    ]
    return Contexts(
        [turns[:place] for turns, place in places],
        [frozenset(turns[place].dialogue_acts) for turns, place in places],
    )


def last_words(
    contexts: Sequence[Sequence[Turn]], tokenizer: PreTrainedTokenizerBase
) -> list[frozenset[str]]:
    """Return which of a tokenizer's words occur in the last turn of each context."""
    if not contexts:
        return []
    specials = special_texts(tokenizer)
    unwanted = set(tokenizer.all_special_ids)
    texts = [escape(context[-1].content, specials) for context in contexts]
    ids = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    return [
        frozenset(tokenizer.convert_ids_to_tokens(sorted(set(of_text) - unwanted)))
        for of_text in ids
    ]


def label_matrices(
    target: str, contexts: Mapping[str, Contexts], tokenizer: PreTrainedTokenizerBase
) -> dict[str, NDArray[np.int64]]:
    """Return by part which of C classes hold for each of N contexts, zeros and ones (N, C)."""
    names = {
        part: last_words(of_part.turns, tokenizer) if target == WORDS else of_part.acts
        for part, of_part in contexts.items()
    }
    for part, labels in names.items():
        if not labels:
            raise InputError(
                f"{target}: got no labelled context in {part}, expected at least one; add "
                "dialogues whose assistant speaks after a user, with dialogue acts if these are "
                "asked for"
            )
    binarizer = MultiLabelBinarizer().fit([labels for part in PARTS for labels in names[part]])
    return {part: binarizer.transform(names[part]) for part in PARTS}


def probe(
    task: str,
    vectors: Mapping[str, NDArray[np.float32]],
    labels: Mapping[str, NDArray[np.int64]],
    seeds: Sequence[int],
) -> Probed:
    """Train the layer once for each seed on vectors (N, W) by part, and measure it on test."""
    scaler = StandardScaler().fit(vectors[TRAIN])
    width = vectors[TRAIN].shape[1]
    inputs = {
        part: scaler.transform(of_part) / math.sqrt(width) for part, of_part in vectors.items()
    }
    occurring = np.flatnonzero(labels[TEST].sum(axis=0))
    config: dict[str, Any] = {"width": width, "best_epochs": [], "dev_micro_f1": []}
    micro = []
    macro = []
    counts = []
    for seed in seeds:
        layer, epoch, on_dev = _fit(inputs, labels, seed)
        predicted = layer.predict(inputs[TEST])
        config["best_epochs"].append(epoch)
        config["dev_micro_f1"].append(100 * on_dev)
        micro.append(_micro_f1(labels[TEST], predicted))
        macro.append(
            f1_score(labels[TEST], predicted, labels=occurring, average="macro", zero_division=0)
        )
        counts.append(_counts(labels[TEST], predicted))
    rows = [percentage(task, "micro_f1", "", micro), percentage(task, "macro_f1", "", macro)]
    return Probed(config, rows, np.stack(counts))


def _fit(
    inputs: Mapping[str, NDArray[np.floating]], labels: Mapping[str, NDArray[np.int64]], seed: int
) -> tuple[MLPClassifier, int, float]:
    """Return the layer of the epoch that was best on dev, that epoch, and its micro F1 on dev."""
    layer = MLPClassifier(
        hidden_layer_sizes=(),
        alpha=0,
        batch_size=min(BATCH_SIZE, len(inputs[TRAIN])),
        learning_rate_init=LEARNING_RATE,
        random_state=np.random.RandomState(seed),
    )
    classes = np.arange(labels[TRAIN].shape[1])
    best = layer
    best_epoch = 0
    best_score = -1.0
    for epoch in range(1, EPOCHS + 1):
        layer.partial_fit(inputs[TRAIN], labels[TRAIN], classes=classes)
        score = _micro_f1(labels[DEV], layer.predict(inputs[DEV]))
        if score > best_score:
            best = copy.deepcopy(layer)
            best_epoch = epoch
            best_score = score
        elif epoch - best_epoch == PATIENCE:
            break
    return best, best_epoch, best_score


def _micro_f1(labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    return float(f1_score(labels, predicted, average="micro", zero_division=0))


def _counts(labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> NDArray[np.intp]:
    (_, wrong), (missed, right) = multilabel_confusion_matrix(
        labels, predicted, samplewise=True
    ).transpose(1, 2, 0)
    return np.stack([right, wrong, missed], axis=1)


def probe_rankers(
    rankers: Mapping[str, Sequence[LoadedRanker]],
    dialogues: Mapping[str, Sequence[Dialogue]],
    target: str,
    seeds: Sequence[int],
) -> dict[str, Probed]:
    """Probe each system of rankers, its members side by side; all of them must embed contexts."""
    contexts = {part: assistant_contexts(dialogues[part]).labelled(target) for part in PARTS}
    tokenizer = next(iter(rankers.values()))[0].tokenizer
    labels = label_matrices(target, contexts, tokenizer)
    sizes = {"classes": labels[TEST].shape[1], "contexts": _sizes(contexts)}
    encoded: dict[int, dict[str, NDArray[np.float32]]] = {}  # systems share members
    results = {}
    for name, members in tqdm(rankers.items(), desc=f"{target} probe", unit="system"):
        for member in members:
            if id(member) not in encoded:
                encoded[id(member)] = {
                    part: encode_contexts(member, contexts[part].turns) for part in PARTS
                }
        vectors = {
            part: np.concatenate([encoded[id(member)][part] for member in members], axis=1)
            for part in PARTS
        }
        probed = probe(f"{target}-probe", vectors, labels, seeds)
        probed.config.update(sizes, members=len(members), seeds=list(seeds))
        results[name] = probed
    return results


def load_probe(part: CorpusPart, target: str) -> Problem:
    """Load a fixed sample of contexts and their labels."""
    part.check_splits(TRAIN, DEV)
    dialogues = {TRAIN: part.dialogues(TRAIN), DEV: part.dialogues(DEV), TEST: part.dialogues()}
    contexts = {}
    for item, most in CONTEXTS.items():
        labelled = assistant_contexts(dialogues[item]).labelled(target)
        kept = part.sample(fixed_sample(range(len(labelled.turns)), most))
        contexts[item] = labelled.at(kept)
    labels = label_matrices(target, contexts, word_tokenizer(dialogues[TRAIN], VOCABULARY))
    config = {
        "target": target,
        "vocabulary": VOCABULARY,
        "repeats": REPEATS,
        "classes": labels[TEST].shape[1],
        "contexts": _sizes(contexts),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        vectors = encoder.encode(
            [Dialogue(turns) for item in PARTS for turns in contexts[item].turns]
        )
        ends = np.cumsum(list(_sizes(contexts).values()))[:-1]
        by_part = dict(zip(PARTS, np.split(vectors, ends), strict=True))
        return probe(f"{target}-probe", by_part, labels, list(seeds)[:REPEATS]).rows

    return Problem(config, measure)


def _sizes(contexts: Mapping[str, Contexts]) -> dict[str, int]:
    return {part: len(contexts[part].turns) for part in PARTS}


load_words = partial(load_probe, target=WORDS)
load_acts = partial(load_probe, target=ACTS)
