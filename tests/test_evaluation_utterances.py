"""Few-shot intents and similarity of actions: closed forms, plain references, draws, and the real corpora."""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from metric_vectors import clouds
from sklearn.metrics import f1_score, ndcg_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from hf_dialemb.encoders.baselines import TfidfEncoder
from hf_dialemb.evaluation.run import evaluate_models
from hf_dialemb.evaluation.tasks.actions import compare_actions, draw_actions, load_actions
from hf_dialemb.evaluation.tasks.intents import classify_intents, load_intents
from hf_dialemb.metrics.anisotropy.functional import anisotropy, mean_cosine
from hf_dialemb.metrics.ndcg.functional import ndcg, official_ndcg
from hf_dialemb.metrics.prototype_classification.functional import prototype_classification
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

FILES = Path(__file__).parent / "corpora_files"
real = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_prototypes_agree_with_a_plain_reference(random):
    vectors, labels = clouds(random)
    supports, queries = np.arange(30), np.arange(30, 60)
    scores = prototype_classification(vectors[supports], labels[supports], vectors[queries], labels[queries])
    unit = [vector / np.linalg.norm(vector) for vector in vectors]
    guesses = []
    for query in queries:
        products = {}
        for label in sorted(set(labels[supports])):
            members = [unit[row] for row in supports if labels[row] == label]
            products[label] = unit[query] @ (sum(members) / len(members))
        guesses.append(max(products, key=products.get))
    assert scores["accuracy"] == np.mean(np.array(guesses) == labels[queries])
    assert scores["macro_f1"] == pytest.approx(f1_score(labels[queries], guesses, average="macro"), abs=1e-12)


def test_a_prototype_is_not_brought_to_length_one():
    # The first class' examples point apart, so their mean is short, and the second class wins between them.
    supports, labels = [[1.0, 0.0], [-0.8, 0.6], [0.6, 0.8]], ["wide", "wide", "narrow"]
    scores = prototype_classification(supports, labels, [[0.0, 1.0], [1.0, 0.0]], ["wide", "narrow"])
    assert scores == {"accuracy": 0.5, "macro_f1": pytest.approx((0 + 2 / 3) / 2)}


def test_prototypes_of_length_one_are_those_of_scikit_learn():
    generator = np.random.default_rng(3)
    supports, queries = generator.normal(size=(20, 4)), generator.normal(size=(50, 4))
    labels, true = np.arange(20) % 4, np.arange(50) % 4
    prototypes = normalize(np.stack([normalize(supports[labels == label]).mean(axis=0) for label in range(4)]))
    expected = (cosine_similarity(queries, prototypes).argmax(axis=1) == true).mean()
    found = prototype_classification(supports, labels, queries, true, unit_prototypes=True)
    assert found["accuracy"] == expected


def test_scale_and_order_of_vectors_do_not_matter(random):
    vectors, labels = clouds(random)
    half = len(labels) // 2
    expected = prototype_classification(vectors[:half], labels[:half], vectors[half:], labels[half:])
    scaled = vectors * random.uniform(0.1, 10, (len(vectors), 1))
    order = random.permutation(half)
    again = prototype_classification(scaled[order], labels[order], scaled[half:], labels[half:])
    assert again == expected
    assert anisotropy(scaled[order], labels[order])["intra"] == pytest.approx(
        anisotropy(vectors[:half], labels[:half])["intra"], abs=1e-12
    )


def test_anisotropy_agrees_with_all_pairs(random):
    vectors, labels = clouds(random)
    within = []
    for label in sorted(set(labels)):
        cosines = cosine_similarity(vectors[labels == label])
        within.append(cosines[~np.eye(len(cosines), dtype=bool)].mean())
    centroids = cosine_similarity([vectors[labels == label].mean(axis=0) for label in sorted(set(labels))])
    between = centroids[~np.eye(len(centroids), dtype=bool)].mean()
    found = anisotropy(vectors, labels)
    assert found["intra"] == pytest.approx(np.mean(within), abs=1e-12)
    assert found["inter"] == pytest.approx(between, abs=1e-12)
    assert found["difference"] == pytest.approx(np.mean(within) - between, abs=1e-12)


def test_mean_cosine_of_known_vectors():
    assert mean_cosine([[2.0, 0.0], [5.0, 0.0]]) == 1
    assert mean_cosine([[1.0, 0.0], [0.0, 3.0]]) == 0
    assert mean_cosine([[1.0, 0.0], [-1.0, 0.0]]) == -1
    assert mean_cosine([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]) == pytest.approx(1 / 3)


def test_labels_of_two_members_have_no_say_within(random):
    vectors = random.normal(size=(5, 4))
    assert anisotropy(vectors, [0, 0, 0, 1, 1])["intra"] == pytest.approx(mean_cosine(vectors[:3]))


def test_ndcg_of_known_rankings():
    # Relevant at ranks 1 and 3 of three: (1 + 1/2) / (1 + 1/log2(3)).
    assert ndcg([[3.0, 2.0, 1.0]], [[True, False, True]]) == pytest.approx(1.5 / (1 + 1 / np.log2(3)))
    assert ndcg([[3.0, 2.0, 1.0]], [[True, True, False]]) == pytest.approx(1)
    assert ndcg([[3.0, 2.0, 1.0]], [[False, False, True]], k=2) == 0
    assert ndcg([[1.0, 1.0]], [[True, False]]) == pytest.approx((1 + 1 / np.log2(3)) / 2)
    assert ndcg([[2.0, 1.0], [1.0, 2.0]], [[True, False]] * 2) == pytest.approx((1 + 1 / np.log2(3)) / 2)


def test_ndcg_agrees_with_its_definition(random):
    scores, relevant = random.normal(size=(6, 40)), random.random((6, 40)) < 0.3
    discounts = 1 / np.log2(np.arange(2, 12))
    expected = []
    for row, gains in zip(scores, relevant, strict=True):
        ranked = gains[np.argsort(-row)][:10]
        expected.append(ranked @ discounts / discounts[: gains.sum()].sum())
    assert ndcg(scores, relevant) == pytest.approx(np.mean(expected))


def test_the_official_ndcg_is_the_share_of_hits_among_the_first(random):
    relevant = np.zeros((5, 60), dtype=bool)
    relevant[:, :14] = True  # 15 with the query, as in the paper's set
    scores = random.normal(size=(5, 60)) + relevant
    ranked = np.take_along_axis(relevant, np.argsort(-scores, axis=1), axis=1)
    assert official_ndcg(scores, relevant) == pytest.approx(ranked[:, :15].sum() / 5 / 14)
    within = scores.copy()
    within[:, :14] = np.where(scores[:, :14] > 1, scores[:, :14] + 9, scores[:, :14])
    assert ndcg(within, relevant) > ndcg(scores, relevant)  # the right one cares who comes first


def test_the_official_ndcg_is_what_the_program_computes_for_small_labels_too(random):
    scores, relevant = random.normal(size=(4, 30)), np.arange(30) < [[3], [5], [8], [12]]
    hits = np.take_along_axis(relevant, np.argsort(scores, axis=1)[:, ::-1], axis=1).astype(int)
    ideal = np.zeros_like(hits)
    for row, count in enumerate(relevant.sum(axis=1)):
        ideal[row, : count + 1] = 1
    assert official_ndcg(scores, relevant) == pytest.approx(ndcg_score(ideal, hits, k=10))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: prototype_classification([[1.0]], [0], [[1.0]], [0]), "got one label, expected at least two"),
        (lambda: prototype_classification([[1.0], [2.0]], [0, 1], [[1.0]], [2]), "got 2, which no support has"),
        (lambda: prototype_classification([[1.0], [2.0]], [0, 1], [[1.0, 2.0]], [1]), "expected one width"),
        (lambda: prototype_classification([[1.0], [np.nan]], [0, 1], [[1.0]], [1]), "NaN or infinity"),
        (lambda: prototype_classification([[1.0], [2.0]], [0, 1], np.empty((0, 1)), []), "with N > 0"),
        (lambda: anisotropy([[1.0], [2.0]], [0, 0]), "got 1 distinct"),
        (lambda: anisotropy([[1.0], [2.0]], [0, 1]), "got none with 3 vectors"),
        (lambda: anisotropy([[1.0], [2.0]], [0]), r"expected \(N, D\) and \(N,\)"),
        (lambda: mean_cosine([[1.0]]), "got 1 vectors"),
        (lambda: ndcg([[1.0, 2.0]], [[False, False]]), "got a query without a relevant candidate"),
        (lambda: ndcg([[1.0]], [[True]]), "expected both"),
        (lambda: official_ndcg([[1.0, np.nan]], [[True, False]]), "NaN or infinity"),
        (lambda: ndcg([[1.0, 2.0]], [[True, False]], k=0), "k: got 0"),
        (lambda: mean_cosine([[1.0], [np.inf]]), "NaN or infinity"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_examples_come_from_train_and_every_utterance_is_classified():
    labels = list("abc" * 5 + "abc" * 4)
    vectors = np.eye(3)[["abc".index(label) for label in labels]]
    found = classify_intents(vectors, labels, 15, range(3))
    assert [(each.task, each.metric, each.setting, each.mean, each.n) for each in found] == [
        ("intent-classification", "accuracy", "1-shot", 100.0, 3),
        ("intent-classification", "accuracy", "5-shot", 100.0, 3),
        ("intent-classification", "accuracy", "5-shot, unit prototypes", 100.0, 3),
    ]
    confused = vectors.copy()
    confused[15:] = np.roll(vectors[15:], 1, axis=0)
    assert classify_intents(confused, labels, 15, range(3))[0].mean == 0


def test_prototypes_of_length_one_are_told_from_others():
    """Of class a the examples disagree, so that its mean is short; only at length one is it the nearest."""
    labels = list("aaaaabbbbb" + "ab")
    spread = [[1, 2], [1, -2], [1, 2], [1, -2], [1, 0]]
    vectors = np.array([*spread, *[[0.3, 1]] * 5, [1, 0.7], [0.1, 1]], float)
    found = {each.setting: each.mean for each in classify_intents(vectors, labels, 10, [0])}
    expected = {}
    for setting, length_one in (("5-shot", False), ("5-shot, unit prototypes", True)):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        means = np.stack([unit[:5].mean(0), unit[5:10].mean(0)])
        means = means / np.linalg.norm(means, axis=1, keepdims=True) if length_one else means
        expected[setting] = 100 * np.mean((unit[10:] @ means.T).argmax(1) == [0, 1])
    assert expected["5-shot"] != expected["5-shot, unit prototypes"]
    assert {name: found[name] for name in expected} == expected


def test_the_same_seed_draws_the_same_examples(random):
    labels = list("abcd" * 20)
    vectors = random.normal(size=(80, 5))
    first = classify_intents(vectors, labels, 40, [3])
    assert classify_intents(vectors, labels, 40, [3]) == first
    assert classify_intents(vectors, labels, 40, [4]) != first


def test_out_of_scope_utterances_are_no_class():
    found = load_intents("clinc150", FILES, "test", None)
    assert "oos" not in found.labels
    assert found.config["out_of_scope"] > 0
    assert found.config["examples_from"] == "train"
    assert 0 < found.config["utterances"] < len(found.labels)
    with pytest.raises(InputError, match="choose dev or test"):
        load_intents("clinc150", FILES, "train", None)
    with pytest.raises(InputError, match="got no split train to draw examples from"):
        load_intents("dialog2flow_evaluation", FILES, "test", None)


def test_examples_of_actions_are_not_classified():
    labels = np.repeat(["a", "b"], 10)
    vectors = np.repeat(np.eye(2), 10, axis=0)
    found = {(each.metric, each.setting): each.mean for each in compare_actions(vectors, labels)}
    assert found["f1", "1-shot"] == found["accuracy", "5-shot"] == 100
    lopsided = np.array(["a"] * 30 + ["b"] * 12)  # whatever is said is nearest to a
    one_place = {(each.metric, each.setting): each.mean for each in compare_actions(np.ones((42, 2)), lopsided)}
    assert one_place["accuracy", "5-shot"] == pytest.approx(100 * 25 / 32)
    assert one_place["f1", "5-shot"] == pytest.approx(100 * (2 * 25 / 32 / (25 / 32 + 1)) / 2)
    assert found["ndcg10", ""] == pytest.approx(100)
    assert found["ndcg10", "official"] < 95  # of ten utterances nine are left to find, where the program expects ten
    assert found["intra", ""] == 1
    assert found["inter", ""] == 0
    with pytest.raises(InputError, match="got 0 labels with 10 utterances to draw 5 examples from"):
        compare_actions(vectors[1:-1], labels[1:-1])


def test_ranking_of_actions_is_over_all_other_utterances(random):
    labels = np.repeat(["a", "b", "c"], 12)
    vectors = random.normal(size=(36, 4)) + np.repeat(np.eye(3, 4), 12, axis=0)
    found = {(each.metric, each.setting): each for each in compare_actions(vectors, labels, [0])}
    generator = np.random.default_rng([0, 1])
    drawn = [generator.choice(np.flatnonzero(labels == label), 1, replace=False)[0] for label in "abc"]
    right, official = [], []
    for query in drawn:
        cosines = cosine_similarity(vectors[[query]], vectors)[0]
        others = np.delete(np.arange(36), query)
        right.append(ndcg_score([labels[others] == labels[query]], [cosines[others]], k=10))
        rest = np.setdiff1d(np.arange(36), drawn)
        ranked = rest[np.argsort(-cosines[rest])]
        official.append(np.mean(labels[ranked[:12]] == labels[query]) * 12 / 11)
    assert found["ndcg10", ""].mean == pytest.approx(100 * np.mean(right))
    assert found["ndcg10", "official"].mean == pytest.approx(100 * np.mean(official))


def turn(text, act, *slots):
    return Turn("user", text, (act,), tuple((slot, "x") for slot in slots))


def test_actions_of_dialogues_are_drawn_alike():
    turns = [turn(f"a {number} please", "inform", "food", "area") for number in range(20)]
    turns += [turn(f"which {number}", "REQUEST", "area") for number in range(15)]
    turns += [turn(f"bye {number}", "bye") for number in range(14)]  # too few
    turns += [turn("which 0", "request", "area"), turn("which 0", "inform", "food")]  # mostly said to ask
    turns += [turn(" a 1 please", "inform", "area", "food")]  # the same text, the same action
    turns += [Turn("user", "no label")]
    pairs = draw_actions([Dialogue((each,)) for each in turns])
    assert Counter(action for _, action in pairs) == {"inform area, food": 15, "request area": 15}
    assert len(dict(pairs)) == 30
    assert draw_actions([Dialogue((each,)) for each in turns]) == pairs
    told = [turn("which 0", "inform", "food")] * 2  # now mostly said to tell
    assert {action for _, action in draw_actions([Dialogue((*turns, *told))])} == {"inform area, food"}


def test_similarity_of_actions_of_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.jsonl"
    records = [
        Dialogue((turn(f"{word} {number}", act, slot),)).to_json()
        for word, act, slot in (("cheap", "inform", "price"), ("where", "request", "area"), ("hi", "greet", ""))
        for number in range(16)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    problem = load_actions(str(path), None, "test", None)
    assert (problem.config["corpus"], problem.config["utterances"], problem.config["labels"]) == ("mine.jsonl", 45, 3)
    assert {each.task for each in problem.measure(TfidfEncoder(), [0])} == {"action-similarity"}
    limited = load_actions(str(path), None, "test", 40)
    assert Counter(Counter(limited.labels).values()) == {15: 2}  # whole actions
    with pytest.raises(InputError, match="got 1 actions with 15 distinct utterances"):
        load_actions(str(path), None, "test", 16)


@pytest.mark.slow
@real
def test_the_sets_of_the_papers(tmp_path):
    actions = load_actions("dialog2flow_evaluation", None, "test", None)
    assert (actions.config["utterances"], actions.config["labels"]) == (4_695, 313)
    intents = load_intents("clinc150", None, "test", None)
    assert (intents.config["utterances"], intents.config["labels"], len(intents.labels)) == (4_500, 150, 19_500)
    output = tmp_path / "results.json"
    results = evaluate_models(["tfidf"], "dialog2flow_evaluation", None, "test", seeds=[0], output=output)
    figures = {(row.metric, row.setting): row.mean for row in results.results}
    assert 20 < figures["f1", "1-shot"] < figures["f1", "5-shot"] < 40
    assert 20 < figures["ndcg10", "official"] < figures["ndcg10", ""] < 40
    assert "| F1 (1-shot) | F1 (5-shot) |" in output.with_suffix(".md").read_text()


@real
def test_actions_of_the_development_split_of_a_corpus():
    problem = load_actions("sim_m", None, "dev", None)
    assert set(Counter(problem.labels).values()) == {15}
    assert problem.config["labels"] > 10
