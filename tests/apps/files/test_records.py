"""Facts about records of any depth, and of what is broken."""

import json

import pytest
from made_up_corpora import refusal
from read_files import read

from hf_dialemb import load_dialogues

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
CHAT = {"messages": TALK}


def texts(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return [[turn.content for turn in dialogue.turns] for dialogue in load_dialogues(path)]


@pytest.mark.parametrize(
    "value",
    [
        CHAT,
        TALK,
        [CHAT],
        [TALK],
        {"conversations": [CHAT]},
        {"data": {"items": [CHAT]}},
        {"7": CHAT},
        {"7": TALK},
        {"version": {"number": 2}, "my_talks": [CHAT]},
        json.dumps({"a": json.dumps(CHAT)}),
    ],
)
def test_a_conversation_is_found_at_any_depth(tmp_path, value):
    assert texts(tmp_path / "d.json", value) == [["Hi", "Ho"]]


def test_records_of_other_structures_are_read_by_their_own_and_the_rest_is_named(tmp_path):
    lines = [CHAT, {"prompt": "Hi", "completion": "Ho"}, [*TALK], {"chat_messages": []}, CHAT]
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    dialogues, remarks = read(path, tmp_path)
    assert [len(item.turns) for item in dialogues] == [2] * 4
    assert f"{path}:4: left out a record in which nobody says anything" in remarks


def test_records_without_messages_are_rows_of_a_table(tmp_path):
    rows = [
        {"call_id": n, "speaker": who, "text": text}
        for n in (1, 2)
        for who, text in (("user", "Hi"), ("bot", "Ho"))
    ]
    lines = "\n".join(map(json.dumps, rows))
    assert texts(tmp_path / "d.json", rows) == [["Hi", "Ho"]] * 2
    assert texts(tmp_path / "d.jsonl", lines) == [["Hi", "Ho"]] * 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('[{"messages": []},]', "broken JSON at column 19"),
        ("[1", "broken JSON at column 3"),
        (b"\xff\xfe\xfa", "broken UTF-8 at byte 0"),
    ],
)
def test_what_is_broken_is_one_sentence(tmp_path, content, sentence):
    assert sentence in refusal(tmp_path / "d.json", content)


@pytest.mark.parametrize(
    "strange", [None, "", 0, [], {}, "x", [None], [[]], {"a": 1}, True, -1.5], ids=repr
)
def test_no_value_of_another_kind_stops_the_reading(tmp_path, strange):
    for name in ("messages", "id", "metadata"):
        record = {"id": "1", **CHAT, "metadata": {}, name: strange}
        assert ["Hi", "Ho"] in texts(tmp_path / "d.json", [CHAT, CHAT, CHAT, CHAT, CHAT, record])
