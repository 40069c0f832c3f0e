"""Analyse the paths of dialogues: the main one, forks, loops, ends, and unusual ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log2
from statistics import median
from typing import Literal, cast, get_args

from ...dialogue import ROLES
from . import outcomes
from .flow import Flow
from .graph import END, START, Edge, FlowGraph, State, TransitionModel, steps_of

LIKELY = 0.2  # a state forks where at least two states follow it with this share
LONGEST_LOOP = 3  # states of a loop at most
_SEVERAL = 0.05
# the weight of what others say in the main path; chosen on dev splits, by the domains of the
# dialogue
_OTHERS = 0.3
_FINISHING = (
    0.25  # where a smaller share of dialogues finish, the main path may be one that does not
)
# the least share of endings at a state, and its least count, for dialogues to end there
_USUAL, _OFTEN = (0.5, 5)

Kind = Literal["failed", "cancelled", "broken off", "finished"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOTHING = "nothing"  # what a state says of the end if a person takes back that it says anything


@dataclass(frozen=True)
class TypicalPath:
    """The main path: that of the dialogue whose states most others come through."""

    dialogue: str  # its id
    states: tuple[State, ...]  # different ones, in order
    texts: tuple[str, ...]  # its words in each
    turns: tuple[int, ...]  # the turns of these texts, counted from 0; others are left out
    steps: frozenset[Edge]  # all of its transitions, from `START` to `END`

    def with_gaps(self, lines: Iterable[str], gap: str) -> Iterator[str]:
        """Yield a line for each step, and ``gap`` where turns are left out between two of them."""
        before = self.turns[0] - 1
        for turn, line in zip(self.turns, lines, strict=True):
            if turn > before + 1:
                yield gap
            yield line
            before = turn


@dataclass(frozen=True)
class Fork:
    """A state after which dialogues go several ways."""

    state: State  # `START` for how dialogues begin
    entropy: float  # of what follows, in bits
    continuations: tuple[tuple[State, float], ...]  # with their shares, the most frequent first


@dataclass(frozen=True)
class Loop:
    """States that dialogues go through again and again."""

    states: tuple[State, ...]  # in order, one to three; the last is followed by the first
    laps: int  # how often dialogues came back to where they entered it
    dialogues: tuple[str, ...]  # their ids, those with the most laps first


@dataclass(frozen=True)
class End:
    """Dialogues that end alike."""

    kind: Kind
    state: State  # that of the last failure or success; without these, the last one
    dialogues: tuple[str, ...]  # their ids
    text: str  # its words in the first of them


@dataclass(frozen=True)
class RarePath:
    """A dialogue that goes another way than the others."""

    dialogue: str  # its id
    bits: float  # the mean of -log2 of the probabilities of its transitions; high is unusual
    step: Edge  # its rarest transition


def typical_path(flow: Flow) -> TypicalPath:
    """Return the path of the dialogue whose states most others come through, without rare states.

    Two shares make a dialogue typical: that of the dialogues which come through its states, and
    that of the states of all dialogues, counted once a dialogue, which are its own. Their weighted
    harmonic mean decides, and the first weighs more, as few others share the states of a dialogue
    about two things. It has more than half as many states as the median. Dialogues that finish come
    first (see `ends`), unless hardly any do; and those that finish with something done, where most
    do. States of a single dialogue, or of less than `_SEVERAL` of all, are not shown. Thanks and
    goodbyes are shown at the end alone.
    """
    through = Counter(state for trajectory in flow.trajectories for state in set(trajectory))
    names = flow.utterances.dialogues
    preferred = _preferred(flow)
    least, usual = (
        max(2, _SEVERAL * len(names)),
        median(len(set(trajectory)) for trajectory in flow.trajectories),
    )
    shown = {state for state, count in through.items() if count >= least} or set(through)

    def typical(row: int) -> tuple[bool, bool, float]:
        states = set(flow.trajectories[row])
        visits = sum(through[state] for state in states)
        shared, covered = visits / (len(states) * len(names)), visits / through.total()
        weighted = _OTHERS**2 * shared + covered
        fits = 2 * len(states) > usual and not states.isdisjoint(shown)
        return (
            fits,
            names[row] in preferred,
            round((1 + _OTHERS**2) * shared * covered / weighted, 9),
        )

    best = max(range(len(names)), key=typical)
    trajectory, rows = flow.trajectories[best], flow.utterances.rows_of(best)
    turns = [turn for turn, state in enumerate(trajectory) if state in shown]
    ending = {
        turn for turn in turns if outcomes.says_only_over(flow.by_state[trajectory[turn]].name)
    }
    last = max((turn for turn in turns if turn not in ending), default=-1)
    first = {
        trajectory[turn]: turn for turn in reversed(turns) if turn <= last and turn not in ending
    }
    # the last goodbye of each state
    closing = {trajectory[turn]: turn for turn in turns if turn > last}
    kept = sorted((*first.values(), *closing.values()))
    states, texts = (
        tuple(trajectory[turn] for turn in kept),
        tuple(flow.utterances.texts[rows[turn]] for turn in kept),
    )
    return TypicalPath(names[best], states, texts, tuple(kept), frozenset(steps_of(trajectory)))


def _preferred(flow: Flow) -> set[str]:
    """Return the dialogues that the main path is taken from, by name; empty where any will do."""
    count, finished = (
        len(flow.utterances.dialogues),
        [end for end in ends(flow) if end.kind == "finished"],
    )
    done = {name for end in finished if outcomes.says_done(end.text) for name in end.dialogues}
    if 2 * len(done) > count:
        return done
    names = {name for end in finished for name in end.dialogues}
    return names if len(names) >= _FINISHING * count else set()


def forks(graph: FlowGraph, states: Iterable[State]) -> list[Fork]:
    """List the states, and the start, after which at least two others have a share of `LIKELY`, by
    falling entropy.
    """
    result = []
    for state in dict.fromkeys((START, *states)):
        following = graph.following.get(state, Counter[State]())
        ordered = sorted(following, key=lambda target: (-following[target], target))
        shares = tuple((target, graph.shares[state, target]) for target in ordered)
        if sum(share >= LIKELY for _, share in shares) > 1:
            result.append(Fork(state, -sum(share * log2(share) for _, share in shares), shares))
    return sorted(result, key=lambda fork: (-fork.entropy, fork.state))


def loops(flow: Flow) -> list[Loop]:
    """List the loops of one to `LONGEST_LOOP` states by falling number of laps.

    ``a b a b a`` is two laps.
    """
    laps: dict[tuple[State, ...], Counter[str]] = defaultdict(Counter)
    for dialogue, trajectory in zip(flow.utterances.dialogues, flow.trajectories, strict=True):
        for length in range(1, LONGEST_LOOP + 1):
            for states, times in _repeated(trajectory, length):
                laps[states][dialogue] += times
    result = [
        Loop(states, counts.total(), tuple(name for name, _ in counts.most_common()))
        for states, counts in laps.items()
    ]
    return sorted(result, key=lambda loop: (-loop.laps, len(loop.states), loop.states))


def _repeated(trajectory: Sequence[State], length: int) -> Iterator[tuple[tuple[State, ...], int]]:
    """Yield the loops of a length in a trajectory, from their first state by name, with their
    number of laps.
    """
    again = [
        trajectory[place] == trajectory[place + length] for place in range(len(trajectory) - length)
    ]
    place = 0
    for repeats, stretch in groupby(again):
        size = len(list(stretch))
        states = tuple(trajectory[place : place + length])
        if repeats and len(set(states)) == length:
            first = states.index(min(states))
            yield states[first:] + states[:first], (size + length - 1) // length
        place += size


def ends(flow: Flow) -> list[End]:
    """List how dialogues end, by English words (see `hf_dialemb.apps.flow.outcomes`).

    The most frequent end first.

    The last outcome that anybody but the user reports decides: it failed, or it is done and the
    dialogue is finished. A failure is passed over where other information comes afterwards. Where
    something is only missing, as parking at a hotel, it is also passed over where something was
    done before. Where nothing decides, a dialogue finishes with thanks and goodbyes or at a state
    where most end; else it broke off. Nothing is finished by what was done before an open question,
    a misunderstanding, or the user's "never mind", with which it is cancelled.

    ``kinds`` of the flow's settings are a person's corrections: what a state says of the end, by
    one of its texts.
    """
    given = _corrected(flow)
    dialogues: dict[tuple[Kind, State], list[tuple[str, str]]] = defaultdict(list)
    utterances = flow.utterances
    for number, (name, trajectory) in enumerate(
        zip(utterances.dialogues, flow.trajectories, strict=True)
    ):
        texts = [utterances.texts[row] for row in utterances.rows_of(number)]
        last = trajectory[-1]
        usual = (
            flow.graph.states[last] >= _OFTEN and flow.graph.shares.get((last, END), 0.0) >= _USUAL
        )
        corrections = [given.get(state, "") for state in trajectory]
        kind, turn = end_of([role for role, _ in trajectory], texts, usual, corrections)
        dialogues[kind, trajectory[turn]].append((name, texts[turn]))
    listed = [
        End(*way, tuple(name for name, _ in pairs), pairs[0][1]) for way, pairs in dialogues.items()
    ]
    return sorted(listed, key=lambda end: (-len(end.dialogues), end.kind, end.state))


def _corrected(flow: Flow) -> dict[State, str]:
    """Return the kinds of states that a person corrected."""
    kinds, states = flow.settings.get("kinds") or {}, [cluster.state for cluster in flow.clusters]
    pairs = zip(flow.utterances.texts, flow.labels.tolist(), strict=True) if kinds else ()
    return {states[label]: kinds[text] for text, label in pairs if text in kinds}


def end_of(
    roles: Sequence[str], texts: Sequence[str], usual: bool = False, kinds: Sequence[str] = ()
) -> tuple[Kind, int]:
    """Return how a dialogue ends, and the turn that decides it, by who says what in each turn.

    See `ends`.

    ``usual`` says that dialogues usually end with the last turn. ``kinds`` is what each turn says
    of the end if a person corrected it: a `Kind` or ``nothing``; else empty.
    """
    if any(kinds):
        last = max(
            (turn for turn, kind in enumerate(kinds) if kind not in ("", NOTHING)), default=-1
        )
        masked = ["" if kind else text for text, kind in zip(texts, kinds, strict=True)]
        kind, turn = end_of(roles, masked, usual and kinds[-1] != NOTHING)
        decided = last < turn < len(texts) - 1 or kind in ("failed", "cancelled")
        return (
            (kind, turn)
            if last < 0 or (turn > last and decided)
            else (cast(Kind, kinds[last]), last)
        )
    others = [turn for turn, role in enumerate(roles) if role != ROLES[0]]
    latest = max((turn for turn in others if outcomes.says_something(texts[turn])), default=-1)
    done = next((turn for turn in others if outcomes.says_done(texts[turn])), len(texts))

    def decides(turn: int) -> bool:
        if outcomes.says_failed(texts[turn]):
            return turn >= latest if outcomes.says_tried(texts[turn]) else latest < turn < done
        return outcomes.says_done(texts[turn])

    # others ask after thanks whether there is anything else
    over = any(map(outcomes.says_over, texts[-2:]))
    asked = texts[-1].rstrip().endswith("?") and (roles[-1] == ROLES[0] or not over)
    withdrawn = outcomes.withdrawal(roles, texts)
    is_open = asked or withdrawn is not None or outcomes.says_unclear(texts[-1])
    deciding = max(filter(decides, others), default=-1)
    failed = deciding >= 0 and outcomes.says_failed(texts[deciding])
    if failed or (deciding >= 0 and (not is_open or deciding == len(texts) - 1)):
        return "failed" if failed else "finished", deciding
    if withdrawn is not None:
        return "cancelled", withdrawn
    return "finished" if (usual or over) and not is_open else "broken off", len(texts) - 1


def rare_paths(flow: Flow) -> list[RarePath]:
    """List dialogues by how unlikely their transitions are on average, the most unusual first.

    A dialogue is judged by the transitions of all others (see
    `hf_dialemb.apps.flow.graph.TransitionModel`). By its own, a way that no other takes would be
    certain.
    """
    model = TransitionModel([*flow.graph.states, END])
    paths = [steps_of(states) for states in flow.trajectories]
    for path in paths:
        model.count(path)
    result = []
    for dialogue, path in zip(flow.utterances.dialogues, paths, strict=True):
        model.count(path, -1)
        probabilities = [model.probability((source,), target) for source, target in path]
        model.count(path)
        bits = -sum(map(log2, probabilities)) / len(path)
        result.append(RarePath(dialogue, bits, path[probabilities.index(min(probabilities))]))
    return sorted(result, key=lambda path: (-path.bits, path.dialogue))
