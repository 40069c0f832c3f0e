"""Facts about the table of forms, and how the form of a file is recognised."""

import json
from importlib.metadata import EntryPoint

import pytest
from made_up_corpora import refusal
from read_files import read

from hf_dialemb import load_dialogues
from hf_dialemb.apps.files import forms
from hf_dialemb.apps.files.field_paths import value_at
from hf_dialemb.apps.files.form import RECORD
from hf_dialemb.hooks import Registry

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
CHAT = {"messages": TALK}
OTHER = {
    "call": "7",
    "talk": {"lines": [{"who": "Ann", "utt": "I need a taxi"}, {"who": "Bob", "utt": "When?"}]},
}


def texts(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return [[turn.content for turn in dialogue.turns] for dialogue in load_dialogues(path)]


def test_each_form_says_how_it_is_exported_and_is_known_by_something():
    for form in forms.FORMS.values():
        assert form.export.endswith(".")
        assert form.name.strip()
        assert form.container != RECORD or (
            (form.fields or form.accepts) and (form.messages or form.drafts)
        )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", 1),
        ("x|a", 1),
        ("c/0|d", 2),
        ("e/*/f", 3),
        ("g/*/f", 4),
        ("h/*", None),
        ("i/k", 5),
        ("a/$", None),
        ("j/$", "text"),
        ("m/*/role", "user"),
        ("none", None),
    ],
)
def test_a_path_leads_to_a_value(path, value):
    record = {
        "a": 1,
        "b": None,
        "c": {"d": 2},
        "e": [{"f": 3}, {"f": 9}],
        "g": [[{"f": 4}]],
        "h": [],
        "j": "text",
    }
    record["i"] = [{"key": "k", "value": {"intValue": 5}}]
    record["m"] = {"role": ["user"], "content": ["Hi"]}
    assert value_at(record, path) == value


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
        {"messages": [TALK[:1], TALK[1:]]},
        {"ticket": CHAT},
    ],
)
def test_a_conversation_is_read_wherever_it_lies(tmp_path, value):
    assert texts(tmp_path / "d.json", value) == [["Hi", "Ho"]]
    assert texts(tmp_path / "d.jsonl", json.dumps(value)) == [["Hi", "Ho"]]


def test_ids_that_lead_to_conversations_are_theirs(tmp_path):
    (tmp_path / "d.json").write_text(
        json.dumps({"a": CHAT, "b": {"messages": []}, "c": TALK, "d": "?"} | {"e": CHAT})
    )
    assert [item.id for item in load_dialogues(tmp_path / "d.json")] == ["a", "c", "e"]


def test_records_of_other_forms_are_read_by_their_own_and_the_rest_is_named(tmp_path):
    lines = [
        CHAT,
        {"prompt": "Hi", "completion": "Ho"},
        [*TALK],
        {"chat_messages": []},
        OTHER,
        CHAT,
    ]
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    dialogues, remarks = read(path, tmp_path)
    assert [len(item.turns) for item in dialogues] == [2] * 4
    assert "which has not the file's form, chat messages; repair the record" in remarks
    assert f"{path}:4: left out a dialogue in which nobody says anything" in remarks


def test_an_unknown_form_is_told_what_columns_would_say(tmp_path):
    path = tmp_path / "d.json"
    sentence = refusal(path, json.dumps([OTHER, {**OTHER, "call": "8"}]))
    named = "messages=talk/lines,role=who,content=utt"
    general = "messages=FIELD,role=FIELD,content=FIELD"
    assert f"say where it has messages, and what they have, with --columns '{general}'" in sentence
    dialogues, _ = read(path, tmp_path, columns=f"{named},id=call", roles="Ann=user,Bob=assistant")
    assert [item.id for item in dialogues] == ["7", "8"]
    assert [turn.content for turn in dialogues[0].turns] == ["I need a taxi", "When?"]


def test_records_without_messages_are_rows_of_a_table(tmp_path):
    rows = [
        {"call_id": n, "speaker": who, "text": text}
        for n in (1, 2)
        for who, text in (("user", "Hi"), ("bot", "Ho"))
    ]
    assert texts(tmp_path / "d.json", rows) == texts(
        tmp_path / "d.jsonl", "\n".join(map(json.dumps, rows))
    )
    assert texts(tmp_path / "d.json", rows) == [["Hi", "Ho"]] * 2


def test_a_form_of_another_package_is_tried_first(tmp_path, monkeypatch):
    module = tmp_path / "their_forms.py"
    module.write_text(
        "from hf_dialemb.apps.files.form import Form\n"
        "def said(record):\n    return [{'role': 'user', 'content': "
        "record['messages'][0]['content'][::-1]}]\n"
        "FORMS = {'theirs': Form('theirs', messages=said, fields=('messages', 'mirror'))}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("theirs", "their_forms:FORMS", "hf_dialemb.forms")
    monkeypatch.setattr(
        "hf_dialemb.hooks.entry_points",
        lambda group: [entry] if group == "hf_dialemb.forms" else [],
    )
    monkeypatch.setattr(
        forms, "FORMS", Registry("forms", {name: forms.FORMS[name] for name in forms.FORMS.own})
    )
    assert texts(tmp_path / "d.json", [{**CHAT, "mirror": True}, CHAT]) == [["iH"], ["Hi", "Ho"]]


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
