"""Next-utterance retrieval.

Its metric in closed form, scores of rankers and of ensembles, and the task.
"""

import numpy as np
import pytest
from given_vectors import Sought, figures
from sklearn.metrics import label_ranking_average_precision_score, top_k_accuracy_score

from hf_dialemb import Dialogue, Turn, load_dialogues, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.data.examples import draw_candidates
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.evaluation import default_tasks
from hf_dialemb.evaluation.tasks.next_utterance_task import load_selections
from hf_dialemb.evaluation.tasks.sampling import fixed_sample
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem
from hf_dialemb.evaluation.tasks.task_texts import correct_candidates
from hf_dialemb.methods.ranker import RankingExample, score_candidates
from hf_dialemb.metrics.next_utterance import KS, OFFICIAL, example_scores, next_utterance_scores


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
