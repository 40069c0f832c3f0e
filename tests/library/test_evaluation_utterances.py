"""Intents, what is out of scope, actions, similarity, and retrieval of the next utterance.

Closed forms, draws, real corpora, scores of rankers and of ensembles.
"""

from collections import Counter

import numpy as np
import pytest
from given_vectors import Sought, figures
from sklearn.metrics import label_ranking_average_precision_score, ndcg_score, top_k_accuracy_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from hf_dialemb import Dialogue, Turn, load_dialogues, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.data.examples import draw_candidates
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.evaluation import Row, default_tasks
from hf_dialemb.evaluation.tasks.actions import compare_actions, draw_actions, load_actions
from hf_dialemb.evaluation.tasks.intents import OUT_OF_SCOPE, Parts, classify_intents, detect
from hf_dialemb.evaluation.tasks.next_utterance_task import load_selections
from hf_dialemb.evaluation.tasks.sampling import fixed_sample
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem
from hf_dialemb.evaluation.tasks.task_texts import correct_candidates
from hf_dialemb.methods.ranker import RankingExample, score_candidates
from hf_dialemb.metrics.next_utterance import KS, OFFICIAL, example_scores, next_utterance_scores


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


def first(*shape):
    """Examples whose correct candidate comes first."""
    return np.broadcast_to(np.arange(shape[-1]) == 0, shape)


GUESSED = {
    "mrr": float((1 / np.arange(1, 21)).mean()),
    "hits1": 1 / 20,
    "r2@1": 1 / 2,
    **{f"r{size}@{k}": k / size for size in (10, 20) for k in KS},
}
LATE = {
    "mrr": 0.5,
    "hits1": 0,
    "r2@1": 1,
    "r10@1": 1,
    "r10@2": 1,
    "r10@5": 1,
    "r11@1": 0,
    "r11@2": 1,
    "r11@5": 1,
}


@pytest.mark.parametrize(
    ("scores", "correct", "ties", "expected"),
    [
        # Of ten wrong ones the last alone is better: nothing is lost but among all eleven, wherever
        # the true one is.
        ([1, *[0] * 9, 2], [0], "expected", LATE),
        (
            [0] * 20,
            [0],
            "expected",
            GUESSED,
        ),  # ties count as the mean over their orders, and officially as a success
        ([0] * 20, [0], OFFICIAL, dict.fromkeys(GUESSED, 1)),
        (
            [1, 2, 1, 1, 0],
            [0],
            "expected",
            {"mrr": (1 / 2 + 1 / 3 + 1 / 4) / 3, "hits1": 0, "r2@1": 0, "r5@1": 0, "r5@2": 1 / 3},
        ),
        # The best of the correct ones counts, and the others are left out.
        (
            [3, 1, 2, 0],
            [1, 2],
            "expected",
            {"mrr": 0.5, "hits1": 0, "r2@1": 0, "r4@1": 0, "r4@2": 1},
        ),
        ([1, 0], [0, 1], "expected", {"mrr": 1, "hits1": 1, "r2@1": 1}),
    ],
)
def test_closed_forms(scores, correct, ties, expected):
    rows, true = np.array([scores] * 3, dtype=float), [np.isin(np.arange(len(scores)), correct)] * 3
    assert next_utterance_scores(rows, true, ties) == pytest.approx(expected)
    each = {name: values.tolist() for name, values in example_scores(rows, true, ties).items()}
    assert each == {name: pytest.approx([value] * 3) for name, value in expected.items()}


def test_scikit_learn_agrees_and_examples_stand_for_themselves():
    scores = np.random.default_rng(1).normal(size=(200, 10))
    found = next_utterance_scores(scores, first(200, 10))
    truth = np.zeros(200, dtype=int)
    for k in KS:
        assert found[f"r10@{k}"] == pytest.approx(
            top_k_accuracy_score(truth, scores, k=k, labels=np.arange(10))
        )
    assert found["mrr"] == pytest.approx(
        label_ranking_average_precision_score(first(200, 10), scores)
    )
    scores = [np.array([0.0, 1.0, 2.0]), np.array([5.0, 1.0, 2.0, 3.0])]  # which may differ in size
    found = {
        name: values.tolist()
        for name, values in example_scores(scores, [first(3), first(4)]).items()
    }
    assert found == {"mrr": [1 / 3, 1], "hits1": [0, 1], "r2@1": [0, 1]}


def plainly(ranker, selections):
    return score_candidates(
        ranker, [RankingExample(each.context, each.responses) for each in selections]
    )


def chats(count, words=("please", "sure", "thanks", "bye")):
    """Each dialogue is told by its number, and by no other word."""
    found = []
    for row in range(count):
        turns = (
            Turn(("user", "assistant")[turn % 2], f"n{row} {word} {turn}")
            for turn, word in enumerate(words)
        )
        found.append(Dialogue(tuple(turns), str(row)))
    return found


def written(folder, dialogues):
    write_jsonl(dialogues, folder / "mine.jsonl")
    return str(folder / "mine.jsonl")


def test_candidates_are_drawn_among_what_the_assistant_says(tmp_path):
    corpus = written(tmp_path, chats(30))
    problem = load_selections(CorpusPart(corpus))
    drawn = {"context_words": 160, "candidates": 20, "responses": "assistant", "draw_seed": 13}
    assert problem.config == {"contexts": 60, "contexts_of_the_split": 60, **drawn}
    encoder = load_problem("next-utterance-retrieval", CorpusPart(corpus))
    named = {"corpus": "mine.jsonl", "split": "all", "limit": None}
    digest = CorpusPart(load_dialogues(corpus)).data_hash()  # of the dialogues, not of the file
    assert encoder.config == problem.config | named | {"data_sha256": digest}
    assert default_tasks(corpus) == ("domains",)


def test_contexts_are_encoded_once_as_queries_and_responses_as_documents(tmp_path):
    problem, encoder = (
        load_selections(CorpusPart(written(tmp_path, chats(30)))),
        Sought(lambda text: [len(text), 1.0]),
    )
    once, again = (problem.measure(encoder, seeds) for seeds in ([0], [5, 6]))
    assert once == again
    assert [len(set(call)) for call in encoder.calls] == [60] * 4
    assert list(map(len, encoder.calls)) == [60] * 4
    assert all(text.startswith("user: ") for text in encoder.calls[0])
    assert {(each.setting, each.n) for each in once} == {("", 1), ("official", 1)}
    # Officially equal scores put the correct response first, and otherwise in the middle.
    found = figures(problem.measure(Sought(lambda text: [1.0, 1.0]), [0]))
    assert (found["hits1", ""], found["hits1", "official"]) == (pytest.approx(5), 100)
    # Whoever knows the dialogue finds one of its responses.
    problem = load_selections(CorpusPart(written(tmp_path, chats(30, ("please", "sure")))))
    knowing = Sought(lambda text: np.eye(30)[int(text.split("n", 1)[1].split()[0])])
    assert {each.mean for each in problem.measure(knowing, [0])} == {100}


def test_figures_of_a_ranker_are_of_its_own_scores(tower_folders, towers, sample_dialogues):
    problem, encoder = (
        load_selections(CorpusPart("sample", None, "dev", 12)),
        load_encoder(tower_folders[0]),
    )
    found = figures(problem.measure(encoder, [0]))
    assert found == figures(
        problem.measure(RememberingEncoder(load_encoder(tower_folders[0])), [0])
    )
    drawn = draw_candidates(load_dialogues("sample", split="dev"), 20, "assistant", 13)
    chosen = fixed_sample(drawn, 12)
    for setting in ("", "official"):
        correct = [correct_candidates(each, bool(setting)) for each in chosen]
        expected = example_scores(plainly(towers[0], chosen), correct, setting or "expected")
        assert found == pytest.approx(
            found | {(name, setting): 100 * one.mean() for name, one in expected.items()}
        )
