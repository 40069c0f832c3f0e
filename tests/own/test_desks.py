"""Facts about the JSON of help desks, messengers and bots."""

import json

import pytest
from reading import read
from vendors import drafts_of, examples, said

from hf_dialemb.corpora.own.desks import DESKS

EXAMPLES = examples("desks")


def test_each_form_has_an_example():
    assert {example["form"] for example in EXAMPLES} == {form.name for form in DESKS}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["form"])
def test_what_is_said_is_read_and_the_rest_is_counted(example):
    drafts, forms, notes = drafts_of(example["file"])
    assert set(forms) == {example["form"]}
    assert said(drafts) == example["dialogues"]
    assert sorted(notes) == sorted(example["notes"])
    assert all(dict(draft.metadata) == example.get("metadata", draft.metadata) for draft in drafts)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["form"])
def test_a_file_is_read_with_its_dialogues_in_order_of_time(tmp_path, example):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(example["file"]), encoding="utf-8")
    dialogues, _ = read(path, tmp_path)
    assert {item.id for item in dialogues} == example["dialogues"].keys()
    for item in dialogues:
        assert [turn.time for turn in item.turns] == sorted(turn.time for turn in item.turns)
