"""Facts about captions: who speaks in them, what a turn is, and what leaves their texts."""

import pytest
from read_files import read

from hf_dialemb.apps.files.captions import transcripts
from hf_dialemb.apps.files.findings import Notes

TEAMS = """WEBVTT

3f2a9c1e-0001/11-0
00:00:05.000 --> 00:00:08.000
<v Ines Roth>Good morning, what can
I do for you?</v>

3f2a9c1e-0001/12-0
00:00:08.200 --> 00:00:11.000
<v Max Ott>It restarts &amp; stops.</v>

3f2a9c1e-0001/13-0
00:00:11.500 --> 00:00:13.000
<v Max Ott>Since Monday.</v>
"""
ZOOM = """WEBVTT

1
00:00:05.000 --> 00:00:08.000
Ines Roth: Good morning, what can I do for you?

2
00:00:08.200 --> 00:00:11.000
Max Ott: It restarts & stops.

3
00:00:11.500 --> 00:00:13.000
Since Monday.
"""
STYLED = """\ufeffWEBVTT - a call

STYLE
::cue { color: red }

NOTE: a note: of nobody

00:05.000 --> 00:08.000 align:start position:0%
<v.loud Ines Roth><i>Good</i> <c.red>morning</c>, what can I do <00:00:06.000>for you?

00:08.200 --> 00:11.000
<v Max Ott>It restarts &amp; stops.
<v Max Ott>Since Monday.
"""
SRT = """
1
00:00:05,000 --> 00:00:08,000
[Ines Roth]: {\\an8}<font color="red">Good morning</font>, what can I do for you?
2
00:00:08,200 --> 00:00:11,000
[Max Ott]: It restarts &amp; stops.


3
00:00:11.500 --> 00:00:13.000
[Max Ott]: Since Monday.
"""
SBV = """0:00:05.000,0:00:08.000
>> Ines Roth: Good morning, what can
I do for you?

0:00:08.200,0:00:13.000
>> Max Ott: It restarts & stops.
Since Monday.
"""


def draft_of(path, content):
    """Return speakers and texts of captions, problems, and what was noted with its severity."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    notes = Notes()
    (draft,) = transcripts(path, notes)
    spoken = [(turn["role"], turn["content"]) for turn in draft.messages]
    noted = [(item.severity, item.message) for item in notes.problems(str(path))]
    return spoken, [item.message for item in draft.problems], noted


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.vtt", TEAMS),
        ("c.VTT", ZOOM),
        ("c.vtt", STYLED),
        ("c.srt", SRT),
        ("c.sbv", SBV),
        ("d.srt", SRT.replace("\n", "\r\n")),
    ],
)
def test_captions_of_one_speaker_in_a_row_are_a_turn(tmp_path, name, content):
    path = tmp_path / name
    expected = [
        ("Ines Roth", "Good morning, what can I do for you?"),
        ("Max Ott", "It restarts & stops. Since Monday."),
    ]
    assert draft_of(path, content) == (expected, [], [])
    (dialogue,), _ = read(path, tmp_path, roles="Ines Roth=assistant,*=user")
    assert [(turn.name, turn.content) for turn in dialogue.turns] == expected
    assert dialogue.time == ""  # captions count from the start of a recording


@pytest.mark.parametrize(
    "label", ["Speaker {}:", "[SPEAKER_0{}]:", "[SPEAKER_0{}]", "(Speaker {}):", "SPEAKER_0{}:"]
)
def test_diarizers_number_the_speakers(tmp_path, label):
    cues = [(0, "Hello."), (1, "Hi."), (1, "It is cold: 5 < 6.")]
    lines = [
        f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{label.format(who)} {text}\n"
        for n, (who, text) in enumerate(cues, 1)
    ]
    names = [label.format(who).strip("[]():") for who in (0, 1)]
    expected = [(names[0], "Hello."), (names[1], "Hi. It is cold: 5 < 6.")]
    assert draft_of(tmp_path / "call.srt", "\n".join(lines)) == (expected, [], [])


def test_captions_before_the_first_speaker_belong_to_it(tmp_path):
    content = TEAMS.replace(
        "<v Ines Roth>Good", "Hm.\n\n00:06.000 --> 00:07.000\n<v Ines Roth>Good"
    )
    spoken, _, _ = draft_of(tmp_path / "c.vtt", content)
    assert spoken[0] == ("Ines Roth", "Hm. Good morning, what can I do for you?")


ROLLING = """WEBVTT
Kind: captions
Language: en

00:00:00.320 --> 00:00:03.189 align:start position:0%
\x20
welcome<00:00:00.560><c> to</c><00:00:00.640><c> the</c><c.colorCCCCCC> show</c>

00:00:03.189 --> 00:00:03.199 align:start position:0%
welcome to the show
\x20

00:00:03.199 --> 00:00:06.470 align:start position:0%
welcome to the show
he said: today

00:00:06.470 --> 00:00:06.480 align:start position:0%
he said: today
\x20
"""


def test_captions_without_speakers_are_a_guess_and_rolling_lines_come_once(tmp_path):
    spoken, problems, noted = draft_of(tmp_path / "c.vtt", ROLLING)
    assert [text for _, text in spoken] == ["welcome to the show", "he said: today"]
    assert len({speaker for speaker, _ in spoken}) == 1
    assert not problems
    ((severity, sentence),) = noted
    assert severity == "guess"
    assert "diarization" in sentence


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("c.vtt", "Agent: Hi\n", "got no captions of the form VTT"),
        ("c.srt", "Agent: Hi\n", "got no captions of the form SRT"),
        ("c.vtt", "", "got no captions of the form VTT"),
        ("c.vtt", "WEBVTT\n", "got no caption, expected at least one"),
        (
            "c.vtt",
            TEAMS.encode() + b"\n00:20.000 --> 00:21.000\ncaf\xe9 \xc3\xa9\xc3\xa9\xc3\xa9\n",
            "got bytes that are not UTF-8",
        ),
    ],
)
def test_files_that_are_no_captions_are_named(tmp_path, name, content, expected):
    _, problems, _ = draft_of(tmp_path / name, content)
    assert [problem[: len(expected)] for problem in problems] == [expected]


def test_captions_that_are_lost_are_counted(tmp_path):
    content = TEAMS + "\n00:00:14.000 --> 00:00\n<v Max Ott>Lost\n"
    _, _, noted = draft_of(tmp_path / "c.vtt", content)
    assert noted == [("note", "left out 1 captions without text or with odd times")]
