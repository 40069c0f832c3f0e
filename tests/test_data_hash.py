"""What tells the data of a corpus apart: the same whether packed or not, another when a byte differs."""

import json
import tarfile
from pathlib import Path

import pytest

from hf_dialemb.corpora.source.fingerprint import data_hash
from hf_dialemb.models.errors import InputError


def write(folder: Path, text: str) -> Path:
    for split in ("train", "dev", "test"):
        path = folder / "sgd" / split / "dialogues_001.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([text]), encoding="utf-8")
    return folder


def test_a_corpus_has_one_hash_packed_or_not_and_another_when_a_file_that_is_read_differs(tmp_path):
    one, two = write(tmp_path / "one", "hello"), write(tmp_path / "two", "hallo")
    (tmp_path / "packed").mkdir()
    with tarfile.open(tmp_path / "packed" / "sgd.tar.gz", "w:gz") as archive:
        archive.add(one / "sgd", "sgd")
    first = data_hash("sgd", one)
    assert first == data_hash("sgd", tmp_path / "packed") != data_hash("sgd", two)
    assert len(first) == 64
    (one / "sgd" / "README.md").write_text("notes")
    assert data_hash("sgd", one) == first
    mine = tmp_path / "mine.jsonl"
    hashes = [data_hash(str(mine)) for text in ("{}", "{ }") if mine.write_text(text)]
    assert hashes[0] != hashes[1]
    assert data_hash("sample") is None
    with pytest.raises(InputError, match="holds neither sgd"):
        data_hash("sgd", tmp_path)


def test_transcripts_are_told_apart_by_their_folders_which_are_their_labels(tmp_path):
    for name in ("sales", "support"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"Agent: {name}\nCustomer: yes\n")
    first = data_hash(str(tmp_path))
    (tmp_path / ".hidden.txt").write_text("nobody reads this")
    (tmp_path / "folder.txt").mkdir()
    assert data_hash(str(tmp_path)) == first
    (tmp_path / "sales").rename(tmp_path / "selling")
    second = data_hash(str(tmp_path))
    (tmp_path / "selling" / "B.TXT").write_text("Agent: and this\nCustomer: yes\n")
    assert len({first, second, data_hash(str(tmp_path))}) == 3
