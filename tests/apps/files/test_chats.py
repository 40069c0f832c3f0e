"""Facts about chats with language models and agents' traces.

``files/chats.jsonl`` has an example of each form.
"""

import json
import re

import pytest
from read_files import read
from vendors import examples

from hf_dialemb import load_dialogues
from hf_dialemb.apps.files.chats import CHATS

EXAMPLES = examples("chats")
PLACE = re.compile(r"^\S*?export\.jsonl(:\d+)?: (dialogue \d+: )?(message \d+: )?")
NAMES = [f"{number}-{example['form']}" for number, example in enumerate(EXAMPLES)]


def said(dialogues):
    return {item.id: [[turn.role, turn.content] for turn in item.turns] for item in dialogues}


def test_each_form_has_an_example():
    assert {example["form"] for example in EXAMPLES} == {form.name for form in CHATS}


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_what_is_said_is_read_and_the_rest_is_counted(tmp_path, example):
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(map(json.dumps, example["records"])), encoding="utf-8")
    dialogues, remarks = read(path, tmp_path)
    assert said(dialogues) == example["dialogues"]
    for item in dialogues:
        assert dict(item.metadata) == example.get("metadata", {}).get(item.id, item.metadata)
    sentences = {
        PLACE.sub("", line).split(" (")[0]
        for line in remarks.splitlines()
        if "roles: guessed" not in line
    }
    assert sentences == set(example["notes"])


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_one_json_value_and_a_list_in_memory_are_read_as_lines_are(tmp_path, example):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(example["records"]), encoding="utf-8-sig")
    assert said(load_dialogues(path)) == example["dialogues"]
    if example["form"] != "messages, one a record":  # a list of messages in memory is refused
        assert said(load_dialogues(example["records"])) == example["dialogues"]
