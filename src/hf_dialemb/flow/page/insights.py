"""Tell the insights beside the map: how dialogues end, where they loop and fork, and which are unusual."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...runs.frames import counted
from ..exports import line_of
from ..flow import Flow
from ..graph import END, START, State
from ..naming import shortened
from ..paths import End, ends, forks, loops, rare_paths
from .page import Row, Section

MOST_ROWS = 20  # of a section
LONGEST_NAME = 60  # characters of a state's name
NAMED_CONTINUATIONS = 4  # of a fork

_KINDS = (
    ("How dialogues end", "The last sign of success or failure in each conversation, or where it stops without one."),
    ("Loops", "States that dialogues go through again and again: people may not get what they ask for."),
    ("Forks", "States after which several others are likely: what is said there may be unclear, or deserve a choice."),
    ("Unusual dialogues", "Dialogues whose steps are rare among all others, the most unusual first."),
)


def insights(flow: Flow, shown: Collection[State] | None = None) -> tuple[Section, ...]:
    """Describe the paths of dialogues in sentences; see `hf_dialemb.flow.paths`.

    Forks are looked for at the shown states, or at all.
    """
    names = {START: "Start", END: "End"} | {cluster.state: _named(cluster.name) for cluster in flow.clusters}
    states = [state for state in (names if shown is None else shown) if state not in (START, END)]
    rows: list[list[Row]] = [_ends(ends(flow)), [], [], []]
    for loop in loops(flow)[:MOST_ROWS]:
        chain = _chain(names, (*loop.states, loop.states[0]))
        text = f"{chain}: {counted(loop.laps, 'time')} in {counted(len(loop.dialogues), 'dialogue')}"
        rows[1].append(Row(text, loop.dialogues, loop.states))
    for fork in forks(flow.graph, states)[:MOST_ROWS]:
        ways = [f"{names[state]} {_percent(share)}" for state, share in fork.continuations[:NAMED_CONTINUATIONS]]
        rest = len(fork.continuations) - len(ways)
        text = f"{names[fork.state]}: {', '.join(ways)}{f', and {rest} more' if rest else ''}"
        rows[2].append(Row(text, (), (fork.state,)))
    for path in rare_paths(flow, MOST_ROWS):
        text = f"{_isolated(line_of(path.dialogue))}: its rarest step is {_chain(names, path.step)}"
        rows[3].append(Row(text, (path.dialogue,), path.step))
    return tuple(Section(*words, tuple(of_kind)) for words, of_kind in zip(_KINDS, rows, strict=True))


def _ends(every: Sequence[End]) -> list[Row]:
    """Describe each way to end, with the number of dialogues and the words there; failures come first."""
    rows, count = [], sum(len(end.dialogues) for end in every)
    for kind, word in (("failed", "at"), ("cancelled", "with"), ("broken off", "at"), ("finished", "after")):
        ways = [end for end in every if end.kind == kind]
        dialogues = tuple(name for end in ways for name in end.dialogues)
        share = f"{counted(len(dialogues), 'dialogue')}, {_percent(len(dialogues) / count)}"
        rows += [Row(f"{kind.capitalize()}: {share}", dialogues)] if len(ways) > 1 else []
        for end in ways[: MOST_ROWS // 4]:
            size = share if len(ways) == 1 else counted(len(end.dialogues), "dialogue")
            similar = " or similar" if len(end.dialogues) > 1 else ""
            text = f'{kind.capitalize()} {word} "{_named(end.text)}"{similar}: {size}'
            rows.append(Row(text, end.dialogues, (end.state,)))
    return rows


def _named(name: str) -> str:
    return _isolated(shortened(line_of(name), LONGEST_NAME))


def _isolated(text: str) -> str:
    """Put text between marks with which its writing direction ends."""
    return f"\u2068{text}\u2069"


def _chain(names: Mapping[State, str], states: Sequence[State]) -> str:
    return " → ".join(names[state] for state in states)


def _percent(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
