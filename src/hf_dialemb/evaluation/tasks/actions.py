"""Similarity of actions (Dialog2Flow, section 5.1): do utterances that do the same lie together?

An action is a turn's dialogue acts and slots in the unified form. The paper draws 15 utterances for
each action and takes 1 or 5 of them as examples; all others are classified by the nearest mean of
examples.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import cosine_similarity

from ...data.labels import unified_turn
from ...dialogue import Dialogue, Turn
from ...encoders import Encoder
from ...metrics.anisotropy import anisotropy
from ...metrics.ndcg import ndcg, official_ndcg
from ..results.rows import Row
from .intents import by_prototypes
from .sampling import SHOTS, draw_examples, running_totals
from .task import CorpusPart, Problem, percentage

NAME = "action-similarity"

PER_ACTION = 15  # how many utterances of each action are drawn; actions with fewer are left out
RANKS = 10  # how many ranks count in nDCG

_MARGIN = (
    5  # the program leaves labels out that have fewer than five utterances besides the examples
)


def load_actions(part: CorpusPart) -> Problem:
    """Load utterances and their actions.

    Those of a corpus of utterances are taken as they are, with their intents for actions: so does
    the paper's own set (the corpus dialog2flow_evaluation) give them. Of a corpus of dialogues,
    every text is taken once, with the action that it has most often, and `PER_ACTION` texts are
    drawn for every action that has as many.
    """
    ready = part.kind == "utterances"
    loaded = part.dialogues()
    if ready:
        first = [dialogue.turns[0] for dialogue in loaded]
        every = [(turn.content, turn.intents[0]) for turn in first if turn.intents]
    else:
        every = draw_actions(loaded)
    totals = running_totals(Counter(action for _, action in every))
    # whole actions
    pairs = [pair for pair in every if part.limit is None or totals[pair[1]] <= part.limit]
    part.is_cut = len(pairs) < len(every)
    labels = [label for _, label in pairs]
    if len(set(labels)) < 2:
        raise part.error(
            f"got {len(set(labels))} actions with {PER_ACTION} distinct utterances, expected at "
            "least two; give turns "
            "dialogue acts and slots, add dialogues or raise the limit"
        )
    dialogues = [Dialogue((Turn("user", text),)) for text, _ in pairs]
    config = {
        "utterances": len(dialogues),
        "labels": len(set(labels)),
        "examples_from": part.split,
        "drawn_per_action": None if ready else PER_ACTION,
        "shots": list(SHOTS),
        "ranks": RANKS,
    }

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        return compare_actions(
            encoder.encode_utterances([text for text, _ in pairs]), labels, seeds
        )

    return Problem(config, measure, dialogues, labels)


def draw_actions(dialogues: Iterable[Dialogue]) -> list[tuple[str, str]]:
    """Draw `PER_ACTION` texts, always the same, of each action that has as many.

    Pairs of both, sorted by action.
    """
    actions: dict[str, Counter[str]] = defaultdict(Counter)
    for dialogue in dialogues:
        for turn in map(unified_turn, dialogue.turns):
            if turn.action and turn.text:
                actions[turn.text][turn.action] += 1
    texts: dict[str, list[str]] = defaultdict(list)
    for text, counts in actions.items():
        texts[min(counts, key=lambda action: (-counts[action], action))].append(text)
    generator = np.random.default_rng(0)
    return [
        (texts[action][row], action)
        for action in sorted(texts)
        if len(texts[action]) >= PER_ACTION
        for row in np.sort(generator.choice(len(texts[action]), PER_ACTION, replace=False))
    ]


def compare_actions(
    embeddings: NDArray[Any], labels: Sequence[str], seeds: Sequence[int] = range(10)
) -> list[Row]:
    """Classify utterances by few examples of each action, rank them, and measure anisotropy."""
    names = np.array(labels)
    results = []
    ranked = []
    for shots in SHOTS:
        repeats = draw_repeats(names, shots, seeds)
        if shots == 1:
            ranked = [_ranking(embeddings, names, *repeat) for repeat in repeats]
        results += by_prototypes(
            NAME, {"f1": "macro_f1", "accuracy": "accuracy"}, embeddings, names, repeats, shots
        )
    for setting, values in zip(("", "official"), zip(*ranked, strict=True), strict=True):
        results.append(percentage(NAME, f"ndcg{RANKS}", setting, values))
    spread = anisotropy(embeddings, names)
    return results + [Row(task=NAME, metric=metric, mean=mean) for metric, mean in spread.items()]


def draw_repeats(
    names: NDArray[Any], shots: int, seeds: Sequence[int]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Draw for each seed the rows of ``shots`` examples of each action, and of the queries."""
    rows = np.arange(len(names))
    repeats = []
    for seed in seeds:
        generator = np.random.default_rng([seed, shots])
        drawn = draw_examples(names, rows, shots, max(2 * shots, shots + _MARGIN), generator)
        repeats.append(
            (drawn, np.flatnonzero(np.isin(names, names[drawn]) & ~np.isin(rows, drawn)))
        )
    return repeats


def _ranking(
    embeddings: NDArray[Any],
    names: NDArray[Any],
    drawn: NDArray[np.intp],
    queries: NDArray[np.intp],
) -> tuple[float, float]:
    every = np.concatenate([queries, drawn])
    cosines = cosine_similarity(
        embeddings[drawn].astype(np.float64), embeddings[every].astype(np.float64)
    )
    relevant = names[drawn][:, None] == names[every]
    own = (np.arange(len(drawn)), len(queries) + np.arange(len(drawn)))
    # a query is no candidate of its own
    cosines[own] = -2
    relevant[own] = False
    # The program leaves the examples of the other actions out of the candidates as well.
    return ndcg(cosines, relevant, RANKS), official_ndcg(
        cosines[:, : len(queries)], relevant[:, : len(queries)], RANKS
    )
