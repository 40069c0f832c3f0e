"""What a dialogue flow is made of: utterances, the clusters that they fall in, and the paths that dialogues take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError
from .graph import FlowGraph, State, transition_graph

EXAMPLES = 10  # so many texts a cluster shows

Group = tuple[str, Hashable]
"""A role, and what tells some of its utterances from the others."""


@dataclass(frozen=True)
class Utterances:
    """The N utterances of D dialogues, in order."""

    dialogues: tuple[str, ...]  # their ids, D of them, each once
    places: NDArray[np.int32]  # which dialogue each utterance is of, (N,), ascending
    roles: tuple[str, ...]  # who speaks
    texts: tuple[str, ...]
    actions: tuple[str, ...]  # what each utterance does, as annotated; empty where that is not known
    names: tuple[str, ...] = ()  # what its speaker is called; empty where that is not known, none where it never is

    def __len__(self) -> int:
        return len(self.texts)

    def rows_of(self, dialogue: int) -> range:
        """Returns which utterances a dialogue has, by its place among the dialogues."""
        first, last = np.searchsorted(self.places, [dialogue, dialogue + 1])
        return range(int(first), int(last))

    def rows_by_role(self) -> dict[str, NDArray[np.intp]]:
        """Returns which utterances each role has; roles in alphabetical order."""
        roles = np.array(self.roles, dtype=object)
        return {role: np.flatnonzero(roles == role) for role in sorted(set(self.roles))}


@dataclass(frozen=True)
class Cluster:
    """Utterances of one role that do the same."""

    id: str  # its role and number, such as user-3; the largest of a role has number 1
    role: str  # who speaks
    name: str  # what a person calls it
    size: int  # how many utterances it has, at least 1
    phrases: tuple[str, ...] = ()  # what is typical of it, the most typical first
    examples: tuple[str, ...] = ()  # some of its utterances, the most typical first, each text once
    failed: bool = False  # whether most of them say that something failed

    @property
    def state(self) -> State:
        """The state of a graph that it is."""
        return self.role, self.id


@dataclass(frozen=True)
class Flow:
    """Dialogues as paths through clusters."""

    title: str
    utterances: Utterances
    labels: NDArray[np.int32]  # which cluster each utterance is in, (N,), each in [0, C)
    clusters: tuple[Cluster, ...]  # C of them, no two with one id
    settings: Mapping[str, Any] = field(default_factory=dict)  # everything that decided the result, as JSON has it

    @cached_property
    def trajectories(self) -> tuple[tuple[State, ...], ...]:
        """The states that each dialogue goes through, in the order of the dialogues."""
        states = [cluster.state for cluster in self.clusters]
        rows = map(self.utterances.rows_of, range(len(self.utterances.dialogues)))
        return tuple(tuple(states[self.labels[row]] for row in of_one) for of_one in rows)

    @cached_property
    def graph(self) -> FlowGraph:
        """What follows what, over all dialogues, nothing cut off."""
        return transition_graph(self.trajectories)

    @cached_property
    def by_state(self) -> dict[State, Cluster]:
        """The cluster of each state."""
        return {cluster.state: cluster for cluster in self.clusters}


def read_utterances(dialogues: Iterable[Dialogue]) -> Utterances:
    """Lists the utterances of dialogues; one without an id gets one of its number, counted from 1.

    What an utterance does is known where it has dialogue acts or slots, see `hf_dialemb.corpora.labels.unified_turn`.
    An InputError says that two dialogues have the same id, or that there is none.
    """
    from ..corpora.labels import unified_turn

    ids: dict[str, None] = {}
    places: list[int] = []
    roles, texts, actions, names = [], [], [], []
    for number, dialogue in enumerate(dialogues, 1):
        name = dialogue.id or f"dialogue {number}"
        if name in ids:
            raise InputError(f"dialogue {number}: field id: got '{name}' a second time, expected another; rename it")
        ids[name] = None
        for turn in dialogue.turns:
            places.append(len(ids) - 1)
            roles.append(turn.role)
            texts.append(" ".join(turn.content.split()))
            actions.append(unified_turn(turn).action)
            names.append(turn.name)
    if not ids:
        raise InputError("got no dialogue, expected at least one; look at the input")
    said = (tuple(roles), tuple(texts), tuple(actions), tuple(names) if any(names) else ())
    return Utterances(tuple(ids), np.array(places, dtype=np.int32), *said)


def numbered(groups: Sequence[Group]) -> tuple[dict[Group, tuple[str, int]], NDArray[np.int32]]:
    """Numbers the groups of N utterances: by role, then by falling size, then as they first occur.

    Returns the id and the size of each group, in that order; and the number of each utterance's group, ``(N,)``.
    """
    sizes = Counter(groups)
    order = sorted(sizes, key=lambda group: (group[0], -sizes[group]))
    before: dict[str, int] = {}
    for number, (role, _) in enumerate(order):
        before.setdefault(role, number - 1)
    ids = {group: (f"{group[0]}-{number - before[group[0]]}", sizes[group]) for number, group in enumerate(order)}
    numbers = {group: number for number, group in enumerate(order)}
    return ids, np.array([numbers[group] for group in groups], dtype=np.int32)


def restricted_to(utterances: Utterances, rows: NDArray[np.intp]) -> Utterances:
    """Keeps some utterances, in order, and the dialogues that they are of."""
    places, renumbered = np.unique(utterances.places[rows], return_inverse=True)
    columns = (utterances.roles, utterances.texts, utterances.actions, utterances.names)
    kept = (tuple(column[row] for row in rows if column) for column in columns)
    return Utterances(tuple(utterances.dialogues[place] for place in places), renumbered.astype(np.int32), *kept)
