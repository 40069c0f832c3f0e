"""Facts about the JSON of transcribed calls."""

import pytest
from vendors import drafts_in, examples, said

from hf_dialemb.apps.files.findings import Notes
from hf_dialemb.apps.files.joining import joined, spaced
from hf_dialemb.apps.files.recordings import CALLS

EXAMPLES = examples("calls")


def test_each_form_has_an_example():
    assert {example["form"] for example in EXAMPLES} == {form.name for form in CALLS}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["form"])
def test_pieces_of_one_speaker_are_a_turn(example):
    drafts, forms, notes = drafts_in(example["file"])
    assert set(forms) == {example["form"]}
    assert said(drafts) == example["dialogues"]
    assert sorted(notes) == sorted(example["notes"])
    assert all(dict(draft.metadata) == example.get("metadata", {}) for draft in drafts)


@pytest.mark.parametrize(
    ("labels", "roles"),
    [
        ([(0, 0), (1, 0), (0, 0)], ["channel 0", "channel 1", "channel 0"]),
        ([(0, 7), (1, 8), (0, 7)], ["speaker 7", "speaker 8", "speaker 7"]),
        (
            [(0, 0), (1, 0), (0, 1)],
            ["channel 0 speaker 0", "channel 1 speaker 0", "channel 0 speaker 1"],
        ),
        ([(None, None), (None, "Ann"), (None, None), (None, "Bo")], ["Ann", "Bo"]),
        ([(None, 3), (None, None), (None, 3)], ["speaker 3"]),
    ],
)
def test_who_speaks_is_a_channel_a_voice_or_both(labels, roles):
    pieces = [
        {
            "channel": channel,
            "speaker": speaker,
            "start": number,
            "role": str(speaker),
            "content": "Hm.",
        }
        for number, (channel, speaker) in enumerate(labels)
    ]
    turns = joined("call.json", pieces, Notes())
    assert [turn["role"] for turn in turns] == roles
    assert sum(len(turn["content"].split()) for turn in turns) == len(labels)


def test_channels_one_after_the_other_are_read_as_they_were_said():
    pieces = [
        {"channel": channel, "speaker": None, "start": start, "role": "None", "content": start}
        for channel, start in ((0, "0.5s"), (0, "9s"), (1, "1.5s"), (1, "10s"))
    ]
    assert [turn["content"] for turn in joined("call.json", pieces, Notes())] == [
        "0.5s",
        "1.5s",
        "9s",
        "10s",
    ]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [("a ", " b", "a b"), ("", "b", "b"), ("你好", "吗", "你好吗"), ("你好", "ok", "你好 ok")],
)
def test_pieces_of_chinese_have_no_spaces_between(first, second, text):
    assert spaced(first, second) == text
