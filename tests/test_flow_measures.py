"""How good a flow is, and how two sets of dialogues differ: closed forms, scikit-learn, scipy and plain programs."""

from math import log2

import numpy as np
import pytest
from flow_words import flow_of, graph, random_words, state_of, states
from scipy import stats
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import adjusted_rand_score

from hf_dialemb.flow.comparison import compared, graph_of
from hf_dialemb.flow.graph import END, START, FlowGraph
from hf_dialemb.flow.measures import FOLDS, compared_with_actions, next_action_perplexity, transition_divergence


def renamed(words, table):
    return ["".join(table.get(letter, letter) for letter in word) for word in words]


def perplexity(words, table=None):
    return next_action_perplexity(states(*renamed(words, table or {})), states(*words))


def test_one_cluster_for_all_is_too_small_a_graph():
    found = compared_with_actions(states(*["aAa"] * 50), states(*["aAb"] * 50))
    assert (found["nodes"], found["reference_nodes"]) == (2, 3)
    assert (found["official_nodes"], found["official_reference_nodes"]) == (4, 5)
    # V: none for the user's two actions, 1 for the assistant's only one. Edges: start to a and a to A are right; A to
    # a again and its end after a are not.
    assert found["v_measure"] == found["edge_f1"] == found["adjusted_rand"] == 0.5
    # Start and A have a divergence of 0 and 1. After a, half of all is A and half the end, not A alone; it is half of
    # what clusters say and a quarter of the actions. b, the other quarter, is no cluster.
    after_a = (np.log2(2 / 1.5) + 0.5 * np.log2(0.5 * 2 / 1.5) + 0.5 * np.log2(2)) / 2
    assert found["transition_divergence"] == pytest.approx(0.25 * 1 + 0.375 * after_a + 0.125)


def test_one_action_alone_is_a_flow():
    words = states(*["a"] * 50)
    # Each fifth is foretold from 40 dialogues, all of which end after one utterance; two things may follow it.
    perplexity = pytest.approx((40 + 1) / (40 + (40 + 1 / 2) / (40 + 1)))
    assert compared_with_actions(words, words) == {
        "nodes": 1, "reference_nodes": 1, "official_nodes": 3, "official_reference_nodes": 3,
        "v_measure": 1, "adjusted_rand": 1, "edge_f1": 1, "transition_divergence": 0,
        "next_action_perplexity": perplexity, "reference_next_action_perplexity": perplexity,
    }  # fmt: skip


def test_names_of_clusters_do_not_matter_and_the_rand_index_is_the_mean_over_roles():
    words = random_words(1)
    other = renamed(words, dict(zip("abcABCD", "bcaDABC", strict=True)))
    same = compared_with_actions(states(*words), states(*words))
    assert compared_with_actions(states(*other), states(*words)) == pytest.approx(same, abs=1e-12)
    clusters = renamed(words, {"b": "a", "C": "D"})
    expected = []
    for letters in ("abc", "ABCD"):
        pairs = [pair for pair in zip("".join(words), "".join(clusters), strict=True) if pair[0] in letters]
        expected.append(adjusted_rand_score(*zip(*pairs, strict=True)))
    found = compared_with_actions(states(*clusters), states(*words))["adjusted_rand"]
    assert found == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("seed", range(5))
def test_divergence_agrees_with_scipy(seed):
    one, other = (graph(*random_words(seed + shift, 20)) for shift in (0, 100))
    names = sorted({state for either in (one, other) for edge in either.edges for state in edge})
    tables = [np.array([[either.edges.get((a, b), 0) for b in names] for a in names], float) for either in (one, other)]
    expected = 0.0
    for row, state in enumerate(names):
        weight = sum(table[row].sum() / table.sum() for table in tables) / 2
        if state != END and weight:
            there = all(table[row].any() for table in tables)
            expected += weight * (jensenshannon(tables[0][row], tables[1][row], base=2) ** 2 if there else 1)
    assert transition_divergence(one, other) == pytest.approx(expected)
    assert transition_divergence(other, one) == pytest.approx(expected)
    # The start leads to other states, and these are in one graph alone.
    assert transition_divergence(graph("aA"), graph("bB")) == pytest.approx(1)


def test_perplexity_is_that_of_a_plain_program():
    words = random_words(4, 23)
    clusters = renamed(words, {"b": "a", "D": "C"})
    steps = [list(zip(found, true[1:] + ">", strict=True)) for found, true in zip(clusters, words, strict=True)]
    part = np.random.default_rng(0).permutation(len(words)) % FOLDS
    outcomes, bits = {*"".join(words), ">"}, []
    for row, own in enumerate(steps):
        known = [step for other, each in enumerate(steps) if part[other] != part[row] for step in each]
        every = [outcome for _, outcome in known]
        for state, action in own:
            here = [outcome for before, outcome in known if before == state]
            chance = (every.count(action) + len(set(every)) / len(outcomes)) / (len(every) + len(set(every)))
            if here:
                chance = (here.count(action) + len(set(here)) * chance) / (len(here) + len(set(here)))
            bits.append(-log2(chance))
    assert perplexity(words, {"b": "a", "D": "C"}) == pytest.approx(2 ** np.mean(bits))


def test_transitions_of_two_sets_are_two_proportions():
    found = compared(graph(*["aA"] * 30, *["aB"] * 10), graph(*["aA"] * 15, *["aB"] * 25))
    edge = found[0]
    assert (edge.counts, edge.shares, edge.difference) == ((30, 15), (0.75, 0.375), -0.375)
    p = stats.fisher_exact([[30, 10], [15, 25]]).pvalue
    assert edge.p == pytest.approx(p)
    assert edge.corrected_p == pytest.approx(5 * p)  # the least p of five transitions; the other has the same
    assert [one.difference for one in found] == [-0.375, 0.375, 0, 0, 0]
    assert [one.corrected_p for one in found[2:]] == [1, 1, 1]
    assert found[1].corrected_p == found[0].corrected_p  # 4 p, but none is less than one before


def test_what_may_be_chance_comes_after_what_is_not():
    surely = compared(graph(*["aA"] * 200, *["aB"] * 100, "bC"), graph(*["aA"] * 100, *["aB"] * 200, "bD"))
    assert [round(abs(one.difference), 2) for one in surely[:4]] == [0.33, 0.33, 1, 1]
    assert surely[2].corrected_p > 0.05 > surely[1].corrected_p
    unseen = next(one for one in surely if one.source == ("assistant", "C"))
    assert (unseen.counts, unseen.shares, unseen.difference, unseen.p) == ((1, 0), (1, None), None, 1)
    assert [one.difference is None for one in surely] == [False] * (len(surely) - 2) + [True] * 2
    same = graph(*random_words(5))
    found = compared(same, same)
    assert len(found) == len(same.edges)
    assert {(one.difference, one.p, one.corrected_p) for one in found} == {(0, 1, 1)}
    assert compared(graph(), graph()) == []


@pytest.mark.parametrize("counts", [((1, 199), (1, 1)), ((0, 3), (3, 0)), ((40, 10), (15, 25)), ((7, 0), (9, 0))])
def test_transitions_are_compared_by_the_exact_test(counts):
    one, *_ = compared(*(FlowGraph({}, {("a", str(place)): n for place, n in enumerate(each)}) for each in counts))
    assert one.p == pytest.approx(stats.fisher_exact(counts).pvalue)
    if counts == ((1, 199), (1, 1)):
        assert one.p == pytest.approx(0.0198, abs=1e-4)  # where a normal curve would say 2e-12


def test_some_dialogues_of_a_flow_have_a_graph():
    flow = flow_of("aA", "aB", "aA")
    a, b = state_of(flow, "A"), state_of(flow, "B")
    assert graph_of(flow, ["d1", "d3"]).states == {state_of(flow, "a"): 2, a: 2}
    assert graph_of(flow, ["d2"]).edges[b, END] == 1
    assert graph_of(flow, flow.utterances.dialogues) == flow.graph
    assert (START, a) not in graph_of(flow, []).edges
