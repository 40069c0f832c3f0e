"""Selection of responses.

Which pairs and contexts are asked, what they choose from, and what an encoder gets.
"""

import numpy as np
import pytest
from given_vectors import Sought, figures
from talks import dialogue

from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.evaluation.tasks.task import CorpusPart, get_task

UTTERANCE, DIALOGUE = get_task("response-selection"), get_task("dialogue-response-selection")


def numbered(text):
    """The unit vector of a text's number.

    ``question 7 ...`` and ``answer 7`` are equal, all others orthogonal.
    """
    vector = np.zeros(400)
    numbers = [int(word) for word in text.split() if word.isdigit()]
    vector[numbers[-1] if numbers else 399] = 1
    return vector


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
    problem, encoder = loaded(tmp_path, [chat, *pairs(range(100))]), Sought(numbered)
    problem.measure(encoder, [0])
    assert problem.config == {"pairs": 103, "pairs_of_the_split": 103, "candidates": 100}
    assert encoder.calls[0][:3] == ["two 2", "three 3", "four 4"]  # queries
    assert encoder.calls[1][:3] == ["three 3", "four 4", "five 5"]  # documents
    problem = loaded(tmp_path, pairs(range(250)), limit=120)
    assert (problem.config["pairs"], problem.config["pairs_of_the_split"]) == (120, 250)


def test_knowing_pairs_is_a_hundred_percent(tmp_path):
    found = loaded(tmp_path, pairs(range(250))).measure(Sought(numbered), [0, 1])
    assert set(figures(found).values()) == {100}
    metrics = ("top1", "top3", "top10", "mrr")
    expected = [
        (metric, setting, n) for setting, n in (("", 2), ("official", 1)) for metric in metrics
    ]
    assert [(each.metric, each.setting, each.n) for each in found] == expected
    assert {each.task for each in found} == {"response-selection"}


near = pytest.approx


@pytest.mark.parametrize(
    ("chats", "right", "official"),
    [
        # Ten responses of each block are the same but for case and spaces, and every query knows
        # that it wants them.
        (
            [
                *(
                    dialogue(f"q 7 no {n} 7", " Thank  you 7" if n % 2 else "thank you 7")
                    for n in range(10)
                ),
                *pairs(range(10, 100)),
            ],
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
    found = figures(loaded(tmp_path, chats).measure(Sought(numbered), range(3)))
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


def test_a_dialogue_so_far_finds_its_response(tmp_path):
    problem = loaded(tmp_path, long_chats(150), DIALOGUE)
    sizes = {
        "contexts": 300,
        "contexts_of_the_split": 300,
        "contexts_per_repeat": 150,
        "candidates": 100,
    }
    assert problem.config.items() >= sizes.items()
    found = problem.measure(Sought(numbered), range(3))
    assert {(each.task, each.n) for each in found} == {("dialogue-response-selection", 3)}
    # The program has the true response twice among its candidates.
    expected = {"top1": 100, "mrr": 100}, {"top1": 50, "mrr": 75, "top3": 100}
    for setting, means in zip(("", "official"), expected, strict=True):
        assert {metric: figures(found)[metric, setting] for metric in means} == pytest.approx(means)


def test_a_long_context_is_cut_at_its_beginning_officially_at_its_end(tmp_path):
    problem, encoder = loaded(tmp_path, long_chats(150, words=200), DIALOGUE), Sought(numbered)
    problem.measure(encoder, [0])
    cut = [
        text for text in encoder.calls[0] if len(text.split()) == problem.config["context_words"]
    ]
    assert all("first" in text or text.startswith("word") for text in cut)
    assert any(text.startswith("q 5 first b 5 word") for text in cut)
    assert any(text.endswith(("word c 5", "word word")) for text in cut)
