"""What a training changes, measured on dialogues that it does not learn from.

Labels are read only where there are some. A dialogue is divided into what its first speaker says
and what the others say. The better an encoder tells dialogues apart, the more often each side finds
the other among the sides of all dialogues.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import CORPORA, single_domain
from ..data.corpus_names import with_split
from ..dialogue import Dialogue
from ..evaluation.tasks.sampling import mean_interval
from ..hashing import text_key
from ..methods import get_method
from ..metrics.vectors import average_precision, expected_recall, places, query_scores, unit_vectors
from ..storage.hardware import bfloat16_where_faster
from .dialogues import drawn
from .measuring import vectors_of
from .settings import Report, RunArguments

logger = logging.getLogger(__name__)

LEAST, MOST, PART = 200, 100, 5
"""A fifth of at least 200 dialogues is held out, but at most 100.

Figures of fewer than 40 say little.
"""

Scores = dict[str, NDArray[np.float64]]
"""Figures of an encoder in [0, 1], a number for each dialogue.

``sides``, and ``map`` where dialogues have domains.
"""

_NAMES = {"sides": "a speaker's side finds the other one in", "map": "the MAP of domains is"}


def hold_out(
    dialogues: list[Dialogue], dev: Sequence[Dialogue], run: RunArguments, report: Report
) -> tuple[list[Dialogue], list[Dialogue]]:
    """Divide dialogues into those to learn from, and some to measure before and after.

    A dev split is measured instead where there is one. Published corpora, which have other splits,
    are learnt from as a whole. So is everything where the method learns from labels or starts from
    no backbone, and for rankers.
    """
    method = get_method(run.method)
    if method.kind == "responses" or method.labelled or method.from_scratch:
        return dialogues, []
    if dev:
        return dialogues, drawn([*dev], MOST, seed=0)
    if any(with_split(corpus)[0] in CORPORA for corpus in run.corpus):
        return dialogues, []
    if len(dialogues) < LEAST:
        report(
            f"Held out no dialogue to measure what training changes: got {len(dialogues):,}, "
            f"expected {LEAST}"
        )
        return dialogues, []
    chosen = drawn(dialogues, min(MOST, len(dialogues) // PART), seed=0)
    places = {id(dialogue) for dialogue in chosen}
    learnt = [dialogue for dialogue in dialogues if id(dialogue) not in places]
    texts = {text_key(dialogue) for dialogue in learnt}
    held_out = [dialogue for dialogue in chosen if text_key(dialogue) not in texts]
    report(f"Held out {len(held_out):,} dialogues to measure what training changes")
    return learnt, held_out


def score(trainer: Any, dialogues: Sequence[Dialogue]) -> Scores:
    """Measure the trainer's model as it is; without dialogues or whole weights at hand, nothing."""
    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    pairs = [sides_of(dialogue) for dialogue in dialogues if len(dialogue.roles) > 1]
    if sharded or len(pairs) < 3 or not trainer.is_world_process_zero():
        return {}
    labelled = single_domain(dialogues)
    labels = [dialogue.domains[0] for dialogue in labelled]
    counts = Counter(labels)
    measured = labelled if len(counts) > 1 and max(counts.values()) > 1 else []
    with bfloat16_where_faster():
        vectors = vectors_of(trainer, [*(side for pair in pairs for side in pair), *measured])
    sides = vectors[: 2 * len(pairs)]
    scores = {"sides": sides_that_meet(sides[::2], sides[1::2])}
    if measured:
        scores["map"] = query_scores(vectors[len(sides) :], labels, average_precision)[0][0]
    return scores


def sides_of(dialogue: Dialogue) -> tuple[Dialogue, Dialogue]:
    """Divide a dialogue into what its first speaker says and what the others say."""
    first = dialogue.turns[0].role
    own = tuple(turn for turn in dialogue.turns if turn.role == first)
    others = tuple(turn for turn in dialogue.turns if turn.role != first)
    return Dialogue(own, dialogue.id), Dialogue(others, dialogue.id)


def sides_that_meet(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Return how often the sides of N dialogues, (N, D) each, are nearest to one another, (N,).

    A dialogue has 0, a half or 1; a side that ties with others counts as its share of them.
    """
    cosines = np.round(unit_vectors(first) @ unit_vectors(second).T, 9)
    own = np.eye(len(cosines), dtype=bool)
    recalls = [expected_recall(1, places(scores, own, ~own)) for scores in (cosines, cosines.T)]
    return np.asarray(np.mean(recalls, axis=0))


def compared(dialogues: Sequence[Dialogue], before: Scores, after: Scores) -> dict[str, Any] | None:
    """Return figures before and after in percent, and the 95 % interval of their difference.

    Without figures, return None.
    """
    if not after:
        return None
    figures: dict[str, Any] = {}
    for name, values in before.items():
        interval = mean_interval(100 * (after[name] - values), (-100.0, 100.0))
        if interval is not None:
            figures[name] = {
                "before": round(100 * values.mean(), 2),
                "after": round(100 * after[name].mean(), 2),
                "interval": [round(end, 2) for end in interval],
            }
    return {"dialogues": len(dialogues), **figures} if figures else None


def tell(facts: Mapping[str, Any], backbone: str, report: Report) -> None:
    """Report what a training changed, and warn where the encoder is worse by more than chance.

    Where dialogues have domains, these decide. Sides tell dialogues apart, which is not what they
    are about: they warn of a loss of more than a quarter.
    """
    held_out = facts.get("held_out")
    if held_out is None:
        return
    sentences = {}
    for name, words in _NAMES.items():
        if name in held_out:
            figure = held_out[name]
            sentences[name] = f"{words} {figure['after']:.1f}% (before: {figure['before']:.1f}%)"
    report(
        f"On {held_out['dialogues']:,} dialogues that were not learnt from, "
        f"{', and '.join(sentences.values())}"
    )
    name = "map" if "map" in held_out else "sides"
    least = -held_out[name]["before"] / 4 if name == "sides" else 0
    if held_out[name]["interval"][1] < least:
        logger.warning(
            "Training made the encoder worse on dialogues that were not learnt from, where %s; "
            "keep the backbone (%s), "
            "or train again with a lower learning_rate or a higher average_with_backbone",
            sentences[name],
            backbone,
        )
