"""What tells the data of a corpus apart: the same whether packed or not, another when a byte differs."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from hf_dialemb.corpora.source.fingerprint import data_hash
from hf_dialemb.models.errors import InputError


def write(folder: Path, text: str) -> None:
    for split in ("train", "dev", "test"):
        path = folder / "sgd" / split / "dialogues_001.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([text]), encoding="utf-8")


def test_a_packed_corpus_has_the_hash_of_the_unpacked_one(tmp_path):
    write(tmp_path / "open", "hello")
    (tmp_path / "packed").mkdir()
    with tarfile.open(tmp_path / "packed" / "sgd.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "open" / "sgd", "sgd")
    found = data_hash("sgd", tmp_path / "open")
    assert found == data_hash("sgd", tmp_path / "packed")
    assert len(found) == 64


def test_other_files_have_another_hash_and_what_no_reader_reads_does_not_count(tmp_path):
    write(tmp_path / "one", "hello")
    write(tmp_path / "two", "hallo")
    first = data_hash("sgd", tmp_path / "one")
    assert first != data_hash("sgd", tmp_path / "two")
    (tmp_path / "one" / "sgd" / "README.md").write_text("notes")
    assert data_hash("sgd", tmp_path / "one") == first


def test_files_of_ones_own_and_corpora_without_files(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("{}")
    first = data_hash(str(path))
    path.write_text("{ }")
    assert data_hash(str(path)) != first
    assert data_hash("sample") is None
    with pytest.raises(InputError, match="holds neither sgd"):
        data_hash("sgd", tmp_path)


def test_transcripts_are_told_apart_by_their_folders_which_are_their_labels(tmp_path):
    for name in ("sales", "support"):
        (tmp_path / "calls" / name).mkdir(parents=True)
        (tmp_path / "calls" / name / "a.txt").write_text(f"Agent: {name}\nCustomer: yes\n")
    first = data_hash(str(tmp_path / "calls"))
    (tmp_path / "calls" / ".hidden.txt").write_text("nobody reads this")
    (tmp_path / "calls" / "folder.txt").mkdir()
    assert data_hash(str(tmp_path / "calls")) == first
    (tmp_path / "calls" / "sales").rename(tmp_path / "calls" / "selling")
    second = data_hash(str(tmp_path / "calls"))
    (tmp_path / "calls" / "selling" / "B.TXT").write_text("Agent: and this\nCustomer: yes\n")
    assert len({first, second, data_hash(str(tmp_path / "calls"))}) == 3
