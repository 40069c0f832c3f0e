"""Flows for tests, from words.

A letter is an utterance and what it does, a capital one the assistant's; from turns.
"""

from collections import Counter

import numpy as np

from hf_dialemb.apps.flow.flow import EXAMPLES, Cluster, Flow, read_utterances
from hf_dialemb.apps.flow.graph import transition_graph
from hf_dialemb.dialogue import Dialogue, Turn

HELLO, ASK, BYE = (
    ("user", "greet", "hello"),
    ("assistant", "ask", "where to?"),
    ("assistant", "bye", "done"),
)
ORDER = {
    "d1": [HELLO, ASK, ("user", "place", "Paris"), BYE],
    "d2": [("user", "greet", "hi"), ASK, ("user", "place", "Rome"), BYE],
    "d3": [HELLO, ASK, ("user", "place", "to Rome"), ("user", "place", "please")],
    "d4": [("user", "complain", "it is broken"), ("assistant", "bye", "sorry")],
}


def grouped(title, utterances, names):
    """Builds a flow from the role and the name of the group that each utterance is in."""
    sizes = Counter(names)
    groups = sorted(sizes, key=lambda group: (group[0], -sizes[group]))
    labels = np.array([groups.index(group) for group in names], dtype=np.int32)
    clusters = []
    for number, (role, name) in enumerate(groups):
        rows = np.flatnonzero(labels == number).tolist()
        examples = tuple(dict.fromkeys(utterances.texts[row] for row in rows))[:EXAMPLES]
        id = f"{role}-{1 + sum(cluster.role == role for cluster in clusters)}"
        clusters.append(Cluster(id, role, name, sizes[role, name], examples=examples))
    return Flow(title, utterances, labels, tuple(clusters))


def flow_of_turns(dialogues, title="A flow"):
    """Builds a flow of dialogues that are lists of (role, name of state, text)."""
    said = [
        Dialogue(tuple(Turn(role, text) for role, _, text in turns), id=name)
        for name, turns in dialogues.items()
    ]
    names = [(role, name) for turns in dialogues.values() for role, name, _ in turns]
    return grouped(title, read_utterances(said), names)


def states(*words):
    """The trajectories of dialogues that are a word each."""
    return [
        [("assistant" if letter.isupper() else "user", letter) for letter in word] for word in words
    ]


def graph(*words):
    return transition_graph(states(*words))


def flow_of(*words, title="words"):
    """Makes the flow of dialogues d1, d2, ... of a word each."""
    turns = ([(*state, f"say {state[1]}") for state in trajectory] for trajectory in states(*words))
    return flow_of_turns({f"d{number}": each for number, each in enumerate(turns, 1)}, title)


def state_of(flow, letter):
    return next(cluster.state for cluster in flow.clusters if cluster.name == letter)


def named(flow, states):
    """The letters of states; the start is <, the end >."""
    ends = {"[start]": "<", "[end]": ">"}
    return "".join(ends.get(state[1]) or flow.by_state[state].name for state in states)


def random_words(seed, count=60, letters="abcABCD", longest=9):
    generator = np.random.default_rng(seed)
    shares = 1 / np.arange(1, len(letters) + 1) ** 1.5
    return [
        "".join(
            generator.choice(
                list(letters), generator.integers(1, longest + 1), p=shares / shares.sum()
            )
        )
        for _ in range(count)
    ]


def random_flow(dialogues=150, states=12, turns=12, seed=0):
    """A flow in which dialogues walk about at random, some ways more often than others."""
    rng = np.random.default_rng(seed)
    ways = {role: rng.dirichlet(np.full(states, 0.25), states) for role in ("user", "assistant")}
    made = {}
    for number in range(dialogues):
        path, place = [], int(rng.integers(states))
        for turn in range(int(rng.integers(1, turns + 1))):
            role = "user" if turn % 2 == 0 or rng.random() < 0.1 else "assistant"
            place = int(rng.choice(states, p=ways[role][place]))
            path.append(
                (role, f"{role} says {place}", f"{role} words {place} {int(rng.integers(4))}")
            )
        made[f"d{number}"] = path
    return flow_of_turns(made)


def angles(*degrees):
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
