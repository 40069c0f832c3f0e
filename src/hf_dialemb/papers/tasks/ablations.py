"""dial2vec's ablations (sections 5.3.1 and 5.3.2).

The speakers one by one, and how they are put together.

The tasks are those of the benchmark, on the dialogues of two speakers. A dialogue encoder of this
package reads the whole dialogue, and gives the mean of each speaker's tokens, their sum (equation
4), and the mean of all tokens. Any other encoder has no such parts: it is given what one speaker
says alone, and the sum and the mean of all are left out.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.domains import load_domains
from ...evaluation.tasks.task import CorpusPart, Problem, ask_encoder, item_percentage, percentage
from ...metrics.purity import cluster_purity
from ...metrics.semantic_relatedness import binary_spearman
from ...metrics.vectors import average_precision, query_scores

FIRST, SECOND = "first speaker", "second speaker"
# the settings; the first speaker is who starts the conversation
SUM, MEAN = ("sum of speakers", "mean of all tokens")


def load_ablations(part: CorpusPart) -> Problem:
    """Load the single-domain dialogues of two speakers of a corpus, to be told apart by parts of
    them.
    """
    whole = load_domains(part)
    kept = [row for row, dialogue in enumerate(whole.dialogues) if len(dialogue.roles) == 2]
    dialogues, labels = [whole.dialogues[row] for row in kept], [whole.labels[row] for row in kept]
    if len(set(labels)) < 2 or len(set(labels)) == len(labels):
        raise part.error(
            f"got {len(labels)} dialogues of two speakers with {len(set(labels))} distinct labels, "
            "expected at least "
            "two labels and two dialogues of one of them; choose another corpus"
        )

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        results = views(encoder, dialogues).items()
        return [
            row for setting, vectors in results for row in _figures(setting, vectors, labels, seeds)
        ]

    return Problem({**whole.config, "dialogues": len(labels), "labels": len(set(labels))}, measure)


def views(encoder: Encoder, dialogues: Sequence[Dialogue]) -> Mapping[str, NDArray[np.float32]]:
    """Embed parts of dialogues: by setting one vector per dialogue, ``(N, D)``."""
    results = ask_encoder(
        encoder, "encode_speakers", lambda encode_speakers: encode_speakers(dialogues)
    )
    if results is None:
        parts = []
        for role, dialogue in [(item.roles[place], item) for place in (0, 1) for item in dialogues]:
            parts.append(Dialogue(tuple(turn for turn in dialogue.turns if turn.role == role)))
        # in one call, for encoders that are fitted on what they encode
        vectors = encoder.encode(parts)
        return {FIRST: vectors[: len(dialogues)], SECOND: vectors[len(dialogues) :]}
    speakers, tokens = results
    rows = np.arange(len(dialogues))
    first, second = (
        np.array([ROLES.index(dialogue.roles[place]) for dialogue in dialogues]) for place in (0, 1)
    )
    shares = tokens / tokens.sum(axis=1, keepdims=True)
    return {
        FIRST: speakers[rows, first],
        SECOND: speakers[rows, second],
        SUM: speakers.sum(axis=1),
        MEAN: np.einsum("nr,nrd->nd", shares, speakers).astype(np.float32),
    }


def _figures(
    setting: str, vectors: NDArray[np.float32], labels: Sequence[str], seeds: Sequence[int]
) -> list[Row]:
    (precision, spearman), _ = query_scores(vectors, labels, average_precision, binary_spearman)
    purities = cluster_purity(vectors, labels, list(seeds))["purity"]
    return [
        percentage("domain-categorization", "purity", setting, purities),
        item_percentage(
            "semantic-relatedness", "spearman", f"per-query, {setting}", np.nan_to_num(spearman)
        ),
        item_percentage("dialogue-retrieval", "map", setting, precision),
    ]
