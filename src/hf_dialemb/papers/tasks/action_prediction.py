"""Few-shot prediction of what the assistant does next, by fine-tuning (DSE, section 4.2.2; TOD-BERT, section 5).

k-shot means k turns of each act to learn from, and k others to stop early by: turns are drawn from train for the rarest
act first, and count for all of their acts. By default the input ends with the user's turn before the assistant's, and
is cut on the left. The setting ``official`` is what the papers' programs do: the input goes on with the very turn whose
acts are asked for and with the user's reply; the last `OFFICIAL_SHARE` of the length in words are kept, and then cut on
the right. Macro F1 is over the acts that occur in what is scored; the papers' lists of acts are longer. A seed takes
all-MiniLM-L6-v2 about ten minutes of one core on sim_m.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ...dialogue import Dialogue, Turn
from ...encoders import Encoder
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.task import CorpusPart, Problem, percentage
from .fine_tuning import RUNS, Backbone, Examples, FineTuning, fine_tune, load_backbone, precision
from .linear_layer import Contexts, label_scores

SHOTS = (10, 20)  # how many turns of each act there are to learn from, as in the paper

SETTINGS = FineTuning(  # those of appendix B.1; the patience and the warm-up are the program's
    learning_rate=5e-5, epochs=100, batch_size=32, evaluate_every=30, patience=3, max_length=32, dropout=0.2,
    truncation_side="left",
)  # fmt: skip

OFFICIAL = "official"  # the setting of the papers' programs
OFFICIAL_SHARE = 0.9  # how many words of a text the official setting keeps, as a share of the most tokens


class Parts(NamedTuple):
    """The turns of the assistant to draw examples from, and those to be measured on: what is read, and their acts."""

    train: Contexts
    queries: Contexts


def load_acts(part: CorpusPart) -> Problem:
    """Load a corpus whose assistant's turns have dialogue acts."""
    part.check_splits("train")
    drawn_from, measured_on = part.dialogues("train"), part.dialogues()
    parts = {}
    for setting in ("", OFFICIAL):
        train, queries = (assistant_turns(item, setting == OFFICIAL) for item in (drawn_from, measured_on))
        parts[setting] = Parts(train, queries.at(part.sample(range(len(queries.acts)))))
    acts = sorted({act for item in parts.values() for turns in item for results in turns.acts for act in results})
    if len(acts) < 2 or not all(turns.acts for item in parts.values() for turns in item):
        raise part.error(
            f"got {len(acts)} dialogue acts of the assistant after a user's turn, expected at least two, in train and "
            "in the split; choose a corpus with dialogue acts"
        )
    sizes = {"acts": acts, "turns": len(parts[""].queries.acts), "turns_official": len(parts[OFFICIAL].queries.acts)}
    how = {"shots": list(SHOTS), "runs": RUNS, "precision": precision(), "fine_tuning": asdict(SETTINGS)}

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        backbone = load_backbone(encoder.name)
        results = []
        for setting, item in parts.items():
            for shots in SHOTS:
                name = f"{shots}-shot {setting}".strip()
                figures = [_run(backbone, item, acts, setting == OFFICIAL, shots, seed) for seed in seeds[:RUNS]]
                for metric in ("micro_f1", "macro_f1"):
                    values = [figure[metric] for figure in figures]
                    results.append(percentage("dialogue-action-prediction", metric, name, values))
        return results

    return Problem({**sizes, **how, "official_share": OFFICIAL_SHARE}, measure)


def assistant_turns(dialogues: Sequence[Dialogue], official: bool) -> Contexts:
    """Collect the assistant's turns that have dialogue acts, with what is read for each."""
    results = Contexts([], [])
    for dialogue in dialogues:
        turns = dialogue.turns
        for place, turn in enumerate(turns):
            beside = turns[place + 1 : place + 2] if official else turns[max(place - 1, 0) : place]
            if turn.role == "assistant" and turn.dialogue_acts and [other.role for other in beside] == ["user"]:
                results.turns.append(turns[: place + 2] if official else turns[:place])
                results.acts.append(frozenset(turn.dialogue_acts))
    return results


def draw(acts: Sequence[frozenset[str]], shots: int, generator: np.random.Generator) -> tuple[list[int], list[int]]:
    """Draw the turns to learn from and the turns to stop by."""
    counts = Counter(act for item in acts for act in sorted(item))
    parts: tuple[list[int], list[int]] = ([], [])
    taken: set[int] = set()
    for part in parts:
        drawn: Counter[str] = Counter()
        for act in sorted(counts, key=lambda name: (counts[name], name)):
            for row in generator.permutation([row for row, item in enumerate(acts) if act in item]).tolist():
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
    """Join the turns of a context by a separator; officially of the last words only."""
    text = f" {separator} ".join(turn.content for turn in context)
    return " ".join(text.split()[-int(OFFICIAL_SHARE * SETTINGS.max_length) :]) if official else text


def f1_scores(logits: NDArray[np.float32], targets: NDArray[Any]) -> dict[str, float]:
    """Compare predicted acts, those of a probability above 0.5, with the right ones."""
    predicted = csr_array((logits > 0).astype(np.int32))  # the logistic function is 0.5 at 0
    scores = label_scores(predicted, csr_array(targets.astype(np.int32)))
    return {"micro_f1": scores.micro_f1, "macro_f1": scores.macro_f1}


def _run(
    backbone: Backbone, parts: Parts, acts: Sequence[str], official: bool, shots: int, seed: int
) -> dict[str, float]:
    settings = replace(SETTINGS, truncation_side="right") if official else SETTINGS
    separator = backbone.tokenizer.sep_token or backbone.tokenizer.eos_token or ""

    def examples(results: Contexts, rows: Sequence[int]) -> Examples:
        texts = [text_of(results.turns[row], separator, official) for row in rows]
        return Examples(texts, np.array([[act in results.acts[row] for act in acts] for row in rows]))

    rows, others = draw(parts.train.acts, shots, np.random.default_rng([seed, shots]))
    train, validation = examples(parts.train, rows), examples(parts.train, others)
    tuned = fine_tune(backbone, train, validation, len(acts), settings, _mean_f1, seed=seed)
    queries = examples(parts.queries, range(len(parts.queries.acts)))
    return f1_scores(tuned.classifier.predict(queries.texts), queries.targets)


def _mean_f1(logits: NDArray[np.float32], targets: NDArray[Any]) -> float:
    return sum(f1_scores(logits, targets).values()) / 2
