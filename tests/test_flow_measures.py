"""How good a flow is, how two sets of dialogues differ, and extraction of flows as a task: closed forms and parity."""

import pytest
from flow_words import flow_of, graph, random_words, state_of
from scipy import stats

from hf_dialemb.flow.graph import END, START, FlowGraph
from hf_dialemb.flow.new_dialogues import compared, graph_of


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
