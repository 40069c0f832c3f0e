"""The insights beside the map.

How dialogues end, where they loop and fork, and which are unusual.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ...storage.frames import counted
from ..flow.exports import line_of
from ..flow.flow import Flow
from ..flow.graph import END, START, State
from ..flow.paths import ends, forks, loops, rare_paths
from ..flow.step_names import shortened

MOST_ROWS = 20  # of a section
NAMED = 20  # dialogues of each row that the page has in full
LONGEST_NAME = 60  # characters of a state's name
NAMED_CONTINUATIONS = 4  # of a fork

_KINDS = (
    (
        "How dialogues end",
        "The last sign of success or failure in each conversation, or where it stops without one.",
    ),
    (
        "Loops",
        "States that dialogues go through again and again: people may not get what they ask for.",
    ),
    (
        "Forks",
        "States after which several others are likely: what is said there may be unclear, or "
        "deserve a choice.",
    ),
    (
        "Unusual dialogues",
        "Dialogues whose steps are rare among all others, the most unusual first.",
    ),
)


def insights(flow: Flow, shown: Iterable[State]) -> list[dict[str, Any]]:
    """Describe the paths of dialogues in sections of sentences; see `hf_dialemb.apps.flow.paths`.

    Forks are looked for at the shown states. Each row has a text, ids of dialogues that show it,
    the best first, how many more there are, and the `Flow.numbers` of its states.
    """

    def row(
        text: str, dialogues: Sequence[str] = (), states: Iterable[State] = ()
    ) -> dict[str, Any]:
        more = max(0, len(dialogues) - NAMED)
        numbers = [flow.numbers[state] for state in states]
        return {"text": text, "dialogues": dialogues[:NAMED], "more": more, "states": numbers}

    names = {START: "Start", END: "End"} | {
        cluster.state: _named(cluster.name) for cluster in flow.clusters
    }
    sections: list[list[dict[str, Any]]] = [[row(*words) for words in _ends(flow)], [], [], []]
    for loop in loops(flow)[:MOST_ROWS]:
        chain = " → ".join(names[state] for state in (*loop.states, loop.states[0]))
        text = (
            f"{chain}: {counted(loop.laps, 'time')} in {counted(len(loop.dialogues), 'dialogue')}"
        )
        sections[1].append(row(text, loop.dialogues, loop.states))
    for fork in forks(flow.graph, shown)[:MOST_ROWS]:
        ways = [
            f"{names[state]} {_percent(share)}"
            for state, share in fork.continuations[:NAMED_CONTINUATIONS]
        ]
        rest = len(fork.continuations) - len(ways)
        text = f"{names[fork.state]}: {', '.join(ways)}{f', and {rest} more' if rest else ''}"
        sections[2].append(row(text, (), (fork.state,)))
    for path in rare_paths(flow)[:MOST_ROWS]:
        step = " → ".join(names[state] for state in path.step)
        text = f"{_isolated(line_of(path.dialogue))}: its rarest step is {step}"
        sections[3].append(row(text, (path.dialogue,), path.step))
    pairs = zip(_KINDS, sections, strict=True)
    return [
        {"title": title, "explanation": explanation, "rows": rows}
        for (title, explanation), rows in pairs
    ]


def _ends(flow: Flow) -> list[tuple[str, tuple[str, ...], tuple[State, ...]]]:
    """Describe each way to end, with the number of dialogues and the words there.

    Failures come first.
    """
    rows: list[tuple[str, tuple[str, ...], tuple[State, ...]]] = []
    every, count = ends(flow), len(flow.utterances.dialogues)
    for kind, word in (
        ("failed", "at"),
        ("cancelled", "with"),
        ("broken off", "at"),
        ("finished", "after"),
    ):
        ways = [end for end in every if end.kind == kind]
        dialogues = tuple(name for end in ways for name in end.dialogues)
        share = f"{counted(len(dialogues), 'dialogue')}, {_percent(len(dialogues) / count)}"
        rows += [(f"{kind.capitalize()}: {share}", dialogues, ())] if len(ways) > 1 else []
        for end in ways[: MOST_ROWS // 4]:
            size = share if len(ways) == 1 else counted(len(end.dialogues), "dialogue")
            similar = " or similar" if len(end.dialogues) > 1 else ""
            text = f'{kind.capitalize()} {word} "{_named(end.text)}"{similar}: {size}'
            rows.append((text, end.dialogues, (end.state,)))
    return rows


def _named(name: str) -> str:
    return _isolated(shortened(line_of(name), LONGEST_NAME))


def _isolated(text: str) -> str:
    """Put text between marks with which its writing direction ends."""
    return f"\u2068{text}\u2069"


def _percent(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
