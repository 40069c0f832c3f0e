"""Corpora made up for a test: files written in the format of a corpus, and what its reader says of them."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from hf_dialemb.corpora import get_corpus, load_examples
from hf_dialemb.corpora.own.reading import read_own
from hf_dialemb.models.errors import InputError

HERE = Path(__file__).parent


def folder_of(name):
    """The files made by hand in the format of a corpus."""
    own = HERE / "corpora_files" / name
    return own if own.is_dir() else own.with_name(get_corpus(name).folder)


def expected_of(name):
    """What its reader is to make of them: objects with an item and its split."""
    lines = (HERE / "corpora_expected" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return list(map(json.loads, lines))


def write(folder, files):
    """Writes files below a folder; what is neither text nor bytes is written as JSON. Returns the folder."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        file.write_bytes(content)
    return folder


def pack(path, files):
    """Packs files, which are pairs of a name and its content or, in a tar, the type of a link to elsewhere."""
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


def refused(folder, corpus, files, split="all", **options):
    """The sentence of the error, without the folder that it begins with."""
    with pytest.raises(InputError) as raised:
        read(folder, corpus, files, split, **options)
    assert str(raised.value).startswith(f"{folder / corpus}")
    return str(raised.value).removeprefix(f"{folder / corpus}").lstrip("/")


def read_file(path, content, **options):
    """What is made of a file of one's own."""
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return list(read_own(path, **options))


def refusal(path, content, **options):
    """The sentence of the error, without the path that it begins with."""
    with pytest.raises(InputError) as raised:
        read_file(path, content, **options)
    return str(raised.value).removeprefix(str(path))
