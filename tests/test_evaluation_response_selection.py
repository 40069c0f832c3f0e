"""Selection of responses: which pairs and contexts are asked, what they choose from, and what an encoder gets."""

import os
from pathlib import Path

import numpy as np
import pytest

from hf_dialemb.corpora import load_examples, write_jsonl
from hf_dialemb.corpora.examples import ResponseSelection
from hf_dialemb.encoders.baselines import TfidfEncoder
from hf_dialemb.evaluation.tasks import contexts, response_selection
from hf_dialemb.evaluation.tasks.texts import TextVectors, first_words, last_words, row_cosines
from hf_dialemb.models.dialogue import Dialogue, Turn, plain
from hf_dialemb.models.errors import InputError

FILES = Path(__file__).parent / "corpora_files"
real = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")
UTTERANCE, DIALOGUE = response_selection.TASKS


class Recorded:
    """An encoder from a function of a text, which remembers what it was asked."""

    name = "recorded"

    def __init__(self, vector):
        self.vector, self.calls = vector, []

    def encode(self, dialogues):
        self.calls.append([dialogue.turns[0].content for dialogue in dialogues])
        return np.array([self.vector(text) for text in self.calls[-1]], dtype=np.float32)


def numbered(text):
    """The unit vector of a text's number: ``question 7 ...`` and ``answer 7`` are equal, all others orthogonal."""
    vector = np.zeros(400)
    numbers = [int(word) for word in text.split() if word.isdigit()]
    vector[numbers[-1] if numbers else 399] = 1
    return vector


def hashed(text):
    return np.random.default_rng(list(text.encode())).normal(size=16)


def write(tmp_path, *dialogues):
    roles = {"u": "user", "a": "assistant", "3": "speaker_3"}
    written = [
        Dialogue(tuple(Turn(roles[role], content) for role, content in turns), str(row))
        for row, turns in enumerate(dialogues)
    ]
    write_jsonl(written, tmp_path / "mine.jsonl")
    return str(tmp_path / "mine.jsonl")


def figures(found):
    return {(each.metric, each.setting): each.mean for each in found}


def test_a_response_is_the_very_next_turn_of_another_role(tmp_path):
    chat = [("u", "one 1"), ("u", "two 2"), ("a", "three 3"), ("3", "four 4"), ("u", "five 5")]
    filler = [[("u", f"q {n}"), ("a", f"a {n}")] for n in range(100)]
    problem = UTTERANCE.load(write(tmp_path, chat, *filler), None, "all", None)
    encoder = Recorded(numbered)
    problem.measure(encoder, [0])
    assert problem.config == {
        "corpus": "mine.jsonl", "split": "all", "limit": None, "pairs": 103, "pairs_of_the_split": 103,
        "candidates": 100,
    }  # fmt: skip
    assert encoder.calls[0][:4] == ["two 2", "three 3", "four 4", "five 5"]


def test_everything_is_encoded_once_in_one_call(tmp_path):
    corpus = write(
        tmp_path,
        *[[("u", f"q {n}"), ("a", f"a {n % 7} {n}"), ("u", f"c {n % 9} {n}"), ("a", "bye")] for n in range(120)],
    )
    for task in response_selection.TASKS:
        encoder = Recorded(hashed)
        task.load(corpus, None, "all", None).measure(encoder, range(3))
        assert len(encoder.calls) == 1
        assert len(set(encoder.calls[0])) == len(encoder.calls[0])


def test_whoever_tells_pairs_apart_gets_a_hundred_percent(tmp_path):
    problem = UTTERANCE.load(
        write(tmp_path, *[[("u", f"q {n}"), ("a", f"a {n}")] for n in range(250)]), None, "all", None
    )
    found = problem.measure(Recorded(numbered), [0, 1])
    assert set(figures(found).values()) == {100}
    assert [(each.metric, each.setting, each.n) for each in found] == [
        *((metric, "", 2) for metric in ("top1", "top3", "top10", "mrr")),
        *((metric, "official", 1) for metric in ("top1", "top3", "top10", "mrr")),
    ]
    assert {each.task for each in found} == {"response-selection"}


def test_whoever_does_not_guesses(tmp_path):
    problem = UTTERANCE.load(
        write(tmp_path, *[[("u", f"q {n}"), ("a", f"a {n}")] for n in range(300)]), None, "all", None
    )
    found = figures(problem.measure(Recorded(lambda text: [1.0, 0.0]), [0]))
    assert [found[f"top{k}", setting] for k in (1, 3, 10) for setting in ("", "official")] == pytest.approx(
        [1, 1, 3, 3, 10, 10]
    )
    found = figures(problem.measure(Recorded(hashed), range(5)))
    assert found["top10", ""] == pytest.approx(10, abs=4)


def test_equal_texts_are_correct_but_not_officially(tmp_path):
    # Ten responses of each block are the same but for case and spaces, and every query knows that it wants them.
    pairs = [[("u", f"q 7 no {n} 7"), ("a", " Thank  you 7" if n % 2 else "thank you 7")] for n in range(10)]
    others = [[("u", f"q {n}"), ("a", f"a {n}")] for n in range(10, 100)]
    problem = UTTERANCE.load(write(tmp_path, *pairs, *others), None, "all", None)
    found = figures(problem.measure(Recorded(numbered), [0]))
    assert found["top1", ""] == found["mrr", ""] == 100
    assert found["top1", "official"] == pytest.approx(90 + 10 / 10)
    assert found["top3", "official"] == pytest.approx(90 + 10 * 3 / 10)


def test_a_query_is_not_among_its_candidates_but_officially_it_is(tmp_path):
    chats = [[("u", f"q {n}"), ("a", f"a {n}"), ("u", f"b {n}")] for n in range(50)]
    problem = UTTERANCE.load(write(tmp_path, *chats), None, "all", None)
    found = figures(problem.measure(Recorded(numbered), [0]))
    # All of a dialogue is alike: to each first turn two responses are, to each second one its own and itself.
    assert found["top1", ""] == 100 * (0.5 + 1) / 2
    assert found["top1", "official"] == 50


def test_repeated_pairs_count_once_but_not_officially(tmp_path):
    chats = [[("u", f"q {n}"), ("a", f"a {n}")] for n in (*([0] * 60), *range(60, 300))]
    problem = UTTERANCE.load(write(tmp_path, *chats), None, "all", None)
    assert problem.config["pairs"] == 241
    found = figures(problem.measure(Recorded(numbered), [0]))
    assert found["top1", ""] == 100
    assert found["top1", "official"] == pytest.approx(100 * (60 / 60 + 140) / 200)


def test_official_blocks_follow_the_files(tmp_path):
    # In the files, blocks are of one subject each; shuffled, hardly anybody shares one's subject.
    chats = [[("u", f"q no {n} {n // 100}"), ("a", f"a no {n} {n // 100}")] for n in range(300)]
    found = figures(UTTERANCE.load(write(tmp_path, *chats), None, "all", None).measure(Recorded(numbered), range(3)))
    assert found["top1", "official"] == pytest.approx(1)
    assert found["top1", ""] == pytest.approx(3, abs=0.3)


def test_the_limit_counts_pairs(tmp_path):
    corpus = write(tmp_path, *[[("u", f"q {n}"), ("a", f"a {n}")] for n in range(250)])
    problem = UTTERANCE.load(corpus, None, "all", 120)
    assert (problem.config["pairs"], problem.config["pairs_of_the_split"], problem.config["limit"]) == (120, 250, 120)
    with pytest.raises(InputError, match="got 99 pairs of an utterance and a response, expected at least 100"):
        UTTERANCE.load(corpus, None, "all", 99)


def test_seeds_decide_and_repeat(tmp_path):
    chats = [[("u", f"q {n}"), ("a", f"a {n} b"), ("u", f"c {n}"), ("a", f"d {n}")] for n in range(150)]
    corpus = write(tmp_path, *chats)
    for task in response_selection.TASKS:
        problem = task.load(corpus, None, "all", None)
        once, again, other = (problem.measure(Recorded(hashed), [seed]) for seed in (3, 3, 4))
        assert once == again
        assert once != other


def long_chats(count, words=1):
    return [
        [("u", f"q {n} first"), ("a", f"b {n} " + "word " * words), ("u", f"c {n}"), ("a", f"d {n}"), ("a", "more")]
        for n in range(count)
    ]


def test_what_stands_beside_a_response_is_of_its_role_and_from_elsewhere(tmp_path):
    chats = [*long_chats(130), [("u", "hello"), ("a", "how"), ("u", "Thanks"), ("a", "D  5")]]
    dialogues = [
        Dialogue(tuple(Turn({"u": "user", "a": "assistant"}[role], text) for role, text in turns)) for turns in chats
    ]
    responses = contexts.responses_of(dialogues)
    assert {(each.turn, each.role) for each in responses} == {(2, "user"), (3, "assistant")}
    others = contexts.others_of(responses)
    seen = set()
    for seed in range(4):
        choices = contexts.draw_choices(dialogues, responses, others, seed)
        assert len(choices) == 131
        for choice in choices:
            true, *rest = choice.responses
            assert choice.correct == (true,)
            assert len(rest) == 99
            assert plain(true) not in {plain(text) for text in rest}
            assert {text[0] for text in rest} <= ({"c", "T"} if true[0] in "cT" else {"d", "D"})
            assert choice.context.startswith(("q", "hello"))
            seen.add(true)
    assert {"c 7", "d 7"} <= seen


def test_a_dialogue_so_far_finds_its_response(tmp_path):
    problem = DIALOGUE.load(write(tmp_path, *long_chats(150)), None, "all", None)
    assert problem.config["contexts"] == problem.config["contexts_of_the_split"] == 300
    assert (problem.config["contexts_per_repeat"], problem.config["candidates"]) == (150, 100)
    found = problem.measure(Recorded(numbered), range(3))
    assert {each.n for each in found} == {3}
    assert {each.task for each in found} == {"dialogue-response-selection"}
    found = figures(found)
    assert found["top1", ""] == found["mrr", ""] == 100
    # The program has the true response twice among its candidates.
    assert found["top1", "official"] == pytest.approx(50)
    assert found["mrr", "official"] == pytest.approx(75)
    assert found["top3", "official"] == 100


def test_of_a_long_context_the_end_is_kept_but_the_beginning_officially(tmp_path):
    problem = DIALOGUE.load(write(tmp_path, *long_chats(150, words=200)), None, "all", None)
    encoder = Recorded(numbered)
    problem.measure(encoder, [0])
    cut = [text for text in encoder.calls[0] if len(text.split()) == problem.config["context_words"]]
    assert len(cut) == len([text for text in cut if "first" in text or text.startswith("word")])
    assert any(text.startswith("q 5 first b 5 word") for text in cut)
    assert any(text.endswith("word c 5") or text.endswith("word word") for text in cut)


def test_too_few_responses_are_refused(tmp_path):
    with pytest.raises(
        InputError, match="got 198 responses after 2 turns or more, none with 99 of its role that say something else"
    ):
        DIALOGUE.load(write(tmp_path, *long_chats(99)), None, "all", None)
    with pytest.raises(InputError, match="got 50 responses"):
        DIALOGUE.load(write(tmp_path, *long_chats(150)), None, "all", 50)
    with pytest.raises(InputError, match="got 0 responses"):
        DIALOGUE.load(write(tmp_path, [("u", "hi"), ("a", "hi")]), None, "all", None)


def test_given_candidates_are_taken_and_the_true_one_comes_twice_officially():
    problem = DIALOGUE.load("dstc7_ubuntu", FILES, "test", None)
    selections = load_examples("dstc7_ubuntu", FILES, "test")
    assert problem.config["contexts"] == len(selections)
    assert problem.config["fewest_candidates"] == problem.config["most_candidates"] == 3
    found = problem.measure(Recorded(lambda text: [1.0, 0.0]), range(5))
    assert {each.n for each in found} == {1}
    assert [len(selection.correct) for selection in selections] == [1, 2]
    # Of two correct ones the better is ranked, and the other one is left out.
    assert figures(found)["top1", ""] == pytest.approx(100 * (1 / 3 + 1 / 2) / 2)
    assert figures(found)["top1", "official"] == pytest.approx(100 / 4)


def test_each_given_example_in_closed_form():
    context = (Turn("user", "a"), Turn("assistant", "b"))
    selections = [ResponseSelection(context, ("no", "yes", "Yes"), (1,)), ResponseSelection(context, ("no",), ())]
    (choice,) = contexts.given_choices(selections)
    assert choice == ("a b", ("no", "yes", "Yes"), ("yes",))
    encoder = Recorded(lambda text: [0.0, 1.0] if text == "no" else [1.0, 0.0])
    vectors = TextVectors(encoder, ("a b", *choice.responses))
    assert response_selection._ranked(vectors, choice) == {"top1": 1, "top3": 1, "top10": 1, "mrr": 1}
    third = pytest.approx(1 / 3)
    assert response_selection._officially(vectors, choice)["top1"] == third


def test_words_are_cut_at_either_end():
    assert last_words("one  two\nthree", 2) == "two\nthree"
    assert first_words("one  two\nthree", 2) == "one  two"
    assert first_words("one", 2) == last_words("one", 2) == "one"
    assert last_words("我要 cancel 订单", 3) == "cancel 订单"
    assert first_words("我要 cancel 订单", 3) == "我要 cancel"


def test_cosines_of_rows():
    assert row_cosines(np.array([[2.0, 0], [0, 0], [3, 4]]), np.array([[5.0, 0]])).tolist() == [1, 0, 0.6]
    with pytest.raises(ValueError, match="NaN or infinity"):
        row_cosines(np.array([[np.nan]]), np.array([[1.0]]))


@pytest.mark.slow
@real
def test_real_chats():
    for task, least in zip(response_selection.TASKS, (5, 30), strict=True):
        problem = task.load("ubuntu_irc", None, "test", 400)
        found = figures(problem.measure(TfidfEncoder(), [0, 1]))
        assert least < found["top1", ""] < found["top3", ""] < found["top10", ""] < 80
        assert found["top1", "official"] < found["top1", ""]
