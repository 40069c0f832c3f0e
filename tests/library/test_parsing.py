"""Parsing in a stream, and the interchange form."""

import json
import tracemalloc

import pytest
from made_up_corpora import write

from hf_dialemb import Dialogue, InputError, Turn, load_dialogues
from hf_dialemb.data import Source, read_jsonl, write_jsonl
from hf_dialemb.data.parsing import json_lines, json_list, json_members, table_rows
from hf_dialemb.data.raw_records import hashed_split


def source(folder, content, name="a.json"):
    return Source(write(folder, {name: content}))


def error(records):
    with pytest.raises(InputError) as raised:
        list(records)
    return str(raised.value)


def test_json_lists_and_members_are_read_without_a_byte_order_mark(tmp_path):
    files = source(
        tmp_path, {"data": {"train": [1, {"x": [2.5, None, "é"]}], "dev": []}, "more": {"a": 1}}
    )
    place = f"{tmp_path}/a.json"
    expected = [(f"{place}: record 0", 1), (f"{place}: record 1", {"x": [2.5, None, "é"]})]
    assert list(json_list(files, "a.json", "data", "train")) == expected
    assert list(json_members(files, "a.json", "more")) == [(f"{place}: record a", ("a", 1))]
    assert [key for _, (key, _) in json_members(files, "a.json")] == ["data", "more"]
    mark = b"\xef\xbb\xbf"
    assert [value for _, value in json_list(source(tmp_path, mark + b"[1]"), "a.json")] == [1]
    assert [value for _, value in json_lines(source(tmp_path, mark + b"1\n2\n"), "a.json")] == [
        1,
        2,
    ]
    rows = table_rows(source(tmp_path, mark + b"x,y\n1,2\n"), "a.json", ("x",))
    assert [row for _, row in rows] == [{"x": "1", "y": "2"}]


def test_a_file_that_is_no_list(tmp_path):
    for content, expected in (
        (b'{"a": 1}', "got an object, expected a list"),
        (b"3", "got a single value, expected a list"),
        (b"[1, 2", "broken JSON at column 6"),
        (b"[1, 2]]", "broken JSON at column 7 (Extra data)"),
        (b"[1, 2 3]", "broken JSON at column 7 (Expecting ',' delimiter)"),
        (b"[1, ,3]", "broken JSON at column 5"),
        (b'["\\ud800"]', "got half a character"),
        (b"[0.5e", "broken JSON"),
        (b"x", "broken JSON"),
        (b'["\xff"]', "broken UTF-8 at byte 2"),
        (b"", "broken JSON at column 1"),
        (b"[" * 200_000, "JSON that cannot be parsed (maximum recursion depth"),
        (b'[{"a":' * 200_000, "JSON that cannot be parsed (maximum recursion depth"),
    ):
        assert error(json_list(source(tmp_path, content), "a.json")).startswith(
            f"{tmp_path}/a.json: {expected}"
        )


def test_table_rows(tmp_path):
    content = b'id,text\n1,"two\nlines, and ""quotes"""\n2\n\n3,a,b,c\n'
    files = source(tmp_path, content, "a.csv")
    place = f"{tmp_path}/a.csv"
    assert list(table_rows(files, "a.csv", ("id", "text"))) == [
        (f"{place}:3", {"id": "1", "text": 'two\nlines, and "quotes"'}),
        (f"{place}:4", {"id": "2"}),
        (f"{place}:6", {"id": "3", "text": "a", "": "b,c"}),
    ]
    plain = source(tmp_path, b'1\t"a\n2\tb"\n', "b.tsv")
    rows = table_rows(plain, "b.tsv", delimiter="\t", quoted=False, names=("id", "text"))
    assert [row["text"] for _, row in rows] == ['"a', 'b"']


def test_lines_and_rows_are_read_one_at_a_time(tmp_path):
    record = json.dumps(
        {"text": "word " * 200, "turns": [{"n": number} for number in range(20)]}
    ).encode()

    def peak(read, content, count):
        files = source(tmp_path, content(count))
        tracemalloc.start()
        assert sum(1 for _ in read(files, "a.json")) == count
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    for read, content in (
        (json_lines, lambda count: b"\n".join([record] * count)),
        (table_rows, lambda count: b"text\n" + b"\n".join([b"word " * 200] * count)),
    ):
        assert peak(read, content, 3_000) < peak(read, content, 300) + 500_000


@pytest.mark.parametrize(("parts", "train", "held_out"), [(10, 0.8, 0.1), (20, 0.9, 0.05)])
def test_hashed_split_depends_on_the_id_alone_and_has_its_shares(parts, train, held_out):
    splits = [hashed_split(f"dialogue {number}", parts) for number in range(10_000)]
    assert splits == [hashed_split(f"dialogue {number}", parts) for number in range(10_000)]
    for split, share in (("train", train), ("dev", held_out), ("test", held_out)):
        assert abs(splits.count(split) / 10_000 - share) < 0.015


ROOM = Turn(
    "user",
    "Ein Zimmer für zwei, 你好 \u2028 \t",
    ("inform",),
    (("people", "zwei"), ("stars", "")),
    ("book",),
)
DIALOGUES = [
    Dialogue(
        (ROOM, Turn("assistant", 'A "quoted" one\nand two'), Turn("speaker_3", "Me too")),
        "a",
        ("hotel", "taxi"),
    ),
    Dialogue((Turn("user", "No id, no label"),)),
    Dialogue((Turn("assistant", "No id either"),)),
]
GOOD = '{"id": "1", "messages": [{"role": "user", "content": "Hello"}]}'


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz"])
def test_round_trip_keeps_everything(tmp_path, name):
    path = tmp_path / name
    path.write_text("old")
    assert write_jsonl(iter(DIALOGUES), path) == 3
    before = path.read_bytes()
    assert write_jsonl(DIALOGUES, path) == 3
    assert path.read_bytes() == before  # packed files, too, have no time of their own
    assert list(read_jsonl(path)) == load_dialogues(str(path)) == DIALOGUES
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    (tmp_path / "other").write_text("")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_malformed_line_is_named(tmp_path):
    for line, expected in (
        ('{"messages": [', "broken JSON at column"),
        ("[" * 100_000, "JSON that cannot be parsed"),
        ("9" * 5000, "JSON that cannot be parsed"),
        ('{"messages": [{"role": "user", "content": "hi", "slots": "x"}]}', "field slots: got"),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "lone surrogate"),
        ('{"messages": [{"role": "user", "content": "\xff"}]}', "broken UTF-8 at byte 43"),
        (GOOD, "field id: got '1', which an earlier record has too"),
    ):
        path = tmp_path / "d.jsonl"
        path.write_bytes(f"{GOOD}\n\n{line}\n".encode("latin-1"))
        sentence = error(read_jsonl(path, strict=True))
        assert sentence.startswith(f"{path}:3: ")
        assert expected in sentence


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    def failing():
        yield DIALOGUES[0]
        raise KeyboardInterrupt

    path = tmp_path / "d.jsonl"
    path.write_text("old")
    half = [DIALOGUES[0], Dialogue((Turn("user", "\udc80"),))]
    for dialogues, error in (
        (failing(), KeyboardInterrupt),
        ([], InputError),
        (half, UnicodeEncodeError),
    ):
        with pytest.raises(error):
            write_jsonl(dialogues, path)
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["d.jsonl"]
