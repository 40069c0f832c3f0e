"""What the paths of dialogues tell: the main one, forks, loops, where dialogues break off, and which are unusual."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log2

from .flow import Flow
from .graph import END, START, FlowGraph, State, steps_of
from .pruning import WeightedGraph
from .smoothing import TransitionModel

LIKELY = 0.2  # a state forks where at least two states follow it so often, as shares of what follows
LONGEST_LOOP = 3  # so many states a loop has at most


@dataclass(frozen=True)
class WidestPath:
    """The main path of a graph."""

    states: tuple[State, ...]  # without start and end
    weight: float  # the least of its transitions
    same_role: bool  # whether one role has two states in a row; only where no path does without


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
class DropOff:
    """A state at which some dialogues end, though most go on."""

    state: State
    count: int  # how many dialogues end at it
    share: float  # of how often it occurs, below a half
    dialogues: tuple[str, ...]  # the ids of these dialogues


@dataclass(frozen=True)
class RarePath:
    """A dialogue that goes another way than the others."""

    dialogue: str  # its id
    bits: float  # the mean of -log2 of the probabilities of its transitions; the higher, the more unusual
    step: tuple[State, State]  # its rarest transition
    place: int  # of the turn that this leads to, counted from 0; the number of turns for its end
    probability: float  # of that transition, in (0, 1]


def widest_path(graph: WeightedGraph) -> WidestPath | None:
    """Finds the path from start to end whose least weight is largest: the program's "happy path"; None without any.

    Of equally wide ones it is the shortest, of equally short ones the first by the names of its states. Transitions
    between states of one role are left out where there is a path without them.
    """
    edges = {edge: weight for edge, weight in graph.edges.items() if edge[0] != edge[1]}
    between = {edge: weight for edge, weight in edges.items() if edge[0][0] != edge[1][0]}
    for allowed, same_role in ((between, False), (edges, True)):
        weights = sorted(set(allowed.values()))
        # The higher the weight, the fewer transitions: up to some weight there is a path, and from there on none.
        count = bisect_left(weights, True, key=lambda weight: _shortest(allowed, weight) is None)
        if count:
            return WidestPath(_shortest(allowed, weights[count - 1]) or (), weights[count - 1], same_role)
    return None


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


def drop_offs(flow: Flow) -> list[DropOff]:
    """Finds the states at which dialogues end, though they go on after them more than half of the time.

    Those at which most end come first.
    """
    ended: dict[State, list[str]] = defaultdict(list)
    for dialogue, trajectory in zip(flow.utterances.dialogues, flow.trajectories, strict=True):
        ended[trajectory[-1]].append(dialogue)
    shares = {state: len(dialogues) / flow.graph.states[state] for state, dialogues in ended.items()}
    found = [DropOff(state, len(ended[state]), share, tuple(ended[state])) for state, share in shares.items()]
    return sorted((one for one in found if one.share < 0.5), key=lambda one: (-one.count, -one.share, one.state))


def rare_paths(flow: Flow, most: int = 20) -> list[RarePath]:
    """Finds the dialogues whose transitions are least likely on average, the most unusual first.

    A dialogue is judged by the transitions of all others (see `hf_dialemb.flow.smoothing.TransitionModel`): by its own,
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


def _shortest(weights: Mapping[tuple[State, State], float], least: float) -> tuple[State, ...] | None:
    """Finds the shortest path from start to end, the first by names of those; None without any."""
    import networkx

    drawn = networkx.DiGraph([(END, END), *(edge for edge, weight in weights.items() if weight >= least)])
    left = dict(networkx.single_target_shortest_path_length(drawn, END))
    if START not in left:
        return None
    path = [START]
    while path[-1] != END:
        path.append(min(state for state in drawn[path[-1]] if left.get(state) == left[path[-1]] - 1))
    return tuple(path[1:-1])


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
