"""Tasks on single utterances: closed forms, plain references, what is drawn from where, and the real corpora."""

import os
from pathlib import Path

import numpy as np
import pytest
from metric_vectors import clouds
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import cosine_similarity

from hf_dialemb.evaluation.run import evaluate_models
from hf_dialemb.evaluation.utterances import Utterances, load_utterances, measure_utterances
from hf_dialemb.metrics.anisotropy.functional import anisotropy, mean_cosine
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
        (lambda: mean_cosine([[1.0], [np.inf]]), "NaN or infinity"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def utterances(labels, supports):
    dialogues = [Dialogue((Turn("user", f"text {row}", intents=(label,)),)) for row, label in enumerate(labels)]
    return Utterances(dialogues, list(labels), supports, {"corpus": "mine"})


def test_examples_come_from_train_and_every_utterance_is_classified(random):
    labels = list("abc" * 5 + "abc" * 4)
    vectors = np.eye(3)[["abc".index(label) for label in labels]]
    found = measure_utterances(vectors, utterances(labels, 15), range(3))
    assert [(each.task, each.metric, each.setting, each.mean, each.n) for each in found] == [
        ("intent-classification", "accuracy", "1-shot", 100.0, 3),
        ("intent-classification", "accuracy", "5-shot", 100.0, 3),
    ]
    confused = vectors.copy()
    confused[15:] = np.roll(vectors[15:], 1, axis=0)
    assert measure_utterances(confused, utterances(labels, 15), range(3))[0].mean == 0


def test_without_train_the_examples_are_not_classified(random):
    labels = np.repeat(["a", "b"], 10)
    vectors = np.repeat(np.eye(2), 10, axis=0)
    found = {(each.metric, each.setting): each.mean for each in measure_utterances(vectors, utterances(labels, 0))}
    assert found["f1", "1-shot"] == found["accuracy", "5-shot"] == 100
    assert found["intra", ""] == 1
    assert found["inter", ""] == 0
    with pytest.raises(InputError, match="got 0 labels with 10 utterances to draw 5 examples from"):
        measure_utterances(vectors[1:-1], utterances(labels[1:-1], 0))


def test_the_same_seed_draws_the_same_examples(random):
    labels = list("abcd" * 20)
    vectors = random.normal(size=(80, 5))
    first = measure_utterances(vectors, utterances(labels, 40), [3])
    assert measure_utterances(vectors, utterances(labels, 40), [3]) == first
    assert measure_utterances(vectors, utterances(labels, 40), [4]) != first


def test_out_of_scope_utterances_are_no_class():
    found = load_utterances("clinc150", FILES, "test", None)
    assert "oos" not in found.labels
    assert found.config["out_of_scope"] > 0
    assert found.config["examples_from"] == "train"
    assert 0 < found.supports < len(found.labels)
    with pytest.raises(InputError, match="choose dev or test"):
        load_utterances("clinc150", FILES, "train", None)


@real
def test_the_sets_of_the_papers(tmp_path):
    actions = load_utterances("dialog2flow_evaluation", None, "test", None)
    assert (actions.config["utterances"], actions.config["labels"], actions.supports) == (4_695, 313, 0)
    intents = load_utterances("clinc150", None, "test", None)
    assert (intents.config["utterances"], intents.config["labels"], intents.supports) == (4_500, 150, 15_000)
    output = tmp_path / "results.json"
    results = evaluate_models(["tfidf"], "dialog2flow_evaluation", None, "test", seeds=[0], output=output)
    figures = {(row.metric, row.setting): row.mean for row in results.results}
    assert 20 < figures["f1", "1-shot"] < figures["f1", "5-shot"] < 40
    assert "| F1 (1-shot) | F1 (5-shot) |" in output.with_suffix(".md").read_text()
