"""Selection of responses.

Which pairs and contexts are asked, what they choose from, and what an encoder gets.
"""

import numpy as np
import pytest
from given_vectors import Given, figures
from made_up_corpora import FILES, needs
from talks import dialogue

from hf_dialemb.data import load_examples, write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn, plain
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.tasks import task_texts
from hf_dialemb.evaluation.tasks.task import CorpusPart, get_task
from hf_dialemb.evaluation.tasks.task_texts import first_words, last_words, row_cosines

UTTERANCE, DIALOGUE = get_task("response-selection"), get_task("dialogue-response-selection")


def numbered(text):
    """The unit vector of a text's number.

    ``question 7 ...`` and ``answer 7`` are equal, all others orthogonal.
    """
    vector = np.zeros(400)
    numbers = [int(word) for word in text.split() if word.isdigit()]
    vector[numbers[-1] if numbers else 399] = 1
    return vector


def constant(text):
    return [1.0, 0.0]


def pairs(numbers):
    return [dialogue(f"q {n}", f"a {n}") for n in numbers]


def loaded(tmp_path, dialogues, task=UTTERANCE, limit=None):
    path = tmp_path / "mine.jsonl"
    write_jsonl(dialogues, path)
    return task.load(CorpusPart(str(path), None, "all", limit))


def test_a_response_is_the_next_turn_and_the_limit_counts_pairs(tmp_path):
    roles = {
        "one 1": "user",
        "two 2": "user",
        "three 3": "assistant",
        "four 4": "speaker_3",
        "five 5": "user",
    }
    chat = Dialogue(tuple(Turn(role, text) for text, role in roles.items()))
    problem, encoder = loaded(tmp_path, [chat, *pairs(range(100))]), Given(numbered)
    problem.measure(encoder, [0])
    assert problem.config == {"pairs": 103, "pairs_of_the_split": 103, "candidates": 100}
    assert encoder.calls[0][:4] == ["two 2", "three 3", "four 4", "five 5"]
    problem = loaded(tmp_path, pairs(range(250)), limit=120)
    assert (problem.config["pairs"], problem.config["pairs_of_the_split"]) == (120, 250)
    for given, task, limit, message in (
        (
            pairs(range(250)),
            UTTERANCE,
            99,
            "got 99 pairs of an utterance and a response, expected at least 100",
        ),
        (
            long_chats(99),
            DIALOGUE,
            None,
            "got 198 responses after 2 turns or more, none with 99 of its role",
        ),
    ):
        with pytest.raises(InputError, match=message):
            loaded(tmp_path, given, task, limit)


def test_knowing_pairs_is_a_hundred_percent_and_not_is_guessing(tmp_path):
    found = loaded(tmp_path, pairs(range(250))).measure(Given(numbered), [0, 1])
    assert set(figures(found).values()) == {100}
    metrics = ("top1", "top3", "top10", "mrr")
    expected = [
        (metric, setting, n) for setting, n in (("", 2), ("official", 1)) for metric in metrics
    ]
    assert [(each.metric, each.setting, each.n) for each in found] == expected
    assert {each.task for each in found} == {"response-selection"}
    found = figures(loaded(tmp_path, pairs(range(300))).measure(Given(constant), [0]))
    shares = [found[f"top{k}", setting] for k in (1, 3, 10) for setting in ("", "official")]
    assert shares == pytest.approx([1, 1, 3, 3, 10, 10])


near = pytest.approx
ALIKE = [dialogue(f"q 7 no {n} 7", " Thank  you 7" if n % 2 else "thank you 7") for n in range(10)]


@pytest.mark.parametrize(
    ("chats", "right", "official"),
    [
        # Ten responses of each block are the same but for case and spaces, and every query knows
        # that it wants them.
        (
            [*ALIKE, *pairs(range(10, 100))],
            {"top1": 100, "mrr": 100},
            {"top1": near(91), "top3": near(93)},
        ),
        # All of a dialogue is alike: to each first turn two responses are, to each second one its
        # own and itself.
        ([dialogue(f"q {n}", f"a {n}", f"b {n}") for n in range(50)], {"top1": 75}, {"top1": 50}),
        # Of 300 pairs 60 are the same.
        (
            pairs([*[0] * 60, *range(60, 300)]),
            {"top1": 100},
            {"top1": near(100 * (60 / 60 + 140) / 200)},
        ),
        # In the files, blocks are of one subject each; shuffled, hardly anybody shares one's
        # subject.
        (
            pairs([f"no {n} {n // 100}" for n in range(300)]),
            {"top1": near(3, abs=0.3)},
            {"top1": near(1)},
        ),
    ],
    ids=["equal texts", "queries among responses", "repeated pairs", "blocks of files"],
)
def test_what_is_right_and_what_is_officially(tmp_path, chats, right, official):
    found = figures(loaded(tmp_path, chats).measure(Given(numbered), range(3)))
    for setting, expected in (("", right), ("official", official)):
        assert {metric: found[metric, setting] for metric in expected} == expected


def long_chats(count, words=1):
    """Each has two responses after two turns or more, "c" and "d".

    The last turn is of the role before it.
    """
    chats = [
        dialogue(f"q {n} first", f"b {n} " + "word " * words, f"c {n}", f"d {n}")
        for n in range(count)
    ]
    return [Dialogue((*chat.turns, Turn("assistant", "more"))) for chat in chats]


def test_what_stands_beside_a_response_is_of_its_role_and_from_elsewhere():
    dialogues = [*long_chats(130), dialogue("hello", "how", "Thanks", "D  5")]
    responses = task_texts.responses_of(dialogues)
    assert {(each.turn, each.role) for each in responses} == {(2, "user"), (3, "assistant")}
    selections = task_texts.draw_selections(
        dialogues, responses, task_texts.others_of(responses), 0
    )
    assert len(selections) == 131
    for selection in selections:
        true, *rest = selection.responses
        assert (selection.correct, len(rest)) == ((0,), 99)
        assert plain(true) not in {plain(text) for text in rest}
        assert {text[0] for text in rest} <= ({"c", "T"} if true[0] in "cT" else {"d", "D"})


def test_a_dialogue_so_far_finds_its_response(tmp_path):
    problem = loaded(tmp_path, long_chats(150), DIALOGUE)
    sizes = {
        "contexts": 300,
        "contexts_of_the_split": 300,
        "contexts_per_repeat": 150,
        "candidates": 100,
    }
    assert problem.config.items() >= sizes.items()
    found = problem.measure(Given(numbered), range(3))
    assert {(each.task, each.n) for each in found} == {("dialogue-response-selection", 3)}
    # The program has the true response twice among its candidates.
    expected = {"top1": 100, "mrr": 100}, {"top1": 50, "mrr": 75, "top3": 100}
    for setting, means in zip(("", "official"), expected, strict=True):
        assert {metric: figures(found)[metric, setting] for metric in means} == pytest.approx(means)


def test_a_long_context_is_cut_at_its_beginning_officially_at_its_end(tmp_path):
    problem, encoder = loaded(tmp_path, long_chats(150, words=200), DIALOGUE), Given(numbered)
    problem.measure(encoder, [0])
    cut = [
        text for text in encoder.calls[0] if len(text.split()) == problem.config["context_words"]
    ]
    assert all("first" in text or text.startswith("word") for text in cut)
    assert any(text.startswith("q 5 first b 5 word") for text in cut)
    assert any(text.endswith(("word c 5", "word word")) for text in cut)
    assert last_words("one  two\nthree", 2) == "two\nthree"
    assert first_words("one", 2) == last_words("one", 2) == "one"
    assert first_words("我要 cancel 订单", 3) == "我要 cancel"
    assert row_cosines(np.array([[2.0, 0], [0, 0], [3, 4]]), np.array([[5.0, 0]])).tolist() == [
        1,
        0,
        0.6,
    ]


@needs("ecommerce")
def test_given_candidates_have_the_true_one_twice_officially():
    problem = DIALOGUE.load(CorpusPart("ecommerce", FILES, "test", None))
    selections = load_examples("ecommerce", FILES, "test")
    assert problem.config["contexts"] == len(selections)
    found = problem.measure(Given(constant), range(5))
    assert {each.n for each in found} == {1}
    counts = np.array([len(selection.responses) for selection in selections])
    assert figures(found)["top1", ""] == pytest.approx(np.mean(100 / counts))
    assert figures(found)["top1", "official"] == pytest.approx(np.mean(100 / (counts + 1)))
