"""Facts about what systems export: help desks, messengers, recorders, chats with models, traces.

``files/exports.jsonl`` has an invented example a line, and what must come out.
"""

import copy
import json
from contextlib import suppress
from pathlib import Path

import pytest

from hf_dialemb import InputError, load_dialogues
from hf_dialemb.apps.files import evidence
from hf_dialemb.apps.files.findings import Notes
from hf_dialemb.apps.files.record_files import find_in_records

LINES = Path(__file__).with_name("files").joinpath("exports.jsonl").read_text(encoding="utf-8")
EXAMPLES = [json.loads(line) for line in LINES.splitlines()]
ROWS = evidence.system_rows()
NAMES = [f"{number}-{example['name']}" for number, example in enumerate(EXAMPLES)]


def _two(beside, *messages):
    return {"messages": [{**beside, **message} for message in messages]}


AGENT_FIRST = {  # files in which order says nothing, and their roles
    "Chatwoot": _two(
        {"conversation_id": 9, "private": False},
        {"content": "Hello", "message_type": 1, "sender": {"name": "Tom"}},
        {"content": "Charged twice", "message_type": 0, "sender": {"name": "Ida"}},
    ),
    "Drift": _two(
        {"conversationId": 6, "type": "chat"},
        {"body": "Hello", "author": {"type": "user", "bot": False}},
        {"body": "Charged twice", "author": {"type": "contact", "bot": False}},
    ),
    "Help": _two(
        {},
        {"body": "Hello", "createdBy": {"type": "user", "first": "Tom"}},
        {"body": "Charged twice", "createdBy": {"type": "customer", "first": "Ida"}},
    ),
    "HubSpot:": _two(
        {"conversationsThreadId": "t1"},
        {"text": "VIP", "type": "COMMENT", "direction": "OUTGOING"},
        {"text": "Hello", "type": "MESSAGE", "direction": "OUTGOING"},
        {"text": "Charged twice", "type": "MESSAGE", "direction": "INCOMING"},
    ),
    "MultiWOZ": _two(
        {},
        {"turn_id": "0", "speaker": 1, "utterance": "Hello"},
        {"turn_id": "1", "speaker": 0, "utterance": "Charged twice"},
    ),
    "Rocket.Chat:": _two(
        {"rid": "r"},
        {"msg": "tea", "u": {"username": "tea"}, "t": "uj"},
        {"msg": "Hello", "u": {"username": "support"}},
        {"msg": "Charged twice", "u": {"username": "customer"}},
    ),
}


def read(example, folder):
    file = folder / ("export.jsonl" if example["lines"] else "export.json")
    value = example["file"]
    text = "\n".join(map(json.dumps, value)) if example["lines"] else json.dumps(value)
    file.write_text(text, encoding="utf-8")
    return said(load_dialogues(file))


def said(dialogues):
    return {item.id: [[turn.role, turn.content] for turn in item.turns] for item in dialogues}


def turns_in(files):
    return [*said(load_dialogues(files)).values()] if files else []


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_what_is_said_is_read(tmp_path, example):
    assert read(example, tmp_path) == example["dialogues"]


@pytest.mark.parametrize("example", EXAMPLES[::4], ids=NAMES[::4])
def test_a_list_in_memory_is_read_as_the_file_is(tmp_path, example):
    value = example["file"] if isinstance(example["file"], list) else [example["file"]]
    if not any(isinstance(item, dict) and "role" in item for item in value):  # messages alone
        assert list(said(load_dialogues(value)).values()) == list(example["dialogues"].values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_row_is_there_only_where_the_engine_alone_fails(tmp_path, monkeypatch, row):
    others = [other for other in ROWS if other is not row]
    files = [file for name, file in AGENT_FIRST.items() if row["name"].startswith(name)]
    expected = [[["assistant", "Hello"], ["user", "Charged twice"]]] * len(files)
    assert turns_in(files) == expected
    monkeypatch.setattr(evidence, "system_rows", lambda: others)
    failing = ["file"] if turns_in(files) != expected else []
    for example in EXAMPLES:
        try:
            failing += [example["name"]] if read(example, tmp_path) != example["dialogues"] else []
        except Exception as error:  # a file without its row may hold nothing
            failing.append(str(error))
    assert failing


def paths_within(value, path=()):
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield (*path, key)
        yield from paths_within(value[key], (*path, key))


STRANGE = [None, "", 0, [], {}, "x", [None], [[]], {"a": 1}, True, -1.5, "{", "[1", {"text": []}]


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_no_value_of_another_kind_stops_the_reading(example):
    for number, path in enumerate(paths_within(example["file"])):
        inner = value = copy.deepcopy(example["file"])
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = STRANGE[number % len(STRANGE)]
        records = [("x", item) for item in (value if isinstance(value, list) else [value])]
        with suppress(InputError):  # it holds nothing any more, and a sentence says so
            findings = list(find_in_records(lambda records=records: records, "x", Notes()))
            assert all(item.dialogue or item.problems for item in findings)
