"""How good a flow is beside annotated actions, and extraction of flows as a task.

Closed forms and parity.
"""

import json
from math import log2

import numpy as np
import pytest
from flow_words import graph, random_words, states
from scipy.spatial.distance import jensenshannon

from hf_dialemb import Dialogue, Turn, load_encoder
from hf_dialemb.apps.flow.graph import END
from hf_dialemb.encoders.word_vectors import TfidfEncoder
from hf_dialemb.evaluation.results.result_tables import column_of
from hf_dialemb.evaluation.results.rows import rows_of
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers.tasks import flow_extraction
from hf_dialemb.papers.tasks.flow_extraction import renamed as renamed_graph


def renamed(words, table):
    return ["".join(table.get(letter, letter) for letter in word) for word in words]


def perplexity(words, table=None):
    return flow_extraction.next_action_perplexity(
        states(*renamed(words, table or {})), states(*words)
    )


def test_one_cluster_for_all_is_too_small_and_one_action_a_flow():
    found = flow_extraction.compared_with_actions(states(*["aAa"] * 50), states(*["aAb"] * 50))
    assert (found["nodes"], found["reference_nodes"]) == (2, 3)
    assert (found["official_nodes"], found["official_reference_nodes"]) == (4, 5)
    # V: none for the user's two actions, 1 for the assistant's only one. Edges: start to a and a to
    # A are right; A to a again and its end after a are not.
    assert found["v_measure"] == found["edge_f1"] == found["adjusted_rand"] == 0.5
    # Start and A have a divergence of 0 and 1. After a, half of all is A and half the end, not A
    # alone; it is half of what clusters say and a quarter of the actions. b, the other quarter, is
    # no cluster.
    after_a = (np.log2(2 / 1.5) + 0.5 * np.log2(0.5 * 2 / 1.5) + 0.5 * np.log2(2)) / 2
    assert found["transition_divergence"] == pytest.approx(0.25 * 1 + 0.375 * after_a + 0.125)
    words = states(*["a"] * 50)
    # Each fifth is foretold from 40 dialogues, all of which end after one utterance; two things may
    # follow it.
    perplexity = pytest.approx((40 + 1) / (40 + (40 + 1 / 2) / (40 + 1)))
    assert flow_extraction.compared_with_actions(words, words) == {
        "nodes": 1,
        "reference_nodes": 1,
        "official_nodes": 3,
        "official_reference_nodes": 3,
        "v_measure": 1,
        "adjusted_rand": 1,
        "edge_f1": 1,
        "transition_divergence": 0,
        "next_action_perplexity": perplexity,
        "reference_next_action_perplexity": perplexity,
    }


def test_measures_ignore_cluster_names():
    words = random_words(1)
    other = renamed(words, dict(zip("abcABCD", "bcaDABC", strict=True)))
    same = flow_extraction.compared_with_actions(states(*words), states(*words))
    assert flow_extraction.compared_with_actions(states(*other), states(*words)) == pytest.approx(
        same, abs=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
def test_divergence_agrees_with_scipy(seed):
    one, other = (graph(*random_words(seed + shift, 20)) for shift in (0, 100))
    names = sorted({state for either in (one, other) for edge in either.edges for state in edge})
    tables = [
        np.array([[either.edges.get((a, b), 0) for b in names] for a in names], float)
        for either in (one, other)
    ]
    expected = 0.0
    for row, state in enumerate(names):
        weight = sum(table[row].sum() / table.sum() for table in tables) / 2
        if state != END and weight:
            there = all(table[row].any() for table in tables)
            expected += weight * (
                jensenshannon(tables[0][row], tables[1][row], base=2) ** 2 if there else 1
            )
    assert flow_extraction.transition_divergence(one, other) == pytest.approx(expected)
    assert flow_extraction.transition_divergence(other, one) == pytest.approx(expected)
    # The start leads to other states, and these are in one graph alone.
    assert flow_extraction.transition_divergence(graph("aA"), graph("bB")) == pytest.approx(1)


def test_perplexity_is_that_of_a_plain_program():
    words = random_words(4, 23)
    clusters = renamed(words, {"b": "a", "D": "C"})
    steps = [
        list(zip(found, true[1:] + ">", strict=True))
        for found, true in zip(clusters, words, strict=True)
    ]
    part = np.random.default_rng(0).permutation(len(words)) % flow_extraction.FOLDS
    outcomes, bits = {*"".join(words), ">"}, []
    for row, own in enumerate(steps):
        known = [
            step for other, each in enumerate(steps) if part[other] != part[row] for step in each
        ]
        every = [outcome for _, outcome in known]
        for state, action in own:
            here = [outcome for before, outcome in known if before == state]
            chance = (every.count(action) + len(set(every)) / len(outcomes)) / (
                len(every) + len(set(every))
            )
            if here:
                chance = (here.count(action) + len(set(here)) * chance) / (
                    len(here) + len(set(here))
                )
            bits.append(-log2(chance))
    assert perplexity(words, {"b": "a", "D": "C"}) == pytest.approx(2 ** np.mean(bits))


PERPLEXITIES = {"next_action_perplexity", "reference_next_action_perplexity"}
LOWER_IS_BETTER = PERPLEXITIES | {"size_difference", "transition_divergence"}


def domain(name, count):
    """Dialogues of one domain as the lines of a file; one of them has a fourth turn."""
    lines = []
    for row in range(count):
        turns = [
            ("user", f"when does train {row} leave", ["request"]),
            ("assistant", f"it leaves at {row % 24}", ["inform"]),
        ]
        turns += [("user", "thanks a lot", ["thank you"]), ("assistant", "well then", [])][
            : 1 + (row == 0)
        ]
        messages = [
            {"role": role, "content": text, "dialogue_acts": acts} for role, text, acts in turns
        ]
        lines.append({"id": f"{name} {row}", "domains": [name], "messages": messages})
    return lines


@pytest.fixture
def load(tmp_path):
    def load(lines, limit=None):
        path = tmp_path / "own.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return flow_extraction.load_flows(CorpusPart(str(path), None, "test", limit))

    return load


def figures(problem, encoder=None):
    found = problem.measure(load_encoder(encoder or TfidfEncoder()), [0])
    assert {measurement.task for measurement in found} == {"flow-extraction"}
    return {(measurement.metric, measurement.setting): measurement for measurement in found}


def test_clusters_are_directions_each_role_its_own():
    generator = np.random.default_rng(2)
    flow = [
        [
            flow_extraction.Utterance(("user", "assistant")[place % 2], action, action)
            for place, action in enumerate(actions)
        ]
        for actions in (
            generator.choice(list("abcdefgh"), generator.integers(1, 9)) for _ in range(60)
        )
    ]
    rows = ["abcdefgh".index(turn.action) for turns in flow for turn in turns]
    vectors = np.eye(8)[rows] * generator.uniform(0.1, 10, (len(rows), 1)) + generator.normal(
        0, 0.001, (len(rows), 8)
    )
    found = flow_extraction.compare_flow(flow, flow_extraction.cluster_utterances(flow, vectors))
    assert found["v_measure"] == pytest.approx(1)
    assert found["nodes"] == found["reference_nodes"]


def test_flows_are_annotated_turns_by_domain_in_an_order_of_their_own():
    hello, when = (
        Turn("user", "Hello.", ("greet",)),
        Turn("user", "When?", ("request",), (("time", "?"),)),
    )
    first = Dialogue((hello, Turn("assistant", "Well."), when), "1", ("b",))
    second, third = Dialogue((hello,), "2", ("b",)), Dialogue((Turn("user", "Well."),), "3", ("a",))
    flows = flow_extraction.annotated_flows([first, second, third])
    short = [flow_extraction.Utterance("user", "Hello.", "greeting")]
    assert flows == {
        "b": [short, [*short, flow_extraction.Utterance("user", "When?", "request time")]]
    }
    assert flow_extraction.annotated_flows([third, second, first]) == flows


def test_figures_of_a_file(load):
    problem, calls = load(domain("train", 60) + domain("bus", 50) + domain("taxi", 49)), []
    sizes = {name: found["dialogues"] for name, found in problem.config["domains"].items()}
    assert sizes == {"bus": 50, "train": 60}  # the smaller one tells no action from noise

    class Recording(TfidfEncoder):
        def encode(self, dialogues):
            calls.append(len(dialogues))
            return super().encode(dialogues)

    found = figures(problem, Recording())
    assert calls == [problem.config["texts"]]  # everything is encoded in one call
    metrics = {*LOWER_IS_BETTER, "v_measure", "adjusted_rand", "edge_f1"}
    assert {metric for metric, setting in found if setting == "bus"} == metrics
    for (metric, setting), measurement in found.items():
        expected = 1 if metric in PERPLEXITIES else 0 if metric in LOWER_IS_BETTER else 100
        assert measurement.mean == pytest.approx(expected, rel=0.1), (metric, setting)
        (row,) = rows_of("m", "c", "test", [measurement])
        assert column_of(row).lower_is_better == (metric in LOWER_IS_BETTER)


def test_a_limit_keeps_whole_domains_in_any_order(load, monkeypatch):
    lines = domain("train", 70) + domain("bus", 55)
    shuffled = [lines[row] for row in np.random.default_rng(0).permutation(len(lines))]
    one, other = (load(order, 60) for order in (lines, shuffled))
    assert one.config == other.config
    assert figures(one) == figures(other)
    lines = [line for name in "abc" for line in domain(name, 50)]
    for limit, kept in (
        (1, [1]),
        (50, [50]),
        (99, [50]),
        (100, [50, 50]),
        (150, [50] * 3),
        (None, [50] * 3),
    ):
        assert [
            sizes["dialogues"] for sizes in load(lines, limit).config["domains"].values()
        ] == kept
    monkeypatch.setattr(flow_extraction, "MOST_UTTERANCES", 41)
    (sizes,) = load(domain("train", 60)).config["domains"].values()
    assert sizes["dialogues"] == 20  # the user speaks twice in each


@pytest.mark.slow
def test_figures_on_multiwoz(data_dir):
    problem = flow_extraction.load_flows(CorpusPart("multiwoz", data_dir, "test", None))
    sizes = {"dialogues": 52, "utterances": 377, "actions": 47, "nodes": 29, "official_nodes": 31}
    assert problem.config["domains"]["taxi"] == sizes
    assert [*problem.config["domains"]] == ["hotel", "restaurant", "taxi"]
    found = figures(problem)
    assert 50 < found["v_measure", ""].mean < 90
    reference = found["reference_next_action_perplexity", ""].mean
    assert 5 < reference < found["next_action_perplexity", ""].mean < 60


def test_states_are_renamed_and_transitions_compared():
    assert renamed_graph(graph("aba"), {("user", "b"): ("user", "a")}) == graph("aaa")
    one, other = graph("ab"), graph("ac", "ac")
    assert flow_extraction.edge_f1(one, one) == flow_extraction.edge_f1(graph(), graph()) == 1
    assert (
        flow_extraction.edge_f1(one, other) == flow_extraction.edge_f1(other, one) == 2 * 1 / 9
    )  # of 3 and 6 edges, one from the start is shared
    assert flow_extraction.edge_f1(graph(), one) == 0


def test_rare_states_are_noise_in_the_paper_and_in_its_program():
    for times, kept in ((49, 2), (50, 1)):  # a state of two percent is noise
        assert len(flow_extraction.without_noise(graph(*["a"] * times, "b")).states) == kept
    for times, size in ((43, 4), (44, 3)):  # 1 / 43 = 0.0233, 1 / 44 = 0.0227
        assert flow_extraction.official_size(graph(*["a"] * times, "b")) == size
    # what only noise leads to goes with it
    assert flow_extraction.official_size(graph(*["a"] * 60, "bc", "dc")) == 3
