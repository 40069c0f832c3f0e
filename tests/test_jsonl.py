"""Facts about dialogues in .jsonl files: what is read, what is refused and how, and that writing is all or nothing."""

import json
import logging

import pytest

from hf_dialemb.corpora import load_dialogues, read_jsonl, write_jsonl
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

DIALOGUES = [
    Dialogue(
        (
            Turn(
                "user",
                "Ein Zimmer für zwei, 你好 \u2028 \t",
                ("inform",),
                (("people", "zwei"), ("stars", "")),
                ("book",),
            ),
            Turn("assistant", 'A "quoted" one\nand a second line'),
            Turn("speaker_3", "Me too"),
        ),
        "a",
        ("hotel", "taxi"),
    ),
    Dialogue((Turn("user", "No id, no label"),)),
    Dialogue((Turn("assistant", "No id either"),)),
]
GOOD = '{"id": "1", "messages": [{"role": "user", "content": "Hello"}]}'


def read(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_jsonl(path, **options))


def test_round_trip_keeps_everything(tmp_path):
    path = tmp_path / "dialogues.jsonl"
    assert write_jsonl(iter(DIALOGUES), path) == 3
    assert list(read_jsonl(path)) == DIALOGUES
    assert load_dialogues(str(path), None, "any") == DIALOGUES
    assert [entry.name for entry in tmp_path.iterdir()] == ["dialogues.jsonl"]


def test_blank_lines_windows_line_ends_and_byte_order_mark_are_fine(tmp_path):
    second = GOOD.replace('"1"', '"2"')
    dialogues = read(tmp_path / "d.jsonl", b"\xef\xbb\xbf" + f"{GOOD}\r\n\r\n  \r\n{second}".encode())
    assert [dialogue.id for dialogue in dialogues] == ["1", "2"]


def test_reading_is_lazy(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text(GOOD + "\nbroken\n")
    reader = read_jsonl(path)
    assert next(reader).id == "1"
    with pytest.raises(InputError):
        next(reader)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"messages": [', "broken JSON at column"),
        ("[" * 100_000, "JSON that cannot be parsed"),
        ("9" * 5000, "JSON that cannot be parsed"),
        ("[1]", "got list, expected an object with the field 'messages'"),
        ('{"text": "hi"}', "field messages is missing (found: text)"),
        ('{"messages": []}', "field messages: got no turn"),
        ('{"messages": "hi"}', "field messages: got str"),
        ('{"messages": [{"role": "user", "content": " "}]}', "messages[0]: field content: got ' '"),
        ('{"messages": [{"role": "user", "content": 3}]}', "messages[0]: field content: got 3"),
        ('{"messages": [{"role": "user"}]}', "messages[0]: field content is missing"),
        (
            '{"messages": [{"role": "bot", "content": "hi"}]}',
            "messages[0]: field role: got 'bot', expected one of user",
        ),
        ('{"messages": [{"role": "user", "content": "hi", "slots": "x"}]}', "messages[0]: field slots: got str"),
        ('{"messages": [{"role": "user", "content": "hi", "dialogue_acts": [1]}]}', "messages[0]: field dialogue_acts"),
        ('{"id": [], "messages": [{"role": "user", "content": "hi"}]}', "field id: got list"),
        ('{"domains": "hotel", "messages": [{"role": "user", "content": "hi"}]}', "field domains: got 'hotel'"),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "lone surrogate"),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}', "broken UTF-8 at byte 43"),
    ],
)
def test_malformed_line_is_named(tmp_path, line, expected):
    path = tmp_path / "d.jsonl"
    line = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(InputError) as raised:
        read(path, GOOD.encode() + b"\n\n" + line + b"\n")
    assert str(raised.value).startswith(f"{path}:3: ")
    assert expected in str(raised.value)


def test_duplicate_id_names_both_lines(tmp_path):
    path = tmp_path / "d.jsonl"
    with pytest.raises(InputError) as raised:
        read(path, f"{GOOD}\n{GOOD}\n")
    assert str(raised.value).startswith(f"{path}:2: field id: got '1', which {path}:1 has too")


def test_escaped_surrogate_pair_is_text(tmp_path):
    (dialogue,) = read(tmp_path / "d.jsonl", '{"messages": [{"role": "user", "content": "\\ud83d\\ude00"}]}')
    assert dialogue.turns[0].content == "😀"


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_empty_file(tmp_path, content):
    with pytest.raises(InputError, match="got no dialogue, expected one JSON object"):
        read(tmp_path / "d.jsonl", content)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl: cannot be read"):
        load_dialogues(str(tmp_path / "none.jsonl"), None, "train")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        list(read_jsonl(tmp_path / "folder.jsonl"))


def test_skip_invalid_counts_and_warns_once(tmp_path, caplog):
    path = tmp_path / "d.jsonl"
    with caplog.at_level(logging.WARNING):
        dialogues = read(path, f"broken\n{GOOD}\n{{}}\n{GOOD}\n", skip_invalid=True)
    assert [dialogue.id for dialogue in dialogues] == ["1"]
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith(f"Skipped 3 malformed record(s):\n  {path}:1: broken JSON")


def test_skip_invalid_of_all_lines_is_still_an_error(tmp_path):
    with pytest.raises(InputError, match="got no dialogue"):
        read(tmp_path / "d.jsonl", "broken\n", skip_invalid=True)


def failing():
    yield DIALOGUES[0]
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("dialogues", "error"),
    [
        (failing, KeyboardInterrupt),
        (lambda: [], InputError),
        (lambda: [DIALOGUES[0], Dialogue((Turn("user", "\udc80"),))], InputError),
    ],
)
def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, dialogues, error):
    path = tmp_path / "d.jsonl"
    path.write_text("old")
    with pytest.raises(error):
        write_jsonl(dialogues(), path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.jsonl"]


def test_failed_rename_removes_the_temporary(tmp_path):
    path = tmp_path / "d.jsonl"
    path.mkdir()
    with pytest.raises(OSError, match=r"."):
        write_jsonl(DIALOGUES, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.jsonl"]


def test_write_replaces_and_uses_the_usual_permissions(tmp_path):
    path, other = tmp_path / "d.jsonl", tmp_path / "other"
    path.write_text("old")
    write_jsonl(DIALOGUES[:1], path)
    other.write_text("")
    assert path.stat().st_mode == other.stat().st_mode
    assert json.loads(path.read_text(encoding="utf-8"))["id"] == "a"


def test_write_into_missing_folder(tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        write_jsonl(DIALOGUES, tmp_path / "no" / "d.jsonl")
