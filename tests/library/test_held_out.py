"""What a training says that it changed, on dialogues that it did not learn from."""

import numpy as np
import pytest
from commands import main
from talks import dialogue

from hf_dialemb.data import write_jsonl
from hf_dialemb.hashing import text_key
from hf_dialemb.storage.run_folder import RunFolder
from hf_dialemb.training.held_out import compared, hold_out, sides_that_meet, tell
from hf_dialemb.training.settings import RunArguments

OWN = RunArguments(corpus=[])


def talks(count):
    return [
        dialogue(f"may I have number {number}?", f"here is {number}") for number in range(count)
    ]


def test_sides_that_meet_have_a_closed_form():
    axes = np.eye(5)
    assert sides_that_meet(axes, axes).tolist() == [1] * 5
    assert sides_that_meet(axes, np.roll(axes, 1, axis=0)).tolist() == [0] * 5
    np.testing.assert_allclose(sides_that_meet(np.ones((5, 3)), np.ones((5, 3))), 1 / 5)
    # The first side of 2 finds that of 0; 0 and 2 tie for the second sides of both, which counts as
    # a half of a half.
    first, second = np.array([[1, 0], [0, 1], [1, 0]]), np.array([[1, 0], [0, 1], [0, -1]])
    assert sides_that_meet(first, second).tolist() == [0.75, 1, 0.25]


@pytest.mark.parametrize(
    ("count", "held"), [(199, 0), (200, 40), (450, 90), (501, 100), (2000, 100)]
)
def test_a_fifth_is_held_out_but_at_most_a_hundred(count, held):
    lines, given = [], talks(count)
    learnt, measured = hold_out(given, [], OWN, lines.append)
    assert (len(learnt), len(measured)) == (count - held, held)
    assert [*map(text_key, sorted([*learnt, *measured], key=given.index))] == [
        *map(text_key, given)
    ]
    assert lines == [
        f"Held out {held} dialogues to measure what training changes"
        if held
        else "Held out no dialogue to measure what training changes: got 199, expected 200"
    ]


def test_what_is_said_in_training_too_is_not_measured():
    learnt, measured = hold_out([*talks(200), *talks(200)], [], OWN, lambda line: None)
    assert len(learnt) == 320
    assert not {*map(text_key, learnt)} & {*map(text_key, measured)}


def test_only_a_loss_beyond_chance_warns_and_domains_decide(caplog):
    rising, falling = np.linspace(0, 0.5, 50), np.linspace(0, 0.5, 50)[::-1]
    before = {"sides": np.full(50, 0.5), "map": np.full(50, 0.5)}
    for after, words in (
        ({"sides": rising, "map": 1 - rising}, "sides"),
        ({"sides": 1 - rising, "map": falling}, "map"),
        ({"sides": before["sides"], "map": before["map"]}, ""),
    ):
        caplog.clear()
        lines = []
        record = compared(talks(50), before, after)
        assert record["sides"]["before"] == 50.0
        assert record["map"]["after"] == pytest.approx(100 * after["map"].mean(), abs=0.01)
        tell({"held_out": record}, "dialogue-minilm", lines.append)
        (line,) = lines
        assert "50 dialogues" in line
        assert "(before: 50.0%)" in line
        assert [
            entry.getMessage()
            for entry in caplog.records
            if "keep the backbone (dialogue-minilm)" in entry.message
            and "the MAP of domains is 25.0% (before: 50.0%)" in entry.message
        ] == caplog.messages
        assert bool(caplog.messages) == (words == "map")


@pytest.mark.parametrize(("after", "warns"), [(0.6, False), (0.35, False), (0.3, True)])
def test_sides_alone_warn_of_a_loss_of_a_quarter(after, warns, caplog):
    record = compared(talks(50), {"sides": np.full(50, 0.5)}, {"sides": np.full(50, after)})
    tell({"held_out": record}, "dialogue-minilm", lambda line: None)
    assert bool(caplog.messages) == warns


@pytest.mark.slow
def test_a_training_says_what_it_gained(sample_dialogues, tiny_bert, tmp_path, capsys):
    words = np.unique(
        [word for talk in sample_dialogues for turn in talk.turns for word in turn.content.split()]
    )[-30:]
    asked = np.random.default_rng(0).integers(30, size=(300, 4))  # each word is answered by another
    calls = [dialogue(" ".join(words[row]), " ".join(words[row - 1])) for row in asked]
    write_jsonl(calls, tmp_path / "calls.jsonl")
    settings = {
        "method": "dse",
        "max_steps": 60,
        "per_device_train_batch_size": 32,
        "learning_rate": 3e-3,
    }
    settings |= {
        "backbone": tiny_bert,
        "min_words": 1,
        "use_cpu": True,
        "output_dir": tmp_path / "run",
    }
    given = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    assert main(["train", str(tmp_path / "calls.jsonl"), *given]) == 0
    held_out = RunFolder(tmp_path / "run").report()["held_out"]
    assert (held_out["dialogues"], "map" in held_out) == (60, False)
    assert held_out["sides"]["interval"][0] > 0
    assert f"(before: {held_out['sides']['before']:.1f}%)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--max_steps", "9"], ["--config", "own_minilm", "--learning_rate", "0.1"]]
)
def test_a_recipe_that_keeps_weights_refuses_what_would_move_them(words, capsys):
    assert main(["train", "calls.csv", *words]) != 0
    assert "say what to learn, as in --method dial2vec" in capsys.readouterr().err
