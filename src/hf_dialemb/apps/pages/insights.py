"""What stands beside the map: how dialogues end."""

from collections.abc import Sequence
from typing import Any

from ...display import counted
from ..flow.differences import percent
from ..flow.flow import Flow
from ..flow.graph import State
from ..flow.paths import UNREAD, ends
from ..flow.step_names import shortened
from .spreadsheets import line_of

MOST_ROWS = 5  # of each way to end
NAMED = 50  # dialogues of each row that the page has in full
LONGEST_NAME = 60  # characters of what is said
_WAYS = {"failed": "at", "cancelled": "with", "broken off": "at", "finished": "after", UNREAD: ""}


def insights(flow: Flow) -> list[dict[str, Any]]:
    """Describe each way to end in sentences, with the words there, failures first.

    Each row has a text, ids of dialogues that show it, how many more there are, and the
    `Flow.numbers` of its states. See `hf_dialemb.apps.flow.paths.ends`.
    """
    rows = []
    every = ends(flow)
    for kind, word in _WAYS.items():
        ways = [end for end in every if end.kind == kind]
        dialogues = [name for end in ways for name in end.dialogues]
        if not ways:
            continue
        title = kind[0].upper() + kind[1:]
        of_all = percent(len(dialogues) / len(flow.trajectories))
        share = f"{counted(len(dialogues), 'dialogue')}, {of_all}"
        rows.append(_row(flow, f"{title}: {share}", dialogues))
        for end in ways[: MOST_ROWS if word else 0]:
            # between marks with which the writing direction of a name ends
            name = f"\u2068{shortened(line_of(end.text), LONGEST_NAME)}\u2069"
            text = f'{title} {word} "{name}": {counted(len(end.dialogues), "dialogue")}'
            rows.append(_row(flow, text, end.dialogues, [end.state]))
    return rows


def _row(
    flow: Flow, text: str, dialogues: Sequence[str], states: Sequence[State] = ()
) -> dict[str, Any]:
    return {
        "text": text,
        "dialogues": dialogues[:NAMED],
        "more": max(0, len(dialogues) - NAMED),
        "states": [flow.numbers[state] for state in states],
    }
