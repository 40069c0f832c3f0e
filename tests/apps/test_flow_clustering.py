"""Clusters of utterances.

Parity with scikit-learn and scipy, closed forms, the choice of a number, many utterances.
"""

import numpy as np
import pytest
from flow_words import angles
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from hf_dialemb.apps.flow import flow_clustering
from hf_dialemb.apps.flow.flow_clustering import (
    average_linkage,
    cluster,
    cluster_by_role,
    cut,
    grouped_leaves,
    in_order,
)
from hf_dialemb.errors import InputError


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
