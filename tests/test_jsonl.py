"""Facts about dialogues in .jsonl files: what is read, what is refused and how, and that writing is all or nothing."""

import gzip
import json

import pytest
from made_up_corpora import read_file, refusal

from hf_dialemb.corpora import iterate_dialogues, load_dialogues, read_jsonl, write_jsonl
from hf_dialemb.corpora.own.reading import read_own
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

ROOM = Turn("user", "Ein Zimmer für zwei, 你好 \u2028 \t", ("inform",), (("people", "zwei"), ("stars", "")), ("book",))
DIALOGUES = [
    Dialogue((ROOM, Turn("assistant", 'A "quoted" one\nand two'), Turn("speaker_3", "Me too")), "a", ("hotel", "taxi")),
    Dialogue((Turn("user", "No id, no label"),)),
    Dialogue((Turn("assistant", "No id either"),)),
]
GOOD = '{"id": "1", "messages": [{"role": "user", "content": "Hello"}]}'


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz"])
def test_round_trip_keeps_everything(tmp_path, name):
    path = tmp_path / name
    path.write_text("old")
    assert write_jsonl(iter(DIALOGUES), path) == 3
    assert list(read_jsonl(path)) == list(read_own(path)) == load_dialogues(str(path), None, "any") == DIALOGUES
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    (tmp_path / "other").write_text("")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_packed_json_lines_are_the_same_bytes_every_time(tmp_path):
    for name in ("1.jsonl.gz", "2.jsonl.gz", "d.jsonl"):
        write_jsonl(DIALOGUES, tmp_path / name)
    packed, again, plain = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert packed == again
    assert gzip.decompress(packed) == plain


def test_blank_lines_windows_line_ends_byte_order_mark_and_escaped_characters_are_fine(tmp_path):
    content = f'{GOOD}\r\n\r\n  \r\n{{"id": "2", "messages": [{{"role": "user", "content": "\\ud83d\\ude00"}}]}}'
    dialogues = read_file(tmp_path / "d.jsonl", b"\xef\xbb\xbf" + content.encode())
    assert [(each.id, each.turns[0].content) for each in dialogues] == [("1", "Hello"), ("2", "😀")]


def test_malformed_line_is_named(tmp_path):
    for line, expected in (
        ('{"messages": [', "broken JSON at column"),
        ("[" * 100_000, "JSON that cannot be parsed"),
        ("9" * 5000, "JSON that cannot be parsed"),
        ('{"messages": [{"role": "user", "content": "hi", "slots": "x"}]}', "messages[0]: field slots: got str"),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "lone surrogate"),
        ('{"messages": [{"role": "user", "content": "\xff"}]}', "broken UTF-8 at byte 43"),
        (GOOD, "field id: got '1', which PATH:1 has too"),
    ):
        path = tmp_path / "d.jsonl"
        sentence = refusal(path, f"{GOOD}\n\n{line}\n".encode("latin-1"))
        assert sentence.startswith(":3: ")
        assert expected.replace("PATH", str(path)) in sentence


def test_roles_of_chat_messages_are_found_as_those_of_other_speakers(tmp_path):
    messages = [{"role": "Agent", "content": "Hi", "dialogue_acts": ["greet"]}, {"role": "user", "content": "Ho"}]
    path, line = tmp_path / "d.jsonl", json.dumps({"id": "1", "messages": messages})
    expected = [Dialogue((Turn("assistant", "Hi", ("greet",)), Turn("user", "Ho")), "1")]
    assert read_file(path, line) == read_file(path, line, roles="agent=assistant") == expected
    assert list(iterate_dialogues(str(path), roles="agent=assistant")) == expected
    assert read_file(path, line, roles="agent=ignore") == [Dialogue((Turn("user", "Ho"),), "1")]
    for odd in ('{"messages": [3, {"role": 3, "content": "Hi"}]}', "[]", "{}"):
        assert refusal(path, odd, roles="a=user").startswith(":1: ")


def test_files_without_a_dialogue(tmp_path):
    for content in ("", "\n \n"):
        assert refusal(tmp_path / "d.jsonl", content).startswith(": got no dialogue, expected one JSON object")
    assert "got no dialogue" in refusal(tmp_path / "d.jsonl", "broken\n", skip_invalid=True)
    with pytest.raises(InputError, match="cannot be read"):
        list(read_jsonl(tmp_path))


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    def failing():
        yield DIALOGUES[0]
        raise KeyboardInterrupt

    path = tmp_path / "d.jsonl"
    path.write_text("old")
    half = [DIALOGUES[0], Dialogue((Turn("user", "\udc80"),))]
    for dialogues, error in ((failing(), KeyboardInterrupt), ([], InputError), (half, InputError)):
        with pytest.raises(error):
            write_jsonl(dialogues, path)
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["d.jsonl"]


def test_write_where_no_file_can_be(tmp_path):
    with pytest.raises(OSError, match=r"."):
        write_jsonl(DIALOGUES, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="does not exist; create it first"):
        write_jsonl(DIALOGUES, tmp_path / "no" / "d.jsonl")
