"""Intents, what is out of scope, actions, retrieval, similarity and entailment.

Closed forms, draws, real corpora.
"""

from collections import Counter

import numpy as np
import pytest
from given_vectors import figures
from sklearn.metrics import ndcg_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from hf_dialemb import Dialogue, Turn, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.evaluation import Row
from hf_dialemb.evaluation.tasks.actions import compare_actions, draw_actions, load_actions
from hf_dialemb.evaluation.tasks.intents import OUT_OF_SCOPE, Parts, classify_intents, detect
from hf_dialemb.evaluation.tasks.task import CorpusPart


def test_intents_are_classified_from_examples_drawn_by_seed(random):
    labels = list("abc" * 5 + "abc" * 4)
    vectors = np.eye(3)[["abc".index(label) for label in labels]]
    found = classify_intents(vectors, labels, 15, range(3))
    settings = ("1-shot", "5-shot", "5-shot, unit prototypes")
    whole = {
        "task": "intent-classification",
        "metric": "accuracy",
        "mean": 100.0,
        "std": 0.0,
        "n": 3,
    }
    assert found == [Row(**whole, setting=setting, interval=(100.0, 100.0)) for setting in settings]
    labels, vectors = list("abcd" * 20), random.normal(size=(80, 5))
    first, again, other = (classify_intents(vectors, labels, 40, [seed]) for seed in (3, 3, 4))
    assert first == again
    assert first != other


@pytest.fixture
def intents(random):
    """Three intents and what is out of scope, each in a direction of its own.

    The parts in the order of `Parts`.
    """
    groups = {
        "examples": "abc" * 10,
        "strangers": "o" * 8,
        "reference": "abc" * 20,
        "tested": "abc" * 20 + "o" * 30,
    }
    letters = "".join(groups.values())
    vectors = np.eye(4)[["abco".index(letter) for letter in letters]] + random.normal(
        0, 0.1, (len(letters), 4)
    )
    ends = np.cumsum([len(group) for group in groups.values()])
    parts = Parts(
        *(
            np.arange(end - len(group), end)
            for end, group in zip(ends, groups.values(), strict=True)
        )
    )
    return vectors, [OUT_OF_SCOPE if letter == "o" else letter for letter in letters], parts


def test_only_the_official_setting_knows_test_set_and_strangers(intents):
    vectors, labels, parts = intents
    found, moved = figures(detect(vectors, labels, parts, [0])), vectors.copy()
    moved[parts.tested[75:]] = [1, 1, 1, -3]  # fifteen of those out of scope, told apart either way
    before = figures(detect(vectors, labels, parts._replace(tested=parts.tested[:75]), [0]))
    after = figures(detect(moved, labels, parts, [0]))
    assert before["in_accuracy", "1-shot mean"] == after["in_accuracy", "1-shot mean"]
    assert (
        before["in_accuracy", "1-shot mean official"]
        != after["in_accuracy", "1-shot mean official"]
    )
    vectors[parts.strangers] = np.eye(4)[0]  # as if examples of "a"
    misled = figures(detect(vectors, labels, parts, [0]))
    for setting in ("1-shot mean-std", "5-shot mean"):
        assert misled["accuracy", setting] == found["accuracy", setting]
        assert misled["accuracy", f"{setting} official"] != found["accuracy", f"{setting} official"]


def test_the_official_setting_is_the_program_restated(intents):
    vectors, labels, parts = intents
    names, unit, generator = np.array(labels), normalize(vectors), np.random.default_rng([0, 5])
    drawn = [
        generator.choice(parts.examples[names[parts.examples] == name], 5, replace=False)
        for name in "abc"
    ]
    drawn.append(generator.choice(parts.strangers, 5, replace=False))
    prototypes = np.stack([unit[rows].mean(axis=0) for rows in drawn])
    products = normalize(unit[parts.tested] @ prototypes.T)
    largest = products.max(axis=1)
    classes = np.array(["a", "b", "c", OUT_OF_SCOPE])[products.argmax(axis=1)]
    guessed = np.where(largest > largest.mean() - largest.std(), classes, OUT_OF_SCOPE)
    found = figures(detect(vectors, labels, parts, [0]))
    assert found["accuracy", "5-shot mean-std official"] == 100 * np.mean(
        guessed == names[parts.tested]
    )


def test_examples_of_actions_are_not_classified_all_others_are_ranked(random):
    labels, vectors = np.repeat(["a", "b"], 10), np.repeat(np.eye(2), 10, axis=0)
    found = figures(compare_actions(vectors, labels))
    assert found["f1", "1-shot"] == found["accuracy", "5-shot"] == 100
    assert (
        found["ndcg10", "official"] < 95
    )  # of ten utterances nine are left to find, where the program expects ten
    assert (found["ndcg10", ""], found["intra", ""], found["inter", ""]) == (
        pytest.approx(100),
        1,
        0,
    )
    labels = np.repeat(["a", "b", "c"], 12)
    vectors = random.normal(size=(36, 4)) + np.repeat(np.eye(3, 4), 12, axis=0)
    found = figures(compare_actions(vectors, labels, [0]))
    generator = np.random.default_rng([0, 1])
    drawn = [
        generator.choice(np.flatnonzero(labels == label), 1, replace=False)[0] for label in "abc"
    ]
    rest, right, official = np.setdiff1d(np.arange(36), drawn), [], []
    for query in drawn:
        cosines = cosine_similarity(vectors[[query]], vectors)[0]
        others = np.delete(np.arange(36), query)
        right.append(ndcg_score([labels[others] == labels[query]], [cosines[others]], k=10))
        ranked = rest[np.argsort(-cosines[rest])]
        official.append(np.mean(labels[ranked[:12]] == labels[query]) * 12 / 11)
    assert found["ndcg10", ""] == pytest.approx(100 * np.mean(right))
    assert found["ndcg10", "official"] == pytest.approx(100 * np.mean(official))


def turn(text, act, *slots):
    return Turn("user", text, (act,), tuple((slot, "x") for slot in slots))


def test_actions_are_drawn_alike_and_compared_in_a_file_of_ones_own(tmp_path):
    turns = [turn(f"a {number} please", "inform", "food", "area") for number in range(20)]
    turns += [turn(f"which {number}", "REQUEST", "area") for number in range(15)]
    turns += [turn(f"bye {number}", "bye") for number in range(14)]  # too few
    # mostly said to ask
    turns += [turn("which 0", "request", "area"), turn("which 0", "inform", "food")]
    turns += [turn(" a 1 please", "inform", "area", "food")]  # the same text, the same action
    turns += [Turn("user", "no label")]
    pairs = draw_actions([Dialogue((each,)) for each in turns])
    assert Counter(action for _, action in pairs) == {"inform area, food": 15, "request area": 15}
    assert len(dict(pairs)) == 30
    assert draw_actions([Dialogue((each,)) for each in turns]) == pairs
    told = [turn("which 0", "inform", "food")] * 2  # now mostly said to tell
    assert {action for _, action in draw_actions([Dialogue((*turns, *told))])} == {
        "inform area, food"
    }
    path, said = tmp_path / "mine.jsonl", []
    for word, act, slot in (
        ("cheap", "inform", "price"),
        ("where", "request", "area"),
        ("hi", "greet", ""),
    ):
        said += [Dialogue((turn(f"{word} {number}", act, slot),)) for number in range(16)]
    write_jsonl(said, path)
    problem = load_actions(CorpusPart(str(path)))
    assert (problem.config["utterances"], problem.config["labels"]) == (45, 3)
    assert {each.task for each in problem.measure(load_encoder("tfidf"), [0])} == {
        "action-similarity"
    }
