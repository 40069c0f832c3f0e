"""Where a conversation is in a flow, and what comes next: closed forms, and a plain search."""

from __future__ import annotations

import numpy as np
import pytest
from flow_words import flow_of, named, random_words, state_of

from hf_dialemb.flow.flow import flow_of_actions, read_utterances
from hf_dialemb.flow.graph import END
from hf_dialemb.flow.next import assign, next_actions
from hf_dialemb.flow.paths import widest_path
from hf_dialemb.flow.pruning import PAPER, pruned
from hf_dialemb.models.errors import InputError


def chances(flow, history, top=99):
    found = next_actions(flow, [state_of(flow, letter) for letter in history], top)
    return {named(flow, [one.state]): one.probability for one in found}


def test_an_utterance_is_in_the_nearest_cluster_of_its_role():
    flow = flow_of("aAbBc")
    centroids = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1], "A": [1, 1, 0], "B": [0, 0, 5]}
    means = np.array([centroids[cluster.name] for cluster in flow.clusters], dtype=np.float32)
    vectors = np.array([[9, 8, 0], [9, 8, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])
    labels = assign(vectors, ["user", "assistant", "user", "assistant", "user"], means, flow.clusters)
    assert (labels.dtype, labels.shape) == (np.int32, (5,))
    assert "".join(flow.clusters[label].name for label in labels) == "aAcBa"
    assert assign(np.zeros((0, 3)), [], means, flow.clusters).shape == (0,)
    with pytest.raises(InputError, match="field role: got 'speaker_3', expected one of assistant, user"):
        assign(np.ones((1, 3)), ["speaker_3"], means, flow.clusters)


def test_assignment_is_that_of_a_plain_search():
    generator = np.random.default_rng(0)
    flow = flow_of("abcABCD")
    vectors, means = generator.normal(size=(50, 6)), generator.normal(size=(7, 6))
    roles = [("user", "assistant")[row % 2] for row in range(50)]
    for label, vector, role in zip(assign(vectors, roles, means, flow.clusters), vectors, roles, strict=True):
        cosines = means @ vector / np.linalg.norm(means, axis=1)
        allowed = [place for place, cluster in enumerate(flow.clusters) if cluster.role == role]
        assert label == max(allowed, key=lambda place: cosines[place])


def test_the_last_two_states_decide_and_what_was_never_seen_is_foretold_from_less():
    flow = flow_of(*["aAbB"] * 10, *["cAcC"] * 10)
    assert max(chances(flow, ""), key=chances(flow, "").get) in "ac"
    after_a, after_c = chances(flow, "aA"), chances(flow, "cA")
    assert after_a["b"] > 0.8 < after_c["c"]
    assert chances(flow, "A")["b"] == pytest.approx(chances(flow, "A")["c"], abs=0.2)
    assert chances(flow, "aAbBaA") == after_a
    flow = flow_of(*["aAb"] * 3, "cB")
    # Nothing followed c and A, so A alone decides: three times b, smoothed to how often all was done: 15 times, each of
    # the six outcomes at least once.
    unigram = (3 + 6 * (1 / 6)) / (15 + 6)
    assert chances(flow, "cA")["b"] == pytest.approx((3 + 1 * unigram) / (3 + 1))


@pytest.mark.parametrize("seed", range(3))
def test_chances_sum_to_one_and_fall(seed):
    flow = flow_of(*random_words(seed))
    for history in ("", "a", "aA", "DD", "abc"):
        found = chances(flow, history)
        assert set(found) == {*(cluster.name for cluster in flow.clusters), ">"}
        assert sum(found.values()) == pytest.approx(1)
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert min(found.values()) > 0


def test_the_end_can_be_next_and_what_is_unknown_is_told():
    flow = flow_of(*["aA"] * 5)
    (first,) = next_actions(flow, flow.trajectories[0], top=1)
    assert (first.state, first.name) == (END, "end")
    assert first.probability > 0.8
    with pytest.raises(InputError, match=r"Unknown state 'user-2'\. Did you mean 'user-1'"):
        next_actions(flow, [("user", "user-2")])
    with pytest.raises(InputError, match="Unknown state"):
        next_actions(flow, [END])
    with pytest.raises(InputError, match="field top: got 0, expected at least 1"):
        next_actions(flow, [], top=0)


def test_next_actions_and_the_main_path_of_a_real_domain(data_dir):
    from hf_dialemb.corpora import load_dialogues, single_domain

    dialogues = [one for one in single_domain(load_dialogues("multiwoz", data_dir, "test")) if one.domains == ("taxi",)]
    flow = flow_of_actions(read_utterances(dialogues))
    thanks = next(cluster for cluster in flow.clusters if cluster.name == "thank you" and cluster.role == "user")
    found = next_actions(flow, [thanks.state], top=3)
    assert len(found) == 3
    assert END in {one.state for one in found} or all(one.state[0] == "assistant" for one in found)
    graph = pruned(flow.graph, PAPER)
    assert 20 < len(graph.states) < len(flow.clusters)
    assert not widest_path(graph).same_role
