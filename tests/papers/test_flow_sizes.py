"""Sizes and edges of flow graphs, as the paper counts them and as its program does."""

import json
import operator

import pytest
from flow_words import flow_of, graph, random_words
from test_flow_graph import program

from hf_dialemb.flow.graph import END, START, transition_graph
from hf_dialemb.flow.pruning import Pruning, pruned
from hf_dialemb.papers.tasks.flow_extraction import edge_f1, official_size, renamed, without_noise


def test_a_graph_counts_states_and_transitions():
    found, a, b = graph("aab", "b", ""), ("user", "a"), ("user", "b")
    assert found.states == {a: 2, b: 2}
    assert found.edges == {(START, a): 1, (a, a): 1, (a, b): 1, (START, b): 1, (b, END): 2}
    assert renamed(graph("aba"), {b: a}) == graph("aaa")
    one, other = graph("ab"), graph("ac", "ac")
    assert edge_f1(one, one) == edge_f1(graph(), graph()) == 1
    assert edge_f1(one, other) == edge_f1(other, one) == 2 * 1 / 9  # of 3 and 6 edges, one from the start is shared
    assert edge_f1(graph(), one) == 0


def test_rare_states_are_noise_in_the_paper_and_in_its_program():
    for times, kept in ((49, 2), (50, 1)):  # a state of two percent is noise
        found = without_noise(graph(*["a"] * times, "b"))
        assert len(found.states) == kept
        assert all(state in found.states or state in (START, END) for edge in found.edges for state in edge)
    for times, size in ((43, 4), (44, 3)):  # 1 / 43 = 0.0233, 1 / 44 = 0.0227
        assert official_size(graph(*["a"] * times, "b")) == size
    found = graph(*["a"] * 60, "bc", "dc")  # what only noise leads to goes with it
    assert {name for _, name in without_noise(found).states} == {"a", "c"}  # c occurs twice, b and d once
    assert official_size(found) == 3
    assert official_size(found, nodes=0.0) == 3  # the edges from the start to b and d weigh a sixtieth
    assert official_size(found, nodes=0.0, edges=0.0) == 6


def test_the_reference_graphs_of_the_paper_have_its_sizes(data_dir):
    path = data_dir / "d2f_evaluation" / "data" / "spokenwoz" / "trajectories.single_domain.json"
    if not path.is_file():
        pytest.skip("the trajectories of SpokenWOZ that come with dialog2flow are not at hand")
    graphs = {}
    for dialogue in json.loads(path.read_text(encoding="utf-8")).values():
        trajectory = [tuple(turn["turn"].split(": ", 1)) for turn in dialogue["log"] if turn["tag"]]
        graphs.setdefault(next(iter(dialogue["goal"])), []).append(trajectory)
    sizes = {name: official_size(transition_graph(paths)) for name, paths in graphs.items()}
    assert sizes == {"taxi": 31, "police": 23, "hospital": 18, "train": 49, "restaurant": 59, "attraction": 45}


@pytest.mark.parametrize("seed", range(20))
def test_official_sizes_are_those_of_the_program(seed):
    counted = flow_of(*random_words(seed)).graph
    for thresholds in ((0.023, 0.02), (0.1, 0.2), (0.3, 0.5), (0.0, 0.9)):
        assert official_size(counted, *thresholds) == len(program(counted, Pruning(*thresholds), operator.lt)[0])
    assert len(pruned(counted, Pruning(0.023, 0.02)).nodes) == official_size(counted)
