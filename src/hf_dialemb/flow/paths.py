"""What the paths of dialogues tell: the main one, forks, loops, how dialogues end, and which are unusual."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log2
from statistics import median
from typing import Literal

from ..dialogue import ROLES
from .flow import Flow
from .graph import END, START, FlowGraph, State, TransitionModel, steps_of
from .outcomes import (
    says_done,
    says_failed,
    says_only_over,
    says_over,
    says_something,
    says_tried,
    says_unclear,
    withdrawal,
)

LIKELY = 0.2  # a state forks where at least two states follow it so often, as shares of what follows
LONGEST_LOOP = 3  # so many states a loop has at most
_SEVERAL = 0.05
_OTHERS = 0.3  # so much weighs what others say in the main path; chosen on dev splits, by the domains of the dialogue
_FINISHING = 0.25  # where a smaller share of dialogues finish, the main path may be one of those that do not
_USUAL, _OFTEN = 0.5, 5  # of the times that a state occurs, so many at least, dialogues end there so often


Kind = Literal["failed", "cancelled", "broken off", "finished"]


@dataclass(frozen=True)
class TypicalPath:
    """The main path: that of the dialogue whose states most others come through."""

    dialogue: str  # its id
    states: tuple[State, ...]  # where it comes, each once, in order
    texts: tuple[str, ...]  # what it says there
    turns: tuple[int, ...]  # which turns these are, counted from 0; where others lie between, they are left out
    steps: frozenset[tuple[State, State]]  # all of its transitions, from `START` to `END`


@dataclass(frozen=True)
class Fork:
    """A state after which dialogues go several ways."""

    state: State  # `START` for how dialogues begin
    count: int  # how often something follows it
    entropy: float  # of what follows, in bits; the higher, the harder to tell
    continuations: tuple[tuple[State, float], ...]  # with shares of the count, the most frequent first; perhaps `END`


@dataclass(frozen=True)
class Loop:
    """States that dialogues go through again and again."""

    states: tuple[State, ...]  # in order, one to three; the last is followed by the first
    laps: int  # how often dialogues came back to where they entered it
    dialogues: tuple[str, ...]  # the ids of these dialogues, those with the most laps first


@dataclass(frozen=True)
class End:
    """Dialogues that end alike."""

    kind: Kind
    state: State  # where it was said last that something failed or was done; without that, where they end
    dialogues: tuple[str, ...]  # their ids
    said: str  # what was said there in the first of them


@dataclass(frozen=True)
class RarePath:
    """A dialogue that goes another way than the others."""

    dialogue: str  # its id
    bits: float  # the mean of -log2 of the probabilities of its transitions; the higher, the more unusual
    step: tuple[State, State]  # its rarest transition
    place: int  # of the turn that this leads to, counted from 0; the number of turns for its end
    probability: float  # of that transition, in (0, 1]


def typical_path(flow: Flow) -> TypicalPath:
    """Finds the dialogue whose states most others come through, and its path through states that are not rare.

    Two shares make a dialogue typical: that of dialogues which come through one of its states, and that of states of
    all dialogues, each counted once a dialogue, which are states of its own. Their weighted harmonic mean (F-measure)
    decides, in which the first weighs more: a dialogue about two things has states of both, and few others share them.
    It has more than half as many states as the median, or who only greets would be the most typical; of such dialogues
    those that finish (see `ends`) come first, unless hardly any do; where most say at their end that something is done,
    it is one of these. Not shown are states that a single dialogue, or less than `_SEVERAL` of all, come through.
    Thanks and goodbyes are told at the end alone.
    """
    through = Counter(state for trajectory in flow.trajectories for state in set(trajectory))
    names = flow.utterances.dialogues
    preferred = _preferred(flow)
    least, usual = max(2, _SEVERAL * len(names)), median(len(set(trajectory)) for trajectory in flow.trajectories)
    shown = {state for state, count in through.items() if count >= least} or set(through)

    def typical(row: int) -> tuple[bool, bool, float]:
        states = set(flow.trajectories[row])
        visits = sum(through[state] for state in states)
        shared, covered = visits / (len(states) * len(names)), visits / through.total()
        weighted = _OTHERS**2 * shared + covered
        fits = 2 * len(states) > usual and not states.isdisjoint(shown)
        return fits, names[row] in preferred, round((1 + _OTHERS**2) * shared * covered / weighted, 9)

    best = max(range(len(names)), key=typical)
    trajectory, rows = flow.trajectories[best], flow.utterances.rows_of(best)
    turns = [turn for turn, state in enumerate(trajectory) if state in shown]
    ending = {turn for turn in turns if says_only_over(flow.by_state[trajectory[turn]].name)}
    last = max((turn for turn in turns if turn not in ending), default=-1)
    first = {trajectory[turn]: turn for turn in reversed(turns) if turn <= last and turn not in ending}
    closing = {trajectory[turn]: turn for turn in turns if turn > last}  # of a goodbye, the last
    told = sorted((*first.values(), *closing.values()))
    states, texts = tuple(trajectory[turn] for turn in told), tuple(flow.utterances.texts[rows[turn]] for turn in told)
    return TypicalPath(names[best], states, texts, tuple(told), frozenset(steps_of(trajectory)))


def _preferred(flow: Flow) -> set[str]:
    """Finds the dialogues that the main path is to be of, by name; none where any may do."""
    count, finished = len(flow.utterances.dialogues), [end for end in ends(flow) if end.kind == "finished"]
    done = {name for end in finished if says_done(end.said) for name in end.dialogues}
    if 2 * len(done) > count:
        return done
    told = {name for end in finished for name in end.dialogues}
    return told if len(told) >= _FINISHING * count else set()


def with_gaps(path: TypicalPath, lines: Iterable[str], gap: str) -> Iterator[str]:
    """Gives a line for each step of a path, and ``gap`` where turns are left out between two of them."""
    before = path.turns[0] - 1
    for turn, line in zip(path.turns, lines, strict=True):
        if turn > before + 1:
            yield gap
        yield line
        before = turn


def forks(graph: FlowGraph, states: Collection[State]) -> list[Fork]:
    """Finds the states after which at least two others have a share of `LIKELY`, by falling entropy.

    It looks at the start and at the states that are given, such as those that are shown.
    """
    found = []
    for state in dict.fromkeys((START, *states)):
        following = graph.following.get(state, Counter[State]())
        ordered = sorted(following, key=lambda target: (-following[target], target))
        shares = tuple((target, graph.shares[state, target]) for target in ordered)
        if sum(share >= LIKELY for _, share in shares) > 1:
            entropy = -sum(share * log2(share) for _, share in shares)
            found.append(Fork(state, following.total(), entropy, shares))
    return sorted(found, key=lambda fork: (-fork.entropy, fork.state))


def loops(flow: Flow) -> list[Loop]:
    """Finds the loops of one to `LONGEST_LOOP` different states that dialogues go through, by falling number of laps.

    Of ``a b a b a``, the loop of a and b has two.
    """
    laps: dict[tuple[State, ...], Counter[str]] = defaultdict(Counter)
    for dialogue, trajectory in zip(flow.utterances.dialogues, flow.trajectories, strict=True):
        for length in range(1, LONGEST_LOOP + 1):
            for states, times in _repeated(trajectory, length):
                laps[states][dialogue] += times
    found = [
        Loop(states, counts.total(), tuple(name for name, _ in counts.most_common())) for states, counts in laps.items()
    ]
    return sorted(found, key=lambda loop: (-loop.laps, len(loop.states), loop.states))


def ends(flow: Flow) -> list[End]:
    """Tells how dialogues end, by words of English (see `hf_dialemb.flow.outcomes`); the most frequent end comes first.

    What anybody but the user said last of an outcome decides: it failed, or it is done, and the dialogue is finished.
    A failure is passed over where something else is told afterwards; and where something is only not there, as parking
    at a hotel, also where something else is told with it or was done before. Where nothing decides, a dialogue is
    finished with thanks and goodbyes, or at a state after which most of several end, or broke off. Nothing is finished
    by what was done before a question that nobody answers, what is not understood, or the user's "never mind", with
    which it is cancelled.
    """
    found: dict[tuple[Kind, State], list[tuple[str, str]]] = defaultdict(list)
    said, shares = flow.utterances, flow.graph.shares
    for number, (name, trajectory) in enumerate(zip(said.dialogues, flow.trajectories, strict=True)):
        texts = [said.texts[row] for row in said.rows_of(number)]
        others = [turn for turn, state in enumerate(trajectory) if state[0] != ROLES[0]]
        latest = max((turn for turn in others if says_something(texts[turn])), default=-1)
        done = next((turn for turn in others if says_done(texts[turn])), len(texts))
        told = [
            turn
            for turn in others
            if says_done(texts[turn])
            or (says_failed(texts[turn]) and (turn >= latest if says_tried(texts[turn]) else latest < turn < done))
        ]
        by_user = trajectory[-1][0] == ROLES[0]  # others also ask whether there is anything else, or after thanks
        asked = texts[-1].rstrip().endswith("?") and (by_user or not any(map(says_over, texts[-2:])))
        withdrawn = withdrawal([state[0] for state in trajectory], texts)
        open_still = asked or withdrawn is not None or says_unclear(texts[-1])
        if open_still and told and not says_failed(texts[told[-1]]):
            told = told[-1:] if told[-1] == len(texts) - 1 else []
        place = told[-1] if told else -1 if withdrawn is None else withdrawn
        last = trajectory[place]
        kind: Kind
        if told:
            kind = "failed" if says_failed(texts[place]) else "finished"
        elif withdrawn is not None:
            kind = "cancelled"
        else:
            usual = flow.graph.states[last] >= _OFTEN and shares.get((last, END), 0.0) >= _USUAL
            over = usual or any(map(says_over, texts[-2:]))
            kind = "finished" if over and not open_still else "broken off"
        found[kind, last].append((name, texts[place]))
    listed = [End(*way, tuple(name for name, _ in those), those[0][1]) for way, those in found.items()]
    return sorted(listed, key=lambda one: (-len(one.dialogues), one.kind, one.state))


def rare_paths(flow: Flow, most: int = 20) -> list[RarePath]:
    """Finds the dialogues whose transitions are least likely on average, the most unusual first.

    A dialogue is judged by the transitions of all others (see `hf_dialemb.flow.graph.TransitionModel`): by its own,
    a way that it alone takes would be certain.
    """
    model = TransitionModel([*flow.graph.states, END])
    paths = [steps_of(states) for states in flow.trajectories]
    for path in paths:
        model.count(path)
    found = []
    for dialogue, path in zip(flow.utterances.dialogues, paths, strict=True):
        model.count(path, -1)
        probabilities = [model.probability((source,), target) for source, target in path]
        model.count(path)
        place = min(range(len(path)), key=probabilities.__getitem__)
        bits = -sum(map(log2, probabilities)) / len(path)
        found.append(RarePath(dialogue, bits, path[place], place, probabilities[place]))
    return sorted(found, key=lambda one: (-one.bits, one.dialogue))[:most]


def _repeated(trajectory: Sequence[State], length: int) -> list[tuple[tuple[State, ...], int]]:
    """Lists the loops of some length in a trajectory, each from its first state by name, with its number of laps."""
    again = [trajectory[place] == trajectory[place + length] for place in range(len(trajectory) - length)]
    found, place = [], 0
    for repeats, stretch in groupby(again):
        size = len(list(stretch))
        states = tuple(trajectory[place : place + length])
        if repeats and len(set(states)) == length:
            first = states.index(min(states))
            found.append((states[first:] + states[:first], (size + length - 1) // length))
        place += size
    return found
