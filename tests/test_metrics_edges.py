"""What all metrics promise: order and blocks never matter, odd input has documented values, nonsense is refused."""

import tracemalloc

import numpy as np
import pytest
from metric_vectors import clouds, copies, corners
from sklearn.metrics import accuracy_score, recall_score

from hf_dialemb.metrics.alignment_uniformity.functional import alignment, alignment_uniformity, uniformity
from hf_dialemb.metrics.anisotropy.functional import anisotropy, mean_cosine
from hf_dialemb.metrics.dialogue_retrieval.functional import retrieval_scores
from hf_dialemb.metrics.graph_size_difference.functional import graph_size_difference
from hf_dialemb.metrics.ndcg.functional import ndcg, official_ndcg
from hf_dialemb.metrics.next_utterance.functional import next_utterance_scores
from hf_dialemb.metrics.out_of_scope import functional as detection
from hf_dialemb.metrics.out_of_scope.functional import detection_scores
from hf_dialemb.metrics.prototype_classification.functional import prototype_classification
from hf_dialemb.metrics.purity.functional import cluster_purity, purity
from hf_dialemb.metrics.ranking.functional import mean_ranking_scores, ranking_scores
from hf_dialemb.metrics.response_selection.functional import selection_scores
from hf_dialemb.metrics.semantic_relatedness.functional import pair_relatedness, query_relatedness
from hf_dialemb.metrics.specification import FOLDER

EYE, WORDS, DIAGONAL = np.eye(2), ["a", "b"], np.eye(2, dtype=bool)
LABELLED = {
    "alignment_uniformity": alignment_uniformity,
    "anisotropy": lambda vectors, labels: anisotropy(vectors, labels, 2),
    "dialogue_retrieval": retrieval_scores,
    "purity": lambda vectors, labels: cluster_purity(vectors, labels, seeds=[0], n_init=1),
    "semantic_relatedness (queries)": query_relatedness,
    "semantic_relatedness (pairs)": lambda vectors, labels: pair_relatedness(vectors, labels, seeds=[0]),
}
RANKED = {
    "response_selection": lambda vectors: selection_scores(vectors, EYE, DIAGONAL),
    "response_selection (candidates)": lambda vectors: selection_scores(EYE, vectors, DIAGONAL),
    "ranking": lambda vectors: ranking_scores(np.ones(2), vectors, [True, False]),
    "ndcg": lambda scores: ndcg(scores, DIAGONAL),
    "ndcg (official)": lambda scores: official_ndcg(scores, DIAGONAL),
    "next_utterance": lambda scores: next_utterance_scores(scores, DIAGONAL),
    "out_of_scope (calibration)": lambda vectors: detection_scores(EYE, ["a", "oos"], EYE, WORDS, vectors),
    "out_of_scope (supports)": lambda vectors: detection_scores(EYE, ["a", "oos"], vectors, WORDS, EYE),
    "prototype_classification (supports)": lambda vectors: prototype_classification(vectors, WORDS, EYE, WORDS),
    "graph_size_difference": lambda sizes: graph_size_difference(sizes[0], [1, 1]),
}


def finite(scores):
    values = scores.values() if isinstance(scores, dict) else [scores]
    return all(np.isfinite(value).all() for value in values)


def test_every_metric_is_in_the_table_and_leaves_its_input_as_it_was(random):
    folders = {file.parent.name for file in FOLDER.glob("*/functional.py")}
    assert {name.split(" ")[0] for name in LABELLED | RANKED} == folders
    vectors, labels = clouds(random)
    before = vectors.copy()
    for metric in LABELLED.values():
        metric(vectors, labels)
    np.testing.assert_array_equal(vectors, before)


@pytest.mark.parametrize("metric", [query_relatedness, retrieval_scores])
@pytest.mark.parametrize("make", [clouds, copies, corners])
def test_blocks_and_order_never_matter_and_a_label_of_one_member_asks_nothing_but_is_a_candidate(random, metric, make):
    vectors, labels = make(random)
    expected = pytest.approx(metric(vectors, labels), abs=1e-13)
    for block_size in (1, 7, 60):
        assert metric(vectors, labels, block_size) == expected
    order = random.permutation(len(labels))
    assert metric(vectors[order], [f"label {code}" for code in labels[order]]) == expected
    labels[0] = 9
    scores = metric(vectors, labels)
    assert (scores["queries"], scores["skipped"]) == (len(labels) - 1, 1)
    assert scores != metric(vectors[1:], labels[1:])


@pytest.mark.slow
def test_no_matrix_of_all_pairs_is_ever_made(random):
    count = 6_000
    vectors = random.normal(size=(count, 64)).astype(np.float32)
    tracemalloc.start()
    uniformity(vectors)
    labels = np.arange(count)
    labels[1:20:2] -= 1  # ten labels of two members: few queries to rank, but all blocks of scores are made
    retrieval_scores(vectors, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 34e6 < count**2  # even one byte per pair would be 36 MB


@pytest.mark.parametrize("metric", LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize("vectors", [np.zeros((4, 2)), np.ones((4, 2)), -np.eye(4), np.full((4, 1), 1e-30)])
@pytest.mark.parametrize("labels", [[0, 0, 1, 1], ["b", "b", "b", "a"]])
def test_odd_vectors_and_small_labels_have_finite_scores(metric, vectors, labels):
    assert finite(metric(vectors, labels))


@pytest.mark.parametrize("metric", RANKED.values(), ids=RANKED)
def test_equal_vectors_or_scores_have_finite_scores_and_what_is_not_finite_is_refused(metric):
    for value in (0, 1, 7):
        assert finite(metric(np.full((2, 2), value)))
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match=r"expected (finite|whole) numbers"):
            metric(np.array([[1.0, value], [0.0, 1.0]]))


FOUR, YES, NO, TWO = np.eye(4), [[True, False]], [[False, False]], [[1.0], [2.0]]
REFUSED = [
    (lambda: retrieval_scores(FOUR, [0, 1]), r"labels: got shape \(2,\), expected \(4,\)"),
    (lambda: alignment(FOUR, [1, 1, 1, 1]), "labels: got one distinct label"),
    (lambda: cluster_purity(np.where(FOUR > 0, np.nan, FOUR), [0, 0, 1, 1]), "4 rows with NaN or infinity"),
    (lambda: pair_relatedness(FOUR[0], [0, 0, 1, 1]), r"embeddings: got shape \(4,\), expected \(N, D\) with N >= 2"),
    (lambda: retrieval_scores(np.eye(3), ["a", "b", "c"]), "no label with two members"),
    (lambda: retrieval_scores(FOUR, [0, 0, 1, 1], 0), "block_size: got 0"),
    (lambda: pair_relatedness(FOUR, [0, 0, 1, 1], seeds=[]), "seeds: got none"),
    (lambda: cluster_purity(FOUR, [0, 0, 1, 1], seeds=[]), "seeds: got none"),
    (lambda: purity([0], [0, 1]), "labels and clusters: got shapes"),
    (lambda: alignment_uniformity(EYE, block_size=0), "block_size: got 0, expected at least 1"),
    (lambda: anisotropy(EYE, ["a"]), "labels: got shapes"),
    (lambda: anisotropy(np.eye(3), ["a", "a", "b"]), "got none with 3 vectors, expected at least one; add vectors"),
    (lambda: anisotropy(np.eye(3), ["a", "a", "a"]), "got 1 distinct, expected at least two"),
    (lambda: mean_cosine([[1.0, 0.0]]), "got 1 vectors, expected at least 2"),
    (lambda: graph_size_difference([], []), "expected both"),
    (lambda: graph_size_difference([1], [0]), "reference: got 0, expected whole numbers from 1 on"),
    (lambda: graph_size_difference([1.5], [1]), "predicted: got 1.5, expected whole numbers from 0 on"),
    (lambda: graph_size_difference(["1"], [1]), "expected numbers of nodes"),
    (lambda: ndcg([], []), "expected both"),
    (lambda: ndcg([[1.0, 2.0]], NO), "a query without a relevant candidate"),
    (lambda: ndcg([[1.0, 2.0]], YES, k=0), "k: got 0, expected at least 1"),
    (lambda: next_utterance_scores([], []), "got 0 examples, expected at least one; add some"),
    (lambda: next_utterance_scores([[1.0, 2.0]], []), "got 0 examples, expected as many as have scores, 1"),
    (lambda: next_utterance_scores([[1.0]], [[True]]), "two candidates or more"),
    (lambda: next_utterance_scores([[1.0, 2.0]], NO), "got no correct candidate"),
    (lambda: next_utterance_scores([[1.0, 2.0]], [[1, 0]]), "example 0: .* int64 of shape"),
    (lambda: next_utterance_scores([[1.0, 2.0]], YES, "first"), "ties: got 'first'"),
    (lambda: selection_scores([1.0], [[1.0]], [[True]]), "queries: got shape"),
    (lambda: selection_scores([[1.0]], [[1.0, 2.0]], [[True]]), "got width 2, expected that of queries, 1"),
    (lambda: selection_scores([[1.0]], [[1.0]], [[1]]), "expected booleans"),
    (lambda: selection_scores([[1.0]], [[1.0]], [[True]], [True]), "ignored: got"),
    (lambda: selection_scores([[1.0]], TWO, NO), "without a correct candidate"),
    (lambda: ranking_scores([[1.0]], TWO, [True, False]), "query: got shape"),
    (lambda: ranking_scores([1.0], [[1.0, 2.0]], [True]), "got width 2"),
    (lambda: ranking_scores([1.0], TWO, [True]), "relevant: got"),
    (lambda: ranking_scores([1.0], TWO, [True, True]), "candidates of one kind"),
    (lambda: mean_ranking_scores([], [], []), "predictions: got no query, expected at least one"),
    (lambda: prototype_classification(EYE, ["a", "a"], EYE, ["a", "a"]), "got one label"),
    (lambda: prototype_classification(EYE, WORDS, np.eye(3)[:2], WORDS), "got widths 2 and 3, expected one width"),
    (lambda: detection_scores(EYE, WORDS, EYE, WORDS, EYE), "0 of 2 items out of scope"),
    (lambda: detection_scores(EYE, ["a", "oos"], EYE, WORDS, np.eye(3)), "vectors: got shapes"),
    (lambda: prototype_classification(EYE, WORDS, EYE, ["c", "a"]), "got 'c', which no support has; add supports or"),
    (lambda: detection_scores(np.ones(2), ["a", "oos"], EYE, WORDS, EYE), r"vectors: got shape \(2,\)"),
    (lambda: prototype_classification(EYE, WORDS, np.ones(2), WORDS), r"queries: got shapes \(2,\)"),
    (lambda: detection.score_threshold([], 0), r"expected \(N,\) finite numbers"),
    (lambda: detection.detect_out_of_scope([[1.0]], WORDS, 0, "oos"), "similarities and labels: got shapes"),
    (lambda: detection.out_of_scope_scores(["a"], ["oos", "a"], "oos"), r"expected both \(N,\)"),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_other_nonsense_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_documented_values_of_odd_vectors():
    ones, zeros, labels = np.ones((4, 2)), np.zeros((4, 2)), ["a", "a", "b", "b"]
    assert query_relatedness(ones, labels) == {"spearman": 0.0, "queries": 4, "skipped": 0, "undefined": 4}
    assert alignment_uniformity(ones, labels) == {**alignment(ones, labels), "uniformity": 0}
    assert uniformity([[0.0, 0.0], [2.0, 0.0]]) == pytest.approx(-2)  # a squared distance of 1
    assert anisotropy(ones, labels, 2) == pytest.approx({"intra": 1, "inter": 1, "difference": 0})
    assert anisotropy(zeros, labels, 2) == {"intra": 0, "inter": 0, "difference": 0}
    assert prototype_classification(EYE, WORDS, zeros, labels)["accuracy"] == 0.5  # all go to the first
    # Query 0 sees 0, 0, -1 and finds its partner tied with one irrelevant; query 1, the zero vector, sees three zeros.
    scores = retrieval_scores([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], labels)
    assert scores["map"] == pytest.approx(np.mean([1 / 2, 1 / 3, 1 / 3, 1 / 2]))
    for vectors in (np.full((7, 3), value) for value in (0, 1, 1 / 3)):  # everything is out of scope
        scores = detection_scores(vectors[:4], ["a", "b", "oos", "oos"], vectors[:3], ["a", "b", "b"], vectors)
        assert (scores["accuracy"], scores["in_accuracy"], scores["oos_recall"]) == (0.5, 0, 1)
    assert selection_scores(EYE, -EYE, DIAGONAL) == {"top1": 0, "top3": 1, "top10": 1, "mrr": 0.5}  # fewer than ranks


def test_detection_is_its_parts_and_scikit_learns_shares(random):
    vectors, codes = clouds(random, count=80, labels=4)
    names = np.array(["a", "b", "c", "oos"])[codes]
    inside = np.flatnonzero(codes < 3)
    supports, calibration, tested = inside[:9], inside[9:30], np.r_[inside[30:], np.flatnonzero(codes == 3)]
    known = vectors[supports], names[supports]
    scores = detection_scores(vectors[tested], names[tested], *known, vectors[calibration], deviations=-0.5)
    similarities = detection.prototype_similarities(*known, vectors[calibration])[1].max(axis=1)
    threshold = detection.score_threshold(similarities, -0.5)
    classes, similarities = detection.prototype_similarities(*known, vectors[tested])
    guessed, true = detection.detect_out_of_scope(similarities, classes, threshold, "oos"), names[tested]
    rejected, inside = guessed == "oos", true != "oos"
    assert 0 < rejected.sum() < len(rejected)
    shares = {
        "accuracy": accuracy_score(true, guessed),
        "in_accuracy": accuracy_score(true[inside], guessed[inside]),
        "oos_accuracy": accuracy_score(~inside, rejected),
        "oos_recall": recall_score(~inside, rejected),
    }
    assert scores == pytest.approx({**shares, "threshold": threshold})
