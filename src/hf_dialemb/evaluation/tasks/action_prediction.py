"""Few-shot prediction of what the assistant does next, by fine-tuning (DSE, section 4.2.2; TOD-BERT, section 5).

A turn of the assistant has one or more dialogue acts, by the corpus's own names. k-shot means k turns of each act to
learn from, and k others to stop early by: turns are drawn from train for the rarest act first, and count for all of
their acts. (That gives sim_m the 60 and 120 turns that the paper tells of its GSIM for 10 and 20 shots.)

There are two settings. By default the input ends with the user's turn before the assistant's, and is cut on the left.
``official`` is what the papers' programs do: the input goes on with the very turn whose acts are asked for and with the
user's reply, so that acts are recognised rather than predicted; the last `OFFICIAL_SHARE` of the length in words are
kept, and then cut on the right.

Macro F1 is the mean over the acts that occur in what is scored. The papers' lists of acts are longer than that, so that
their macro F1 is lower.

A seed takes all-MiniLM-L6-v2 about ten minutes of one core on sim_m, two to four for each shot and setting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...encoders.specs import Encoder
from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from .fine_tuning import RUNS, Backbone, Examples, FineTuning, fine_tune, load_backbone, precision
from .sampling import fixed_sample
from .task import Measurement, Problem, Task, percentage

SHOTS = (10, 20)
"""How many turns of each act there are to learn from, as in the paper."""

SETTINGS = FineTuning(
    learning_rate=5e-5,
    epochs=100,
    batch_size=32,
    evaluate_every=30,
    patience=3,
    max_length=32,
    dropout=0.2,
    truncation_side="left",
)
"""Those of the paper's appendix B.1; the patience and the warm-up are its program's."""

OFFICIAL = "official"
"""The setting of the papers' programs."""

OFFICIAL_SHARE = 0.9
"""How many words of a text the official setting keeps, as a share of the most tokens."""


class Turns(NamedTuple):
    """Turns of an assistant.

    Attributes:
        contexts: What is read for each of them.
        acts: Its dialogue acts, at least one.
    """

    contexts: list[tuple[Turn, ...]]
    acts: list[frozenset[str]]


class Parts(NamedTuple):
    """The turns to draw examples from, and those to be measured on."""

    train: Turns
    queries: Turns


def load_actions(corpus: str, data_dir: str | Path | None, split: str, limit: int | None) -> Problem:
    """Loads a corpus whose assistant's turns have dialogue acts."""
    from ...corpora import REGISTERED, form_of, get_corpus, load_dialogues

    if form_of(corpus) != REGISTERED:
        raise InputError(
            f"corpus {corpus}: got one's own or the Hub's, expected one of the catalogue (dialemb corpus list), whose "
            "train split examples are drawn from; choose one"
        )
    if split in ("train", "all") or "train" not in get_corpus(corpus).splits:
        raise InputError(
            f"corpus {corpus}: got split {split}, expected one beside train, which examples are drawn from; choose dev "
            "or test, or another corpus"
        )
    drawn_from, measured_on = (load_dialogues(corpus, data_dir, each) for each in ("train", split))
    parts = {
        setting: Parts(
            assistant_turns(drawn_from, setting == OFFICIAL),
            _sample(assistant_turns(measured_on, setting == OFFICIAL), limit),
        )
        for setting in ("", OFFICIAL)
    }
    acts = sorted({act for part in parts.values() for turns in part for each in turns.acts for act in each})
    if len(acts) < 2 or not all(turns.acts for part in parts.values() for turns in part):
        raise InputError(
            f"corpus {corpus}, split {split}: got {len(acts)} dialogue acts of the assistant after a user's turn, "
            "expected at least two, in train and in the split; choose a corpus with dialogue acts"
        )
    config = {
        "corpus": corpus,
        "split": split,
        "limit": limit,
        "acts": acts,
        "turns": len(parts[""].queries.acts),
        "turns_official": len(parts[OFFICIAL].queries.acts),
        "shots": list(SHOTS),
        "runs": RUNS,
        "precision": precision(),
        "fine_tuning": asdict(SETTINGS),
        "official_share": OFFICIAL_SHARE,
    }
    return Problem(config, partial(measure, parts, acts))


def assistant_turns(dialogues: Sequence[Dialogue], official: bool) -> Turns:
    """Collects the assistant's turns that have dialogue acts."""
    found = Turns([], [])
    for dialogue in dialogues:
        turns = dialogue.turns
        for place, turn in enumerate(turns):
            beside = turns[place + 1 : place + 2] if official else turns[max(place - 1, 0) : place]
            if turn.role == "assistant" and turn.dialogue_acts and [other.role for other in beside] == ["user"]:
                found.contexts.append(turns[: place + 2] if official else turns[:place])
                found.acts.append(frozenset(turn.dialogue_acts))
    return found


def measure(
    parts: Mapping[str, Parts], acts: Sequence[str], encoder: Encoder, seeds: Sequence[int]
) -> list[Measurement]:
    """Fine-tunes a model for each setting, shot and seed, and measures how well it tells the acts."""
    backbone = load_backbone(encoder.name)
    found = []
    for setting, part in parts.items():
        for shots in SHOTS:
            figures = [_run(backbone, part, acts, setting == OFFICIAL, shots, seed) for seed in seeds[:RUNS]]
            found += [
                percentage(TASK.name, metric, f"{shots}-shot {setting}".strip(), [figure[metric] for figure in figures])
                for metric in ("micro_f1", "macro_f1")
            ]
    return found


def draw(acts: Sequence[frozenset[str]], shots: int, generator: np.random.Generator) -> tuple[list[int], list[int]]:
    """Draws the turns to learn from and the turns to stop by."""
    counts = Counter(act for each in acts for act in sorted(each))
    parts: tuple[list[int], list[int]] = ([], [])
    taken: set[int] = set()
    for part in parts:
        drawn: Counter[str] = Counter()
        for act in sorted(counts, key=lambda name: (counts[name], name)):
            for row in generator.permutation([row for row, each in enumerate(acts) if act in each]).tolist():
                if drawn[act] < shots and row not in taken:
                    drawn.update(acts[row])
                    taken.add(row)
                    part.append(row)
    if not parts[1]:
        raise InputError(
            f"examples: got {len(acts)} turns in train, expected more than {shots} of an act; choose a larger corpus"
        )
    return parts


def text_of(context: Sequence[Turn], separator: str, official: bool) -> str:
    """Joins the turns of a context by a separator; officially of the last words only."""
    text = f" {separator} ".join(turn.content for turn in context)
    return " ".join(text.split()[-int(OFFICIAL_SHARE * SETTINGS.max_length) :]) if official else text


def f1_scores(logits: NDArray[np.float32], targets: NDArray[Any]) -> dict[str, float]:
    """Compares predicted acts, those of a probability above 0.5, with the right ones."""
    from sklearn.metrics import f1_score

    predicted = logits > 0  # the logistic function is 0.5 at 0
    occurring = np.flatnonzero(targets.any(axis=0))
    return {
        "micro_f1": float(f1_score(targets, predicted, average="micro", zero_division=0)),
        "macro_f1": float(f1_score(targets, predicted, average="macro", labels=occurring, zero_division=0)),
    }


def _run(
    backbone: Backbone, parts: Parts, acts: Sequence[str], official: bool, shots: int, seed: int
) -> dict[str, float]:
    settings = replace(SETTINGS, truncation_side="right") if official else SETTINGS
    separator = backbone.tokenizer.sep_token or backbone.tokenizer.eos_token or ""

    def examples(turns: Turns, rows: Sequence[int]) -> Examples:
        texts = [text_of(turns.contexts[row], separator, official) for row in rows]
        return Examples(texts, np.array([[act in turns.acts[row] for act in acts] for row in rows]))

    rows, others = draw(parts.train.acts, shots, np.random.default_rng([seed, shots]))
    train, validation = examples(parts.train, rows), examples(parts.train, others)
    tuned = fine_tune(backbone, train, validation, len(acts), settings, _mean_f1, seed=seed)
    queries = examples(parts.queries, range(len(parts.queries.acts)))
    return f1_scores(tuned.classifier.predict(queries.texts), queries.targets)


def _mean_f1(logits: NDArray[np.float32], targets: NDArray[Any]) -> float:
    return sum(f1_scores(logits, targets).values()) / 2


def _sample(turns: Turns, limit: int | None) -> Turns:
    rows = fixed_sample(range(len(turns.acts)), limit)
    return Turns([turns.contexts[row] for row in rows], [turns.acts[row] for row in rows])


TASK = Task(
    "dialogue-action-prediction",
    load_actions,
    "DSE, section 4.2.2 and appendix B; TOD-BERT, section 5",
    fine_tunes=True,
)
