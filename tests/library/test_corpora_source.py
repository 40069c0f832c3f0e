"""Where corpora are found, how files are opened and parsed in a stream, the interchange form, and
what every corpus says of itself.
"""

import hashlib
import json
import random
import re
import sys
import tarfile
import tracemalloc
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from made_up_corpora import needs, pack, write
from talks import dialogue

from hf_dialemb import Dialogue, InputError, Turn, load_dialogues
from hf_dialemb.data import (
    CORPORA,
    Source,
    get_corpus,
    read_jsonl,
    readers,
    single_domain,
    write_jsonl,
)
from hf_dialemb.data.corpus import TERMS
from hf_dialemb.data.parsing import json_lines, json_list, json_members, table_rows
from hf_dialemb.data.published import catalogue
from hf_dialemb.data.raw_records import hashed_split

NAMES = (
    "train/part_2",
    "train/part_10",
    "train/part_1",
    "dev/part_1",
    "train/deeper/part_3",
    "train/.part_9",
)
FILES = {f"c/{name}.json": name.encode() for name in NAMES}
IN_ORDER = [
    (f"c/train/part_{number}.json", f"train/part_{number}".encode()) for number in (1, 10, 2)
]
NOISE = {f"train/part_{index}.json": random.Random(index).randbytes(5000) for index in range(20)}


def listed(source, pattern="train/part_*.json"):
    return [(name, stream.read()) for name, stream in source.files(pattern)]


@pytest.fixture(params=["tar.xz", "tar.gz", "zip"])
def archive(request, tmp_path):
    return tmp_path / f"c.{request.param}"


def test_archive_in_any_order_equals_the_folder(tmp_path, archive):
    folder, source = write(tmp_path / "folder", FILES), Source(pack(archive, FILES))
    assert listed(Source(folder)) == [(f"{folder}/{name}", content) for name, content in IN_ORDER]
    assert (
        listed(source)
        == listed(source)
        == [(f"{archive}:{name}", content) for name, content in IN_ORDER]
    )
    assert listed(source, "dev/*.json") == [(f"{archive}:c/dev/part_1.json", b"dev/part_1")]
    assert listed(source, "nothing") == []
    last = Source(pack(tmp_path / "c.tar.gz", [("a/1", b"old"), ("a/2", b"two"), ("a/1", b"new")]))
    assert [content for _, content in listed(last, "a/*")] == [b"new", b"two"]


def test_damaged_archives_are_refused(archive):
    content, middle = pack(archive, NOISE).read_bytes(), archive.stat().st_size // 2
    corrupt = (
        content[:middle]
        + bytes(byte ^ 0x5A for byte in content[middle : middle + 64])
        + content[middle + 64 :]
    )
    for broken in (
        *(content[: int(len(content) * kept)] for kept in (0.0, 0.1, 0.5, 0.9, 0.98)),
        corrupt,
    ):
        archive.write_bytes(broken)
        with pytest.raises(InputError, match=r"cannot be read .* get it again") as raised:
            listed(Source(archive))
        assert str(raised.value).startswith(str(archive))


def test_no_member_lands_outside_and_links_are_passed_over(tmp_path):
    links = {"train/a.json": tarfile.SYMTYPE, "train/b.json": tarfile.LNKTYPE}
    path = pack(tmp_path / "c.tar.xz", {**links, "./train/d.json": b""})
    before = sorted(tmp_path.rglob("*"))
    assert [name for name, _ in listed(Source(path), "train/*.json")] == [f"{path}:train/d.json"]
    assert sorted(tmp_path.rglob("*")) == before
    outside = Source(pack(tmp_path / "o.tar.gz", {"../train/a.json": b"[]"}))
    assert listed(outside, "train/*.json") == []


TALK = {"dial_id": "1", "domain": "dmv", "turns": [{"role": "agent", "utterance": "Hello"}]}
FILE = "doc2dial_dial_finaltest.json"
CONTENT = json.dumps({"dial_data": {"dmv": {"document": [TALK]}}}).encode()
NESTED = {f"doc2dial/test/{FILE}": CONTENT}


@needs("doc2dial")
def test_every_place_where_a_corpus_may_lie(tmp_path, monkeypatch):
    for number, path, files in (
        ("1", "doc2dial", {f"test/{FILE}": CONTENT}),
        ("2", "doc2dial", NESTED),
        ("3", "doc2dial/doc2dial.tar.xz", NESTED),
        ("4", "doc2dial.tar.xz", NESTED),
        ("5", "doc2dial.zip", {f"test/{FILE}": CONTENT}),
        ("6", "renamed.tar.gz", NESTED),
        ("7", "v1.0.1", {FILE: CONTENT}),
    ):
        place = tmp_path / number / path
        place.parent.mkdir(parents=True)
        (pack if place.suffix in (".xz", ".gz", ".zip") else write)(place, files)
    places = [
        "1",
        "2",
        "3",
        "4",
        "5",
        "1/doc2dial",
        "3/doc2dial",
        "4/doc2dial.tar.xz",
        "6/renamed.tar.gz",
        "7/v1.0.1",
    ]
    expected = [dialogue("Hello", id="1", domains=("dmv",), roles=("assistant",))]
    for place in places:
        assert load_dialogues("doc2dial", f"{tmp_path}/{place}", "test") == expected, place
    monkeypatch.setenv("HF_DIALEMB_DATA", str(tmp_path / "4"))
    assert load_dialogues("doc2dial", None, "test") == expected


@needs("doc2dial")
def test_what_cannot_be_loaded(tmp_path, monkeypatch):
    for corpus, place, split, expected in (
        (
            "multiwos",
            None,
            "train",
            "^corpus: got 'multiwos', .* Did you mean 'multiwoz'. See 'dialemb corpus list'$",
        ),
        ("sgd", ".", "valid", r"Unknown split 'valid' of corpus sgd\. Available: train, dev, test"),
        ("sgd", None, "train", "give --data-dir or set HF_DIALEMB_DATA"),
        ("sgd", "c.rar", "train", "no such folder or archive: .*; correct --data-dir"),
        ("sgd", ".", "train", r"holds neither sgd/ nor sgd\.tar\.xz .*--data-dir"),
        (
            "doc2dial",
            ".",
            "train",
            r"split train of corpus doc2dial gave nothing; looked for \*dial_train\.json",
        ),
    ):
        monkeypatch.delenv("HF_DIALEMB_DATA", raising=False)
        write(tmp_path, {f"doc2dial/test/{FILE}": CONTENT})
        with pytest.raises(InputError, match=expected):
            load_dialogues(corpus, tmp_path / place if place else None, split)


def test_every_corpus_of_a_reader_is_registered_and_in_the_catalogue():
    corpora, packages = (
        dict(CORPORA),
        {readers.__name__, *(name.rpartition(".")[0] for name in CORPORA.values())},
    )
    files = {name: Path(import_module(name).__file__).parent.glob("[!_]*.py") for name in packages}
    modules = [
        import_module(f"{name}.{path.stem}") for name, paths in files.items() for path in paths
    ]
    assert corpora == {
        corpus.name: module.__name__
        for module in modules
        for corpus in getattr(module, "CORPORA", ())
    }
    rows = {row.split("|")[1].strip(): row for row in catalogue().splitlines()[2:]}
    assert list(rows) == sorted(corpora)
    for name in corpora:
        corpus = get_corpus(name)
        assert set(corpus.splits) <= {"train", "dev", "test"}
        assert corpus.terms in TERMS
        assert corpus.source.startswith(("https://", "http://"))
        assert {corpus.licence, corpus.source} <= set(map(str.strip, rows[name].split("|")))
        assert corpus.real or "not run on the real files" in rows[name]


def test_all_is_every_split_in_turn():
    splits = [load_dialogues("sample", None, split) for split in ("train", "dev", "test")]
    assert load_dialogues("sample", None, "all") == [item for split in splits for item in split]
    dialogues = [dialogue("Hi", id=str(count), domains=tuple("abc"[:count])) for count in range(4)]
    assert single_domain(dialogues) == dialogues[1:2]


def test_the_example_of_a_new_corpus_in_the_docs_reads_its_files(tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "corpora.md").read_text(encoding="utf-8")
    (code,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "helpdesk" in block
    ]
    name = "hf_dialemb.data.readers.helpdesk"
    module = ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    exec(code, vars(module))
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(CORPORA, "helpdesk", name)
    call = {
        "call": "c1",
        "topic": "billing",
        "talk": [["caller", "my bill is wrong"], ["agent", "let me look"]],
    }
    write(tmp_path / "helpdesk", {"train.json": [call]})
    (result,) = load_dialogues("helpdesk", tmp_path, "train")
    assert result == dialogue("my bill is wrong", "let me look", id="c1", domains=("billing",))
    write(tmp_path / "helpdesk", {"train.json": [call, {**call, "talk": [["agent"]]}]})
    with pytest.raises(InputError, match=r"train\.json: record 1: got another form than expected"):
        load_dialogues("helpdesk", tmp_path, "train", strict=True)


SIZES = {"train": 480, "dev": 96, "test": 240}
DIGEST = "1e259963d408b6fdb7b2e36bf7c6a15b17f1577d1f1b234449005450007bd380"


def test_the_sample_is_what_its_program_makes(monkeypatch):
    splits = {split: load_dialogues("sample", None, split) for split in SIZES}
    assert {split: len(dialogues) for split, dialogues in splits.items()} == SIZES
    assert hashlib.sha256(repr(list(splits.values())).encode()).hexdigest() == DIGEST
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "training_scripts")
    assert list(import_module("make_sample").dialogues_of("dev")) == splits["dev"]


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
    files = source(tmp_path, b'id,text\n1,"two\nlines, and ""quotes"""\n2\n\n3,a,b,c\n', "a.csv")
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
