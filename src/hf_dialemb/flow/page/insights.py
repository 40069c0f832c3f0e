"""What the page tells beside the map: how dialogues end, where they go round, fork, and which are unusual."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...runs.frames import counted
from ..exports import line_of
from ..flow import Flow
from ..graph import END, START, State
from ..naming import shortened
from ..paths import End, Fork, Loop, RarePath, ends, forks, loops, rare_paths
from .page import Row, Section

MOST_ROWS = 20  # so many things of one kind are told
LONGEST_NAME = 60  # so much of a state's name is told
NAMED_CONTINUATIONS = 4  # so many continuations of a fork are named

Names = Mapping[State, str]
"""What states are called."""

_KINDS = (
    ("How dialogues end", "The last sign of success or failure in each conversation, or where it stops without one."),
    ("Loops", "States that dialogues go through again and again: people may not get what they ask for."),
    ("Forks", "States after which several others are likely: what is said there may be unclear, or deserve a choice."),
    ("Unusual dialogues", "Dialogues whose steps are rare among all others, the most unusual first."),
)


def insights(flow: Flow, shown: Collection[State] | None = None) -> tuple[Section, ...]:
    """Tells what the paths of dialogues show, in sentences; see `hf_dialemb.flow.paths` for what each is.

    Forks are looked for at the states that are given, such as those of a pruned graph, or at all. A kind that does not
    occur has no rows.
    """
    names = {START: "Start", END: "End"} | {cluster.state: _named(cluster.name) for cluster in flow.clusters}
    states = [state for state in (names if shown is None else shown) if state not in (START, END)]
    rows = (
        _ends(ends(flow)),
        [_loop(names, one) for one in loops(flow)[:MOST_ROWS]],
        [_fork(names, one) for one in forks(flow.graph, states)[:MOST_ROWS]],
        [_rare_path(names, one) for one in rare_paths(flow, MOST_ROWS)],
    )
    return tuple(Section(*words, tuple(told)) for words, told in zip(_KINDS, rows, strict=True))


def _ends(found: Sequence[End]) -> list[Row]:
    """Tells of each way to end how many dialogues have it, and what one says there; those that failed come first."""
    rows, count = [], sum(len(end.dialogues) for end in found)
    for kind, word in (("failed", "at"), ("cancelled", "with"), ("broken off", "at"), ("finished", "after")):
        ways = [end for end in found if end.kind == kind]
        dialogues = tuple(name for end in ways for name in end.dialogues)
        share = f"{counted(len(dialogues), 'dialogue')}, {_percent(len(dialogues) / count)}"
        rows += [Row(f"{kind.capitalize()}: {share}", dialogues)] if len(ways) > 1 else []
        for end in ways[: MOST_ROWS // 4]:
            told = share if len(ways) == 1 else counted(len(end.dialogues), "dialogue")
            similar = " or similar" if len(end.dialogues) > 1 else ""
            rows.append(
                Row(f'{kind.capitalize()} {word} "{_named(end.said)}"{similar}: {told}', end.dialogues, (end.state,))
            )
    return rows


def _loop(names: Names, one: Loop) -> Row:
    round_trip = _chain(names, (*one.states, one.states[0]))
    text = f"{round_trip}: {counted(one.laps, 'time')} in {counted(len(one.dialogues), 'dialogue')}"
    return Row(text, one.dialogues, one.states)


def _fork(names: Names, one: Fork) -> Row:
    told = [f"{names[state]} {_percent(share)}" for state, share in one.continuations[:NAMED_CONTINUATIONS]]
    rest = len(one.continuations) - len(told)
    return Row(f"{names[one.state]}: {', '.join(told)}{f', and {rest} more' if rest else ''}", (), (one.state,))


def _rare_path(names: Names, one: RarePath) -> Row:
    text = f"{_isolated(line_of(one.dialogue))}: its rarest step is {_chain(names, one.step)}"
    return Row(text, (one.dialogue,), one.step)


def _named(name: str) -> str:
    return _isolated(shortened(line_of(name), LONGEST_NAME))


def _isolated(text: str) -> str:
    """Puts text between marks for which the direction of its writing ends with it."""
    return f"\u2068{text}\u2069"


def _chain(names: Names, states: Sequence[State]) -> str:
    return " → ".join(names[state] for state in states)


def _percent(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
