"""The table of a corpus's counts."""

from __future__ import annotations

from hf_dialemb.cli import main
from hf_dialemb.corpora import describe, load_dialogues
from hf_dialemb.models.dialogue import Dialogue, Turn


def dialogue(*texts: str, domains: tuple[str, ...] = ()) -> Dialogue:
    roles = ("user", "assistant")
    return Dialogue(tuple(Turn(roles[i % 2], text) for i, text in enumerate(texts)), "", domains)


def rows(table: str) -> list[tuple[str, str]]:
    """Splits lines into name and value; two spaces or more lie between them."""
    return [(name.strip(), value) for name, value in (line.rsplit("  ", 1) for line in table.splitlines())]


def test_every_count_is_of_the_dialogues():
    dialogues = [
        dialogue("one two three", "four", domains=("hotel",)),
        dialogue("one  two", "three four", "five", domains=("taxi", "hotel")),
        dialogue("one"),
        dialogue("one two", "three", "four", "five six", domains=("taxi", "hotel", "train")),
    ]
    assert rows(describe(dialogues)) == [
        ("dialogues", "4"),
        ("turns", "10"),
        ("mean turns", "2.5"),
        ("mean words", "4.0"),
        ("single-domain dialogues", "1"),
        ("mean turns", "2.0"),
        ("mean words", "4.0"),
        ("speakers", "2"),
        ("user", "6 turns"),
        ("assistant", "4 turns"),
        ("labels", "3"),
        ("hotel", "3"),
        ("taxi", "2"),
        ("train", "1"),
        ("duplicate dialogues", "0 (0.0%)"),
        ("duplicate utterances", "2 (20.0%)"),
    ]


def test_the_ten_most_frequent_labels_stand_there_whatever_the_order():
    names = [f"label{number:02}" for number in range(14)]
    dialogues = [dialogue("hello", domains=(name,)) for name in names] + [dialogue("hello", domains=("label13",))]
    table = describe(dialogues)
    assert ("labels", "14") in rows(table)
    assert [row for row in rows(table) if row[0].startswith("label") and row[0] != "labels"] == [
        ("label13", "2"),
        *((name, "1") for name in names[:9]),
    ]
    assert describe(dialogues[::-1]) == table


def test_without_labels_or_dialogues_there_is_still_a_table():
    assert rows(describe([dialogue("hello")]))[4:] == [
        ("single-domain dialogues", "0"),
        ("speakers", "1"),
        ("user", "1 turns"),
        ("labels", "0"),
    ]
    assert [value for _, value in rows(describe([]))] == ["0"] * 5


def test_labels_of_turns_and_repeated_dialogues_are_told_where_there_are_any():
    asked = Turn("user", "a room", ("inform", "greet"), (("area", "north"), ("area", "")), ("book",))
    twice = Dialogue((asked, Turn("assistant", "which", ("request",)), Turn("user", "any", ("inform",))))
    assert rows(describe(iter([twice, dialogue("hello"), twice])))[9:] == [
        ("dialogue acts", "3"),
        ("inform", "4 turns"),
        ("greet", "2 turns"),
        ("request", "2 turns"),
        ("slots", "1"),
        ("area", "2 turns"),
        ("intents", "1"),
        ("book", "2 turns"),
        ("duplicate dialogues", "1 (33.3%)"),
        ("duplicate utterances", "3 (42.9%)"),
    ]


def test_a_label_cannot_command_the_terminal():
    assert rows(describe([dialogue("hello", domains=("\x1b[2J",))]))[-1] == ("\\x1b[2J", "1")


def test_the_command_prints_the_table_and_writes_the_dialogues(tmp_path, capsys):
    output = tmp_path / "sample.jsonl"
    assert main(["corpus", "stats", "--corpus", "sample", "--split", "dev", "--output", str(output)]) == 0
    dialogues = load_dialogues("sample", None, "dev")
    assert capsys.readouterr().out == f"{describe(dialogues)}\nWrote {output}\n"
    assert load_dialogues(str(output)) == dialogues
