"""The graph of a flow, what is shown of it and what its paths tell.

Closed forms, networkx, a search of all paths.
"""

import operator
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from flow_words import flow_of, flow_of_turns, graph, named, random_words

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.apps.flow import graph as graphs
from hf_dialemb.apps.flow import outcomes
from hf_dialemb.apps.flow.flow import read_utterances
from hf_dialemb.apps.flow.flow_clustering import cluster
from hf_dialemb.apps.flow.paths import ends, typical_path

LOOP, WAYS = ["aaaA"] * 2, ["aAb"] * 6 + ["aB"] * 3 + ["aC"]


def program(counted, pruning, rare=operator.le):
    """What the paper's program shows, in networkx and in its order.

    Nodes, and edges without self-loops.
    """
    graph = nx.DiGraph()
    for edge, count in counted.edges.items():
        graph.add_edge(*edge, count=count)
    for node in graph:
        leaving = [count for *_, count in graph.out_edges(node, data="count")]
        total = max(leaving, default=1)
        for *_, edge in graph.out_edges(node, data=True):
            edge["weight"] = edge["count"] / total
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))

    def drop_unreached():
        between = nx.ancestors(graph, graphs.END) & nx.descendants(graph, graphs.START)
        graph.remove_nodes_from(
            [node for node in graph if node not in between | {graphs.START, graphs.END}]
        )

    most = max(counted.states.values())
    graph.remove_nodes_from(
        [state for state, count in counted.states.items() if rare(count / most, pruning.nodes)]
    )
    drop_unreached()
    graph.remove_edges_from(
        [edge for *edge, weight in graph.edges(data="weight") if weight < pruning.edges]
    )
    drop_unreached()
    return set(graph), set(graph.edges)


@pytest.mark.parametrize("seed", range(20))
def test_the_states_and_transitions_are_those_of_the_program(seed):
    counted = flow_of(*random_words(seed)).graph
    for thresholds in ((0.0, 0.0), (0.02, 0.1), (0.1, 0.2), (0.2, 0.35), (0.0, 0.9), (0.5, 0.0)):
        pruning = graphs.Pruning(*thresholds)
        shown = graphs.pruned(counted, pruning)  # with self-loops
        edges = {edge for edge in shown.edges if edge[0] != edge[1]}
        assert (set(shown.nodes), edges) == program(counted, pruning)
        assert all(0 < weight <= 1 for weight in (*shown.nodes.values(), *shown.edges.values()))


@pytest.mark.parametrize(
    ("words", "setting", "edges"),
    [
        # a self-loop counts and stays
        (LOOP, (0, 0), {"<a": 1, "aa": 1, "aA": 0.5, "A>": 1}),
        (LOOP, (0, 0.6), {}),  # but makes no way
        (WAYS, (0.2, 0.4), {"<a": 1, "aA": 1, "aB": 0.5, "Ab": 1, "b>": 1, "B>": 1}),
        (WAYS, (0.2, 0.6), {"<a": 1, "aA": 1, "Ab": 1, "b>": 1}),
    ],
)
def test_weights_are_shares_of_what_is_left(words, setting, edges):
    flow = flow_of(*words)
    shown = graphs.pruned(flow.graph, graphs.Pruning(*setting))
    assert {named(flow, edge): weight for edge, weight in shown.edges.items()} == edges


def test_thresholds_have_bounds_and_may_leave_nothing():
    empty = graphs.pruned(graph(*LOOP), graphs.Pruning(0, 1.0))
    assert empty == graphs.WeightedGraph({graphs.START: 1, graphs.END: 1}, {})
    with pytest.raises(InputError, match="field nodes: got 1, expected a share from 0 to below 1"):
        graphs.Pruning(nodes=1)


def told(counted, shown):
    """How many utterances a person sees, where that can be read."""
    few = len(shown.states) <= graphs.STATES
    readable = few and len(shown.edges) <= graphs.TRANSITIONS * len(shown.nodes)
    return sum(counted.states[state] for state in shown.states) if readable else 0


@pytest.mark.parametrize(("size", "seed"), [(5, 0), (40, 1), (200, 2), (1000, 3)])
def test_at_first_most_utterances_are_shown_that_can_be_read(size, seed):
    paths = np.random.default_rng(seed).zipf(1.3, size=(400, 12)) % size
    counted = graphs.transition_graph([[("user", str(state)) for state in path] for path in paths])
    chosen = graphs.readable(counted)
    others = [
        graphs.pruned(counted, graphs.Pruning(nodes, edges / 10))
        for nodes in (graphs.NOISE, 0.05, 0.1, 0.2, 0.5)
        for edges in range(1, 10)
    ]
    most = told(counted, graphs.pruned(counted, chosen))
    assert 0 < most >= max(told(counted, shown) for shown in others)


def test_where_the_thresholds_would_leave_nothing_lower_ones_are_taken():
    counted = graph("aA" * 100 + "b")
    assert not graphs.pruned(counted, graphs.Pruning()).states
    assert len(graphs.pruned(counted, graphs.readable(counted)).states) == 3
    assert graphs.readable(counted, edges=0.01).edges == 0.01
    assert graphs.readable(counted, nodes=0.5, edges=1.0) == graphs.Pruning(0.5, 1.0)


def test_the_main_path_is_that_of_the_most_typical_dialogue():
    # What is rare is left out, though it is there.
    flow = flow_of(*["aAbBzZ"] * 5, *["aAbCzZ"] * 2, "zZ", "zZ", "aAbBxzZ", *["aAbBzZ"] * 11)
    found = typical_path(flow)
    assert (named(flow, found.states), found.dialogue) == ("aAbBzZ", "d1")
    assert found.steps == set(graphs.steps_of(flow.trajectories[0]))
    # Its own words are told: of a state the first, of a goodbye the last.
    said = [("greet", "hello"), ("ask", "where?"), ("greet", "hello again"), ("ask", "where now?")]
    left = [("Bye!", "bye for now"), ("Thanks", "thank you"), ("Bye!", "bye")]
    path = typical_path(flow_of_turns({"d1": [("user", *turn) for turn in said + left]}))
    assert (path.texts, path.turns) == (("hello", "where?", "thank you", "bye"), (0, 1, 5, 6))


@pytest.mark.parametrize(
    ("dialogues", "expected"),
    [
        # others do two things
        ([*["aAbBcCdDzZ"] * 3, *["aAbBeEfFzZ"] * 3, *["aAbBgGhHzZ"] * 3, "aAbBzZ"], "aAbBzZ"),
        (
            [*(f"gGaA{one}zZ" for one in ("bB", "cC", "dD", "eE")), "gGzZ"],
            "gGaAzZ",
        ),  # one only greets
        (["aAbB", "cCdD"], "aAbB"),  # nothing is shared
        ([*["aAaAbA"] * 12, "xY"], "aAb"),  # one ends where nobody else comes
        (["a"], "a"),
    ],
)
def test_the_main_path_is_what_most_dialogues_share_and_never_empty(dialogues, expected):
    flow = flow_of(*dialogues)
    assert named(flow, typical_path(flow).states) == expected


ENDS = [
    (
        "finished",
        "book it",
        "Sorry, it is fully booked.",
        "another?",
        "Your table is booked.",
        "bye",
    ),
    (
        "failed",
        "book it",
        "I have booked a room.",
        "a taxi too",
        "I could n't find a taxi.",
        "thanks, bye",
    ),
    ("finished", "how far?", "two miles", "Thank you, that's all"),
    (
        "finished",
        "a park?",
        "Sorry, there are no parks.",
        "a pool?",
        "The Lido is in Mill Lane.",
        "thanks",
    ),
    (
        "finished",
        "a room",
        "It is booked.",
        "with parking?",
        "No, sorry, there is none.",
        "ok, bye",
    ),
    ("failed", "a room", "Sorry, no room is available. Anything else?", "no", "Glad to help you."),
    ("failed", "book it", "the reservation is not done, ask me any other thing", "bye"),
    ("broken off", "book it", "Your table is booked.", "thanks, and is there parking?"),
    ("finished", "book it", "Your table is booked.", "Thank you!", "Any special requests?"),
    ("broken off", "book it", "Who is it for?", "what?", "I don't quite understand what you mean."),
    (
        "cancelled",
        "a ride",
        "Your ride is booked.",
        "Never mind, cancel that",
        "Anything else?",
        "no thanks",
    ),
    ("finished", "a ride", "Which?", "Never mind, the first", "Your ride is booked.", "thanks"),
    (
        "cancelled",
        "a car",
        "Can I see your license?",
        "That is too much trouble. I will go elsewhere. Bye.",
    ),
    ("cancelled", "my card", "It is blocked until June.", "I'd rather close my account then."),
    ("cancelled", "a loan", "Which sum?", "I\u2019m going to another bank, bye"),
    ("cancelled", "my address", "What is your name?", "No, I'll do it myself online."),
    ("broken off", "hello"),
    ("not in English", "我的订单取消了", "Sorry 已经取消了，还需要什么吗"),
    (
        "not in English",
        "Meine Karte ist weg",
        "Sorry, das ist nicht möglich. Soll ich sie sperren?",
    ),
    ("broken off", "sorry, I can't log in", "Is the request submitted?"),
]


@pytest.mark.parametrize("way", ENDS, ids=lambda way: way[1][:9])
def test_ends_tell_what_failed_from_what_is_done_and_what_breaks_off(way):
    kind, *texts = way
    turns = [
        (("user", "assistant")[place % 2], f"{place}", text) for place, text in enumerate(texts)
    ]
    (end,) = ends(flow_of_turns({"d1": turns}))
    assert (end.kind, end.dialogues) == (kind, ("d1",))
    assert end.text in texts


SAID = {
    "user": ("yes please", "no, in the bedroom", "no problem", "I can't log in", "sounds good"),
    "assistant": (
        "Your table is booked.",
        "Shall I book it?",
        "Sorry, it is fully booked.",
        "It is confirmed.",
        "Hello, how can I help?",
    ),
}


def outcomes_apart(role, clustering, texts):
    """Splits the clusters of a role, whose vectors are all the same."""
    said = read_utterances([Dialogue(tuple(Turn(role, text) for text in texts))])
    return outcomes.outcomes_apart({role: clustering}, said, np.ones((len(texts), 2)))[role]


@pytest.mark.parametrize(
    ("role", "texts", "expected"),
    [
        ("user", SAID["user"], [0, 1, 0, 2, 0]),
        ("assistant", SAID["assistant"], [0, 1, 2, 0, 3]),
        (
            "user",
            ("yes", "yes please", "no thank you", "fine", "yes, that's right"),
            [0, 0, 1, 0, 0],
        ),
        ("user", ("sure", "yes", "Not right now.", "hi", "Maybe later, I guess"), [0, 0, 1, 2, 1]),
        (
            "user",
            ("a ride", "I do n't need it", "I don't need a ride any more", "no, nothing else", "b"),
            [0, 1, 2, 0, 0],
        ),
        (
            "assistant",
            ("It was 4!", "Your answer was correct!", "The answer is wrong.", "4", "5"),
            [0, 0, 1, 0, 0],
        ),
    ],
)
def test_a_cluster_holds_no_opposite_outcomes(role, texts, expected):
    clustering = outcomes_apart(role, cluster(np.ones((5, 2))), texts)
    assert clustering.labels.tolist() == expected
    assert clustering.sentence.endswith(f"stand apart: {max(expected) + 1}.")


@pytest.mark.parametrize(
    "texts",
    [
        ("hello", "Hi!", "a table", "a flight"),
        ("Thank you so much!", "Great, thanks, goodbye.", "a table", "yes", "a chair", "a flight"),
        (
            "I'm really not understanding you",
            "I don't quite understand",
            "a table",
            "I can understand that",
        ),
        (
            "I can't log in",
            "The card doesn't work.",
            "I can't wait to go",
            "I don't need anything else now",
        ),
    ],
)
def test_greetings_thanks_and_few_failures_of_all_clusters_are_one(texts):
    two = replace(cluster(np.ones((len(texts), 2))), labels=np.arange(len(texts)) % 2)
    assert outcomes_apart("user", two, texts).labels.tolist() == [0, 0, 1, 2, 1, 2][: len(texts)]


def test_failures_are_apart_by_what_they_are_about():
    two = replace(cluster(np.ones((16, 2))), labels=np.array([0] * 8 + [1] * 8))
    texts = [
        *["Your table is booked."] * 3,
        *["No table is available."] * 5,
        *["No car is available."] * 5,
        *"abc",
    ]
    clustering = outcomes_apart("assistant", two, texts)
    assert clustering.labels.tolist() == [0] * 3 + [1] * 5 + [2] * 5 + [3] * 3
