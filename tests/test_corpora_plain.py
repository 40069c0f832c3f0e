"""Facts about the readers of Self-dialogue and Doc2Dial, on hand-made records in their own formats."""

import copy
import csv
import json

import pytest

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def changed(record, path, value):
    """A copy of the record with the value at a path, such as ``("turns", 0)``, replaced or, for ..., removed."""
    record = copy.deepcopy(record)
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return record


COLUMNS = ("AssignmentId", "WorkerId", "Answer.sentence1", "Answer.sentence10", "Answer.sentence2", "Answer.sentence3")


def self_dialogue_file(folder, topic, rows, name="batch.csv", columns=(*COLUMNS, "Reject")):
    path = folder / "self_dialogue" / "corpus" / topic / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="latin-1", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
        writer.writerow(columns)
        writer.writerows(rows)


def self_dialogue(folder, **options):
    found = [
        dialogue
        for split in ("train", "test")
        for dialogue in load_dialogues("self_dialogue", folder, split, **options)
    ]
    return {dialogue.id: dialogue for dialogue in found}


FILLER = [(f"filler{number}", "W", "Hi", "{}", "{}", "{}", "") for number in range(2)]  # so that no split is empty


def test_self_dialogue_rules(tmp_path):
    rows = [
        ("a", "W1", "One", "Ten", "Two", "Three", ""),
        ("gap", "W1", "One", "{}", "", "Three", ""),
        ("rejected", "W1", "One", "Ten", "Two", "Three", "x"),
        ("blocked", "W2", "One", "Ten", "Two", "Three", ""),
        ("nothing", "W1", "{}", "{}", " ", "", ""),
        ("again", "W1", "Old", "{}", "{}", "{}", ""),
        ("bytes", "W1", 'Caf\xe9, "so"\nit is', "{}", "{}", "{}", ""),
        *FILLER,
    ]
    self_dialogue_file(tmp_path, "fashion", rows)
    self_dialogue_file(tmp_path, "fashion", [("again", "W1", "New", "{}", "{}", "{}", "")], name="later.csv")
    self_dialogue_file(tmp_path, "music_and_movies", [("m1", "W", "Hi", "", "", "", "")])
    self_dialogue_file(tmp_path, "transition_music_movies", [("m2", "W", "Hi", "", "", "", "")])
    write(tmp_path / "self_dialogue" / "blocked_workers.txt", "W2\n")
    found = self_dialogue(tmp_path)
    assert set(found) == {"a", "gap", "again", "bytes", "m1", "m2", "filler0", "filler1"}
    said = [(turn.role, turn.content) for turn in found["a"].turns]
    assert said == [("user", "One"), ("assistant", "Two"), ("user", "Three"), ("assistant", "Ten")]
    assert [turn.role for turn in found["gap"].turns] == ["user", "user"]
    assert found["again"].turns[0].content == "New"
    assert found["bytes"].turns[0].content == 'Caf\ufffd, "so"\nit is'
    assert found["a"].domains == ("fashion",)
    assert found["m1"].domains == found["m2"].domains == ("music", "movies")
    (tmp_path / "self_dialogue" / "blocked_workers.txt").unlink()
    assert set(self_dialogue(tmp_path)) == {*found, "blocked"}


def test_self_dialogue_split_is_fixed_and_complete(tmp_path):
    rows = [(f"id{number:03d}", "W", "Hi", "{}", "{}", "{}", "") for number in range(205)]
    self_dialogue_file(tmp_path, "pop", rows[::-1])
    splits = {split: load_dialogues("self_dialogue", tmp_path, split) for split in ("train", "dev", "test")}
    assert [len(dialogues) for dialogues in splits.values()] == [164, 20, 21]
    assert len({dialogue.id for dialogues in splits.values() for dialogue in dialogues}) == 205
    assert [dialogue.id for dialogue in splits["dev"]][:4] == sorted(dialogue.id for dialogue in splits["dev"])[:4]


def test_self_dialogue_malformed_rows(tmp_path):
    self_dialogue_file(tmp_path, "pop", [*FILLER, ("x", "W", "Hi")])
    place = r"pop/batch\.csv: row 3: "
    with pytest.raises(InputError, match=place + "got a row with too few or too many cells"):
        self_dialogue(tmp_path)
    assert set(self_dialogue(tmp_path, skip_invalid=True)) <= {"filler0", "filler1"}
    self_dialogue_file(tmp_path, "pop", [*FILLER, ("", "W", "Hi", "", "", "", "")])
    with pytest.raises(InputError, match=place + "field AssignmentId: got an empty cell"):
        self_dialogue(tmp_path)
    self_dialogue_file(tmp_path, "pop", FILLER, columns=COLUMNS)
    with pytest.raises(InputError, match=r"pop/batch\.csv: column Reject is missing"):
        self_dialogue(tmp_path)


DOC2DIAL = {
    "dial_id": "d1",
    "doc_id": "page",
    "domain": "dmv",
    "turns": [
        {"turn_id": 1, "role": "user", "utterance": "Hi"},
        {"turn_id": 2, "role": "user", "utterance": "Still me", "da": "", "references": []},
        {"turn_id": 3, "role": "agent", "utterance": "Hello", "da": "respond_solution", "references": [{"sp_id": "1"}]},
    ],
}


def doc2dial(folder, *records, split="test", name="finaltest"):
    write(folder / "doc2dial" / f"doc2dial_dial_{name}.json", {"dial_data": {"dmv": {"page": list(records)}}})
    return load_dialogues("doc2dial", folder, split)


@pytest.mark.parametrize(("split", "name"), [("train", "train"), ("dev", "validation"), ("test", "finaltest")])
def test_doc2dial_splits_and_turns(tmp_path, split, name):
    turns = (Turn("user", "Hi"), Turn("user", "Still me"), Turn("assistant", "Hello", ("respond_solution",)))
    assert doc2dial(tmp_path, DOC2DIAL, split=split, name=name) == [Dialogue(turns, "d1", ("dmv",))]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("dial_id",), ..., "field dial_id: got nothing"),
        (("turns", 1, "role"), "robot", "turns[1]: field role: got 'robot', expected user or agent"),
        (("turns", 1, "utterance"), "", "turns[1]: field content: got ''"),
        (("turns", 1, "da"), 3, "turns[1]: field da: got int, expected str"),
    ],
)
def test_doc2dial_malformed_record(tmp_path, path, value, expected):
    with pytest.raises(InputError) as raised:
        doc2dial(tmp_path, changed(DOC2DIAL, path, value))
    place = f"{tmp_path}/doc2dial/doc2dial_dial_finaltest.json: record dmv: document 'page' record 0: "
    assert str(raised.value).startswith(place + expected)


@pytest.mark.parametrize(
    "content", [[], {}, {"dial_data": []}, {"dial_data": {"dmv": []}}, {"dial_data": {"dmv": {"p": 1}}}]
)
def test_doc2dial_file_of_another_shape(tmp_path, content):
    write(tmp_path / "doc2dial" / "doc2dial_dial_finaltest.json", content)
    with pytest.raises(InputError, match=r"doc2dial_dial_finaltest\.json: (record dmv: )?(got|field)"):
        load_dialogues("doc2dial", tmp_path, "test")
