"""Ranks of responses and of retrieved sentences: closed forms, ties, invariances, parity with scikit-learn."""

import numpy as np
import pytest
from metric_vectors import corners
from sklearn.metrics import label_ranking_average_precision_score, top_k_accuracy_score
from sklearn.metrics.pairwise import cosine_similarity

from hf_dialemb.metrics.ranking.functional import mean_ranking_scores, ranking_scores
from hf_dialemb.metrics.response_selection.functional import KS, selection_scores

HARMONIC = float((1 / np.arange(1, 101)).sum())


@pytest.fixture
def random():
    return np.random.default_rng(0)


def at_rank(rank, count):
    """Vectors of which the one at position 0 is the so-manieth closest to the query [1, 0]."""
    angles = np.linspace(0.1, 1.4, count)
    angles[0], angles[rank - 1] = angles[rank - 1], angles[0]
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def first(count):
    return np.arange(count)[None] == 0


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 10, 11, 100])
def test_a_rank_is_what_it_says(rank):
    scores = selection_scores([[1, 0]], at_rank(rank, 100), first(100))
    assert scores == pytest.approx({**{f"top{k}": float(rank <= k) for k in KS}, "mrr": 1 / rank}, abs=1e-12)


def test_random_vectors_give_the_figures_of_guessing(random):
    scores = [
        selection_scores(random.normal(size=(100, 32)), random.normal(size=(100, 32)), np.eye(100, dtype=bool))
        for _ in range(50)
    ]
    for k in KS:
        assert np.mean([each[f"top{k}"] for each in scores]) == pytest.approx(k / 100, abs=0.015)
    assert np.mean([each["mrr"] for each in scores]) == pytest.approx(HARMONIC / 100, abs=0.01)


@pytest.mark.parametrize("value", [0, 1])
def test_constant_vectors_give_them_exactly(value):
    vectors = np.full((100, 8), value)
    scores = selection_scores(vectors, vectors, np.eye(100, dtype=bool))
    assert scores == pytest.approx({"top1": 0.01, "top3": 0.03, "top10": 0.1, "mrr": HARMONIC / 100}, abs=1e-12)


def test_duplicates_other_correct_ones_and_what_is_ignored():
    candidates = [[1, 0], [1, 0], [0, 1], [0, 2]]
    assert selection_scores([[3, 0]], candidates, first(4)) == {"top1": 0.5, "top3": 1, "top10": 1, "mrr": 0.75}
    assert selection_scores([[3, 0]], candidates, [[True, True, False, False]])["top1"] == 1
    candidates = at_rank(1, 20)
    found = selection_scores([[1, 0]], candidates, [[place in (3, 1) for place in range(20)]])
    assert found == {"top1": 0, "top3": 1, "top10": 1, "mrr": 0.5}
    candidates, correct = at_rank(3, 20), first(20)
    ignored = np.isin(np.arange(20), [0, 1, 5])[None]  # the first is correct all the same
    assert selection_scores([[1, 0]], candidates, correct, ignored)["mrr"] == 0.5
    assert selection_scores([[1, 0]], candidates, correct, ~correct)["mrr"] == 1


def test_recall_agrees_with_scikit_learn(random):
    candidates = random.normal(size=(40, 16))
    queries = candidates + 2 * random.normal(size=(40, 16))
    scores = selection_scores(queries, candidates, np.eye(40, dtype=bool))
    for k in KS:
        expected = top_k_accuracy_score(np.arange(40), cosine_similarity(queries, candidates), k=k)
        assert scores[f"top{k}"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("whole", [True, False])
def test_order_and_scale_never_matter_to_selection(random, whole):
    queries, candidates, correct = random.normal(size=(30, 3)), random.normal(size=(50, 3)), np.eye(30, 50, dtype=bool)
    if whole:  # many equal cosines
        queries, candidates = queries.round(), candidates.round()
    expected = pytest.approx(selection_scores(queries, candidates, correct), abs=1e-12)
    rows, columns = random.permutation(30), random.permutation(50)
    assert selection_scores(7 * queries[rows], candidates[columns] / 3, correct[rows][:, columns]) == expected


def test_ranking_agrees_with_scikit_learn(random):
    for _ in range(30):
        vectors, labels = corners(random, count=40, labels=2)
        query, relevant = vectors[0], labels[1:] == 0
        scores = ranking_scores(query, vectors[1:], relevant)
        cosines = cosine_similarity([query], vectors[1:]).round(9)
        assert scores["average_precision"] == pytest.approx(
            label_ranking_average_precision_score([relevant], cosines), abs=1e-12
        )
        best = cosines[0][relevant].max()
        assert scores["reciprocal_rank"] == 1 / (1 + (cosines[0][~relevant] >= best).sum())


def test_a_perfect_and_the_worst_ranking_have_closed_forms():
    candidates = at_rank(1, 5)
    assert ranking_scores([2, 0], candidates, [True, True, False, False, False]) == {
        "average_precision": 1,
        "reciprocal_rank": 1,
    }
    worst = ranking_scores([2, 0], candidates, [False, False, False, True, True])
    assert worst == pytest.approx({"average_precision": (1 / 4 + 2 / 5) / 2, "reciprocal_rank": 1 / 4})
    for value in (0, 1):  # where all tie, precision is the share, and the relevant come last
        scores = ranking_scores([1, 1], np.full((70, 2), value), np.arange(70) < 30)
        assert scores == pytest.approx({"average_precision": 30 / 70, "reciprocal_rank": 1 / 41})


def test_order_and_scale_never_matter_to_ranking(random):
    vectors, labels = corners(random, count=50, labels=2)
    expected = ranking_scores([1, 2, 3], vectors, labels == 0)
    order = random.permutation(50)
    assert ranking_scores([3, 6, 9], 5 * vectors[order], labels[order] == 0) == pytest.approx(expected, abs=1e-12)


def test_means_over_queries():
    candidates, right = at_rank(1, 5), np.arange(5) < 2
    queries = [[2, 0], [0, 2]]  # the second ranks the other way round
    found = mean_ranking_scores(queries, [candidates, candidates[1:]], [right, right[1:]])
    assert found == pytest.approx({"map": (1 + 1 / 4) / 2, "mrr": (1 + 1 / 4) / 2, "queries": 2})
