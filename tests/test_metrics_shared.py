"""What all metrics promise: order and blocks never matter, odd input has documented values, bad input is refused."""

import inspect
import tracemalloc

import numpy as np
import pytest
from metric_vectors import clouds, corners

from hf_dialemb.metrics.alignment_uniformity.functional import alignment, alignment_uniformity, uniformity
from hf_dialemb.metrics.dialogue_retrieval import functional as retrieval
from hf_dialemb.metrics.dialogue_retrieval.functional import retrieval_scores
from hf_dialemb.metrics.purity.functional import cluster_purity
from hf_dialemb.metrics.semantic_relatedness import functional as relatedness
from hf_dialemb.metrics.semantic_relatedness.functional import pair_relatedness, query_relatedness

LABELLED = [query_relatedness, pair_relatedness, retrieval_scores, alignment, alignment_uniformity, cluster_purity]


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", ["sorted_queries", "_sort_rows", "_checked"])
def test_what_two_folders_need_is_the_same_in_both(name):
    """A folder is loaded alone, without the others, so each has its own copy."""
    assert inspect.getsource(getattr(retrieval, name)) == inspect.getsource(getattr(relatedness, name))


@pytest.mark.parametrize("metric", [query_relatedness, retrieval_scores])
@pytest.mark.parametrize("make", [clouds, corners])
def test_block_size_and_order_never_matter(random, metric, make):
    vectors, labels = make(random)
    expected = pytest.approx(metric(vectors, labels), abs=1e-13)
    for block_size in (1, 7, 60):
        assert metric(vectors, labels, block_size) == expected
    order = random.permutation(len(labels))
    assert metric(vectors[order], [f"label {code}" for code in labels[order]]) == expected


@pytest.mark.parametrize("metric", [query_relatedness, retrieval_scores])
def test_a_label_of_one_member_asks_nothing_but_is_a_candidate(random, metric):
    vectors, labels = clouds(random, count=20)
    labels[0] = 9
    scores = metric(vectors, labels)
    assert (scores["queries"], scores["skipped"]) == (19, 1)
    assert scores != metric(vectors[1:], labels[1:])


def test_constant_vectors_have_documented_values():
    vectors, labels = np.ones((4, 2)), [0, 0, 1, 1]
    assert query_relatedness(vectors, labels) == {"spearman": 0.0, "queries": 4, "skipped": 0, "undefined": 4}
    assert retrieval_scores(vectors, labels)["map"] == pytest.approx(1 / 3)
    assert retrieval_scores(vectors, labels)["mrr"] == pytest.approx(1 / 3)
    assert alignment(vectors, labels)["adjusted_alignment"] == pytest.approx(0.0)


def test_a_zero_vector_has_cosine_zero():
    vectors, labels = [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [0, 0, 1, 1]
    # Query 0 sees 0, 0, -1 and finds its partner tied with one irrelevant; query 1 sees three zeros.
    scores = retrieval_scores(vectors, labels)
    assert scores["map"] == pytest.approx(np.mean([1 / 2, 1 / 3, 1 / 3, 1 / 2]))
    assert np.isfinite(query_relatedness(vectors, labels)["spearman"])
    assert np.isfinite(uniformity(vectors))


@pytest.mark.parametrize("metric", LABELLED)
def test_bad_input_is_refused_with_a_sentence(metric):
    good = np.eye(4)
    for vectors, labels, words in (
        (good, [0, 1], r"labels: got shape \(2,\)"),
        (good, [1, 1, 1, 1], "labels: got one distinct label"),
        (np.where(good > 0, np.nan, good), [0, 0, 1, 1], "4 rows with NaN or infinity"),
        (good[0], [0, 0, 1, 1], r"embeddings: got shape \(4,\)"),
        (good[:1], [0], r"embeddings: got shape \(1, 4\)"),
    ):
        with pytest.raises(ValueError, match=words):
            metric(vectors, labels)


@pytest.mark.parametrize("metric", [query_relatedness, retrieval_scores, alignment])
def test_labels_that_nobody_shares_are_refused(metric):
    with pytest.raises(ValueError, match="no label with two members"):
        metric(np.eye(3), ["a", "b", "c"])


@pytest.mark.parametrize("metric", [query_relatedness, retrieval_scores])
def test_blocks_of_nothing_are_refused(metric):
    with pytest.raises(ValueError, match="block_size: got 0"):
        metric(np.eye(4), [0, 0, 1, 1], 0)


@pytest.mark.parametrize("metric", [pair_relatedness, cluster_purity])
def test_no_seed_is_refused(metric):
    with pytest.raises(ValueError, match="seeds: got none"):
        metric(np.eye(4), [0, 0, 1, 1], seeds=[])


def test_inputs_stay_as_they_were(random):
    vectors, labels = clouds(random)
    before = vectors.copy()
    for metric in LABELLED:
        metric(vectors, labels)
    np.testing.assert_array_equal(vectors, before)


def test_no_matrix_of_all_pairs_is_ever_made(random):
    count = 20_000
    vectors = random.normal(size=(count, 64)).astype(np.float32)
    tracemalloc.start()
    uniformity(vectors)
    labels = np.arange(count)
    labels[1:20:2] -= 1  # ten labels of two members: few queries to rank, but all blocks of scores are made
    retrieval_scores(vectors, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6 < count**2  # even one byte per pair would be 400 MB
