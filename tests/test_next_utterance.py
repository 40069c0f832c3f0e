"""Next-utterance retrieval: its metric in closed form, scores of rankers and of ensembles, and the task."""

from pathlib import Path

import numpy as np
import pytest
import torch
from ranker_checkpoints import assembled, deep_attention_matching, dual_encoder, save
from sklearn.metrics import label_ranking_average_precision_score, top_k_accuracy_score

from hf_dialemb.cli import main
from hf_dialemb.corpora import load_dialogues, write_jsonl
from hf_dialemb.corpora.candidates import draw_candidates
from hf_dialemb.corpora.examples import ResponseSelection
from hf_dialemb.corpora.source.fingerprint import data_hash
from hf_dialemb.encoders.baselines import TfidfEncoder
from hf_dialemb.encoders.checkpoints import RankerEncoder
from hf_dialemb.encoders.remembering import RememberingEncoder
from hf_dialemb.encoders.specs import find_encoder, load_encoder
from hf_dialemb.evaluation import default_tasks, read_results
from hf_dialemb.evaluation.tasks import next_utterance
from hf_dialemb.evaluation.tasks.contexts import correct_candidates
from hf_dialemb.evaluation.tasks.next_utterance import (
    candidate_scores,
    context_text,
    load_selections,
    log_of_mean_probability,
    member_scores,
    members_of,
    rank_candidates,
    rank_candidates_by_vectors,
)
from hf_dialemb.evaluation.tasks.registry import load_problem
from hf_dialemb.evaluation.tasks.sampling import fixed_sample
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.metrics.next_utterance.functional import KS, OFFICIAL, example_scores, next_utterance_scores
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.ranker import RankingExample
from hf_dialemb.models.ranking import encode_contexts, encode_responses, score_candidates

# metric


def first(*shape):
    """Examples whose correct candidate comes first."""
    return np.broadcast_to(np.arange(shape[-1]) == 0, shape)


@pytest.mark.parametrize("rank", [1, 2, 3, 5, 6, 20])
@pytest.mark.parametrize("ties", ["expected", "official"])
def test_a_rank_is_what_it_says(rank, ties):
    scores = -np.arange(20.0)
    scores[0] = 0.5 - rank
    found = next_utterance_scores([scores], first(1, 20), ties)
    # The wrong ones stand in the order of their scores, so those ahead are the first ones.
    places = {2: min(rank, 2), 10: min(rank, 10), 20: rank}
    recalls = {f"r{size}@{k}": float(place <= k) for size, place in places.items() for k in KS if k < size}
    assert found == pytest.approx({"mrr": 1 / rank, "hits1": float(rank == 1), **recalls})


def test_a_small_set_stands_for_the_first_wrong_candidates():
    # Of ten wrong ones only the last is better: nothing is lost but among all eleven.
    found = next_utterance_scores([[1.0, *[0.0] * 9, 2.0]], first(1, 11))
    assert (found["r2@1"], found["r10@1"], found["r11@1"], found["hits1"], found["mrr"]) == (1, 1, 0, 0, 0.5)
    # The place of the true one among the candidates makes no difference.
    again = next_utterance_scores([[0.0, 0.0, 1.0, *[0.0] * 7, 2.0]], [np.arange(11) == 2])
    assert again == found


def test_constant_scores_give_the_figures_of_guessing_and_officially_everything():
    found = next_utterance_scores(np.zeros((3, 20)), first(3, 20))
    assert found == pytest.approx(
        {
            "mrr": float((1 / np.arange(1, 21)).mean()), "hits1": 1 / 20, "r2@1": 1 / 2,
            **{f"r{size}@{k}": k / size for size in (10, 20) for k in KS},
        }
    )  # fmt: skip
    assert set(next_utterance_scores(np.zeros((3, 20)), first(3, 20), OFFICIAL).values()) == {1}


def test_ties_count_as_the_mean_over_their_orders():
    scores = np.array([1.0, 2.0, 1.0, 1.0, 0.0])
    found = example_scores([scores], first(1, 5))
    assert {name: values.item() for name, values in found.items()} == pytest.approx(
        {"mrr": (1 / 2 + 1 / 3 + 1 / 4) / 3, "hits1": 0, "r2@1": 0, "r5@1": 0, "r5@2": 1 / 3}
    )
    assert example_scores([scores], first(1, 5), OFFICIAL)["mrr"] == [0.5]
    generator = np.random.default_rng(0)
    orders = [np.argsort(-scores - 1e-6 * generator.random(5)).tolist().index(0) + 1 for _ in range(4000)]
    assert np.mean(1 / np.array(orders)) == pytest.approx(found["mrr"].item(), abs=0.01)


def test_the_best_of_the_correct_ones_counts_and_the_others_are_left_out():
    found = next_utterance_scores([[3.0, 1.0, 2.0, 0.0]], [[False, True, True, False]])
    assert found == {"mrr": 0.5, "hits1": 0, "r2@1": 0, "r4@1": 0, "r4@2": 1}
    assert next_utterance_scores([[1.0, 0.0]], [[True, True]])["mrr"] == 1


def test_agreement_with_scikit_learn():
    scores = np.random.default_rng(1).normal(size=(200, 10))
    found = next_utterance_scores(scores, first(200, 10))
    truth = np.zeros(200, dtype=int)
    for k in KS:
        assert found[f"r10@{k}"] == pytest.approx(top_k_accuracy_score(truth, scores, k=k, labels=np.arange(10)))
    assert found["mrr"] == pytest.approx(label_ranking_average_precision_score(first(200, 10), scores))
    assert found["r2@1"] == pytest.approx(np.mean(scores[:, 0] > scores[:, 1]))
    assert found["hits1"] == found["r10@1"]


def test_examples_stand_for_themselves_and_may_differ_in_size():
    scores = [np.array([0.0, 1.0, 2.0]), np.array([5.0, 1.0, 2.0, 3.0])]
    found = example_scores(scores, [first(3), first(4)])
    assert {name: values.tolist() for name, values in found.items()} == {
        "mrr": [1 / 3, 1], "hits1": [0, 1], "r2@1": [0, 1],
    }  # fmt: skip
    alone = example_scores(scores[:1], [first(3)])
    assert alone["mrr"] == found["mrr"][0]
    assert set(alone) == {"mrr", "hits1", "r2@1", "r3@1", "r3@2"}


@pytest.mark.parametrize(
    ("scores", "correct", "sentence"),
    [
        ([[1.0]], [[True]], r"example 0: got scores of shape \(1,\)"),
        ([[1.0, 2.0]], [[1, 0]], "example 0: .* int64 of shape"),
        ([[1.0, 2.0]], [[True]], r"bool of shape \(1,\)"),
    ],
)
def test_what_cannot_be_ranked_is_told(scores, correct, sentence):
    with pytest.raises(ValueError, match=sentence):
        next_utterance_scores(scores, correct)
    with pytest.raises(ValueError, match="ties: got 'first'"):
        next_utterance_scores([[1.0, 2.0]], [[True, False]], "first")


# rankers


@pytest.fixture(scope="module")
def selections(sample_dialogues):
    return draw_candidates(sample_dialogues[:6], 5, "assistant", 3)


@pytest.fixture(scope="module")
def towers(sample_dialogues):
    return [dual_encoder(sample_dialogues, seed, score=score) for seed, score in enumerate(["dot", "cosine"])]


@pytest.fixture(scope="module")
def folders(towers, tmp_path_factory):
    return [save(ranker, tmp_path_factory.mktemp("ranker")) for ranker in towers]


def plainly(ranker, selections):
    return score_candidates(ranker, [RankingExample(each.context, each.responses) for each in selections])


def test_each_distinct_response_is_read_once_and_scores_are_the_same(towers, selections, monkeypatch):
    from hf_dialemb.models import ranking

    asked = []
    encode = ranking.encode_responses
    monkeypatch.setattr(
        ranking, "encode_responses", lambda ranker, texts, **options: asked.extend(texts) or encode(ranker, texts)
    )
    for ranker in towers:
        found = candidate_scores(ranker, selections)
        assert {each.dtype for each in found} == {np.dtype(np.float64)}
        np.testing.assert_allclose(np.stack(found), np.stack(plainly(ranker, selections)), rtol=1e-5, atol=1e-5)
        assert np.stack(found).std() > 1e-3
    assert len(asked) == 2 * len({text for each in selections for text in each.responses})


def test_rankers_without_vectors_score_sets_of_any_size(sample_dialogues, selections):
    ranker = deep_attention_matching(sample_dialogues)
    fewer = [ResponseSelection(each.context, each.responses[:3], (0,)) for each in selections[:2]]
    found = candidate_scores(ranker, [*selections[:3], *fewer])
    np.testing.assert_allclose(found[0], plainly(ranker, selections[:1])[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[3], found[0][:3], rtol=1e-5, atol=1e-6)


def test_an_ensemble_averages_probabilities(folders, towers, selections):
    joint = assembled(folders)
    assert members_of(towers[0]) == [towers[0]]
    assert [each.method.name for each in members_of(joint)] == ["dual_encoder"] * 2
    found = candidate_scores(joint, selections)
    each = [torch.from_numpy(np.stack(plainly(ranker, selections))).softmax(-1).numpy() for ranker in towers]
    np.testing.assert_allclose(np.exp(found), np.mean(each, axis=0), rtol=1e-5)
    np.testing.assert_allclose(found, np.stack(plainly(joint, selections)), rtol=1e-5)
    ranked = rank_candidates([member_scores(ranker, selections) for ranker in towers], selections)
    np.testing.assert_allclose(ranked.scores, found, rtol=1e-6)


def test_an_ensembles_vectors_rank_by_the_mean_of_cosines(folders, towers, selections):
    joint = assembled(folders)
    ranked = rank_candidates_by_vectors([member_scores(ranker, selections) for ranker in towers], selections)
    contexts = encode_contexts(joint, [each.context for each in selections])
    for context, selection, scores in zip(contexts, selections, ranked.scores, strict=True):
        np.testing.assert_allclose(encode_responses(joint, selection.responses) @ context, scores, atol=1e-5)


def test_mean_probabilities_in_closed_form():
    odds = np.log([[1.0, 3.0], [1.0, 1.0]])
    assert np.exp(log_of_mean_probability(odds)) == pytest.approx([(1 / 4 + 1 / 2) / 2, (3 / 4 + 1 / 2) / 2])
    assert np.exp(log_of_mean_probability(odds + np.array([[5.0], [-900.0]]))) == pytest.approx([3 / 8, 5 / 8])
    # Probabilities too small for a number still have an order.
    assert log_of_mean_probability(np.array([[0.0, -2000.0, -1000.0]])) == pytest.approx([0, -2000, -1000])


def test_reciprocal_ranks_and_hits_set_by_set(towers, selections):
    found = rank_candidates([member_scores(towers[0], selections)], selections)
    for selection, scores, reciprocal, hit in zip(
        selections, found.scores, found.reciprocal_ranks, found.hits, strict=True
    ):
        rank = 1 + (scores > scores[selection.correct[0]]).sum()
        assert (reciprocal, hit) == (1 / rank, float(rank == 1))
    assert 0 < found.reciprocal_ranks.mean() < 1


@pytest.mark.parametrize(
    ("responses", "correct", "sentence"),
    [(("yes",), (0,), "two candidates or more"), (("yes", "no"), (), "example 0: got no correct candidate")],
)
def test_a_set_that_cannot_be_ranked_is_told(towers, responses, correct, sentence):
    selections = [ResponseSelection((Turn("user", "hi"),), responses, correct)]
    scored = [member_scores(towers[0], selections)]
    with pytest.raises(InputError, match=f"candidates: .*{sentence}"):
        rank_candidates(scored, selections)


def test_what_says_the_same_is_correct_but_not_officially():
    selection = ResponseSelection((Turn("user", "hi"),), ("Thank  you", "no", "thank you"), (2,))
    assert correct_candidates(selection).tolist() == [True, False, True]
    assert correct_candidates(selection, official=True).tolist() == [False, False, True]


# task


def chats(count):
    """Each dialogue is told by its number, and by no other word."""
    words = ("please", "sure", "thanks", "bye")
    return [
        Dialogue(
            tuple(Turn(("user", "assistant")[turn % 2], f"n{row} {word} {turn}") for turn, word in enumerate(words)),
            str(row),
        )
        for row in range(count)
    ]


@pytest.fixture
def corpus(tmp_path):
    write_jsonl(chats(30), tmp_path / "mine.jsonl")
    return str(tmp_path / "mine.jsonl")


def test_a_context_is_its_turns_with_their_roles_and_of_a_long_one_the_end():
    context = (Turn("user", "one two"), Turn("speaker_3", "three"))
    assert context_text(context) == "user: one two speaker 3: three"
    long = context_text((Turn("user", ("word " * 500).strip()), Turn("assistant", "end")))
    assert len(long.split()) == next_utterance.CONTEXT_WORDS
    assert long.endswith("word assistant: end")


def test_candidates_are_drawn_among_what_the_assistant_says(corpus):
    problem = load_selections(CorpusPart(corpus))
    assert problem.config == {
        "contexts": 60, "contexts_of_the_split": 60,
        "context_words": 160, "candidates": 20, "responses": "assistant", "draw_seed": 13,
    }  # fmt: skip
    encoder = load_problem("next-utterance-retrieval", corpus, None, "all", None)
    named = {"corpus": "mine.jsonl", "split": "all", "limit": None, "data_sha256": data_hash(corpus)}
    assert encoder.config == problem.config | named
    assert default_tasks(corpus) == ("domains",)


def test_everything_is_encoded_once_in_one_call(corpus):
    problem, read = load_selections(CorpusPart(corpus)), []

    class Recorded:
        name = "recorded"

        def encode(self, dialogues):
            read.append([dialogue.turns[0].content for dialogue in dialogues])
            return np.array([[len(text), 1.0] for text in read[-1]])

    once, again = (problem.measure(Recorded(), seeds) for seeds in ([0], [5, 6]))
    assert once == again
    assert len(read) == 2
    assert len(set(read[0])) == len(read[0]) == 60 + 60
    assert "user: n7 please 0" in read[0]
    assert {each.n for each in once} == {1}
    assert {each.setting for each in once} == {"", "official"}


def test_whoever_knows_the_dialogue_finds_one_of_its_responses(tmp_path):
    write_jsonl([Dialogue(each.turns[:2], each.id) for each in chats(30)], tmp_path / "short.jsonl")
    problem = load_selections(CorpusPart(str(tmp_path / "short.jsonl")))

    class Numbered:
        name = "numbered"

        def encode(self, dialogues):
            numbers = [int(dialogue.turns[0].content.split("n", 1)[1].split()[0]) for dialogue in dialogues]
            return np.eye(30)[numbers]

    assert {each.mean for each in problem.measure(Numbered(), [0])} == {100}


def test_the_limit_leaves_candidates_as_they_are(corpus, monkeypatch):
    seen = []
    monkeypatch.setattr(next_utterance, "_scores", lambda encoder, sets: seen.append(sets) or [np.arange(20.0)] * 60)
    monkeypatch.setattr(next_utterance, "example_scores", lambda *arguments: {})
    for limit in (None, 7):
        load_selections(CorpusPart(corpus, None, "all", limit)).measure(None, [0])
    assert len(seen[1]) == 7
    assert set(seen[1]) <= set(seen[0])


def test_a_corpus_of_users_alone_has_any_turn_as_a_response(tmp_path):
    write_jsonl(
        [Dialogue((Turn("user", f"a {n}"), Turn("speaker_3", f"b {n}")), str(n)) for n in range(25)],
        tmp_path / "mine.jsonl",
    )
    assert load_selections(CorpusPart(str(tmp_path / "mine.jsonl"))).config["responses"] == "any"


def test_too_few_responses_are_told_with_the_corpus(tmp_path):
    write_jsonl(chats(5), tmp_path / "mine.jsonl")
    with pytest.raises(InputError, match=r"corpus .*mine\.jsonl, split test: candidates: got 10 different responses"):
        load_selections(CorpusPart(str(tmp_path / "mine.jsonl")))


FILES = Path(__file__).parent / "corpora_files"


def test_given_candidates_are_taken(tmp_path):
    problem = load_selections(CorpusPart("ubuntu", FILES, "test", None))
    assert problem.config["fewest_candidates"] == problem.config["most_candidates"] == 10
    found = problem.measure(TfidfEncoder(), [0])
    assert {each.metric for each in found} == {"mrr", "hits1", "r2@1", "r10@1", "r10@2", "r10@5"}
    with pytest.raises(InputError, match="split train: got a context with one response, expected two"):
        load_selections(CorpusPart("ubuntu", FILES, "train", None))


def test_rankers_and_encoders_of_texts_stand_in_one_table(folders, tiny_bert, tmp_path, capsys):
    output = tmp_path / "results.json"
    words = ["evaluate", "--task", "next-utterance-retrieval", "--model", *folders, tiny_bert, "tfidf"]
    assert main([*words, "--corpus", "sample", "--limit", "12", "--output", str(output)]) == 0
    rows = read_results(output).results
    for model in (*folders, tiny_bert, "tfidf"):
        found = {row.metric: row.mean for row in rows if row.model == model and row.setting == ""}
        assert 0 < found["mrr"] < 100
        assert found["seconds"] > 0
    assert "next-utterance-retrieval mrr" in capsys.readouterr().out


def test_a_rankers_figures_are_those_of_its_own_scores(folders, towers):
    problem = load_selections(CorpusPart("sample", None, "dev", 12))
    found = {(each.metric, each.setting): each.mean for each in problem.measure(load_encoder(folders[0]), [0])}
    again = problem.measure(RememberingEncoder(RankerEncoder("own", towers[0])), [0])
    assert found == {(each.metric, each.setting): each.mean for each in again}
    drawn = draw_candidates(load_dialogues("sample", split="dev"), 20, "assistant", 13)
    chosen = fixed_sample(drawn, 12)
    for setting in ("", "official"):
        correct = [correct_candidates(each, bool(setting)) for each in chosen]
        expected = example_scores(plainly(towers[0], chosen), correct, setting or "expected")
        assert found == pytest.approx(found | {(name, setting): 100 * one.mean() for name, one in expected.items()})


def test_officially_equal_scores_put_the_correct_response_first_and_otherwise_in_the_middle(corpus):
    same = type("Same", (), {"name": "same", "encode": lambda self, dialogues: np.ones((len(dialogues), 2))})
    measured = load_selections(CorpusPart(corpus)).measure(same(), [0])
    found = {(each.metric, each.setting): each.mean for each in measured}
    assert found["hits1", "official"] == 100
    assert found["hits1", ""] == pytest.approx(5)


def test_to_a_ranker_a_dialogue_is_a_context(folders, towers, sample_dialogues):
    encoder = load_encoder(folders[0])
    expected = encode_contexts(towers[0], [dialogue.turns for dialogue in sample_dialogues[:3]])
    np.testing.assert_allclose(encoder.encode(sample_dialogues[:3]), expected, atol=1e-6)
    assert find_encoder(folders[0]).kind == "dialemb"
    with pytest.raises(InputError, match="reads whole dialogues"):
        find_encoder(f"{folders[0]}@utterances")


def test_a_ranker_without_vectors_is_told(sample_dialogues):
    encoder = RankerEncoder("deep", deep_attention_matching(sample_dialogues))
    with pytest.raises(InputError, match="model 'deep': got a ranker that has no vectors"):
        encoder.encode(sample_dialogues[:2])
