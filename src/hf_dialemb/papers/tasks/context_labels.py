"""What a linear layer is to tell of a context: the words of its last turn, or the acts of the assistant's next turn.

These are the two tasks of Mehri and Eskenazi (2019), section 5.2. The paper names neither the words, the acts nor the
average of F1. Here the words are those that a ranker's tokenizer knows, the acts are the corpus's own without slots and
domains, and both averages are measured: micro F1 over all pairs of a context and a class, and macro F1, the mean over
the classes that occur in what is scored. A class that never occurs in train counts as missed where it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from transformers import PreTrainedTokenizerBase

from ...dialogue import Dialogue, Turn, response_places
from ...errors import InputError
from ...methods.layout import escape, special_texts

# What a layer learns from, what says when it is best, and what it is measured on.
PARTS = TRAIN, DEV, TEST = "train", "dev", "test"
WORDS, ACTS = "bag-of-words", "dialogue-act"  # what is to be told: the words of the last turn, the acts of the next


class Contexts(NamedTuple):
    """Contexts, each all turns so far, and the acts of the assistant's turn that is asked for; empty without labels."""

    turns: list[tuple[Turn, ...]]
    acts: list[frozenset[str]]

    def at(self, rows: Sequence[int]) -> Contexts:
        """Return some of them."""
        return Contexts([self.turns[row] for row in rows], [self.acts[row] for row in rows])


@dataclass(frozen=True)
class ContextLabels:
    """What is to be told of the contexts of each part, `WORDS` or `ACTS`.

    Of C ``classes`` those that were ``learned`` from, which occur in train, come first. By part: ``rows`` (N,) are the
    contexts that have labels, ``labels`` says in a sparse array (N, C) which classes hold for each, and ``unlabelled``
    how many were left out, as the turn that follows has no acts.
    """

    target: str
    classes: tuple[str, ...]
    learned: int
    rows: Mapping[str, NDArray[np.intp]]
    labels: Mapping[str, Any]
    unlabelled: Mapping[str, int]

    def describe(self) -> dict[str, Any]:
        """Return what a results file says of it."""
        return {
            "classes": self.learned,
            "classes_not_in_train": len(self.classes) - self.learned,
            "contexts": {part: len(self.rows[part]) for part in PARTS},
            "contexts_without_labels": dict(self.unlabelled),
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


def context_labels(target: str, contexts: Mapping[str, Contexts], tokenizer: PreTrainedTokenizerBase) -> ContextLabels:
    """Label contexts."""
    names: dict[str, list[frozenset[str]]] = {}
    rows: dict[str, NDArray[np.intp]] = {}
    for part in PARTS:
        results = last_words(contexts[part].turns, tokenizer) if target == WORDS else contexts[part].acts
        kept = [row for row, labels in enumerate(results) if target == WORDS or labels]
        if not kept:
            raise InputError(
                f"{target}: got no labelled context among the {len(results)} of {part}, expected at least one; add "
                "dialogues whose assistant speaks after a user, with dialogue acts if these are asked for"
            )
        names[part], rows[part] = [results[row] for row in kept], np.array(kept, dtype=np.intp)
    known = sorted(frozenset().union(*names[TRAIN]))
    classes = (*known, *sorted(frozenset().union(*names[DEV], *names[TEST]) - set(known)))
    labels = {part: _sparse(names[part], classes) for part in PARTS}
    unlabelled = {part: len(contexts[part].turns) - len(rows[part]) for part in PARTS}
    return ContextLabels(target, classes, len(known), rows, labels, unlabelled)


def last_words(contexts: Sequence[Sequence[Turn]], tokenizer: PreTrainedTokenizerBase) -> list[frozenset[str]]:
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


def label_scores(predicted: Any, labels: Any) -> LabelScores:  # noqa: ANN401 - scipy's sparse arrays have no types
    """Compare predicted classes with the right ones."""
    tables = (predicted.multiply(labels), predicted, labels)
    hits, claims, truths = (np.asarray(table.sum(axis=0), dtype=np.int64) for table in tables)
    occurring = truths > 0
    by_class = 2 * hits[occurring] / (claims + truths)[occurring]
    micro = 2 * hits.sum() / max(1, claims.sum() + truths.sum())
    right, claimed, true = (np.asarray(table.sum(axis=1), dtype=np.int32) for table in tables)
    counts = np.stack([right, claimed - right, true - right], axis=1)
    return LabelScores(float(micro), float(by_class.mean()) if len(by_class) else 0.0, counts)


def _sparse(names: Sequence[frozenset[str]], classes: Sequence[str]) -> Any:  # noqa: ANN401
    places = {name: place for place, name in enumerate(classes)}
    columns = [place for labels in names for place in sorted(map(places.__getitem__, labels))]
    ends = np.cumsum([0, *map(len, names)])
    return csr_array((np.ones(len(columns), dtype=np.int32), columns, ends), shape=(len(names), len(classes)))
