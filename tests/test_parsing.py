"""Facts about how records come out of files: piece by piece, with their place, whatever the file is like."""

import json
import tracemalloc

import pytest
from made_up_corpora import write

from hf_dialemb.corpora import iterate_dialogues
from hf_dialemb.corpora.records import hashed_split
from hf_dialemb.corpora.source import hub_files
from hf_dialemb.corpora.source.files import Source
from hf_dialemb.corpora.source.parsing import json_lines, json_list, json_members, table_rows, text_lines
from hf_dialemb.models.errors import InputError


def source(folder, content, name="a.json"):
    return Source(write(folder, {name: content}))


def error(records):
    with pytest.raises(InputError) as raised:
        list(records)
    return str(raised.value)


def test_json_lists_and_members_at_any_depth(tmp_path):
    files = source(tmp_path, {"data": {"train": [1, {"x": [2.5, None, "é"]}], "dev": []}, "more": {"a": 1}})
    place = f"{tmp_path}/a.json"
    expected = [(f"{place}: record 0", 1), (f"{place}: record 1", {"x": [2.5, None, "é"]})]
    assert list(json_list(files, "a.json", "data", "train")) == expected
    assert list(json_members(files, "a.json", "more")) == [(f"{place}: record a", ("a", 1))]
    assert [key for _, (key, _) in json_members(files, "a.json")] == ["data", "more"]
    files = source(tmp_path, {"train": [], "dev": 3})
    for key in ("train", "dev", "test"):
        assert f"field {key}: got nothing, expected a list" in error(json_list(files, "a.json", key))
        assert f"field {key}: got nothing, expected an object" in error(json_members(files, "a.json", key))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    mark = b"\xef\xbb\xbf"
    assert [value for _, value in json_list(source(tmp_path, mark + b"[1]"), "a.json")] == [1]
    assert [value for _, value in json_lines(source(tmp_path, mark + b"1\n2\n"), "a.json")] == [1, 2]
    assert [text for _, text in text_lines(source(tmp_path, mark + b"x\r\ny"), "a.json")] == ["x", "y"]
    rows = table_rows(source(tmp_path, mark + b"x,y\n1,2\n"), "a.json", ("x",))
    assert [row for _, row in rows] == [{"x": "1", "y": "2"}]


def test_a_file_that_is_no_list(tmp_path):
    for content, expected in (
        (b'{"a": 1}', "got an object, expected a list"),
        (b"3", "got a single value, expected a list"),
        (b"[1, 2", "broken JSON after 2 records"),
        (b"[1, 2]]", "broken JSON after 2 records (something follows"),
        (b"[1, 2 3]", "broken JSON after 2 records (expected ',' or ']')"),
        (b"[1, ,3]", "broken JSON after 1 records"),
        (b'["\\ud800"]', "got half a character"),
        (b"[0.5e", "broken JSON"),
        (b"x", "broken JSON"),
        (b'["\xff"]', "broken JSON (broken UTF-8"),
        (b"", "broken JSON (the file is empty)"),
        (b"[" * 200_000, "broken JSON (maximum recursion depth"),
        (b'[{"a":' * 200_000, "broken JSON (maximum recursion depth"),
    ):
        assert error(json_list(source(tmp_path, content), "a.json")).startswith(f"{tmp_path}/a.json: {expected}")


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
    assert f"{place}:1: column role is missing (found: id, text)" in error(table_rows(files, "a.csv", ("role",)))
    assert "broken UTF-8" in error(table_rows(source(tmp_path, b"a\n\xff\n", "c.csv"), "c.csv"))


def test_memory_does_not_grow_with_the_file(tmp_path):
    record = json.dumps({"text": "word " * 200, "turns": [{"n": number} for number in range(20)]}).encode()

    def peak(count):
        forms = [
            (json_list, b"[" + b",".join([record] * count) + b"]"),
            (json_members, b"{" + b",".join(b'"k%d": %s' % (number, record) for number in range(count)) + b"}"),
            (json_lines, b"\n".join([record] * count)),
            (text_lines, b"\n".join([record] * count)),
            (table_rows, b"text\n" + b"\n".join([b"word " * 200] * count)),
        ]
        most = []
        for read, content in forms:
            files = source(tmp_path, content)
            tracemalloc.start()
            assert sum(1 for _ in read(files, "a.json")) == count
            most.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return max(most)

    few, many = peak(300), peak(3_000)  # more than half a megabyte, and six
    assert many < few + 500_000


def test_hashed_split_depends_on_the_id_alone_and_is_80_10_10():
    splits = [hashed_split(f"dialogue {number}") for number in range(10_000)]
    assert splits == [hashed_split(f"dialogue {number}") for number in range(10_000)]
    for split, share in (("train", 0.8), ("dev", 0.1), ("test", 0.1)):
        assert abs(splits.count(split) / 10_000 - share) < 0.015


def test_the_original_files_may_lie_on_the_hub(tmp_path, monkeypatch):
    import huggingface_hub

    def snapshot(repository, *, repo_type, revision, allow_patterns):
        assert (repository, repo_type, revision) == ("org/files", "dataset", "v1")
        assert "*multiwoz2.1_convlab2/val.json" in allow_patterns
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    record = {"goal": {}, "log": [{"text": "hello", "dialog_act": {}, "metadata": {}}]}
    write(tmp_path, {"multiwoz2.1_convlab2/val.json": {"X1": record}})
    (dialogue,) = iterate_dialogues("multiwoz", "hf://datasets/org/files@v1", "dev")
    assert dialogue.id == "X1"


def test_what_the_hub_does_not_give():
    for address in ("hf://datasets/org/nothing-here", "hf://datasets/org/a/b/c"):
        with pytest.raises(InputError, match=r"the Hub does not give it .*; check the address"):
            hub_files.download(address, ["*.json"])
