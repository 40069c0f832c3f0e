"""Where corpora are found, how files are opened, and what every corpus says of itself."""

import hashlib
import json
import random
import re
import sys
import tarfile
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from made_up_corpora import needs, pack, write
from talks import dialogue

from hf_dialemb import InputError, load_dialogues
from hf_dialemb.data import CORPORA, Source, get_corpus, readers, single_domain
from hf_dialemb.data.corpus import TERMS
from hf_dialemb.data.published import catalogue

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
