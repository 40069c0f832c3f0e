"""What a corpus holds, counted; and the corpus that the package makes up."""

import hashlib
import importlib
from pathlib import Path

import pytest
from talks import dialogue as say

from hf_dialemb.data import describe, load_dialogues
from hf_dialemb.dialogue import Dialogue, Turn

HOTEL = (
    Turn(
        "user",
        "a cheap hotel please",
        ("inform", "greet"),
        (("price", "cheap"), ("stars", "")),
        ("book",),
    ),
    Turn("assistant", "which  area", ("request",), (("area", ""), ("area", "any"))),
    Turn("user", "north", ("inform",), (("area", "north"),)),
)
DIALOGUES = [
    Dialogue(HOTEL, "a", ("hotel",)),
    say("a taxi", "Which area", id="b", domains=("taxi", "hotel", "taxi")),
    say("hello", "hello there", id="c", domains=("taxi",), roles=("assistant",)),
    Dialogue((Turn("speaker_3", "north", intents=("book", "book")),), "d"),
]


def rows(dialogues):
    """Return the rows of the table: two spaces or more lie between name and value."""
    pairs = (line.rsplit("  ", 1) for line in describe(dialogues).splitlines())
    return [(name.strip(), value) for name, value in pairs]


def test_the_table_has_every_count_and_what_counts_as_a_duplicate():
    assert rows(iter([*DIALOGUES, DIALOGUES[0]])) == [
        *(("dialogues", "5"), ("turns", "11"), ("mean turns", "2.2"), ("mean words", "4.4")),
        *(("single-domain dialogues", "3"), ("mean turns", "2.7"), ("mean words", "5.7")),
        *(
            ("speakers", "3"),
            ("user", "5 turns"),
            ("assistant", "5 turns"),
            ("speaker_3", "1 turns"),
        ),
        *(("labels", "2"), ("hotel", "3"), ("taxi", "2")),
        *(
            ("dialogue acts", "3"),
            ("inform", "4 turns"),
            ("greet", "2 turns"),
            ("request", "2 turns"),
        ),
        *(("slots", "3"), ("area", "4 turns"), ("price", "2 turns"), ("stars", "2 turns")),
        *(("intents", "1"), ("book", "3 turns")),
        *(("duplicate dialogues", "1 (20.0%)"), ("duplicate utterances", "5 (45.5%)")),
    ]
    assert [value for _, value in rows([])] == ["0"] * 5
    assert rows([say("hello", domains=("\x1b[2J",))])[-1] == (
        "\\x1b[2J",
        "1",
    )  # no command to the terminal


@pytest.mark.parametrize(
    ("dialogues", "repeats"),
    [
        (
            [say("Hello  there\n", "YES"), say(" hello there", "yes"), say("hello, there", "yes")],
            ["1 (33.3%)", "3 (50.0%)"],
        ),
        ([say("a", "b")] * 3, ["2 (66.7%)", "4 (66.7%)"]),
        (
            [say("a", "b"), say("b", "a"), say("a b"), say("a", "b", roles=("assistant", "user"))],
            ["0 (0.0%)", "4 (57.1%)"],
        ),
        # half a character
        ([say("\ud800"), say("\ud800"), say("\ud801")], ["1 (33.3%)", "1 (33.3%)"]),
    ],
)
def test_duplicates_differ_in_case_and_white_space_at_most(dialogues, repeats):
    assert [value for name, value in rows(dialogues) if name.startswith("dupl")] == repeats


SIZES = {"train": 480, "dev": 96, "test": 240}
DIGEST = "1e259963d408b6fdb7b2e36bf7c6a15b17f1577d1f1b234449005450007bd380"


def test_the_sample_is_what_its_program_makes(monkeypatch):
    splits = {split: load_dialogues("sample", None, split) for split in SIZES}
    assert {split: len(dialogues) for split, dialogues in splits.items()} == SIZES
    assert hashlib.sha256(repr(list(splits.values())).encode()).hexdigest() == DIGEST
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "training_scripts")
    made = importlib.import_module("make_sample").dialogues_of("dev")
    assert list(made) == splits["dev"]
