"""Out-of-scope detection: closed forms, what is known of the test set in which setting, and the real corpus."""

import os
from pathlib import Path

import numpy as np
import pytest

from hf_dialemb.encoders.baselines import TfidfEncoder
from hf_dialemb.evaluation.tasks.intents import OUT_OF_SCOPE
from hf_dialemb.evaluation.tasks.out_of_scope import Parts, detect, load_out_of_scope
from hf_dialemb.metrics.out_of_scope.functional import (
    detect_out_of_scope,
    out_of_scope_scores,
    prototype_similarities,
    score_threshold,
)
from hf_dialemb.models.errors import InputError

FILES = Path(__file__).parent / "corpora_files"
real = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")


def test_similarities_are_products_with_means_of_directions():
    labels, products = prototype_similarities([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]], list("bba"), [[0.0, 5.0]])
    assert labels.tolist() == ["a", "b"]
    np.testing.assert_allclose(products, [[0, 0.5]])


def test_a_threshold_is_a_mean_and_deviations_of_the_population():
    assert score_threshold([0.0, 1.0], 0) == 0.5
    assert score_threshold([0.0, 1.0], -1) == 0
    assert score_threshold([0.25], -1) == 0.25


def test_what_is_no_nearer_than_the_threshold_is_out_of_scope():
    guessed = detect_out_of_scope([[0.5, 0.2], [0.1, 0.5], [0.6, 0.1], [0.1, 0.7]], ["a", "b"], 0.5, "oos")
    assert guessed.tolist() == ["oos", "oos", "a", "b"]


def test_scores_of_known_answers():
    true = ["a", "a", "b", "b", "oos", "oos"]
    guessed = ["a", "b", "oos", "b", "oos", "a"]
    assert out_of_scope_scores(guessed, true, "oos") == {
        "accuracy": 0.5,
        "in_accuracy": 0.5,
        "oos_accuracy": pytest.approx(4 / 6),
        "oos_recall": 0.5,
    }


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: prototype_similarities([[1.0], [2.0]], [0, 0], [[1.0]]), "got one label"),
        (lambda: prototype_similarities([[1.0], [2.0]], [0], [[1.0]]), r"expected \(S, D\), \(S,\) and \(N, D\)"),
        (lambda: prototype_similarities([[1.0], [np.inf]], [0, 1], [[1.0]]), "supports: got a vector with NaN"),
        (lambda: prototype_similarities([[1.0], [2.0]], [0, 1], np.empty((0, 1))), "vectors: got shape"),
        (lambda: score_threshold([], 0), r"expected \(N,\) finite numbers"),
        (lambda: detect_out_of_scope([[1.0]], ["a", "b"], 0, "oos"), "similarities and labels: got shapes"),
        (lambda: out_of_scope_scores(["a"], ["a"], "oos"), "got 0 of 1 items out of scope"),
        (lambda: out_of_scope_scores(["a"], ["oos"], "oos"), "got 1 of 1 items out of scope"),
        (lambda: out_of_scope_scores(["a"], ["oos", "a"], "oos"), r"expected both \(N,\)"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.fixture
def intents():
    """Three intents and what is out of scope, each in a direction of its own; the parts in the order of `Parts`."""
    random = np.random.default_rng(0)
    groups = {"examples": "abc" * 10, "strangers": "o" * 8, "reference": "abc" * 20, "tested": "abc" * 20 + "o" * 30}
    letters = "".join(groups.values())
    vectors = np.eye(4)[["abco".index(letter) for letter in letters]] + random.normal(0, 0.1, (len(letters), 4))
    ends = np.cumsum([len(group) for group in groups.values()])
    parts = Parts(*(np.arange(end - len(group), end) for end, group in zip(ends, groups.values(), strict=True)))
    return vectors, [OUT_OF_SCOPE if letter == "o" else letter for letter in letters], parts


def figures(found):
    return {(each.metric, each.setting): each.mean for each in found}


def test_what_lies_apart_is_found(intents):
    found = figures(detect(*intents, seeds=[0, 1]))
    assert len(found) == 4 * 2 * 2 * 2
    assert found["oos_recall", "5-shot mean-std"] == 100
    assert found["in_accuracy", "5-shot mean-std"] > 75  # about a sixth lies more than a deviation below the mean
    assert found["in_accuracy", "5-shot mean"] < found["in_accuracy", "5-shot mean-std"]


def test_the_threshold_knows_nothing_of_the_test_set_but_officially_it_does(intents):
    vectors, labels, parts = intents
    fewer = parts._replace(tested=parts.tested[:75])
    moved = vectors.copy()
    moved[parts.tested[75:]] = [1, 1, 1, -3]  # fifteen of those out of scope, told apart either way
    before, after = figures(detect(vectors, labels, fewer, [0])), figures(detect(moved, labels, parts, [0]))
    assert before["in_accuracy", "1-shot mean"] == after["in_accuracy", "1-shot mean"]
    assert before["in_accuracy", "1-shot mean official"] != after["in_accuracy", "1-shot mean official"]


def test_officially_what_is_out_of_scope_has_a_prototype(intents):
    vectors, labels, parts = intents
    found = figures(detect(vectors, labels, parts, [0]))
    vectors = vectors.copy()
    vectors[parts.strangers] = np.eye(4)[0]  # as if examples of "a"
    misled = figures(detect(vectors, labels, parts, [0]))
    for setting in ("1-shot mean-std", "5-shot mean"):
        assert misled["accuracy", setting] == found["accuracy", setting]
        assert misled["accuracy", f"{setting} official"] != found["accuracy", f"{setting} official"]


def test_the_official_setting_is_the_program_restated(intents):
    vectors, labels, parts = intents
    names = np.array(labels)
    generator = np.random.default_rng([0, 5])
    drawn = [row for name in "abc" for row in generator.choice(parts.examples[names[parts.examples] == name], 5, False)]
    drawn += generator.choice(parts.strangers, 5, replace=False).tolist()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    classes = ["a", "b", "c", OUT_OF_SCOPE]
    prototypes = [np.mean([unit[row] for row in drawn if labels[row] == name], axis=0) for name in classes]
    products = unit[parts.tested] @ np.transpose(prototypes)
    products /= np.linalg.norm(products, axis=1, keepdims=True)
    largest = products.max(axis=1)
    threshold = largest.mean() - largest.std()
    guessed = [classes[row.argmax()] if row.max() > threshold else OUT_OF_SCOPE for row in products]
    found = figures(detect(vectors, labels, parts, [0]))
    assert found["accuracy", "5-shot mean-std official"] == 100 * np.mean(np.array(guessed) == names[parts.tested])


def test_without_dev_the_threshold_comes_from_the_examples_that_are_not_drawn(intents):
    vectors, labels, parts = intents
    found = figures(detect(vectors, labels, parts._replace(reference=parts.reference[:0]), [0]))
    assert found["oos_recall", "5-shot mean-std"] == 100
    assert found["in_accuracy", "5-shot mean-std"] > 60


def test_other_corpora_are_refused():
    with pytest.raises(InputError, match="got 0 utterances out of scope to train on"):
        load_out_of_scope("banking77", FILES, "test", None)
    with pytest.raises(InputError, match="choose dev or test"):
        load_out_of_scope("clinc150", FILES, "train", None)


@pytest.mark.slow
@real
def test_the_real_corpus():
    problem = load_out_of_scope("clinc150", None, "test", 600)
    assert (problem.config["utterances"], problem.config["labels"], problem.config["threshold_from"]) == (
        600,
        150,
        "dev",
    )
    found = figures(problem.measure(TfidfEncoder(), [0]))
    assert found["oos_recall", "5-shot mean-std"] < found["oos_recall", "5-shot mean"]
    assert found["in_accuracy", "5-shot mean-std"] > found["in_accuracy", "5-shot mean"]
    assert load_out_of_scope("clinc150", None, "dev", None).config["threshold_from"] == "train"
