"""Facts about the JSON of help desks, messengers and bots."""

import copy
import json
from contextlib import suppress

import pytest
from made_up_corpora import write
from read_files import read
from vendors import drafts_in, examples, said

from hf_dialemb import load_dialogues
from hf_dialemb.apps.files.findings import Notes
from hf_dialemb.apps.files.form import RECORD
from hf_dialemb.apps.files.json_files import find_in_records
from hf_dialemb.apps.files.vendors import DESKS
from hf_dialemb.errors import InputError

EXAMPLES = examples("desks")


def test_each_form_has_an_example():
    assert {example["form"] for example in EXAMPLES} == {
        form.name for form in DESKS if form.container == RECORD
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["form"])
def test_what_is_said_is_read_and_the_rest_is_counted(example):
    drafts, forms, notes = drafts_in(example["file"])
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
        assert item.turns[0].role == "user"  # in all these examples
    in_memory = example["file"] if isinstance(example["file"], list) else [example["file"]]
    assert [item.to_json() for item in load_dialogues(in_memory)] == [
        item.to_json() for item in dialogues
    ]


def test_a_slack_export_is_read_by_threads_over_days(tmp_path):
    def said_at(user, text, time, thread=None):
        return {
            "type": "message",
            "user": user,
            "text": text,
            "ts": time,
            **({"thread_ts": thread} if thread else {}),
        }

    first, later = "1709542800.000040", "1709629200.000050"
    files = {
        "users.json": [
            {"id": "U1", "real_name": "Ana"},
            {"id": "U2", "profile": {"real_name": "Bo"}},
        ],
        "channels.json": [{"id": "C1", "name": "help"}],
        "help/2024-03-04.json": [
            {
                "type": "message",
                "subtype": "channel_join",
                "user": "U1",
                "text": "<@U1> has joined",
                "ts": first,
            },
            said_at("U1", "VPN is down", first, first),
            said_at("U2", "<@U1> try again", "1709542890.000040", first),
            said_at("U3", "new chairs?", "1709542920.000040"),
        ],
        "help/2024-03-05.json": [
            said_at("U1", "works", later, first),
            said_at("U3", "no chairs?", later),
        ],
    }
    dialogues, remarks = read(write(tmp_path / "export", files), tmp_path)
    assert [item.id for item in dialogues] == [first, "help", "help#2"]
    assert [turn.content for turn in dialogues[0].turns] == [
        "VPN is down",
        "Ana try again",
        "works",
    ]
    assert [turn.name for turn in dialogues[0].turns] == ["Ana", "Bo", "Ana"]
    assert {item.metadata["channel"] for item in dialogues} == {"help"}
    assert "left out a message whose subtype is 'channel_join'" in remarks
    assert "split at pauses" in remarks
    again, remarks = read(
        write(tmp_path / "export", {"help/2024-03-06.json": "[{"}) / "help", tmp_path
    )
    assert again == dialogues
    assert "2024-03-06.json: is not JSON, and was left out" in remarks


def paths_within(value, path=()):
    for key in (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        yield (*path, key)
        yield from paths_within(value[key], (*path, key))


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", EXAMPLES + examples("calls"), ids=lambda example: example["form"]
)
def test_no_value_of_another_kind_stops_the_reading(example):
    strange = [None, "", 0, [], {}, "x", [None], [[]], {"a": 1}, True, -1.5]
    for number, path in enumerate(paths_within(example["file"])):
        inner = value = copy.deepcopy(example["file"])
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = strange[number % len(strange)]
        with suppress(InputError):  # it has no known form any more, and a sentence says so
            findings = list(find_in_records(lambda value=value: [("file", value)], "file", Notes()))
            assert all(finding.dialogue or finding.problems for finding in findings)
