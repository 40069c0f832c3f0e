"""Few-shot classification of intents and prediction of the assistant's acts, by fine-tuning (DSE,
section 4.2).

Of every intent 2k utterances are drawn from train: k to learn from, k to stop early by. What is
measured is accuracy on the utterances of the split that are not out of scope, as in the task
``intent-classification``.

Of every act k turns of the assistant are drawn, and k others, for the rarest act first; a turn
counts for all of its acts. By default the input ends with the user's turn before the assistant's,
and is cut on the left. The setting ``official`` is what the papers' programs do: the input goes on
with the very turn whose acts are asked for and with the user's reply; the last `OFFICIAL_SHARE` of
the length in words are kept, and then cut on the right. Macro F1 is over the acts that occur in
what is scored; the papers' lists of acts are longer.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ...dialogue import Dialogue, Turn
from ...encoders import Encoder
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.intents import NAME, load_intents
from ...evaluation.tasks.sampling import SHOTS, draw_examples
from ...evaluation.tasks.task import CorpusPart, Problem, percentage
from .fine_tuning import RUNS, Backbone, Examples, FineTuning, fine_tune, load_backbone, precision
from .linear_layer import Contexts, label_scores

# The settings are those of the paper's appendix B.1; the patience and the warm-up are its
# program's.
INTENT_SETTINGS = FineTuning(
    learning_rate=3e-5,
    epochs=50,
    batch_size=16,
    evaluate_every=10,
    patience=5,
    max_length=64,
    dropout=0.1,
)
ACT_SETTINGS = FineTuning(
    learning_rate=5e-5,
    epochs=100,
    batch_size=32,
    evaluate_every=30,
    patience=3,
    max_length=32,
    dropout=0.2,
    truncation_side="left",
)
ACT_SHOTS = (10, 20)  # how many turns of each act there are to learn from, as in the paper
OFFICIAL = "official"  # the setting of the papers' programs
OFFICIAL_SHARE = (
    0.9  # how many words of a text the official setting keeps, as a share of the most tokens
)


def load_fine_tuning(part: CorpusPart) -> Problem:
    """Load the utterances of a corpus that have an intent."""
    whole = load_intents(part)
    texts, labels = [item.turns[0].content for item in whole.dialogues], np.array(whole.labels)
    examples = len(labels) - whole.config["utterances"]

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        backbone = load_backbone(encoder.name)

        def run(shots: int, seed: int) -> float:
            parts = draw_parts(labels, examples, shots, np.random.default_rng([seed, shots]))
            intents = np.unique(labels[parts[0]])
            train, validation, queries = (
                Examples([texts[row] for row in rows], np.searchsorted(intents, labels[rows]))
                for rows in parts
            )
            tuned = fine_tune(
                backbone, train, validation, len(intents), INTENT_SETTINGS, accuracy, seed=seed
            )
            return accuracy(tuned.classifier.predict(queries.texts), queries.targets)

        return [
            percentage(
                NAME,
                "accuracy",
                f"{shots}-shot fine-tuned",
                [run(shots, seed) for seed in seeds[:RUNS]],
            )
            for shots in SHOTS
        ]

    how = {"runs": RUNS, "precision": precision(), "fine_tuning": asdict(INTENT_SETTINGS)}
    return Problem({**whole.config, **how}, measure)


def draw_parts(
    labels: NDArray[Any], examples: int, shots: int, generator: np.random.Generator
) -> tuple[NDArray[np.intp], ...]:
    """Draw rows of k utterances of each intent to learn from, and of k others to stop by.

    And of those to classify.
    """
    drawn = draw_examples(labels, np.arange(examples), 2 * shots, 2 * shots, generator)
    train = draw_examples(labels, drawn, shots, shots, generator)
    queries = np.arange(examples, len(labels))
    return train, np.setdiff1d(drawn, train), queries[np.isin(labels[queries], labels[train])]


def accuracy(logits: NDArray[np.float32], targets: NDArray[Any]) -> float:
    """Return the share of utterances ``(N, C)`` whose highest logit is that of their class
    ``(N,)``.
    """
    return float((logits.argmax(axis=1) == targets).mean())


def load_acts(part: CorpusPart) -> Problem:
    """Load a corpus whose assistant's turns have dialogue acts."""
    part.check_splits("train")
    drawn_from, measured_on = part.dialogues("train"), part.dialogues()
    parts = {}
    for setting in ("", OFFICIAL):
        train, queries = (
            assistant_turns(item, setting == OFFICIAL) for item in (drawn_from, measured_on)
        )
        parts[setting] = train, queries.at(part.sample(range(len(queries.acts))))
    acts = sorted(
        {
            act
            for item in parts.values()
            for turns in item
            for results in turns.acts
            for act in results
        }
    )
    if len(acts) < 2 or not all(turns.acts for item in parts.values() for turns in item):
        raise part.error(
            f"got {len(acts)} dialogue acts of the assistant after a user's turn, expected at "
            "least two, in train and "
            "in the split; choose a corpus with dialogue acts"
        )
    sizes = {
        "acts": acts,
        "turns": len(parts[""][1].acts),
        "turns_official": len(parts[OFFICIAL][1].acts),
    }
    how = {
        "shots": list(ACT_SHOTS),
        "runs": RUNS,
        "precision": precision(),
        "fine_tuning": asdict(ACT_SETTINGS),
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        backbone = load_backbone(encoder.name)
        results = []
        for setting, item in parts.items():
            for shots in ACT_SHOTS:
                name = f"{shots}-shot {setting}".strip()
                figures = [
                    _f1_of(backbone, *item, acts, setting == OFFICIAL, shots, seed)
                    for seed in seeds[:RUNS]
                ]
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
            if (
                turn.role == "assistant"
                and turn.dialogue_acts
                and [other.role for other in beside] == ["user"]
            ):
                results.turns.append(turns[: place + 2] if official else turns[:place])
                results.acts.append(frozenset(turn.dialogue_acts))
    return results


def draw(
    acts: Sequence[frozenset[str]], shots: int, generator: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Draw the turns to learn from and the turns to stop by."""
    counts = Counter(act for item in acts for act in sorted(item))
    parts: tuple[list[int], list[int]] = ([], [])
    taken: set[int] = set()
    for part in parts:
        drawn: Counter[str] = Counter()
        for act in sorted(counts, key=lambda name: (counts[name], name)):
            for row in generator.permutation(
                [row for row, item in enumerate(acts) if act in item]
            ).tolist():
                if drawn[act] < shots and row not in taken:
                    drawn.update(acts[row])
                    taken.add(row)
                    part.append(row)
    if not parts[1]:
        raise InputError(
            f"examples: got {len(acts)} turns in train, expected more than {shots} of an act; "
            "choose a larger corpus"
        )
    return parts


def text_of(context: Sequence[Turn], separator: str, official: bool) -> str:
    """Join the turns of a context by a separator; officially of the last words only."""
    text = f" {separator} ".join(turn.content for turn in context)
    return (
        " ".join(text.split()[-int(OFFICIAL_SHARE * ACT_SETTINGS.max_length) :])
        if official
        else text
    )


def f1_scores(logits: NDArray[np.float32], targets: NDArray[Any]) -> dict[str, float]:
    """Compare predicted acts, those of a probability above 0.5, with the right ones."""
    predicted = csr_array((logits > 0).astype(np.int32))  # the logistic function is 0.5 at 0
    scores = label_scores(predicted, csr_array(targets.astype(np.int32)))
    return {"micro_f1": scores.micro_f1, "macro_f1": scores.macro_f1}


def _f1_of(
    backbone: Backbone,
    drawn_from: Contexts,
    asked: Contexts,
    acts: Sequence[str],
    official: bool,
    shots: int,
    seed: int,
) -> dict[str, float]:
    settings = replace(ACT_SETTINGS, truncation_side="right") if official else ACT_SETTINGS
    separator = backbone.tokenizer.sep_token or backbone.tokenizer.eos_token or ""

    def examples(results: Contexts, rows: Sequence[int]) -> Examples:
        texts = [text_of(results.turns[row], separator, official) for row in rows]
        return Examples(
            texts, np.array([[act in results.acts[row] for act in acts] for row in rows])
        )

    rows, others = draw(drawn_from.acts, shots, np.random.default_rng([seed, shots]))
    train, validation = examples(drawn_from, rows), examples(drawn_from, others)
    tuned = fine_tune(backbone, train, validation, len(acts), settings, _mean_f1, seed=seed)
    queries = examples(asked, range(len(asked.acts)))
    return f1_scores(tuned.classifier.predict(queries.texts), queries.targets)


def _mean_f1(logits: NDArray[np.float32], targets: NDArray[Any]) -> float:
    return sum(f1_scores(logits, targets).values()) / 2
