"""The insights beside the map: how dialogues end, and where they loop."""

from collections.abc import Iterable, Sequence
from typing import Any

from ...display import counted
from ..flow.exports import line_of
from ..flow.flow import Flow
from ..flow.graph import State
from ..flow.paths import ends, loops
from ..flow.step_names import shortened

MOST_ROWS = 20  # of a section
NAMED = 20  # dialogues of each row that the page has in full
LONGEST_NAME = 60  # characters of a state's name

_ENDS = "The last sign of success or failure in each conversation, or where it stops without one."
_LOOPS = "States that dialogues go through again and again: people may not get what they ask for."
_WAYS = {"failed": "at", "cancelled": "with", "broken off": "at", "finished": "after"}

Row = dict[str, Any]


def insights(flow: Flow) -> list[dict[str, Any]]:
    """Describe the paths of dialogues in sections of sentences; see `hf_dialemb.apps.flow.paths`.

    Each row has a text, ids of dialogues that show it, the best first, how many more there are, and
    the `Flow.numbers` of its states.
    """
    names = {cluster.state: _named(cluster.name) for cluster in flow.clusters}
    looping = []
    for loop in loops(flow)[:MOST_ROWS]:
        chain = " → ".join(names[state] for state in (*loop.states, loop.states[0]))
        times = f"{counted(loop.laps, 'time')} in {counted(len(loop.dialogues), 'dialogue')}"
        looping.append(_row(flow, f"{chain}: {times}", loop.dialogues, loop.states))
    return [
        {"title": "How dialogues end", "explanation": _ENDS, "rows": _ends(flow)},
        {"title": "Loops", "explanation": _LOOPS, "rows": looping},
    ]


def _row(flow: Flow, text: str, dialogues: Sequence[str], states: Iterable[State] = ()) -> Row:
    more = max(0, len(dialogues) - NAMED)
    numbers = [flow.numbers[state] for state in states]
    return {"text": text, "dialogues": dialogues[:NAMED], "more": more, "states": numbers}


def _ends(flow: Flow) -> list[Row]:
    """Describe each way to end, with the number of dialogues and the words there.

    Failures come first.
    """
    rows = []
    every, count = ends(flow), len(flow.utterances.dialogues)
    for kind, word in _WAYS.items():
        ways = [end for end in every if end.kind == kind]
        dialogues = tuple(name for end in ways for name in end.dialogues)
        if not ways:
            continue
        share = f"{counted(len(dialogues), 'dialogue')}, {_percent(len(dialogues) / count)}"
        rows.append(_row(flow, f"{kind.capitalize()}: {share}", dialogues))
        for end in ways[: MOST_ROWS // 4]:
            size = counted(len(end.dialogues), "dialogue")
            text = f'{kind.capitalize()} {word} "{_named(end.text)}": {size}'
            rows.append(_row(flow, text, end.dialogues, (end.state,)))
    return rows


def _named(name: str) -> str:
    return _isolated(shortened(line_of(name), LONGEST_NAME))


def _isolated(text: str) -> str:
    """Put text between marks with which its writing direction ends."""
    return f"\u2068{text}\u2069"


def _percent(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
