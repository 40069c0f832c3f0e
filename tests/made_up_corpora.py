"""Corpora made up for a test.

Files written in the format of a corpus, and what its reader says of them.
"""

import gzip
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from hf_dialemb import Dialogue, InputError
from hf_dialemb.data import CORPORA, get_corpus, load_examples, write_jsonl
from hf_dialemb.data.corpus import Corpus
from hf_dialemb.data.reading_options import ReadingOptions

HERE = Path(__file__).parent
FILES = HERE / "corpora_files"


def needs(*names):
    """Skip a test where one of the corpora is not installed."""
    return pytest.mark.skipif(
        not {*names} <= {*CORPORA}, reason=f"not installed: {', '.join(names)}"
    )


def folder_of(name):
    """The files made by hand in the format of a corpus."""
    own = FILES / name
    return own if own.is_dir() else own.with_name(get_corpus(name).folder)


def expected_of(name):
    """What its reader is to make of them: objects with an item and its split."""
    lines = (HERE / "corpora_expected" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return list(map(json.loads, lines))


def write(folder, files):
    """Writes files below a folder; what is neither text nor bytes is written as JSON.

    Returns the folder.
    """
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        file.write_bytes(content)
    return folder


def pack(path, files):
    """Packs files, which are pairs of a name and its content or, in a tar, the type of a link to
    elsewhere."""
    pairs = files.items() if isinstance(files, dict) else files
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in pairs:
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w:" + path.suffix[1:]) as archive:
        for name, content in pairs:
            member = tarfile.TarInfo(name)
            if content in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                member.type, member.linkname = content, "../secret.json"
                content = b""
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def read(folder, corpus, files, split="all", **options):
    """What the reader of a corpus makes of files."""
    return load_examples(corpus, write(folder / corpus, files), split, **options)


def read_file(path, content, **options):
    """What the applications make of a user's own file."""
    from hf_dialemb.apps.files.reading import read_path

    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return list(read_path(path, ReadingOptions(**options)))


def refusal(path, content, **options):
    """The sentence of the error, without the path that it begins with."""
    with pytest.raises(InputError) as raised:
        read_file(path, content, **options)
    return str(raised.value).removeprefix(str(path))


def register(monkeypatch, folder, name, splits, terms="permissive", **more):
    """Registers a corpus of .jsonl files and writes them; a split of None has no file."""
    for split in filter(splits.get, splits):
        (folder / name).mkdir(parents=True, exist_ok=True)
        write_jsonl(splits[split], folder / name / f"{split}.jsonl")

    def records(source, split):
        return (
            (place, json.loads(line))
            for place, stream in source.files(f"{split}.jsonl")
            for line in stream
        )

    files, source = {split: (f"{split}.jsonl",) for split in splits}, f"https://example.org/{name}"
    licence = {"permissive": "MIT", "share-alike": "CC BY-SA 4.0", "research": "CC BY-NC 4.0"}[
        terms
    ]
    module = ModuleType(name)
    module.CORPORA = (
        Corpus(
            name, files, records, Dialogue.from_json, source, licence, terms, extract="a|b", **more
        ),
    )
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(CORPORA, name, name)
