"""What is shown of a flow, and what its paths tell: closed forms, the program in networkx, a search of all paths."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import log2

import networkx as nx
import numpy as np
import pytest
from flow_words import flow_of, named, random_words, state_of

from hf_dialemb.flow.graph import END, NOISE, START, FlowGraph, official_size, transition_graph
from hf_dialemb.flow.paths import DropOff, Loop, drop_offs, forks, loops, rare_paths, widest_path
from hf_dialemb.flow.pruning import PAPER, PROGRAM, STATES, TRANSITIONS, Pruning, WeightedGraph, pruned, readable
from hf_dialemb.flow.smoothing import TransitionModel
from hf_dialemb.models.errors import InputError

ALL = Pruning(0, 0)


def edges_of(flow, graph):
    return {named(flow, edge): weight for edge, weight in graph.edges.items()}


def program(flow, pruning):
    """What the paper's program shows, in networkx and in its order: nodes, and edges without self-loops."""
    graph, counts = nx.DiGraph(), Counter(state for states in flow.trajectories for state in states)
    for edge, count in flow.graph.edges.items():
        graph.add_edge(*edge, count=count)
    most = max(count for *_, count in graph.edges(data="count"))
    for node in graph:
        leaving = [count for *_, count in graph.out_edges(node, data="count")]
        whole = {"max": most, "max-out": max(leaving, default=1), "prob-out": sum(leaving)}[pruning.weights]
        for *_, edge in graph.out_edges(node, data=True):
            edge["weight"] = edge["count"] / whole
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))

    def drop_unreached():
        between = nx.ancestors(graph, END) & nx.descendants(graph, START)
        graph.remove_nodes_from([node for node in graph if node not in between | {START, END}])

    rare = [state for state, count in counts.items() if count / max(counts.values()) <= pruning.nodes]
    graph.remove_nodes_from(rare)
    drop_unreached()
    graph.remove_edges_from([edge for *edge, weight in graph.edges(data="weight") if weight < pruning.edges])
    drop_unreached()
    return set(graph), set(graph.edges)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weights", ["max", "max-out", "prob-out"])
def test_what_is_shown_is_what_the_program_shows_and_its_self_loops(seed, weights):
    flow = flow_of(*random_words(seed))
    for thresholds in ((0.0, 0.0), (0.02, 0.1), (0.1, 0.2), (0.2, 0.35), (0.0, 0.9), (0.5, 0.0)):
        pruning = Pruning(*thresholds, weights)
        graph = pruned(flow.graph, pruning)
        assert (set(graph.nodes), {edge for edge in graph.edges if edge[0] != edge[1]}) == program(flow, pruning)
        assert all(0 < weight <= 1 for weight in (*graph.nodes.values(), *graph.edges.values()))


def test_weights_are_shares_of_what_is_left():
    flow = flow_of(*["aAb"] * 6, *["aB"] * 3, "aC")
    found = edges_of(flow, pruned(flow.graph, Pruning(0.2, 0.0, "prob-out")))
    assert found == {"<a": 1, "aA": 6 / 9, "aB": 3 / 9, "Ab": 1, "b>": 1, "B>": 1}
    found = edges_of(flow, pruned(flow.graph, Pruning(0.2, 0.4, "max-out")))
    assert found == {"<a": 1, "aA": 1, "aB": 0.5, "Ab": 1, "b>": 1, "B>": 1}
    found = edges_of(flow, pruned(flow.graph, Pruning(0.2, 0.4, "max")))
    assert found == {"<a": 1, "aA": 0.6, "Ab": 0.6, "b>": 0.6}  # 3 of 10 is less than 0.4, so nothing leads to B


def test_weights_of_states_are_shares_of_the_most_frequent():
    flow = flow_of(*["aA"] * 3, "aB")
    graph = pruned(flow.graph, ALL)
    weights = {named(flow, [state]): weight for state, weight in graph.nodes.items()}
    assert weights == {"<": 1, "a": 1, "A": 0.75, "B": 0.25, ">": 1}
    assert named(flow, graph.states) == "aAB"
    flow = flow_of(*["a"] * 50, "b")  # a state at the threshold is noise
    assert len(pruned(flow.graph, Pruning(0.02, 0)).states) == 1
    assert len(pruned(flow.graph, Pruning(0.0199, 0)).states) == 2
    flow = flow_of(*["aaaA"] * 2)  # a self-loop counts and stays, but makes no way
    assert edges_of(flow, pruned(flow.graph, Pruning(0, 0, "prob-out"))) == {"<a": 1, "aa": 2 / 3, "aA": 1 / 3, "A>": 1}
    assert edges_of(flow, pruned(flow.graph, Pruning(0, 0.5, "prob-out"))) == {}


@pytest.mark.parametrize("graph", [FlowGraph({}, {}), flow_of("aA").graph, FlowGraph({}, {(START, END): 3})])
def test_nothing_left_is_start_and_end(graph):
    for pruning in (Pruning(0.9, 1), Pruning(0, 0.6, "max"), ALL):
        assert {START, END} <= set(pruned(graph, pruning).nodes)
    flow = flow_of(*["aA", "bB", "cC", "dD"])
    empty = pruned(flow.graph, Pruning(0, 0.5, "prob-out"))
    assert empty == WeightedGraph({START: 1, END: 1}, {})
    assert widest_path(empty) is None


def test_thresholds_out_of_range_are_told():
    for wrong in (-0.1, 1, float("nan")):
        with pytest.raises(InputError, match=r"field nodes: got .*, expected a share from 0 to less than 1"):
            Pruning(nodes=wrong)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match=r"field edges: got .*, expected a share from 0 to 1"):
            Pruning(edges=wrong)
    with pytest.raises(InputError, match=r"Unknown rule of weights 'maxout'\. Did you mean 'max-out'"):
        Pruning(weights="maxout")


def test_the_size_is_that_of_the_paper():
    assert (PAPER.nodes, PAPER.edges, PROGRAM.nodes, PROGRAM.edges) == (0.02, 0.02, 0.023, 0.2)
    for seed in range(5):
        graph = flow_of(*random_words(seed)).graph
        assert len(pruned(graph, Pruning(0.023, 0.02)).nodes) == official_size(graph)


def test_the_reference_graphs_of_the_paper_have_its_sizes(data_dir):
    path = data_dir / "d2f_evaluation" / "data" / "spokenwoz" / "trajectories.single_domain.json"
    if not path.is_file():
        pytest.skip("the trajectories of SpokenWOZ that come with dialog2flow are not at hand")
    graphs = {}
    for dialogue in json.loads(path.read_text(encoding="utf-8")).values():
        states = [tuple(turn["turn"].split(": ", 1)) for turn in dialogue["log"] if turn["tag"]]
        graphs.setdefault(next(iter(dialogue["goal"])), []).append(states)
    sizes = {name: official_size(transition_graph(paths)) for name, paths in graphs.items()}
    assert sizes == {"taxi": 31, "police": 23, "hospital": 18, "train": 49, "restaurant": 59, "attraction": 45}


def every_path(graph):
    drawn = nx.DiGraph([edge for edge in graph.edges if edge[0] != edge[1]])
    for path in nx.all_simple_paths(drawn, START, END) if {START, END} <= set(drawn) else ():
        steps = list(pairwise(path))
        same = any(source[0] == target[0] for source, target in steps)
        yield same, -min(graph.edges[step] for step in steps), len(path), path[1:-1]


@pytest.mark.parametrize("seed", range(15))
def test_the_widest_path_is_the_best_of_all_paths(seed):
    flow = flow_of(*random_words(seed, 30, longest=6))
    for pruning in (ALL, Pruning(0.1, 0.2), Pruning(0, 0.05, "max"), Pruning(0, 0, "prob-out")):
        graph = pruned(flow.graph, pruning)
        found, best = widest_path(graph), min(every_path(graph), default=None)
        if best is None:
            assert found is None
        else:
            assert (found.same_role, -found.weight, len(found.states) + 2, list(found.states)) == best


def test_one_role_twice_in_a_row_is_a_way_only_where_there_is_no_other():
    flow = flow_of(*["abA"] * 5, "aA")
    found = widest_path(pruned(flow.graph, ALL))
    assert (named(flow, found.states), found.weight, found.same_role) == ("aA", 0.2, False)
    flow = flow_of(*["abA"] * 5)
    found = widest_path(pruned(flow.graph, ALL))
    assert (named(flow, found.states), found.same_role) == ("abA", True)


def test_states_fork_where_two_are_likely():
    flow = flow_of(*["aA"] * 4, *["aB"] * 4, "aC", "b")
    (found,) = forks(flow.graph, flow.graph.states)
    assert (named(flow, [found.state]), found.count) == ("a", 9)
    assert named(flow, [state for state, _ in found.continuations]) == "ABC"
    assert [share for _, share in found.continuations] == [4 / 9, 4 / 9, 1 / 9]
    assert found.entropy == pytest.approx(8 / 9 * log2(9 / 4) + log2(9) / 9)
    (start,) = forks(flow_of("a", "b").graph, [])
    assert (start.state, start.entropy) == (START, 1)


def test_loops_count_laps():
    flow = flow_of("aAaAa", "aaa", "bcAbcAb", "aAb")
    found = {named(flow, loop.states): (loop.laps, loop.dialogues) for loop in loops(flow)}
    assert {"".join(sorted(word)): value for word, value in found.items()} == {
        "Aa": (2, ("d1",)), "a": (2, ("d2",)), "Abc": (2, ("d3",)),
    }  # fmt: skip
    once = flow_of("aAa", "AaA")
    assert loops(once) == [Loop((state_of(once, "A"), state_of(once, "a")), 2, ("d1", "d2"))]
    assert loops(flow_of("aAbBcC")) == []


def test_dialogues_drop_off_where_most_go_on():
    flow = flow_of(*["aAb"] * 3, "aA", "a")
    a, b = (state_of(flow, letter) for letter in "Aa")
    assert drop_offs(flow) == [DropOff(a, 1, 1 / 4, ("d4",)), DropOff(b, 1, 1 / 5, ("d5",))]
    assert drop_offs(flow_of("aA")) == []


def test_the_rarest_path_is_the_one_that_no_other_takes():
    flow = flow_of(*["aAb"] * 8, "aBb")
    first, *others = rare_paths(flow)
    assert (first.dialogue, named(flow, first.step), first.place) == ("d9", "aB", 1)
    # Without itself: eight followed a, all by A; four states and the end may follow, three and the end did, 32 times.
    unigram = (0 + 4 / 5) / (32 + 4)
    assert first.probability == pytest.approx((0 + 1 * unigram) / (8 + 1))
    assert len({round(one.bits, 12) for one in others}) == 1
    assert others[0].bits < first.bits
    assert len(rare_paths(flow, most=2)) == 2


def test_smoothing_ends_in_equal_chances_and_sums_to_one():
    outcomes = [("user", letter) for letter in "abcd"]
    model = TransitionModel(outcomes)
    assert model.probability([outcomes[0]], outcomes[1]) == 1 / 4
    for history, outcome in (((0, 1), 2), ((0, 1), 3), ((1, 1), 2), ((2,), 2), ((), 0)):
        model.add([outcomes[place] for place in history], outcomes[outcome])
    for history in ((), (0,), (1,), (0, 1), (3, 3), (3, 1)):
        states = [outcomes[place] for place in history]
        assert sum(model.probability(states, outcome) for outcome in outcomes) == pytest.approx(1)
    before = model.probability(outcomes[:2], outcomes[2])
    model.add(outcomes[:2], outcomes[0])
    assert model.probability(outcomes[:2], outcomes[2]) < before
    model.add(outcomes[:2], outcomes[0], -1)
    assert model.probability(outcomes[:2], outcomes[2]) == before


def test_one_dialogue_and_a_very_long_one_have_paths():
    long = flow_of("".join(np.random.default_rng(0).choice(list("abABcC"), 10_000)))
    for flow in (flow_of("a"), long):
        path = widest_path(pruned(flow.graph, ALL))
        assert named(flow, path.states)[0] == named(flow, flow.trajectories[0])[0]
        assert [one.dialogue for one in rare_paths(flow)] == ["d1"]
        assert {name for loop in loops(flow) for name in loop.dialogues} <= {"d1"}
        assert sum(flow.graph.shares.values()) == pytest.approx(len(flow.graph.states) + 1)
    assert not pruned(long.graph, Pruning()).states  # it ends once, which is rare among thousands of turns


def random_graph(states: int, seed: int) -> FlowGraph:
    """Makes a graph of paths in which a few states are frequent and most are rare."""
    draws = np.random.default_rng(seed).zipf(1.3, size=(400, 12)) % states
    return transition_graph([[("user", str(state)) for state in path] for path in draws])


@pytest.mark.parametrize(("states", "seed"), [(5, 0), (40, 1), (200, 2), (1000, 3)])
def test_what_is_shown_at_first_can_be_read(states, seed):
    graph = random_graph(states, seed)
    chosen = readable(graph, nodes=None, edges=None, weights=None)
    shown = pruned(graph, chosen)
    assert 0 < len(shown.states) <= STATES
    more = pruned(graph, replace(chosen, edges=round(chosen.edges + 0.1, 1)))
    assert len(shown.edges) <= TRANSITIONS * len(shown.nodes) or not more.states
    assert chosen.nodes in (NOISE, *(part / 20 for part in range(1, 11)))


@pytest.mark.slow
def test_thresholds_that_are_given_stay_and_states_that_are_about_as_frequent():
    graph = random_graph(200, 0)
    assert readable(graph, nodes=0.3, edges=0.7, weights="prob-out") == Pruning(0.3, 0.7, "prob-out")
    assert readable(graph, nodes=0.01, edges=None, weights="max").nodes == 0.01
    assert readable(graph, nodes=None, edges=0.2, weights=None).edges == 0.2
    generator = np.random.default_rng(0)
    graph = transition_graph([[("user", str(state)) for state in generator.permutation(60)] for _ in range(50)])
    chosen = readable(graph, nodes=None, edges=None, weights=None)
    assert chosen.nodes == NOISE
    assert 2 * STATES - 6 <= len(pruned(graph, chosen).states) <= 2 * STATES


def test_where_the_thresholds_would_leave_nothing_lower_ones_are_taken():
    ends_rarely = [("user", "a"), ("assistant", "b")] * 100 + [("user", "bye")]
    graph = transition_graph([ends_rarely])
    assert not pruned(graph, Pruning()).states
    chosen = readable(graph, nodes=None, edges=None, weights=None)
    assert (chosen.nodes, chosen.edges) == (0.005, 0.01)  # the last state is one in a hundred, and so is the way there
    assert len(pruned(graph, chosen).states) == 3
    assert readable(graph, nodes=None, edges=0.01, weights=None).nodes == 0.005
    assert not pruned(graph, readable(graph, nodes=0.5, edges=1.0, weights=None)).states


def test_one_dialogue_of_ten_thousand_turns_shows_no_more_than_it_must():
    """It ends once, so that its end is rarer than all thresholds that are tried at first."""
    generator = np.random.default_rng(0)
    shares = 1 / np.arange(1, 101)
    path = [*generator.choice(100, 10_000, p=shares / shares.sum()).tolist(), 1]
    graph = transition_graph([[("user", str(state)) for state in path]])
    assert not pruned(graph, Pruning()).states
    chosen = readable(graph, nodes=None, edges=None, weights=None)
    assert chosen.nodes > 0 < chosen.edges
    assert 0 < len(pruned(graph, chosen).states) <= STATES
    assert not pruned(graph, replace(chosen, edges=0.05)).states
