"""Hold a dialogue flow.

Utterances, the clusters that they belong to, and the paths that dialogues take.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialogue import Dialogue
from ...display import counted
from ...errors import InputError
from .graph import END, START, FlowGraph, State, transition_graph

NO_CENTROIDS = np.zeros((0, 0), dtype=np.float32)
EXAMPLES = 10  # texts that a cluster shows


@dataclass(frozen=True)
class Utterances:
    """The N utterances of D dialogues, in order."""

    dialogues: tuple[str, ...]  # D different ids
    places: NDArray[np.int32]  # the dialogue of each utterance, (N,), ascending
    roles: tuple[str, ...]  # who speaks
    texts: tuple[str, ...]
    names: tuple[str, ...]  # the name of each speaker, or an empty text

    def __len__(self) -> int:
        return len(self.texts)

    def rows_of(self, dialogue: int) -> range:
        """Return the utterances of a dialogue, by its place among the dialogues."""
        first, last = np.searchsorted(self.places, [dialogue, dialogue + 1])
        return range(int(first), int(last))

    def rows_by_role(self) -> dict[str, NDArray[np.intp]]:
        """Return the utterances of each role; roles in alphabetical order."""
        roles = np.array(self.roles, dtype=object)
        return {role: np.flatnonzero(roles == role) for role in sorted(set(self.roles))}


@dataclass(frozen=True)
class Cluster:
    """Utterances of one role that do the same."""

    id: str  # its role and number, such as user-3; the largest of a role has number 1
    role: str
    name: str
    size: int  # its number of utterances, at least 1
    phrases: tuple[str, ...] = ()  # the most typical first
    examples: tuple[str, ...] = ()  # different texts of its utterances, the most typical first

    @property
    def state(self) -> State:
        """The state of the cluster in a graph."""
        return self.role, self.id


@dataclass(frozen=True)
class Flow:
    """Dialogues as paths through clusters."""

    title: str
    utterances: Utterances
    labels: NDArray[np.int32]  # the cluster of each utterance, (N,), in [0, C)
    clusters: tuple[Cluster, ...]  # C of them, with different ids
    # everything that decided the result, as JSON has it
    settings: Mapping[str, Any] = field(default_factory=dict)
    # by which new utterances are assigned: unit vectors, (C, D); empty where there are none
    centroids: NDArray[np.float32] = field(default_factory=lambda: NO_CENTROIDS, compare=False)

    @property
    def counts(self) -> str:
        """The numbers of dialogues, utterances and states, in words."""
        sizes = len(self.utterances.dialogues), len(self.utterances), len(self.clusters)
        return ", ".join(map(counted, sizes, ("dialogue", "utterance", "state")))

    @cached_property
    def trajectories(self) -> tuple[tuple[State, ...], ...]:
        """The states that each dialogue goes through, in the order of the dialogues."""
        states = [cluster.state for cluster in self.clusters]
        dialogues = map(self.utterances.rows_of, range(len(self.utterances.dialogues)))
        return tuple(tuple(states[self.labels[row]] for row in rows) for rows in dialogues)

    @cached_property
    def graph(self) -> FlowGraph:
        """The graph of all dialogues, with nothing cut off."""
        return transition_graph(self.trajectories)

    @cached_property
    def numbers(self) -> dict[State, int]:
        """The place of each state among the clusters; then come `START` and `END`."""
        return {state: number for number, state in enumerate([*self.by_state, START, END])}

    @cached_property
    def by_state(self) -> dict[State, Cluster]:
        """The cluster of each state."""
        return {cluster.state: cluster for cluster in self.clusters}


def read_utterances(dialogues: Iterable[Dialogue]) -> Utterances:
    """List the utterances of dialogues.

    A dialogue without an id is named by its number, counted from 1.

    An InputError says that there is no dialogue, or two have the same id.
    """
    ids: dict[str, None] = {}
    turns = []
    for number, dialogue in enumerate(dialogues, 1):
        name = dialogue.id or f"dialogue {number}"
        if name in ids:
            raise InputError(
                f"dialogue {number}: field id: got '{name}' a second time, expected another; "
                "rename it"
            )
        turns += [(len(ids), turn) for turn in dialogue.turns]
        ids[name] = None
    if not ids:
        raise InputError("got no dialogue, expected at least one; look at the input")
    return Utterances(
        tuple(ids),
        np.array([place for place, _ in turns], dtype=np.int32),
        tuple(turn.role for _, turn in turns),
        tuple(" ".join(turn.content.split()) for _, turn in turns),
        tuple(turn.name for _, turn in turns),
    )


def restricted_to(utterances: Utterances, rows: NDArray[np.intp]) -> Utterances:
    """Keep some utterances, in order, and their dialogues."""
    places, renumbered = np.unique(utterances.places[rows], return_inverse=True)
    return Utterances(
        tuple(utterances.dialogues[place] for place in places),
        renumbered.astype(np.int32),
        tuple(utterances.roles[row] for row in rows),
        tuple(utterances.texts[row] for row in rows),
        tuple(utterances.names[row] for row in rows),
    )
