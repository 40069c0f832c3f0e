"""Facts about files that people reported in public: dialogues, turns and speakers.

The files lie beside the corpora; small ones of the same kinds are here.
"""

import json
import os
import re
from pathlib import Path

import datasets
import pandas as pd
import pytest
from read_files import read, with_remarks

from hf_dialemb import load_dialogues

DATA = os.environ.get("HF_DIALEMB_DATA", "data")
CASES = Path(os.environ.get("HF_DIALEMB_CASES", Path(DATA).parent / "cases")) / "field"
EXPECTED = CASES / "expected.txt"
LINES = EXPECTED.read_text(encoding="utf-8").splitlines() if EXPECTED.is_file() else []


@pytest.mark.skipif(not LINES, reason="the files lie beside the corpora")
@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split()[0])
def test_reported_files(line):
    name, *numbers = line.split()
    count, turns, speakers = map(int, numbers)
    dialogues, remarks = with_remarks(CASES / name)
    spoken = [turn for item in dialogues for turn in item.turns]
    assert (len(dialogues), len(spoken)) == (count, turns)
    by_name = len({turn.name or turn.role for turn in spoken})
    assert speakers in (by_name, len({turn.role for turn in spoken}))
    # What is printed with names works as it stands, and answers the question.
    for option, words in re.findall(r"--(roles|columns) '([^'*]+)'", remarks):
        if not re.search("NAME|PATH", words):
            again, more = with_remarks(CASES / name, **{option: words})
            assert [item.turns for item in again] == [item.turns for item in dialogues]
            assert f"--{option} '{words}'" not in more


def chat(*texts, who=("user", "assistant"), **beside):
    return [{"role": who[place % 2], "content": text, **beside} for place, text in enumerate(texts)]


def talk(id, *texts):
    return {"id": id, "messages": chat(*texts)}


ONE = chat("Where is it?", "In the hall")
SMALL = {  # a file, and the texts of its dialogues
    "every list of an object": (
        {"open": [talk("a", "Hi", "Ho")], "closed": [talk("b", "No", "Yes")], "spam": []},
        [["Hi", "Ho"], ["No", "Yes"]],
    ),
    "an answer beside the messages": (
        {"messages": ONE[:1], "response": {"choices": [{"message": ONE[1]}]}, "session_id": "s"},
        [["Where is it?", "In the hall"]],
    ),
    "states, the newest first": (
        [
            {"values": {"messages": chat("a", "b", "c", "d")}, "metadata": {"thread_id": "t"}},
            {"values": {"messages": chat("a", "b")}, "metadata": {"thread_id": "t"}},
        ],
        [["a", "b", "c", "d"]],
    ),
    "two answers to one question": (
        {"id": "q", "conversation_a": ONE, "conversation_b": [ONE[0], {**ONE[1], "content": "Up"}]},
        [["Where is it?", "In the hall"]],
    ),
    "posts with replies": (
        [
            {
                "post": {
                    "user": "k",
                    "message": "down",
                    "replies": [{"user": "m", "message": "when"}],
                }
            },
            {"post": {"user": "m", "message": "a change at ten", "replies": []}},
        ],
        [["down", "when"], ["a change at ten"]],
    ),
    "a tree of answers": (
        [
            {"message_id": "1", "parent_id": None, "text": "Hi", "role": "prompter", "tags": {}},
            {"message_id": "2", "parent_id": "1", "text": "Ho", "role": "assistant", "tags": {}},
            {"message_id": "3", "parent_id": "1", "text": "No", "role": "assistant", "tags": {}},
        ],
        [["Hi", "No"]],
    ),
    "a flag is no id": (
        [
            {"sender": "Ann", "body": "Is it free?", "call": False, "reactions": [["Bo", "+"]]},
            {"sender": "Bo", "body": "It is", "call": False, "reactions": []},
            {"sender": "Ann", "body": "Incoming voice call", "call": True, "reactions": []},
        ],
        [["Is it free?", "It is"]],
    ),
    "notices in the name of people": (
        [
            {"sender": "Ada", "text": "Is it moved?", "is_from_me": False},
            {"sender": "Me", "text": "Liked “Is it moved?”", "is_from_me": True},
            {"sender": "Me", "text": "Yes", "is_from_me": True},
        ],
        [["Is it moved?", "Yes"]],
    ),
    "dotted names": (
        {
            "attributes.session.id": "s",
            "attributes.llm.input_messages": [{"message.role": "user", "message.content": "Hi"}],
            "attributes.llm.output_messages": [
                {"message.role": "assistant", "message.content": "Ho"}
            ],
        },
        [["Hi", "Ho"]],
    ),
    "lists in columns": (
        {"dialogue_id": "d", "turns": {"speaker": [0, 1], "utterance": ["Hi there", "Ho"]}},
        [["Hi there", "Ho"]],
    ),
    "speaker and text in pairs": (
        {"train": [{"convo_id": 1, "original": [["agent", "Hello"], ["customer", "I lost it"]]}]},
        [["Hello", "I lost it"]],
    ),
    "texts in turn": (
        {"id": "0", "data": ["How do tides work?", "The moon pulls."]},
        [["How do tides work?", "The moon pulls."]],
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_files(tmp_path, name):
    value, texts = SMALL[name]
    path = tmp_path / "file.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    dialogues, _ = read(path, tmp_path)
    assert [[turn.content for turn in item.turns] for item in dialogues] == texts


TEXTS = {
    "Zoom": (
        "10:02:11 From Ann to Everyone:\n\tHear me?\n"
        "10:02:30 From Ola to Everyone:\n\tYes: loud\n"
        '10:03:02 From Ann to Ola(Direct Message):\n\tReacted to "Yes: loud" with +\n',
        ["Hear me?", "Yes: loud"],
    ),
    "blocks": (
        "Aug 03, 2023  4:29:42 PM (Read)\nMe\nCan you come?\n\n"
        "Aug 03, 2023  4:31:10 PM\n+1555\nYes\n"
        "Which shop?\nTapbacks:\nLoved by Me\n\n"
        "Aug 03, 2023  4:32:00 PM\nMe\nMill Road: at six\n",
        ["Can you come?", "Yes Which shop?", "Mill Road: at six"],
    ),
    "angles": (
        "[10:00] <ann> is it red?\n[10:01] <bo> it is\n[10:03] <ann> ok then\n",
        ["is it red?", "it is", "ok then"],
    ),
    "headings": (
        "## User\n\nWhere is it?\n\n## Assistant\n\nIn the hall.\n\n## User\n\nThanks\n",
        ["Where is it?", "In the hall.", "Thanks"],
    ),
    "tabs": (
        "2024-01-01 10:00:00\tAnn\tIn?\n2024-01-01 10:01:00\tBo\tYes\n"
        "2024-01-01 10:02\tAnn\tGood\n",
        ["In?", "Yes", "Good"],
    ),
    "a name of a day": (
        "Fri, Sep 12, 2025, 11:14:23 - ida: red again\n"
        "Fri, Sep 12, 2025, 11:15:23 - leo: on it: full\n",
        ["red again", "on it: full"],
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_lines_of_text(tmp_path, name):
    content, texts = TEXTS[name]
    path = tmp_path / "chat.txt"
    path.write_text(content, encoding="utf-8")
    (dialogue,) = load_dialogues(path)
    assert [turn.content for turn in dialogue.turns] == texts
    assert len(dialogue.roles) == 2


def test_ids_times_and_metadata_are_inherited(tmp_path):
    lines = [
        {"speaker": "Caller", "text": "My card is gone"},
        {"speaker": "Agent", "text": "Gone?"},
    ]
    record = {
        "call_id": "k1",
        "team": "cards",
        "started_at": "2024-01-01T10:00:00Z",
        "lines": lines,
    }
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps(record), encoding="utf-8")
    (dialogue,) = load_dialogues(path)
    assert (dialogue.id, dialogue.time) == ("k1", "2024-01-01T10:00:00+00:00")
    assert dialogue.metadata == {"team": "cards"}


def test_objects_of_libraries_are_read_as_their_file(tmp_path):
    lines = [{"who": "Caller", "text": "My card is gone"}, {"who": "Agent", "text": "I block it"}]
    records = [{"call_id": f"k{n}", "team": "cards", "lines": lines} for n in range(4)]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    expected = [item.to_json() for item in load_dialogues(path)]
    rows = tmp_path / "rows.json"
    viewer = [{"row": record, "truncated_cells": []} for record in records]
    rows.write_text(json.dumps({"rows": viewer}), encoding="utf-8")
    dataset, polars = datasets.Dataset.from_list(records), pytest.importorskip("polars")
    frames = pd.DataFrame(records), polars.DataFrame(records)
    for source in (records, dataset, dataset.to_iterable_dataset(), *frames, rows):
        assert [item.to_json() for item in load_dialogues(source)] == expected


def test_a_remedy_takes_paths(tmp_path):
    lines = [{"x": {"y": "Ann"}, "z": "I need a taxi"}, {"x": {"y": "Bob"}, "z": "When is it?"}]
    path = tmp_path / "own.json"
    path.write_text(json.dumps([{"call": 7, "talk": {"lines": lines}}]), encoding="utf-8")
    columns = "messages=talk/lines,role=x/y,content=z,id=call"
    dialogues, _ = read(path, tmp_path, columns=columns, roles="Ann=user,Bob=assistant")
    assert [turn.content for turn in dialogues[0].turns] == ["I need a taxi", "When is it?"]
    assert dialogues[0].id == "7"
