"""Embedding a file, and searching in what was embedded."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from killed import kill

from hf_dialemb.apps.search import embed as module
from hf_dialemb.apps.search.embed import embed_file
from hf_dialemb.data import write_jsonl
from hf_dialemb.encoders import Encoder
from hf_dialemb.errors import InputError
from hf_dialemb.hub.export import load_checkpoint
from hf_dialemb.methods.encoding import encode
from hf_dialemb.storage.files import locked


@pytest.fixture
def source(tmp_path, sample_dialogues) -> Path:
    write_jsonl(sample_dialogues[:11], tmp_path / "eleven.jsonl")
    return tmp_path / "eleven.jsonl"


def test_rows_are_those_of_encode_in_the_order_of_lines(
    tiny_checkpoint, source, tmp_path, sample_dialogues, printed
):
    output = tmp_path / "vectors.parquet"
    words = ("--model", tiny_checkpoint, "--input", source, "--output", output)
    assert f"Wrote 11 embeddings to {output}" in printed("embed", *words)
    table = pq.read_table(output)
    assert table.column_names == ["id", "said", "metadata", "embedding"]
    assert table["id"].to_pylist() == [dialogue.id for dialogue in sample_dialogues[:11]]
    expected = encode(*load_checkpoint(str(tiny_checkpoint)), sample_dialogues[:11])
    assert (
        np.abs(np.array(table["embedding"].to_pylist()) - expected).max()
        <= 1e-5 * np.abs(expected).max()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["eleven.jsonl", "vectors.parquet"]


@pytest.fixture
def encoded(monkeypatch):
    """How many dialogues an encoder reads at once, three in a shard."""
    monkeypatch.setattr(module, "SHARD", 3)
    counts, encode = [], Encoder._of_dialogues

    def counted(encoder, dialogues, *rest):
        counts.append(len(dialogues))
        return encode(encoder, dialogues, *rest)

    monkeypatch.setattr(Encoder, "_of_dialogues", counted)
    return counts


def test_killed_and_run_again_it_embeds_the_rest_and_ends_in_the_same_file(
    tiny_checkpoint, source, tmp_path, encoded
):
    whole, output = tmp_path / "whole.parquet", tmp_path / "some.parquet"
    parts, model = tmp_path / "some.parquet.parts", str(tiny_checkpoint)
    assert embed_file(model, source, whole) == 11
    kill(Encoder, "_of_dialogues", 2, embed_file, model, source, output)
    assert not output.exists()
    (parts / "notes.txt").write_text("of somebody else")
    encoded.clear()
    with locked(parts, "wait"), pytest.raises(InputError, match="another run writes there now"):
        embed_file(model, source, output)
    kill(module, "write_atomically", 0, embed_file, model, source, output)
    assert encoded == []
    assert embed_file(model, source, output) == 11
    assert encoded == [3, 2]
    assert pq.read_table(output).equals(pq.read_table(whole))
    assert [path.name for path in parts.iterdir()] == ["notes.txt"]
