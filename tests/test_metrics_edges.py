"""Odd input to every metric: it has a documented value, or is refused with a sentence; nothing is ever NaN."""

from pathlib import Path

import numpy as np
import pytest
from metric_vectors import clouds
from sklearn.metrics import accuracy_score, recall_score

import hf_dialemb
from hf_dialemb.metrics.alignment_uniformity.functional import alignment_uniformity, uniformity
from hf_dialemb.metrics.anisotropy.functional import anisotropy, mean_cosine
from hf_dialemb.metrics.dialogue_retrieval.functional import retrieval_scores
from hf_dialemb.metrics.graph_size_difference.functional import graph_size_difference
from hf_dialemb.metrics.ndcg.functional import ndcg, official_ndcg
from hf_dialemb.metrics.next_utterance.functional import next_utterance_scores
from hf_dialemb.metrics.out_of_scope.functional import (
    detect_out_of_scope,
    detection_scores,
    prototype_similarities,
    score_threshold,
)
from hf_dialemb.metrics.prototype_classification.functional import prototype_classification
from hf_dialemb.metrics.purity.functional import cluster_purity
from hf_dialemb.metrics.ranking.functional import ranking_scores
from hf_dialemb.metrics.response_selection.functional import selection_scores
from hf_dialemb.metrics.semantic_relatedness.functional import pair_relatedness, query_relatedness

LABELLED = {
    "alignment_uniformity": alignment_uniformity,
    "anisotropy": lambda vectors, labels: anisotropy(vectors, labels, 2),
    "dialogue_retrieval": retrieval_scores,
    "purity": lambda vectors, labels: cluster_purity(vectors, labels, seeds=[0], n_init=1),
    "semantic_relatedness (queries)": query_relatedness,
    "semantic_relatedness (pairs)": lambda vectors, labels: pair_relatedness(vectors, labels, seeds=[0]),
}
SUPPORTED = {
    "prototype_classification": lambda vectors, labels: prototype_classification(
        np.eye(2), ["a", "b"], vectors, labels
    ),
    "out_of_scope": lambda vectors, labels: detection_scores(vectors, labels, np.eye(2), ["a", "b"], np.eye(2)),
}
RANKED = {
    "response_selection": lambda vectors: selection_scores(vectors, np.eye(2), np.eye(2, dtype=bool)),
    "response_selection (candidates)": lambda vectors: selection_scores(np.eye(2), vectors, np.eye(2, dtype=bool)),
    "ranking": lambda vectors: ranking_scores(np.ones(2), vectors, [True, False]),
    "ndcg": lambda scores: ndcg(scores, np.eye(2, dtype=bool)),
    "ndcg (official)": lambda scores: official_ndcg(scores, np.eye(2, dtype=bool)),
    "next_utterance": lambda scores: next_utterance_scores(scores, np.eye(2, dtype=bool)),
    "out_of_scope (calibration)": lambda vectors: detection_scores(
        np.eye(2), ["a", "oos"], np.eye(2), ["a", "b"], vectors
    ),
    "out_of_scope (supports)": lambda vectors: detection_scores(
        np.eye(2), ["a", "oos"], vectors, ["a", "b"], np.eye(2)
    ),
    "prototype_classification (supports)": lambda vectors: prototype_classification(
        vectors, ["a", "b"], np.eye(2), ["a", "b"]
    ),
    "graph_size_difference": lambda sizes: graph_size_difference(sizes[0], [1, 1]),
}


def finite(scores):
    values = scores.values() if isinstance(scores, dict) else [scores]
    return all(np.isfinite(value).all() for value in values)


def test_every_metric_is_in_the_table():
    folders = {file.parent.name for file in (Path(hf_dialemb.__file__).parent / "metrics").glob("*/functional.py")}
    assert {name.split(" ")[0] for name in LABELLED | SUPPORTED | RANKED} == folders


@pytest.mark.parametrize("metric", LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize("vectors", [np.zeros((4, 2)), np.ones((4, 2)), -np.eye(4), np.full((4, 1), 1e-30)])
@pytest.mark.parametrize("labels", [[0, 0, 1, 1], ["b", "b", "b", "a"]])
def test_odd_vectors_and_small_labels_have_finite_scores(metric, vectors, labels):
    assert finite(metric(vectors, labels))


@pytest.mark.parametrize("metric", RANKED.values(), ids=RANKED)
@pytest.mark.parametrize("value", [0, 1, 7])
def test_equal_vectors_or_scores_have_finite_scores(metric, value):
    assert finite(metric(np.full((2, 2), value)))


@pytest.mark.parametrize("metric", (LABELLED | SUPPORTED).values(), ids=LABELLED | SUPPORTED)
@pytest.mark.parametrize(
    ("vectors", "labels", "words"),
    [
        ([[1.0, 0.0], [np.nan, 0.0], [0.0, 1.0], [1.0, 1.0]], ["a", "a", "b", "oos"], "NaN or infinity"),
        ([[1.0, 0.0], [0.0, np.inf], [0.0, 1.0], [1.0, 1.0]], ["a", "a", "b", "oos"], "NaN or infinity"),
        (np.eye(2), ["a"], "expected"),
        (np.zeros((0, 2)), [], "expected"),
        ([], [], "expected"),
        ([1.0, 2.0], ["a", "b"], "expected"),
    ],
    ids=["NaN", "infinity", "length", "empty", "nothing", "no matrix"],
)
def test_vectors_and_labels_that_make_no_sense_are_refused(metric, vectors, labels, words):
    with pytest.raises(ValueError, match=words):
        metric(vectors, labels)


@pytest.mark.parametrize("metric", RANKED.values(), ids=RANKED)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(metric, value):
    with pytest.raises(ValueError, match=r"expected (finite|whole) numbers"):
        metric(np.array([[1.0, value], [0.0, 1.0]]))


@pytest.mark.parametrize("metric", SUPPORTED.values(), ids=SUPPORTED)
def test_a_label_without_supports_is_refused(metric):
    with pytest.raises(ValueError, match="got 'c', which no support has; add supports or leave it out"):
        metric(np.eye(2), ["c", "oos"])


YES, NO = [[True, False]], [[False, False]]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: alignment_uniformity(np.eye(2), block_size=0), "block_size: got 0, expected at least 1"),
        (lambda: alignment_uniformity(np.eye(3), ["a", "b", "c"]), "no label with two members"),
        (lambda: anisotropy(np.eye(3), ["a", "a", "b"]), "got none with 3 vectors, expected at least one; add vectors"),
        (lambda: anisotropy(np.eye(3), ["a", "a", "a"]), "got 1 distinct, expected at least two"),
        (lambda: mean_cosine([[1.0, 0.0]]), "got 1 vectors, expected at least 2"),
        (lambda: graph_size_difference([], []), "expected both"),
        (lambda: graph_size_difference([1], [1, 2]), "expected both"),
        (lambda: graph_size_difference([1], [0]), "reference: got 0, expected whole numbers from 1 on"),
        (lambda: graph_size_difference([1.5], [1]), "predicted: got 1.5, expected whole numbers from 0 on"),
        (lambda: graph_size_difference(["1"], [1]), "expected numbers of nodes"),
        (lambda: ndcg([], []), "expected both"),
        (lambda: ndcg([[1.0]], [[True]]), "M >= 2"),
        (lambda: ndcg([[1.0, 2.0]], [[True]]), "expected both"),
        (lambda: ndcg([[1.0, 2.0]], NO), "a query without a relevant candidate"),
        (lambda: ndcg([[1.0, 2.0]], YES, k=0), "k: got 0, expected at least 1"),
        (lambda: next_utterance_scores([], []), "got 0 examples, expected at least one; add some"),
        (lambda: next_utterance_scores([[1.0, 2.0]], []), "got 0 examples, expected as many as have scores, 1"),
        (lambda: next_utterance_scores([[1.0]], [[True]]), "two candidates or more"),
        (lambda: next_utterance_scores([[1.0, 2.0]], NO), "got no correct candidate"),
        (lambda: ranking_scores([1.0], np.zeros((0, 1)), []), "candidates: got shape"),
        (lambda: ranking_scores([1.0], [[1.0], [2.0]], [False, False]), "candidates of one kind"),
        (lambda: selection_scores(np.zeros((0, 1)), [[1.0]], []), "queries: got shape"),
        (lambda: selection_scores([[1.0]], [[1.0], [2.0]], NO), "without a correct candidate"),
        (lambda: prototype_classification(np.eye(2), ["a", "a"], np.eye(2), ["a", "a"]), "got one label"),
        (lambda: prototype_classification(np.eye(2), ["a"], np.eye(2), ["a", "a"]), "supports: got shapes"),
        (
            lambda: detection_scores(np.eye(2), ["a", "b"], np.eye(2), ["a", "b"], np.eye(2)),
            "0 of 2 items out of scope",
        ),
        (lambda: detection_scores([[1, 0]], ["oos"], np.eye(2), ["a", "b"], np.eye(2)), "1 of 1 items out of scope"),
        (lambda: detection_scores(np.eye(2), ["a", "oos"], np.eye(2), ["a", "b"], np.eye(3)), "vectors: got shapes"),
        (lambda: detection_scores(np.eye(2), ["a", "oos"], [[1, 0]], ["a"], np.eye(2)), "got one label"),
    ],
)
def test_other_nonsense_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_documented_values_of_odd_vectors():
    ones, zeros, labels = np.ones((4, 2)), np.zeros((4, 2)), ["a", "a", "b", "b"]
    assert anisotropy(ones, labels, 2) == pytest.approx({"intra": 1, "inter": 1, "difference": 0})
    assert anisotropy(zeros, labels, 2) == {"intra": 0, "inter": 0, "difference": 0}
    assert anisotropy([[1, 0], [-1, 0], [0, 1], [0, 1]], labels, 2)["inter"] == 0  # one centroid is zero
    assert alignment_uniformity(ones, labels)["uniformity"] == 0
    assert uniformity([[0.0, 0.0], [2.0, 0.0]]) == pytest.approx(-2)  # a squared distance of 1
    assert graph_size_difference([0], [9]) == {"size_difference": 1, "signed_size_difference": -1}
    assert prototype_classification(np.eye(2), ["a", "b"], zeros, labels)["accuracy"] == 0.5  # all go to the first


@pytest.mark.parametrize("value", [0, 1, 1 / 3])
def test_of_constant_vectors_everything_is_out_of_scope(value):
    vectors = np.full((7, 3), value)
    scores = detection_scores(vectors[:4], ["a", "b", "oos", "oos"], vectors[:3], ["a", "b", "b"], vectors)
    assert (scores["accuracy"], scores["in_accuracy"], scores["oos_recall"]) == (0.5, 0, 1)


def test_more_ranks_than_candidates_are_all_ranks():
    random = np.random.default_rng(0)
    scores, relevant = random.normal(size=(5, 4)), np.eye(5, 4, dtype=bool) | (np.arange(4) == 0)
    assert ndcg(scores, relevant, k=100) == ndcg(scores, relevant, k=4)
    assert official_ndcg(scores, relevant, k=100) == official_ndcg(scores, relevant, k=4)
    assert selection_scores(np.eye(2), -np.eye(2), np.eye(2, dtype=bool)) == {
        "top1": 0,
        "top3": 1,
        "top10": 1,
        "mrr": 0.5,
    }
    assert set(next_utterance_scores([[1.0, 2.0]], YES)) == {"mrr", "hits1", "r2@1"}


def test_detection_is_its_parts_and_scikit_learns_shares():
    random = np.random.default_rng(0)
    vectors, codes = clouds(random, count=80, labels=4)
    names = np.array(["a", "b", "c", "oos"])[codes]
    inside = np.flatnonzero(codes < 3)
    supports, calibration, tested = inside[:9], inside[9:30], np.r_[inside[30:], np.flatnonzero(codes == 3)]
    scores = detection_scores(
        vectors[tested], names[tested], vectors[supports], names[supports], vectors[calibration], deviations=-0.5
    )
    known = vectors[supports], names[supports]
    threshold = score_threshold(prototype_similarities(*known, vectors[calibration])[1].max(axis=1), -0.5)
    classes, similarities = prototype_similarities(*known, vectors[tested])
    guessed = detect_out_of_scope(similarities, classes, threshold, "oos")
    true, rejected = names[tested], guessed == "oos"
    assert 0 < rejected.sum() < len(rejected)
    assert scores == pytest.approx(
        {
            "accuracy": accuracy_score(true, guessed),
            "in_accuracy": accuracy_score(true[true != "oos"], guessed[true != "oos"]),
            "oos_accuracy": accuracy_score(true == "oos", rejected),
            "oos_recall": recall_score(true == "oos", rejected),
            "threshold": threshold,
        }
    )


def test_labels_may_be_numbers_in_detection():
    vectors, calibration = [[1, 0], [0, 1], [1, 1]], [[1, 0], [3, 4]]
    words = detection_scores(vectors, ["a", "b", "oos"], np.eye(2), ["a", "b"], calibration)
    assert words == detection_scores(vectors, [0, 1, -1], np.eye(2), [0, 1], calibration, out_of_scope=-1)
