"""Retrieval by the turns of one speaker (dial2vec, section 5.3.1).

A dialogue encoder of this package reads the whole dialogue, and gives the mean of each speaker's
tokens. Any other encoder is given what one speaker says alone.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ...encoders import Encoder
from ...evaluation.results.rows import Row
from ...evaluation.tasks.domains import load_domains
from ...evaluation.tasks.task import CorpusPart, Problem, ask_encoder, item_percentage
from ...metrics.vectors import average_precision, query_scores

SPEAKERS = ("first speaker", "second speaker")  # the settings; the first starts the conversation


def load_ablations(part: CorpusPart) -> Problem:
    """Load the single-domain dialogues of two speakers of a corpus."""
    whole = load_domains(part)
    kept = [row for row, dialogue in enumerate(whole.dialogues) if len(dialogue.roles) == 2]
    dialogues = [whole.dialogues[row] for row in kept]
    labels = [whole.labels[row] for row in kept]
    if len(set(labels)) < 2 or len(set(labels)) == len(labels):
        raise part.error(
            f"got {len(labels)} dialogues of two speakers with {len(set(labels))} distinct labels, "
            "expected at least two labels and two dialogues of one of them; choose another corpus"
        )

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        rows = []
        for setting, vectors in speaker_vectors(encoder, dialogues).items():
            (precision,), _ = query_scores(vectors, labels, average_precision)
            rows.append(item_percentage("dialogue-retrieval", "map", setting, precision))
        return rows

    return Problem({**whole.config, "dialogues": len(labels), "labels": len(set(labels))}, measure)


def speaker_vectors(
    encoder: Encoder, dialogues: Sequence[Dialogue]
) -> Mapping[str, NDArray[np.float32]]:
    """Embed both speakers of N dialogues: by setting one vector per dialogue, ``(N, D)``."""
    vectors = ask_encoder(encoder, "encode_speakers", lambda encode: encode(dialogues))
    if vectors is not None:
        rows = np.arange(len(dialogues))
        return {
            setting: vectors[rows, [ROLES.index(dialogue.roles[place]) for dialogue in dialogues]]
            for place, setting in enumerate(SPEAKERS)
        }
    parts = [
        Dialogue(tuple(turn for turn in dialogue.turns if turn.role == dialogue.roles[place]))
        for place in (0, 1)
        for dialogue in dialogues
    ]
    # in one call, for encoders that are fitted on what they encode
    return dict(zip(SPEAKERS, np.split(encoder.encode(parts), 2), strict=True))
