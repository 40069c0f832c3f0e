"""Extraction of dialogue flows: closed forms, the program's count against networkx, invariances, and real corpora."""

import json
import os
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from hf_dialemb.encoders.baselines import TfidfEncoder
from hf_dialemb.evaluation.results.rows import rows_of
from hf_dialemb.evaluation.results.tables import column_of
from hf_dialemb.evaluation.tasks import flow_extraction
from hf_dialemb.evaluation.tasks.flow_extraction import (
    Utterance,
    annotated_flows,
    cluster_utterances,
    compare_flow,
    load_flows,
)
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.flow.graph import END, START, edge_f1, official_size, renamed, transition_graph, without_noise
from hf_dialemb.metrics.graph_size_difference.functional import graph_size_difference
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

real = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")
ASK, TELL, THANK = "request time", "inform time", "thank you"


def flow_of(*dialogues):
    """Dialogues of user and assistant in turn, from actions; a text is its action."""
    return [
        [Utterance(("user", "assistant")[place % 2], action, action) for place, action in enumerate(actions)]
        for actions in dialogues
    ]


def random_flow(generator, dialogues=60):
    letters = list("abcdefgh")
    shares = np.array([40, 30, 20, 10, 5, 2, 1, 1]) / 109
    return flow_of(*(generator.choice(letters, generator.integers(1, 9), p=shares) for _ in range(dialogues)))


def true_clusters(flow):
    codes = {}
    return [codes.setdefault((turn.role, turn.action), len(codes)) for turns in flow for turn in turns]


def states(word):
    return [("user", letter) for letter in word]


def domain(name, count):
    """Dialogues of one domain as the lines of a file; one of them has a fourth turn."""
    lines = []
    for row in range(count):
        turns = [
            ("user", f"when does train {row} leave", "request"),
            ("assistant", f"it leaves at {row % 24}", "inform"),
        ]
        turns += [("user", "thanks a lot", "thank you"), ("assistant", "well then", "")][: 1 + (row == 0)]
        lines.append(
            {
                "id": f"{name} {row}",
                "domains": [name],
                "messages": [
                    {"role": role, "content": text, "dialogue_acts": [act] if act else []} for role, text, act in turns
                ],
            }
        )
    return lines


def written(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def figures(problem, encoder=None):
    found = problem.measure(encoder or TfidfEncoder(), [0])
    assert {measurement.task for measurement in found} == {"flow-extraction"}
    return {(measurement.metric, measurement.setting): measurement for measurement in found}


def test_differences_are_shares_of_the_reference():
    assert graph_size_difference([30], [30]) == {"size_difference": 0, "signed_size_difference": 0}
    # Table 6 of the paper, the row of DSE: six domains.
    found = graph_size_difference([21, 19, 12, 34, 43, 33], [31, 23, 18, 49, 59, 45])
    assert round(100 * found["size_difference"], 2) == 27.90
    assert found["signed_size_difference"] == -found["size_difference"]
    assert graph_size_difference([9, 3], [6, 6]) == {"size_difference": 0.5, "signed_size_difference": 0}
    assert graph_size_difference([0, 20], [4, 5])["size_difference"] == 2


def test_what_is_no_size_is_refused():
    with pytest.raises(ValueError, match="predicted: got -1, expected whole numbers from 0 on"):
        graph_size_difference([-1], [1])
    with pytest.raises(ValueError, match=r"expected both \(G,\)"):
        graph_size_difference([[1]], [[1]])


def test_a_graph_counts_states_and_what_follows_them():
    graph = transition_graph([states("aab"), states("b"), []])
    a, b = states("ab")
    assert graph.states == {a: 2, b: 2}
    assert graph.edges == {(START, a): 1, (a, a): 1, (a, b): 1, (START, b): 1, (b, END): 2}


def test_a_state_of_two_percent_is_noise_to_the_paper():
    for times, kept in ((49, 2), (50, 1)):
        graph = without_noise(transition_graph([*([states("a")] * times), states("b")]))
        assert len(graph.states) == kept
        assert all(state in graph.states or state in (START, END) for edge in graph.edges for state in edge)


def test_a_node_below_the_threshold_is_noise_to_the_program_which_counts_start_and_end():
    for times, size in ((43, 4), (44, 3)):  # 1 / 43 = 0.0233, 1 / 44 = 0.0227
        assert official_size(transition_graph([*([states("a")] * times), states("b")])) == size


def test_the_program_takes_out_what_only_noise_leads_to():
    graph = transition_graph([states("a")] * 60 + [states("bc"), states("dc")])
    assert {name for _, name in without_noise(graph).states} == {"a", "c"}  # c occurs twice, b and d once
    assert official_size(graph) == 3
    assert official_size(graph, nodes=0.0) == 3  # the edges from the start to b and d weigh a sixtieth
    assert official_size(graph, nodes=0.0, edges=0.0) == 6


def program_size(trajectories, node_threshold, edge_threshold):
    """What the paper's program does, in networkx and in its order."""
    graph, most = nx.DiGraph(), max(Counter(state for trajectory in trajectories for state in trajectory).values())
    graph.add_nodes_from([START, END], times=most)
    for trajectory in trajectories:
        for source, target in zip([START, *trajectory], [*trajectory, END], strict=True):
            if not graph.has_edge(source, target):
                graph.add_edge(source, target, times=0)
            graph[source][target]["times"] += 1
            if target != END:
                graph.nodes[target]["times"] = graph.nodes[target].get("times", 0) + 1
    for node in graph:
        outward = graph.out_edges(node, data=True)
        for _, _, edge in outward:
            edge["weight"] = edge["times"] / max(other["times"] for *_, other in outward)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))

    def drop_unreached():
        between = nx.ancestors(graph, END) & nx.descendants(graph, START)
        graph.remove_nodes_from([node for node in graph if node not in between | {START, END}])

    graph.remove_nodes_from([node for node in graph if graph.nodes[node]["times"] / most < node_threshold])
    drop_unreached()
    graph.remove_edges_from([(a, b) for a, b, edge in graph.edges(data=True) if edge["weight"] < edge_threshold])
    drop_unreached()
    return len(graph)


@pytest.mark.parametrize("seed", range(20))
def test_the_count_of_the_program_agrees_with_networkx(seed):
    generator = np.random.default_rng(seed)
    flow = random_flow(generator)
    trajectories = [[(turn.role, turn.action) for turn in turns] for turns in flow]
    for thresholds in ((0.023, 0.02), (0.1, 0.2), (0.3, 0.5), (0.0, 0.9)):
        assert official_size(transition_graph(trajectories), *thresholds) == program_size(trajectories, *thresholds)


def test_edges_agree_as_often_as_they_occur():
    one, other = transition_graph([states("ab")]), transition_graph([states("ac"), states("ac")])
    assert edge_f1(one, one) == 1
    assert edge_f1(one, other) == edge_f1(other, one) == 2 * 1 / 9  # of 3 and 6 edges, one from the start is shared
    assert edge_f1(renamed(one, {("user", "b"): ("user", "c")}), other) == 2 * 3 / 9
    assert edge_f1(transition_graph([]), one) == 0
    assert edge_f1(transition_graph([]), transition_graph([])) == 1


def test_states_that_get_one_name_become_one():
    merged = renamed(transition_graph([states("aba")]), {("user", "b"): ("user", "a")})
    assert merged == transition_graph([states("aaa")])


def test_true_clusters_give_the_reference_graph():
    flow = random_flow(np.random.default_rng(0))
    found = compare_flow(flow, true_clusters(flow))
    assert found["nodes"] == found["reference_nodes"] > 2
    assert found["official_nodes"] == found["official_reference_nodes"] > 4
    assert found["v_measure"] == pytest.approx(1)
    assert found["adjusted_rand"] == found["edge_f1"] == 1
    assert found["transition_divergence"] == 0
    assert found["next_action_perplexity"] == found["reference_next_action_perplexity"]


def test_one_cluster_for_all_is_too_small_a_graph():
    flow = flow_of(*[[ASK, TELL, THANK]] * 50)
    found = compare_flow(flow, [0] * 150)
    assert (found["nodes"], found["reference_nodes"]) == (2, 3)
    assert (found["official_nodes"], found["official_reference_nodes"]) == (4, 5)
    assert found["v_measure"] == 0.5  # none for the user's two actions, 1 for the assistant's only one
    # Start to ask and ask to tell are right; tell to ask again and its end after asking are not.
    assert found["edge_f1"] == 0.5
    assert found["adjusted_rand"] == 0.5
    # Start and tell have a divergence of 0 and 1. After ask, half of all is tell and half the end, not tell alone;
    # it is half of what clusters say and a quarter of the actions. Thanks, the other quarter, is no cluster.
    after_ask = (np.log2(2 / 1.5) + 0.5 * np.log2(0.5 * 2 / 1.5) + 0.5 * np.log2(2)) / 2
    assert found["transition_divergence"] == pytest.approx(0.25 * 1 + 0.375 * after_ask + 0.125)


def test_one_role_alone_has_a_flow():
    flow = [[Utterance("assistant", action, action) for action in (ASK, TELL, THANK)]] * 50
    found = compare_flow(flow, cluster_utterances(flow, np.tile(np.eye(3), (50, 1))))
    assert found["nodes"] == found["reference_nodes"] == 3
    assert found["v_measure"] == found["edge_f1"] == 1


def test_a_domain_of_one_action_is_one_cluster():
    flow = [[Utterance("user", "hello", "greeting")]] * 50
    assert cluster_utterances(flow, np.random.default_rng(0).normal(size=(50, 4))) == [0] * 50
    found = compare_flow(flow, [0] * 50)
    # Each fifth is foretold from 40 dialogues, all of which end after one utterance; two things may follow it.
    perplexity = pytest.approx((40 + 1) / (40 + (40 + 1 / 2) / (40 + 1)))
    assert found == {
        "nodes": 1, "reference_nodes": 1, "official_nodes": 3, "official_reference_nodes": 3,
        "v_measure": 1, "adjusted_rand": 1, "edge_f1": 1, "transition_divergence": 0,
        "next_action_perplexity": perplexity, "reference_next_action_perplexity": perplexity,
    }  # fmt: skip


def test_clusters_are_directions_each_role_its_own():
    generator = np.random.default_rng(2)
    flow = random_flow(generator)
    letters = "abcdefgh"
    rows = [letters.index(turn.action) for turns in flow for turn in turns]
    vectors = np.eye(8)[rows] * generator.uniform(0.1, 10, (len(rows), 1)) + generator.normal(0, 0.001, (len(rows), 8))
    found = compare_flow(flow, cluster_utterances(flow, vectors))
    assert found["v_measure"] == pytest.approx(1)
    assert found["nodes"] == found["reference_nodes"]


def test_vectors_without_direction_point_along_the_first_axis():
    flow = [[Utterance("user", "a", "x"), Utterance("user", "b", "y"), Utterance("user", "c", "x")]]
    first, second, third = cluster_utterances(flow, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    assert first == third != second


def test_what_does_not_fit_the_utterances_is_refused():
    flow = flow_of([ASK, TELL])
    with pytest.raises(ValueError, match=r"got shape \(3, 2\), expected \(2, D\)"):
        cluster_utterances(flow, np.ones((3, 2)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        cluster_utterances(flow, np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="clusters: got 1, expected 2"):
        compare_flow(flow, [0])


def test_flows_are_annotated_turns_by_domain_in_an_order_of_their_own():
    hello = Turn("user", "Hello.", ("greet",))
    first = Dialogue(
        (hello, Turn("assistant", "Well."), Turn("user", "When?", ("request",), (("time", "?"),))), "1", ("b",)
    )
    second, third = Dialogue((hello,), "2", ("b",)), Dialogue((Turn("user", "Well."),), "3", ("a",))
    flows = annotated_flows([first, second, third])
    short = [Utterance("user", "Hello.", "greeting")]
    assert flows == {"b": [short, [*short, Utterance("user", "When?", "request time")]]}
    assert annotated_flows([third, second, first]) == flows


def test_figures_of_a_file(tmp_path):
    lines = domain("train", 60) + domain("bus", 50) + domain("taxi", 49)
    problem = load_flows(CorpusPart(written(tmp_path / "own.jsonl", lines)))
    sizes = {"actions": 3, "nodes": 3, "official_nodes": 5}
    assert problem.config["domains"] == {
        "bus": {"dialogues": 50, "utterances": 150, **sizes}, "train": {"dialogues": 60, "utterances": 180, **sizes},
    }  # fmt: skip
    assert problem.config["smaller_domains"] == 1
    assert problem.config["texts"] == 60 + 24 + 1
    found = figures(problem)
    perplexities = {"next_action_perplexity", "reference_next_action_perplexity"}
    lower = perplexities | {"size_difference", "transition_divergence"}
    assert {metric for metric, _ in found} == lower | {"v_measure", "adjusted_rand", "edge_f1"}
    assert [setting for metric, setting in found if metric == "size_difference"] == [
        "", "official", "bus", "train", "official, bus", "official, train",
    ]  # fmt: skip
    for (metric, setting), measurement in found.items():
        assert (measurement.n, measurement.std) == (1, None)
        if setting == "":
            assert measurement.mean == np.mean([found[metric, name].mean for name in ("bus", "train")])
        expected = 1 if metric in perplexities else 0 if metric in lower else 100
        assert measurement.mean == pytest.approx(expected, rel=0.1), (metric, setting)
        (row,) = rows_of("m", "c", "test", [measurement])
        assert column_of(row).lower_is_better == (metric in lower)


def test_the_order_of_dialogues_does_not_matter(tmp_path):
    lines = domain("train", 70) + domain("bus", 55)
    shuffled = [lines[row] for row in np.random.default_rng(0).permutation(len(lines))]
    for limit in (None, 60, 40):
        one, other = (
            load_flows(CorpusPart(written(tmp_path / "own.jsonl", order), None, "test", limit))
            for order in (lines, shuffled)
        )
        assert one.config == other.config
        assert figures(one) == figures(other)


def test_a_limit_keeps_whole_domains_or_a_sample_of_the_first(tmp_path):
    path = written(tmp_path / "own.jsonl", [line for name in "abc" for line in domain(name, 50)])
    counts = [
        [sizes["dialogues"] for sizes in load_flows(CorpusPart(path, None, "test", limit)).config["domains"].values()]
        for limit in (1, 50, 99, 100, 150, None)
    ]
    assert counts == [[1], [50], [50], [50, 50], [50, 50, 50], [50, 50, 50]]


def test_large_domains_are_cut_to_what_clustering_can_hold(tmp_path, monkeypatch):
    path = written(tmp_path / "own.jsonl", domain("train", 60))
    monkeypatch.setattr(flow_extraction, "MOST_UTTERANCES", 41)
    config = load_flows(CorpusPart(path)).config
    assert config["domains"]["train"]["dialogues"] == 20  # the user speaks twice in each
    assert config["most_utterances"] == 41


def test_everything_is_encoded_in_one_call(tmp_path):
    calls = []

    class Recording(TfidfEncoder):
        def encode(self, dialogues):
            calls.append(len(dialogues))
            return super().encode(dialogues)

    problem = load_flows(
        CorpusPart(written(tmp_path / "own.jsonl", domain("a", 50) + domain("b", 50)), None, "test", None)
    )
    figures(problem, Recording())
    assert calls == [problem.config["texts"]]


def test_too_few_dialogues_are_refused(tmp_path):
    with pytest.raises(InputError, match="got 49 dialogues in the largest domain, expected at least 50"):
        load_flows(CorpusPart(written(tmp_path / "own.jsonl", domain("train", 49))))
    plain = [{**line, "domains": ["train", "bus"]} for line in domain("train", 60)]
    with pytest.raises(InputError, match="got 0 dialogues in the largest domain"):
        load_flows(CorpusPart(written(tmp_path / "own.jsonl", plain)))


def test_where_no_dialogue_has_a_domain_all_are_of_one(tmp_path):
    lines = domain("train", 50)
    within = figures(load_flows(CorpusPart(written(tmp_path / "with.jsonl", lines))))
    without = [{name: value for name, value in line.items() if name != "domains"} for line in lines]
    problem = load_flows(CorpusPart(written(tmp_path / "without.jsonl", without)))
    assert list(problem.config["domains"]) == ["all"]
    assert figures(problem)["v_measure", ""].mean == within["v_measure", ""].mean


@real
def test_the_evaluation_file_of_the_paper_is_a_set_of_single_utterances(data_dir):
    problem = load_flows(CorpusPart("dialog2flow_evaluation", data_dir, "test", None))
    # Its 313 labels name 282 actions: some differ in the order of acts or slots alone.
    sizes = {"dialogues": 4695, "utterances": 4695, "actions": 282, "nodes": 282, "official_nodes": 284}
    assert problem.config["domains"] == {"all": sizes}


@pytest.mark.slow
@real
def test_figures_on_multiwoz(data_dir):
    problem = load_flows(CorpusPart("multiwoz", data_dir, "test", None))
    sizes = problem.config["domains"]
    assert {name: found["dialogues"] for name, found in sizes.items()} == {"hotel": 67, "restaurant": 62, "taxi": 52}
    assert sizes["taxi"] == {"dialogues": 52, "utterances": 377, "actions": 47, "nodes": 29, "official_nodes": 31}
    assert problem.config["smaller_domains"] == 2
    found = figures(problem)
    assert len(found) == 8 + 8 * 3
    assert 50 < found["v_measure", ""].mean < 90
    assert 10 < found["adjusted_rand", ""].mean < 60
    assert 10 < found["edge_f1", ""].mean < 60
    assert 0.3 < found["transition_divergence", ""].mean < 0.9
    reference = found["reference_next_action_perplexity", ""].mean
    assert 5 < reference < found["next_action_perplexity", ""].mean < 60
    assert figures(problem) == found
