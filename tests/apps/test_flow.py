"""What a flow is made of, the same from disk and in memory: its clusters, what comes next.

Parity with scikit-learn and scipy, closed forms, the choice of a number, how two sets differ.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from flow_words import ORDER, angles, flow_of, flow_of_turns, graph, named, random_words, state_of
from scipy import stats
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from hf_dialemb.apps.flow import flow_clustering
from hf_dialemb.apps.flow.extract import extract_flow
from hf_dialemb.apps.flow.flow import read_utterances, restricted_to
from hf_dialemb.apps.flow.flow_clustering import (
    average_linkage,
    cluster,
    cluster_by_role,
    cut,
    grouped_leaves,
    in_order,
)
from hf_dialemb.apps.flow.flow_comparison import compared
from hf_dialemb.apps.flow.flow_folder import read_flow, write_flow
from hf_dialemb.apps.flow.graph import END, FlowGraph
from hf_dialemb.apps.flow.new_dialogues import assign, next_actions
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError

HELLO, TAXI = Turn("user", "hello", ("greet",)), Turn("user", "I need a  taxi", ("request",))
WHERE, BYE = Turn("assistant", "Where to?", ("request",)), Turn("assistant", "bye")
DIALOGUES = [
    Dialogue((HELLO, WHERE, TAXI), "a"),
    Dialogue((TAXI, WHERE, TAXI, BYE)),
    Dialogue((BYE,), "c"),
]


def test_utterances_are_in_order_and_know_their_dialogue():
    said = read_utterances(DIALOGUES)
    assert (said.dialogues, said.places.tolist()) == (
        ("a", "dialogue 2", "c"),
        [0, 0, 0, 1, 1, 1, 1, 2],
    )
    assert (said.texts[2], list(said.rows_of(1))) == ("I need a taxi", [3, 4, 5, 6])
    rows = {role: rows.tolist() for role, rows in said.rows_by_role().items()}
    assert rows == {"assistant": [1, 4, 6, 7], "user": [0, 2, 3, 5]}
    part = restricted_to(said, np.array([1, 6, 7]))
    assert (part.dialogues, part.texts) == (("a", "dialogue 2", "c"), ("Where to?", "bye", "bye"))
    assert restricted_to(part, np.array([2])).dialogues == ("c",)
    with pytest.raises(InputError, match="dialogue 2: field id: got 'a' a second time"):
        read_utterances([DIALOGUES[0], DIALOGUES[0]])


def test_a_flow_reads_back(tmp_path):
    flow = replace(flow_of_turns(ORDER, "taxis"), settings={"model": "m", "seed": 1})
    stored = replace(flow, centroids=np.eye(len(flow.clusters), 7, dtype=np.float32))
    write_flow(stored, tmp_path / "flow")
    found = read_flow(tmp_path / "flow")
    for name in ("title", "clusters", "settings", "trajectories"):
        assert getattr(found, name) == getattr(stored, name)
    assert found.utterances.texts == stored.utterances.texts
    np.testing.assert_array_equal(found.centroids, stored.centroids)


def chances(flow, history, top=99):
    found = next_actions(flow, [state_of(flow, letter) for letter in history], top)
    return {named(flow, [one.state]): one.probability for one in found}


def test_an_utterance_is_in_the_nearest_cluster_of_its_role():
    flow = flow_of("aAbBc")
    centroids = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1], "A": [1, 1, 0], "B": [0, 0, 5]}
    means = np.array([centroids[cluster.name] for cluster in flow.clusters], dtype=np.float32)
    vectors = np.array([[9, 8, 0], [9, 8, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])
    labels = assign(
        vectors, ["user", "assistant", "user", "assistant", "user"], means, flow.clusters
    )
    assert (labels.dtype, labels.shape) == (np.int32, (5,))
    assert "".join(flow.clusters[label].name for label in labels) == "aAcBa"
    assert assign(np.zeros((0, 3)), [], means, flow.clusters).shape == (0,)
    with pytest.raises(
        InputError, match="field role: got 'speaker_3', expected one of assistant, user"
    ):
        assign(np.ones((1, 3)), ["speaker_3"], means, flow.clusters)


def test_the_last_two_states_predict_the_next_by_smoothed_chances():
    flow = flow_of(*["aAbB"] * 10, *["cAcC"] * 10)
    assert chances(flow, "aA")["b"] > 0.8 < chances(flow, "cA")["c"]
    assert chances(flow, "aAbBaA") == chances(flow, "aA")
    flow = flow_of(*["aAb"] * 3, "cB")
    # Nothing followed c and A, so A alone decides: three times b, smoothed to how often all was
    # done: 15 times, each of the six outcomes at least once.
    unigram = (3 + 6 * (1 / 6)) / (15 + 6)
    assert chances(flow, "cA")["b"] == pytest.approx((3 + 1 * unigram) / (3 + 1))
    flow = flow_of(*random_words(0))
    for history in ("", "a", "aA", "DD", "abc"):
        found = chances(flow, history)
        assert set(found) == {*(cluster.name for cluster in flow.clusters), ">"}
        assert sum(found.values()) == pytest.approx(1)
        assert list(found.values()) == sorted(found.values(), reverse=True)
    flow = flow_of(*["aA"] * 5)
    (first,) = next_actions(flow, flow.trajectories[0], top=1)
    assert (first.state, first.name) == (END, "end")


def test_transitions_of_two_sets_are_compared_exactly():
    found = compared(graph(*["aA"] * 30, *["aB"] * 10), graph(*["aA"] * 15, *["aB"] * 25))
    edge = found[0]
    assert (edge.counts, edge.shares, edge.gain) == ((30, 15), [0.75, 0.375], -0.375)
    p = stats.fisher_exact([[30, 10], [15, 25]]).pvalue
    # the least p of five transitions; the other has the same, but none is less than one before
    assert [own.p for own in found] == pytest.approx([5 * p, 5 * p, 1, 1, 1])
    assert [own.gain for own in found] == [-0.375, 0.375, 0, 0, 0]
    counts = (1, 199), (1, 1)
    change, *_ = compared(
        *(FlowGraph({}, {("a", str(place)): n for place, n in enumerate(own)}) for own in counts)
    )
    assert change.p == pytest.approx(2 * 0.0198, abs=2e-4)  # a normal curve would say 2e-12


class ByWords:
    """One axis for each word, and a little for all others."""

    def encode_utterances(self, utterances):
        return np.array(
            [
                [word in text for word in ("hello", "taxi", "where", "station", "thanks", "bye")]
                + [0.01 * len(text)]
                for text in utterances
            ],
            np.float64,
        )


@pytest.fixture
def taxis():
    """Dialogues about taxis."""
    said = [
        ("user", "hello"),
        ("assistant", "where to?"),
        ("user", "to the station"),
        ("assistant", "bye"),
    ]
    asked = [("user", "a taxi please"), ("assistant", "where to?"), ("user", "the <b>station</b>")]
    made = [
        tuple(Turn(role, text) for role, text in (said, asked)[number % 3 == 0])
        for number in range(9)
    ]
    return [Dialogue(turns, id=f"d{number}") for number, turns in enumerate(made)]


def test_dialogues_in_memory_have_states_and_a_page(taxis, tmp_path):
    found = extract_flow(
        taxis, ByWords(), clusters={"user": 3}, nodes=0, edges=0, title="Taxi <calls>"
    )
    sizes = {cluster.name: cluster.size for cluster in found.flow.clusters}
    assert sizes == {"hello": 6, "to the station": 9, "a taxi please": 3, "where to?": 9, "bye": 6}
    found.page(tmp_path / "page.html")
    assert "where to?" in (tmp_path / "page.html").read_text()
    assert repr(found) == "Taxi <calls>: 9 dialogues, 33 utterances, 5 states"


WRONG = SimpleNamespace(encode_utterances=lambda texts: np.full((len(texts), 3), np.nan))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"encoder": WRONG}, "got NaN or infinity, expected a vector of finite numbers"),
        ({"vectors": np.ones((32, 3))}, r"expected floats of shape \(33, D\)"),
        ({"vectors": np.full((33, 3), 1e200)}, "got NaN or infinity"),
    ],
)
def test_what_is_wrong_is_one_sentence(taxis, given, sentence):
    with np.errstate(over="ignore"), pytest.raises(InputError, match=sentence):
        extract_flow(taxis, **given)


def test_ready_vectors_are_taken(taxis):
    assert len(extract_flow(taxis, vectors=np.ones((33, 3))).flow.clusters) >= 2


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def bundles(count, size, width=8, spread=0.3, seed=0):
    """Vectors of `count` directions, `size` of each, in random order, and which direction each is
    of."""
    generator = np.random.default_rng(seed)
    of = generator.permutation(np.repeat(np.arange(count), size))
    return generator.standard_normal((count, width))[of] + spread * generator.standard_normal(
        (count * size, width)
    ), of


def count(found):
    return found.labels.max() + 1


def same_partition(labels, vectors, n_clusters=None, **settings):
    theirs = AgglomerativeClustering(
        n_clusters, metric="cosine", linkage="average", **settings
    ).fit_predict(vectors)
    return adjusted_rand_score(labels, theirs) == 1


@pytest.mark.parametrize("size", [2, 3, 10, 129, 700])
def test_merges_are_those_of_scipy(size):
    vectors = normal(size, 5, seed=size)
    merges = average_linkage(unit(vectors), np.ones(size))
    expected = linkage(pdist(vectors, "cosine"), "average")
    np.testing.assert_allclose(merges[:, 2], expected[:, 2], atol=1e-12)
    for number in {1, 2, size // 3 + 1, size}:
        theirs = fcluster(expected, number, "maxclust")
        np.testing.assert_array_equal(cut(merges, number), in_order(theirs))


@pytest.mark.parametrize(("size", "width"), [(2, 2), (30, 4), (600, 16)])
def test_partitions_are_those_of_scikit_learn(size, width):
    generator = np.random.default_rng(size)
    distinct = generator.standard_normal((size, width)) * generator.lognormal(size=(size, 1))
    vectors = distinct[generator.integers(size, size=2 * size)]
    for number in sorted({1, 2, size // 10 + 1, size // 2}):
        assert same_partition(cluster(vectors, clusters=number).labels, vectors, n_clusters=number)
    for threshold in (0.05, 0.4, 0.9, 3):
        ours = cluster(vectors, threshold=threshold)
        assert same_partition(ours.labels, vectors, distance_threshold=threshold)


def test_distances_are_means_of_weighted_leaves_in_any_order():
    merges = average_linkage(angles(0, 60, 90), np.array([1, 1, 2]))
    np.testing.assert_allclose(merges[:, 2], [1 - np.sqrt(3) / 2, 1 - 0.5 / 3])
    np.testing.assert_array_equal(cut(merges, 2), [0, 1, 1])
    vectors, _ = bundles(9, 11)
    expected, order = cluster(vectors).labels, np.random.default_rng(0).permutation(len(vectors))
    assert adjusted_rand_score(cluster(vectors[order]).labels, expected[order]) == 1
    # which are of the first axis
    zeros = cluster(np.array([[0, 0], [3, 0.0], [0, 1], [0, 2]]), clusters=2)
    np.testing.assert_array_equal(zeros.labels, [0, 0, 1, 1])
    assert zeros.merges[0, 2] == 0


@pytest.mark.parametrize("count", [3, 12, 40])
def test_clusters_that_lie_apart_are_found_without_a_number(count):
    vectors, of = bundles(count, 6, width=64, spread=0.15)
    found = cluster(vectors)
    assert found.sentence.startswith(f"{count} clusters, where the curve of distances bends")
    assert adjusted_rand_score(found.labels, of) == 1


@pytest.mark.parametrize("vectors", [np.ones((1, 3)), np.ones((5, 3)), np.zeros((2, 3))])
@pytest.mark.parametrize("settings", [{}, {"threshold": 0.5}, {"clusters": 1}])
def test_identical_utterances_are_one_cluster(vectors, settings):
    np.testing.assert_array_equal(cluster(vectors, **settings).labels, np.zeros(len(vectors)))


def test_roles_are_clustered_for_themselves():
    vectors, _ = bundles(6, 20)
    roles = ["user", "assistant", "user", "user"] * 30
    found = cluster_by_role(vectors, roles, clusters={"user": 5})
    assert list(found) == ["assistant", "user"]
    rows = np.array(roles) == "user"
    np.testing.assert_array_equal(found["user"].labels, cluster(vectors[rows], clusters=5).labels)
    np.testing.assert_array_equal(found["assistant"].labels, cluster(vectors[~rows]).labels)
    both = cluster_by_role(vectors, roles, clusters=3)
    assert [count(found) for found in both.values()] == [3, 3]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"clusters": 3}, "field clusters: got 3, expected at most 2, the different utterances"),
        ({"clusters": 0}, "field clusters: got 0, expected 1 or more"),
        ({"clusters": {"agent": 2}}, "field clusters: got role 'agent', expected one of user"),
    ],
)
def test_what_cannot_be_is_one_sentence(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        cluster_by_role(angles(0, 90, 90), ["user"] * 3, **settings)


def test_many_utterances_are_linked_in_groups_as_they_would_be(monkeypatch):
    vectors, of = bundles(20, 60, width=32)
    leaves, weights = (
        unit(vectors),
        np.random.default_rng(0).integers(1, 4, len(vectors)).astype(float),
    )
    group, means, sizes = grouped_leaves(leaves.astype(np.float32), weights, groups=150, region=300)
    assert len(means) == len(sizes) == group.max() + 1 == 150
    np.testing.assert_allclose(sizes, np.bincount(group, weights))
    for label in range(150):
        rows = group == label
        np.testing.assert_allclose(
            means[label], weights[rows] @ leaves[rows] / sizes[label], atol=1e-6
        )
    assert adjusted_rand_score(cut(average_linkage(means, sizes), 20)[group], of) == 1
    monkeypatch.setattr(flow_clustering, "MOST_EXACT", 300)
    monkeypatch.setattr(
        grouped_leaves, "__kwdefaults__", {**grouped_leaves.__kwdefaults__, "groups": 100}
    )
    vectors, of = bundles(10, 60, width=32)
    found = cluster(vectors, seed=1)
    assert len(found.merges) == 99
    np.testing.assert_array_equal(found.labels, cluster(vectors, seed=1).labels)
    assert adjusted_rand_score(cluster(vectors, clusters=10).labels, of) == 1
    with pytest.raises(InputError, match="got 101, expected at most 100"):
        cluster(vectors, clusters=101)


@pytest.mark.parametrize("width", [0.7, 0.1])
def test_a_wide_and_large_cluster_with_a_knee_is_split(width):
    far, far_of = bundles(14, 10, width=256, spread=0.75)
    middle = normal(256, seed=2)
    near = [middle + width * normal(256, seed=10 + place) for place in range(5)]
    near = np.repeat(near, 24, axis=0) + 0.01 * normal(120, 256, seed=1)
    found, parts = cluster(np.vstack([far, near])), 5 if width == 0.7 else 1
    assert found.sentence.startswith("15 clusters")
    assert (
        adjusted_rand_score(
            found.labels, np.append(far_of, 14 + np.repeat(np.arange(5) % parts, 24))
        )
        == 1
    )
    sentence = "What held more than 30% of all was split again: 19 in all."
    assert found.sentence.endswith(sentence) == (parts == 5)
    np.testing.assert_array_equal(np.diff(np.unique(found.labels, return_index=True)[1]) > 0, True)
    assert cluster(np.vstack([far, near]), clusters=15).labels.max() == 14
