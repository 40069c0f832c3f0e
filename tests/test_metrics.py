"""Metrics against scikit-learn, SciPy, brute force and closed forms."""

import numpy as np
import pytest
from metric_vectors import clouds, corners
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score, average_precision_score, normalized_mutual_info_score

from hf_dialemb.metrics.alignment_uniformity.functional import alignment, alignment_uniformity, uniformity
from hf_dialemb.metrics.dialogue_retrieval.functional import retrieval_scores
from hf_dialemb.metrics.purity.functional import (
    adjusted_rand_index,
    cluster_purity,
    mean_cluster_scores,
    normalized_mutual_information,
    official_runs,
    purity,
)
from hf_dialemb.metrics.ranks import average_precision, reciprocal_rank
from hf_dialemb.metrics.semantic_relatedness.functional import (
    binary_spearman,
    pair_relatedness,
    query_relatedness,
    relatedness_scores,
)


@pytest.fixture
def random():
    return np.random.default_rng(0)


def cosines(vectors):
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(norms > 0, norms, 1)
    return np.round(directions @ directions.T, 9)


def others(scores, labels):
    """Yields each query's scores and relevance of all others, labels of one member left out."""
    for row in range(len(labels)):
        kept = np.arange(len(labels)) != row
        same = (labels == labels[row])[kept]
        if same.any():
            yield scores[row][kept], same


# purity


def test_closed_forms_of_purity_and_the_rand_index():
    assert purity(["a", "a", "a", "b", "b", "c"], [0, 0, 1, 1, 1, 2]) == pytest.approx(5 / 6)  # 2 + 2 + 1 of 6
    assert purity([0, 0, 1, 1], ["x", "x", "y", "y"]) == 1.0
    assert purity([0, 0, 1, 1], [7, 7, 7, 7]) == 0.5
    assert adjusted_rand_index(["x", "x", "y", "y"], [1, 1, 0, 0]) == 1
    assert adjusted_rand_index([0, 1, 0, 1], [0, 0, 1, 1]) == -0.5  # no pair agrees: (0 - 2/3) / (2 - 2/3)
    assert adjusted_rand_index([0, 0, 0, 1], [5, 5, 5, 5]) == 0
    scores = cluster_purity(np.ones((4, 2)), [0, 0, 0, 1], seeds=[0])
    assert (scores["purity"], scores["nmi"], scores["ari"]) == ([0.75], [0], [0])
    assert [official_runs(count) for count in (106, 661, 1084, 1331, 2417, 3789)] == [10, 9, 8, 8, 6, 3]


def test_names_and_order_never_matter_and_scikit_learn_agrees(random):
    labels, clusters, order = random.integers(0, 5, 100), random.integers(0, 5, 100), random.permutation(100)
    assert purity(labels, clusters) == purity([f"l{x}" for x in labels[order]], 10 - clusters[order])
    assert normalized_mutual_information(labels, clusters) == normalized_mutual_info_score(labels, clusters)
    assert adjusted_rand_index(labels, clusters) == adjusted_rand_score(labels, clusters)


def test_the_rand_index_of_random_clusters_is_about_zero_and_purity_is_not(random):
    labels, clusters = random.integers(0, 4, (50, 100)), random.integers(0, 4, (50, 100))
    pairs = list(zip(labels, clusters, strict=True))
    assert np.mean([adjusted_rand_index(*each) for each in pairs]) == pytest.approx(0, abs=0.01)
    assert np.mean([purity(*each) for each in pairs]) > 0.3


def test_cluster_purity_of_separate_groups_is_one_and_it_uses_lengths(random):
    codes = np.repeat([0, 1, 2], 10)
    vectors = 100 * np.eye(3)[codes] + random.normal(size=(30, 3))
    scores = cluster_purity(vectors.astype(np.float32), [f"label {code}" for code in codes], seeds=[3, 4])
    ones = pytest.approx([1, 1])
    assert scores == {"purity": ones, "nmi": ones, "ari": ones, "seeds": [3, 4], "clusters": 3}
    line = np.array([[1.0], [1.1], [9.0], [9.1]])  # all of one direction: only lengths tell them apart
    assert cluster_purity(line, [0, 0, 1, 1], seeds=[0])["purity"] == [1.0]


def test_means_over_runs_and_draws(random):
    vectors, labels = clouds(random)
    runs = cluster_purity(vectors, labels, seeds=range(3), n_init=1)
    assert runs == cluster_purity(vectors, labels, seeds=range(3), n_init=1)
    means = mean_cluster_scores(vectors, labels, seeds=range(3), n_init=1)
    draws = pair_relatedness(vectors, labels, seeds=range(3))
    both = relatedness_scores(vectors, labels, seeds=range(3))
    for values, found, name in ((runs["nmi"], means, "nmi"), (draws["spearman"], both, "pair_spearman")):
        assert (found[name], found[f"{name}_std"]) == (np.mean(values), np.std(values, ddof=1))
    assert both.items() >= query_relatedness(vectors, labels).items()
    single = {**mean_cluster_scores(vectors, labels, seeds=[0]), **relatedness_scores(vectors, labels, seeds=[0])}
    assert [value for name, value in single.items() if name.endswith("_std")] == [0.0] * 4


# semantic relatedness


@pytest.mark.filterwarnings("ignore:An input array is constant")
@pytest.mark.parametrize("make", [clouds, corners])
def test_query_relatedness_is_the_mean_of_scipys_spearman(random, make):
    vectors, labels = make(random)
    expected = [spearmanr(scores, same).statistic for scores, same in others(cosines(vectors), labels)]
    assert query_relatedness(vectors, labels)["spearman"] == pytest.approx(np.nan_to_num(expected).mean(), abs=1e-10)


@pytest.mark.parametrize("distinct", [2, 5, 1000])
def test_binary_spearman_is_scipys_or_none_where_undefined(random, distinct):
    scores, same = random.integers(0, distinct, 200), random.random(200) < 0.3
    assert binary_spearman(np.sort(scores), scores[same]) == pytest.approx(spearmanr(scores, same).statistic, abs=1e-12)
    scores = np.array([1, 2, 3])
    assert binary_spearman(scores, scores[:0]) is None
    assert binary_spearman(scores, scores) is None
    assert binary_spearman(np.ones(3), np.ones(1)) is None


def test_pair_relatedness_is_near_the_spearman_of_all_pairs_and_never_pairs_a_dialogue_with_itself(random):
    vectors, labels = clouds(random, count=200)
    scores = pair_relatedness(vectors, labels, seeds=range(40))
    assert scores == pair_relatedness(vectors, labels, seeds=range(40))
    assert len(set(scores["spearman"])) == 40
    first, second = np.triu_indices(200, 1)
    every = spearmanr(cosines(vectors)[first, second], labels[first] == labels[second]).statistic
    assert np.mean(scores["spearman"]) == pytest.approx(every, abs=0.05)
    # Opposite vectors of two labels: a pair with oneself would be the only one to share a label.
    scores = pair_relatedness([[1.0, 0.0], [-1.0, 0.0]], ["a", "b"], seeds=range(20))
    assert scores["spearman"] == [0.0] * 20
    assert scores["undefined"] == 20


# retrieval


@pytest.mark.parametrize("make", [clouds, corners])
def test_map_is_scikit_learns_average_precision(random, make):
    vectors, labels = make(random)
    expected = [average_precision_score(same, scores) for scores, same in others(cosines(vectors), labels)]
    assert retrieval_scores(vectors, labels)["map"] == pytest.approx(np.mean(expected), abs=1e-12)


def test_mrr_puts_ties_after_the_irrelevant(random):
    vectors, labels = corners(random)
    expected = [
        1 / (1 + (scores[~same] >= scores[same].max()).sum()) for scores, same in others(cosines(vectors), labels)
    ]
    assert retrieval_scores(vectors, labels)["mrr"] == pytest.approx(np.mean(expected), abs=1e-12)


def test_ranking_by_hand():
    scores, relevant = np.array([1, 2, 3, 4, 5]), np.array([2, 4])
    assert average_precision(scores, relevant) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert reciprocal_rank(scores, relevant) == 1 / 2


def test_perfect_embeddings_score_one():
    labels = np.repeat(["a", "b", "c"], 5)
    vectors = np.eye(3)[np.repeat([0, 1, 2], 5)]
    scores = retrieval_scores(vectors, labels)
    assert scores == {"map": 1.0, "mrr": 1.0, "queries": 15, "skipped": 0}
    assert query_relatedness(vectors, labels)["spearman"] == pytest.approx(1.0)
    assert alignment(vectors, labels)["adjusted_alignment"] == pytest.approx(-2.0)


def test_equal_vectors_tie_exactly_in_any_position(random):
    vectors = np.repeat(random.normal(size=(10, 33)).astype(np.float32), 20, axis=0)
    labels = np.arange(200) % 7
    expected = retrieval_scores(vectors, labels)
    for _ in range(3):
        order = random.permutation(200)
        assert retrieval_scores(vectors[order], labels[order])["map"] == pytest.approx(expected["map"], abs=1e-13)


# alignment and uniformity


def distances(vectors):
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return ((directions[:, None] - directions[None]) ** 2).sum(axis=-1)


@pytest.mark.parametrize("include_self", [False, True])
def test_alignment_is_that_of_all_pairs(random, include_self):
    vectors, labels = clouds(random)
    squared, same = distances(vectors), labels[:, None] == labels[None]
    near = squared[same if include_self else same & ~np.eye(len(labels), dtype=bool)].mean()
    scores = alignment(vectors, labels, include_self)
    assert scores["alignment"] == pytest.approx(near, abs=1e-12)
    assert scores["separation"] == pytest.approx(squared[~same].mean(), abs=1e-12)
    assert scores["adjusted_alignment"] == scores["alignment"] - scores["separation"]


@pytest.mark.parametrize("block_size", [1, 7, 60, 256])
def test_uniformity_is_that_of_all_pairs(random, block_size):
    vectors, _ = clouds(random)
    expected = np.log(np.exp(-2 * distances(vectors)[np.triu_indices(60, 1)]).mean())
    assert uniformity(vectors, block_size) == pytest.approx(expected, abs=1e-12)


def test_uniformity_closed_forms():
    assert uniformity([[1.0, 0.0], [-3.0, 0.0]]) == pytest.approx(-8.0)
    assert uniformity(np.ones((5, 3))) == 0.0
    assert alignment_uniformity([[1.0, 0.0], [0.0, 1.0]]) == {"uniformity": pytest.approx(-4.0)}
