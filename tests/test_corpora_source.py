"""Facts about where corpora are found and how files are opened: folder or archive, sorted, in place."""

import gzip
import io
import json
import random
import subprocess
import sys
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from hf_dialemb.corpora import CORPORA, get_corpus, load_dialogues, readers, single_domain
from hf_dialemb.corpora.source import streams
from hf_dialemb.corpora.source.files import Source
from hf_dialemb.corpora.source.parsing import read_json
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

FILES = {
    "c/train/part_2.json": b"[2]",
    "c/train/part_10.json": b"[10]",
    "c/train/part_1.json": b"[1]",
    "c/dev/part_1.json": b"[4]",
    "c/train/deeper/part_3.json": b"[3]",
    "c/train/.part_9.json": b"hidden",
}
NOISE = {f"train/part_{index}.json": random.Random(index).randbytes(5000) for index in range(20)}
IN_ORDER = [("c/train/part_1.json", b"[1]"), ("c/train/part_10.json", b"[10]"), ("c/train/part_2.json", b"[2]")]


def pack(path, files):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w:" + path.suffix[1:]) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def unpack(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def listed(source, pattern="train/part_*.json"):
    return [(name, stream.read()) for name, stream in source.files(pattern)]


@pytest.mark.parametrize("suffix", ["tar.xz", "tar.gz", "zip"])
def test_archive_in_any_order_equals_the_folder(tmp_path, suffix):
    folder = unpack(tmp_path / "folder", FILES)
    archive = pack(tmp_path / f"c.{suffix}", FILES)
    assert listed(Source(folder)) == [(f"{folder}/{name}", content) for name, content in IN_ORDER]
    source = Source(archive)
    assert listed(source) == listed(source) == [(f"{archive}:{name}", content) for name, content in IN_ORDER]
    assert listed(source, "dev/*.json") == [(f"{archive}:c/dev/part_1.json", b"[4]")]
    assert listed(source, "nothing") == []


def test_links_in_an_archive_are_neither_read_nor_written_but_told(tmp_path):
    (tmp_path / "secret.json").write_text("[0]")
    path = tmp_path / "c.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        for name, kind, target in (
            ("train/a.json", tarfile.SYMTYPE, "../secret.json"),
            ("train/b.json", tarfile.LNKTYPE, "../secret.json"),
            ("./train/d.json", tarfile.REGTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
    before = sorted(tmp_path.rglob("*"))
    source = Source(path)
    assert [name for name, _ in listed(source, "train/d.json")] == [f"{path}:train/d.json"]
    for _ in range(2):
        with pytest.raises(InputError, match=r"train/a\.json: is a link to another file, .* --dereference"):
            listed(source, "train/*.json")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_to_a_folder_in_an_archive_is_told(tmp_path, caplog):
    folder = unpack(tmp_path / "c", {"real/a.json": b"[1]"})
    (folder / "more").symlink_to("real")
    (folder / "same.json").symlink_to("real/a.json")
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as archive:
        archive.add(folder, "c")
    source = Source(tmp_path / "c.tar.gz")
    assert [content for _, content in listed(source, "real/*.json")] == [b"[1]"]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert "passed over c/more, a link to a folder" in told[0]


def test_a_folder_behind_a_link_is_read_and_one_that_leads_back_is_not(tmp_path):
    folder = unpack(tmp_path / "folder", {"train/a.json": b"[1]"})
    unpack(tmp_path / "elsewhere", {"b.json": b"[2]"})
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    (folder / "train" / "again").symlink_to(folder)
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    assert listed(Source(folder), "*.json") == [(f"{folder}/more/b.json", b"[2]"), (f"{folder}/train/a.json", b"[1]")]


@pytest.mark.parametrize("name", ["../train/a.json", "train/../../a.json", "/train/a.json"])
@pytest.mark.parametrize("suffix", ["tar.xz", "tar.gz", "zip"])
def test_members_outside_the_archive_are_refused(tmp_path, name, suffix):
    path = pack(tmp_path / f"c.{suffix}", {"train/d.json": b"[]", name: b"[]"})
    with pytest.raises(InputError, match=r"member '.*a\.json' points outside the archive"):
        listed(Source(path), "train/*.json")


@pytest.mark.parametrize("suffix", ["tar.xz", "tar.gz", "zip", "json.gz"])
def test_an_archive_that_unpacks_without_end_is_refused(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(streams, "_FREE", 0)
    path = tmp_path / f"c.{suffix}"
    content = bytes(40_000_000)
    if suffix == "json.gz":
        path.write_bytes(gzip.compress(content))
    else:
        pack(path, {"c.json": content})
    with pytest.raises(InputError, match=r"unpacks to more than 500 times its size"):
        listed(Source(path), "c.json")


def test_files_packed_by_themselves(tmp_path):
    unpack(tmp_path / "c", {"a/1.json.gz": gzip.compress(b"[1]"), "a/2.json": b"[2]", "a/3.json.gz": b"no gzip"})
    files = Source(tmp_path / "c").files("a/*.json")
    assert [next(files)[1].read(), next(files)[1].read()] == [b"[1]", b"[2]"]
    with pytest.raises(InputError, match=r"3\.json\.gz: cannot be read .* get it again"):
        next(files)[1].read()
    alone = Source(tmp_path / "c" / "a" / "1.json.gz")
    assert [content for _, content in listed(alone, "*.json")] == [b"[1]"]
    assert listed(alone, "b/*.json") == []


def test_last_of_two_members_with_one_name_counts(tmp_path):
    path = tmp_path / "c.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("a/1", b"old"), ("a/2", b"two"), ("a/1", b"new")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert [content for _, content in listed(Source(path), "a/*")] == [b"new", b"two"]


@pytest.mark.parametrize("suffix", ["tar.xz", "tar.gz", "zip"])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.98])
def test_truncated_archive(tmp_path, suffix, kept):
    path = pack(tmp_path / f"c.{suffix}", NOISE)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(InputError) as raised:
        listed(Source(path))
    assert str(raised.value).startswith(str(path))
    assert "cannot be read" in str(raised.value)
    assert "get it again" in str(raised.value)


@pytest.mark.parametrize("suffix", ["tar.xz", "tar.gz", "zip"])
def test_corrupt_archive(tmp_path, suffix):
    path = pack(tmp_path / f"c.{suffix}", NOISE)
    content = bytearray(path.read_bytes())
    for at in range(len(content) // 2, len(content) // 2 + 64):
        content[at] ^= 0x5A
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        listed(Source(path))


def test_what_is_no_source(tmp_path):
    with pytest.raises(InputError, match="no such folder or archive"):
        Source(tmp_path / "none")
    (tmp_path / "c.rar").write_text("")
    with pytest.raises(InputError, match=r"expected a folder or an archive that ends in \.tar\.xz, \.tar\.gz, \.zip"):
        Source(tmp_path / "c.rar")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[1,\n2", "a.json: broken JSON at line 2 column 2"),
        (b"", "a.json: broken JSON at column 1"),
        (b'["\xe9"]', "a.json: broken UTF-8 at byte 2"),
        (b"[" * 200_000, "a.json: JSON that cannot be parsed"),
    ],
)
def test_read_json_names_the_file_and_the_place(content, expected):
    with pytest.raises(InputError) as raised:
        read_json("a.json", io.BytesIO(content))
    assert str(raised.value).startswith(expected)


TURNS = [{"role": "agent", "utterance": "Hello"}]
CONTENT = {"dial_data": {"dmv": {"document": [{"dial_id": "1", "domain": "dmv", "turns": TURNS}]}}}
RECORD = {"test/doc2dial_dial_finaltest.json": json.dumps(CONTENT).encode()}
EXPECTED = [Dialogue((Turn("assistant", "Hello"),), "1", ("dmv",))]
NESTED = {f"doc2dial/{name}": content for name, content in RECORD.items()}


def test_every_place_where_a_corpus_may_lie(tmp_path, monkeypatch):
    def load(data_dir):
        return load_dialogues("doc2dial", data_dir, "test")

    unpack(tmp_path / "1" / "doc2dial", RECORD)
    unpack(tmp_path / "2" / "doc2dial", NESTED)
    for number, folder in (("3", "doc2dial"), ("4", ".")):
        (tmp_path / number / folder).mkdir(parents=True)
        pack(tmp_path / number / folder / "doc2dial.tar.xz", NESTED)
    (tmp_path / "5").mkdir()
    pack(tmp_path / "5" / "doc2dial.zip", RECORD)
    for number in "12345":
        assert load(tmp_path / number) == EXPECTED, number
    assert load(str(tmp_path / "1" / "doc2dial")) == EXPECTED
    assert load(tmp_path / "3" / "doc2dial") == EXPECTED
    assert load(tmp_path / "4" / "doc2dial.tar.xz") == EXPECTED
    assert load(pack(tmp_path / "renamed.tar.gz", NESTED)) == EXPECTED
    release = {name.rpartition("/")[2]: content for name, content in RECORD.items()}
    assert load(unpack(tmp_path / "v1.0.1", release)) == EXPECTED
    monkeypatch.setenv("HF_DIALEMB_DATA", str(tmp_path / "4"))
    assert load(None) == EXPECTED
    with pytest.raises(InputError, match="holds neither"):  # what is given goes before the variable
        load(unpack(tmp_path / "elsewhere", {"x": b""}))


def test_what_cannot_be_loaded(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_DIALEMB_DATA", raising=False)
    with pytest.raises(
        InputError, match=r"Unknown corpus 'multiwos'. Did you mean 'multiwoz'.* A file or folder of your own works too"
    ):
        load_dialogues("multiwos", None, "train")
    with pytest.raises(InputError, match=r"Unknown split 'valid' of corpus sgd\. Available: train, dev, test"):
        load_dialogues("sgd", tmp_path, "valid")
    with pytest.raises(InputError, match="Unknown split 'valid' of corpus sample"):
        load_dialogues("sample", None, "valid")
    with pytest.raises(InputError, match="give --data-dir or set HF_DIALEMB_DATA"):
        load_dialogues("sgd", None, "train")
    with pytest.raises(InputError, match=r"holds neither sgd/ nor sgd\.tar\.xz .*--data-dir"):
        load_dialogues("sgd", tmp_path, "train")
    with pytest.raises(InputError, match="no such folder or archive"):
        load_dialogues("sgd", tmp_path / "none", "train")
    unpack(tmp_path / "doc2dial", RECORD)
    with pytest.raises(InputError, match=r"split train of corpus doc2dial gave nothing; looked for \*dial_train\.json"):
        load_dialogues("doc2dial", tmp_path, "train")


def test_every_corpus_of_every_reader_is_registered_and_says_what_it_is():
    folder = Path(readers.__file__).parent
    names = [".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("[!_]*.py")]
    modules = {name: import_module(f"{readers.__name__}.{name}") for name in names}
    found = {corpus.name: name for name, module in modules.items() for corpus in getattr(module, "CORPORA", ())}
    assert found == CORPORA
    for name, module in found.items():
        corpus = get_corpus(name)
        assert set(corpus.splits) <= {"train", "dev", "test"}
        assert corpus.source.startswith(("https://", "http://"))
        assert corpus.licence
        assert "Licence" in modules[module].__doc__
        assert not (corpus.real and module.startswith("unmet."))


def test_all_is_every_split_in_turn():
    splits = [load_dialogues("sample", None, split) for split in ("train", "dev", "test")]
    assert load_dialogues("sample", None, "all") == [dialogue for split in splits for dialogue in split]


def test_single_domain_keeps_exactly_one_label():
    dialogues = [Dialogue((Turn("user", "Hi"),), str(count), tuple("abc"[:count])) for count in range(4)]
    assert [dialogue.id for dialogue in single_domain(dialogues)] == ["1"]


def test_importing_is_light():
    heavy = "{'torch', 'datasets', 'transformers', 'sklearn', 'numpy'}"
    check = f"import sys, hf_dialemb.corpora; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
