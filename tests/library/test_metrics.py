"""Metrics against scikit-learn, SciPy, brute force and closed forms.

What is odd, and what is refused.
"""

from itertools import permutations

import numpy as np
import pytest
from given_vectors import clouds, copies, corners
from scipy.stats import spearmanr
from sklearn import metrics as sklearn_metrics
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from hf_dialemb.metrics import alignment_uniformity as geometry
from hf_dialemb.metrics import out_of_scope as detection
from hf_dialemb.metrics import purity as clusters
from hf_dialemb.metrics import semantic_relatedness as relatedness
from hf_dialemb.metrics import vectors as shared
from hf_dialemb.metrics.alignment_uniformity import alignment, alignment_uniformity, uniformity
from hf_dialemb.metrics.anisotropy import anisotropy, mean_cosine
from hf_dialemb.metrics.dialogue_retrieval import retrieval_scores
from hf_dialemb.metrics.ndcg import ndcg, official_ndcg
from hf_dialemb.metrics.next_utterance import next_utterance_scores
from hf_dialemb.metrics.prototype_classification import prototype_classification
from hf_dialemb.metrics.ranking import mean_ranking_scores, ranking_scores
from hf_dialemb.metrics.response_selection import KS, selection_scores


def test_clusters_are_scored_against_labels_and_lengths_count(random):
    scores = clusters.cluster_purity(
        [[0.0], [0.0], [9.0], [9.0], [9.0], [30.0]], list("aaabbc"), seeds=[0]
    )
    labels, found = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]
    assert scores["purity"] == pytest.approx([5 / 6])  # 2 + 2 + 1 of 6
    assert scores["nmi"] == pytest.approx(
        [sklearn_metrics.normalized_mutual_info_score(labels, found)]
    )
    assert scores["ari"] == pytest.approx([sklearn_metrics.adjusted_rand_score(labels, found)])
    scores = clusters.cluster_purity(np.ones((4, 2)), [0, 0, 0, 1], seeds=[0])
    assert (scores["purity"], scores["nmi"], scores["ari"]) == ([0.75], [0], [0])
    codes = np.repeat([0, 1, 2], 10)
    vectors = 100 * np.eye(3)[codes] + random.normal(size=(30, 3))
    scores = clusters.cluster_purity(
        vectors.astype(np.float32), [f"label {code}" for code in codes], seeds=[3, 4]
    )
    assert scores == {"purity": [1, 1], "nmi": [1, 1], "ari": [1, 1], "clusters": 3}
    # all of one direction: only lengths tell them apart
    line = np.array([[1.0], [1.1], [9.0], [9.1]])
    assert clusters.cluster_purity(line, [0, 0, 1, 1], seeds=[0])["purity"] == [1.0]


def test_means_over_runs(random):
    given = clouds(random)
    runs = clusters.cluster_purity(*given, seeds=range(3))
    means = clusters.mean_cluster_scores(*given, seeds=range(3))
    assert (means["nmi"], means["nmi_std"]) == (np.mean(runs["nmi"]), np.std(runs["nmi"], ddof=1))


def query_spearman(vectors, labels):
    (correlations,), _ = shared.query_scores(vectors, labels, relatedness.binary_spearman)
    return np.nan_to_num(correlations).mean()


@pytest.mark.filterwarnings("ignore:An input array is constant")
@pytest.mark.parametrize("make", [clouds, corners])
def test_figures_of_queries_are_scipys_and_scikit_learns(random, make):
    vectors, labels = make(random)
    spearman, precision, cosines = [], [], cosine_similarity(vectors).round(9)
    for row in range(len(labels)):
        kept = np.arange(len(labels)) != row
        scores, same = cosines[row][kept], (labels == labels[row])[kept]
        if same.any():  # labels of one member are left out
            spearman.append(np.nan_to_num(spearmanr(scores, same).statistic))
            orders = [random.permutation(len(same)) for _ in range(1 if make is clouds else 400)]
            ranked = [same[order][np.argsort(-scores[order], kind="stable")] for order in orders]
            precision.append(np.mean([precision_of(hits) for hits in ranked]))
            theirs = sklearn_metrics.average_precision_score(ranked[0], -np.arange(len(same)))
            assert precision_of(ranked[0]) == pytest.approx(theirs, abs=1e-12)
    assert query_spearman(vectors, labels) == pytest.approx(np.mean(spearman), abs=1e-10)
    found = retrieval_scores(vectors, labels)
    exact = {"abs": 1e-12 if make is clouds else 2e-3}
    assert found["map"] == pytest.approx(np.mean(precision), **exact)


def precision_of(hits):
    """Return the average precision of relevant candidates in an order."""
    ranks = 1 + np.flatnonzero(hits)
    return np.mean(np.arange(1, len(ranks) + 1) / ranks)


def test_figures_are_means_over_all_orders_of_ties(random):
    for _ in range(4):
        scores, relevant = random.integers(0, 3, 5).astype(float), random.permutation(5) < 2
        figures = []
        for order in permutations(range(5)):
            hits = relevant[sorted(order, key=lambda place: -scores[place])]
            ranks = 1 + np.flatnonzero(hits)
            wrong = 1 + (~hits[: ranks[0]]).sum()  # as the other right ones are left out
            gain = sklearn_metrics.ndcg_score([hits], [-np.arange(5)], k=2)
            figures.append((precision_of(hits), 1 / ranks[0], (ranks <= 2).mean(), wrong, gain))
        precision, reciprocal, share, _, gain = np.mean(figures, axis=0)
        among_wrong = np.array(figures)[:, 3]
        ordered, positives = np.sort(scores), np.sort(scores[relevant])
        assert shared.average_precision(ordered, positives) == pytest.approx(precision, abs=1e-12)
        assert shared.reciprocal_rank(ordered, positives) == pytest.approx(reciprocal, abs=1e-12)
        assert shared.expected_share(2, scores, relevant) == pytest.approx(share, abs=1e-12)
        assert ndcg([scores], [relevant], 2) == pytest.approx(gain, abs=1e-12)
        directions = np.stack([np.cos(scores / 2), np.sin(scores / 2)], axis=1)
        selected = selection_scores([[0.0, 1.0]], directions, [relevant])
        followed = next_utterance_scores([scores], [relevant])
        assert followed["mrr"] == pytest.approx((1 / among_wrong).mean(), abs=1e-12)
        assert followed["hits1"] == pytest.approx((among_wrong == 1).mean(), abs=1e-12)
        assert selected["mrr"] == pytest.approx(followed["mrr"], abs=1e-12)
        assert selected["top1"] == pytest.approx(followed["hits1"], abs=1e-12)


def test_pair_relatedness_is_near_the_spearman_of_all_pairs(random):
    vectors, labels = clouds(random, count=200)
    scores = relatedness.pair_relatedness(vectors, labels, seeds=range(40))
    assert (
        scores.tolist() == relatedness.pair_relatedness(vectors, labels, seeds=range(40)).tolist()
    )
    assert len(set(scores)) == 40
    first, second = np.triu_indices(200, 1)
    every = spearmanr(
        cosine_similarity(vectors)[first, second], labels[first] == labels[second]
    ).statistic
    assert np.mean(scores) == pytest.approx(every, abs=0.05)
    # Opposite vectors of two labels: a pair with oneself would be the only one to share a label.
    assert np.isnan(
        relatedness.pair_relatedness([[1.0, 0.0], [-1.0, 0.0]], ["a", "b"], seeds=range(20))
    ).all()


def test_alignment_uniformity_and_anisotropy_are_of_all_pairs(random, monkeypatch):
    vectors, labels = clouds(random)
    squared, same = 2 - 2 * cosine_similarity(vectors), labels[:, None] == labels[None]
    scores = alignment(vectors, labels)
    assert scores["alignment"] == pytest.approx(
        squared[same & ~np.eye(60, dtype=bool)].mean(), abs=1e-12
    )
    assert scores["separation"] == pytest.approx(squared[~same].mean(), abs=1e-12)
    assert scores["adjusted_alignment"] == scores["alignment"] - scores["separation"]
    expected = np.log(np.exp(-2 * squared[np.triu_indices(60, 1)]).mean())
    for block in (1, 7, 60, 256):
        monkeypatch.setattr(geometry, "BLOCK", block)
        assert uniformity(vectors) == pytest.approx(expected, abs=1e-12)
    assert alignment_uniformity([[1.0, 0.0], [-3.0, 0.0]]) == {"uniformity": pytest.approx(-8.0)}
    vectors, labels = clouds(random)
    cosines = [cosine_similarity(vectors[labels == label]) for label in range(4)]
    within = np.mean([found[~np.eye(len(found), dtype=bool)].mean() for found in cosines])
    centroids = cosine_similarity([vectors[labels == label].mean(axis=0) for label in range(4)])
    between = centroids[~np.eye(4, dtype=bool)].mean()
    expected = {"intra": within, "inter": between, "difference": within - between}
    assert anisotropy(vectors, labels) == pytest.approx(expected, abs=1e-12)
    assert anisotropy(vectors[:5], [0, 0, 0, 1, 1])["intra"] == pytest.approx(
        mean_cosine(vectors[:3])
    )
    assert mean_cosine([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]) == pytest.approx(1 / 3)


@pytest.mark.parametrize("unit", [False, True])
def test_prototypes_are_those_of_scikit_learn(random, unit):
    vectors, labels = clouds(random, width=3)  # where their length makes a difference
    supports, known, queries, true = vectors[:30], labels[:30], vectors[30:], labels[30:]
    prototypes = np.stack([normalize(supports[known == label]).mean(axis=0) for label in range(4)])
    guesses = (normalize(queries) @ (normalize(prototypes) if unit else prototypes).T).argmax(
        axis=1
    )
    scores = prototype_classification(supports, known, queries, true, unit_prototypes=unit)
    assert scores["accuracy"] == np.mean(guesses == true)
    macro_f1 = sklearn_metrics.f1_score(true, guesses, average="macro")
    assert scores["macro_f1"] == pytest.approx(macro_f1, abs=1e-12)


def test_ndcg_selection_and_ranking_are_those_of_scikit_learn(random):
    assert ndcg([[1.0, 1.0]], [[True, False]]) == pytest.approx((1 + 1 / np.log2(3)) / 2)
    scores, relevant = random.normal(size=(6, 40)), random.random((6, 40)) < 0.3
    assert ndcg(scores, relevant) == pytest.approx(
        sklearn_metrics.ndcg_score(relevant, scores, k=10)
    )
    scores, relevant = random.normal(size=(4, 30)), np.arange(30) < [[3], [5], [8], [12]]
    hits = np.take_along_axis(relevant, np.argsort(scores, axis=1)[:, ::-1], axis=1).astype(int)
    ideal = (np.arange(30) < [[4], [6], [9], [13]]).astype(int)
    assert official_ndcg(scores, relevant) == pytest.approx(
        sklearn_metrics.ndcg_score(ideal, hits, k=10)
    )
    candidates, queries = random.normal(size=(40, 16)), random.normal(size=(30, 16))
    correct, ignored = random.random((30, 40)) < 0.1, random.random((30, 40)) < 0.2
    correct[np.arange(30), np.arange(30)] = True
    cosines, ranks = cosine_similarity(queries, candidates), []
    for row, right, left_out in zip(cosines, correct, ignored, strict=True):
        ranks.append(1 + (row[~right & ~left_out] > row[right].max()).sum())
    expected = {f"top{k}": np.mean(np.array(ranks) <= k) for k in KS} | {
        "mrr": np.mean(1 / np.array(ranks))
    }
    assert selection_scores(queries, candidates, correct, ignored) == pytest.approx(
        expected, abs=1e-12
    )
    for _ in range(30):
        vectors, labels = corners(random, count=40, labels=2)
        query, candidates, relevant = vectors[0], vectors[1:], labels[1:] == 0
        expected = pytest.approx(ranking_scores(query, candidates, relevant), abs=1e-12)
        order = random.permutation(39)
        assert ranking_scores(3 * query, 5 * candidates[order], relevant[order]) == expected


@pytest.mark.parametrize("value", [0, 1])
def test_constant_vectors_give_exactly_the_figures_of_guessing(value):
    scores = selection_scores(
        np.full((100, 8), value), np.full((100, 8), value), np.eye(100, dtype=bool)
    )
    guessing = {"top1": 0.01, "top3": 0.03, "top10": 0.1, "mrr": (1 / np.arange(1, 101)).mean()}
    assert scores == pytest.approx(guessing, abs=1e-12)


EYE, WORDS, DIAGONAL = np.eye(2), ["a", "b"], np.eye(2, dtype=bool)
LABELLED = {
    "alignment_uniformity": alignment_uniformity,
    "anisotropy": lambda vectors, labels: anisotropy(vectors, labels, 2),
    "dialogue_retrieval": retrieval_scores,
    "purity": lambda vectors, labels: clusters.cluster_purity(vectors, labels, seeds=[0]),
}
RANKED = {
    "response_selection": lambda vectors: selection_scores(vectors, EYE, DIAGONAL),
    "response_selection (candidates)": lambda vectors: selection_scores(EYE, vectors, DIAGONAL),
    "ranking": lambda vectors: ranking_scores(np.ones(2), vectors, [True, False]),
    "ndcg": lambda scores: ndcg(scores, DIAGONAL),
    "ndcg (official)": lambda scores: official_ndcg(scores, DIAGONAL),
    "next_utterance": lambda scores: next_utterance_scores(scores, DIAGONAL),
    "out_of_scope (calibration)": lambda vectors: detection.detection_scores(
        EYE, ["a", "oos"], EYE, WORDS, vectors
    ),
    "out_of_scope (supports)": lambda vectors: detection.detection_scores(
        EYE, ["a", "oos"], vectors, WORDS, EYE
    ),
    "prototype_classification (supports)": lambda vectors: prototype_classification(
        vectors, WORDS, EYE, WORDS
    ),
}


def finite(scores):
    values = scores.values() if isinstance(scores, dict) else [scores]
    return all(np.isfinite(value).all() for value in values)


@pytest.mark.parametrize("metric", [retrieval_scores])
@pytest.mark.parametrize("make", [clouds, copies, corners])
def test_blocks_order_and_lonely_labels_never_matter(random, metric, make, monkeypatch):
    vectors, labels = make(random)
    expected = pytest.approx(metric(vectors, labels), abs=1e-13)
    for block in (1, 7, 60):
        monkeypatch.setattr(shared, "BLOCK", block)
        assert metric(vectors, labels) == expected
    order = random.permutation(len(labels))
    assert metric(vectors[order], [f"label {code}" for code in labels[order]]) == expected
    labels[0] = 9
    scores = metric(vectors, labels)
    assert (scores["queries"], scores["skipped"]) == (len(labels) - 1, 1)
    assert scores != metric(vectors[1:], labels[1:])


@pytest.mark.parametrize("metric", LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize(
    "vectors", [np.zeros((4, 2)), np.ones((4, 2)), -np.eye(4), np.full((4, 1), 1e-30)]
)
@pytest.mark.parametrize("labels", [[0, 0, 1, 1], ["b", "b", "b", "a"]])
def test_odd_vectors_and_small_labels_have_finite_scores(metric, vectors, labels):
    assert finite(metric(vectors, labels))


@pytest.mark.parametrize("metric", RANKED.values(), ids=RANKED)
def test_equal_vectors_have_finite_scores_and_nan_is_refused(metric):
    for value in (0, 1, 7):
        assert finite(metric(np.full((2, 2), value)))
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="expected finite numbers"):
            metric(np.array([[1.0, value], [0.0, 1.0]]))


FOUR, YES, NO, TWO = np.eye(4), [[True, False]], [[False, False]], [[1.0], [2.0]]
REFUSED = [
    (lambda: retrieval_scores(FOUR, [0, 1]), r"labels: got shape \(2,\), expected \(4,\)"),
    (lambda: alignment(FOUR, [1, 1, 1, 1]), "labels: got one distinct label"),
    (
        lambda: relatedness.pair_relatedness(FOUR[0], [0, 0, 1, 1]),
        r"got shape \(4,\), expected \(N, D\) with N >= 2",
    ),
    (lambda: retrieval_scores(np.eye(3), ["a", "b", "c"]), "no label with two members"),
    (lambda: clusters.cluster_purity(FOUR, [0, 0, 1, 1], seeds=[]), "seeds: got none"),
    (
        lambda: anisotropy(np.eye(3), ["a", "a", "b"]),
        "got none with 3 vectors, expected at least one; add vectors",
    ),
    (lambda: ndcg([[1.0, 2.0]], NO), "a query without a relevant candidate"),
    (lambda: ndcg([[1.0, 2.0]], YES, k=0), "k: got 0, expected at least 1"),
    (lambda: next_utterance_scores([], []), "got 0 examples, expected at least one; add some"),
    (lambda: next_utterance_scores([[1.0]], [[True]]), "two candidates or more"),
    (lambda: next_utterance_scores([[1.0, 2.0]], NO), "got no correct candidate"),
    (lambda: next_utterance_scores([[1.0, 2.0]], YES, "first"), "ties: got 'first'"),
    (lambda: selection_scores([[1.0]], [[1.0, 2.0]], [[True]]), "mismatch in its core dimension"),
    (lambda: selection_scores([[1.0]], TWO, NO), "without a correct candidate"),
    (lambda: ranking_scores([1.0], TWO, [True]), "relevant: got"),
    (lambda: ranking_scores([1.0], TWO, [True, True]), "candidates of one kind"),
    (lambda: mean_ranking_scores([], [], []), "predictions: got no query, expected at least one"),
    (lambda: prototype_classification(EYE, ["a", "a"], EYE, ["a", "a"]), "got one label"),
    (
        lambda: prototype_classification(EYE, WORDS, EYE, ["c", "a"]),
        r"got \['c'\], which no support has",
    ),
    (lambda: detection.detection_scores(EYE, WORDS, EYE, WORDS, EYE), "0 of 2 items out of scope"),
    (
        lambda: detection.detection_scores(EYE, ["a", "oos"], EYE, WORDS, np.eye(3)),
        "vectors: got shapes",
    ),
    (lambda: detection.out_of_scope_scores(["a"], ["oos", "a"], "oos"), r"expected both \(N,\)"),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_nonsense_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
