"""Embedding a file, and searching in what was embedded."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from exports import save
from killed import kill

from hf_dialemb.apps.cli import main
from hf_dialemb.apps.search import embed as module
from hf_dialemb.apps.search.embed import embed_file
from hf_dialemb.apps.search.search import describe, search
from hf_dialemb.data import load_dialogues, write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.encoders import Encoder
from hf_dialemb.encoders.stored_vectors import stored_vectors
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
    words = ("--model", tiny_checkpoint, "--input", source, "--output", output, "--shard-size", 4)
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
    """How many dialogues each call of an encoder reads."""
    counts, encode = [], Encoder.encode

    def counted(encoder, dialogues, *rest):
        counts.append(len(dialogues))
        return encode(encoder, dialogues, *rest)

    monkeypatch.setattr(Encoder, "encode", counted)
    return counts


def test_killed_and_run_again_it_embeds_the_rest_and_ends_in_the_same_file(
    tiny_checkpoint, source, tmp_path, encoded
):
    whole, output = tmp_path / "whole.parquet", tmp_path / "some.parquet"
    parts, model = tmp_path / "some.parquet.parts", str(tiny_checkpoint)
    assert embed_file(model, source, whole, shard_size=3) == 11
    kill(Encoder, "encode", 2, embed_file, model, source, output, 3)
    assert not output.exists()
    (parts / "notes.txt").write_text("of somebody else")
    encoded.clear()
    with locked(parts, "wait"), pytest.raises(InputError, match="another run writes there now"):
        embed_file(model, source, output, shard_size=3)
    kill(module, "_join", 0, embed_file, model, source, output, 3)
    assert encoded == [3, 2]
    assert embed_file(model, source, output, shard_size=3) == 11
    assert encoded == [3, 2]
    assert pq.read_table(output).equals(pq.read_table(whole))
    assert [path.name for path in parts.iterdir()] == ["notes.txt"]
    output.write_text("of somebody else")
    with pytest.raises(InputError, match="is no file that dialemb embed wrote, and would be lost"):
        embed_file(model, source, output)


def test_what_a_killed_run_left_of_another_model_or_text_is_not_mixed_in(
    tiny_checkpoint, source, tmp_path, encoded
):
    output, other = tmp_path / "vectors.parquet", tmp_path / "other"
    model, tokenizer = load_checkpoint(str(tiny_checkpoint))
    torch.nn.init.normal_(model.role_embeddings.weight)
    save((model, tokenizer), other)
    kill(Encoder, "encode", 2, embed_file, str(tiny_checkpoint), source, output, 3)
    kill(Encoder, "encode", 1, embed_file, str(other), source, output, 3)
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join([*lines[:3], *lines[4:]]), encoding="utf-8")
    encoded.clear()
    assert embed_file(str(other), source, output, 3) == 10
    assert encoded == [3, 3, 1]
    expected = encode(*load_checkpoint(str(other)), load_dialogues(source))
    np.testing.assert_allclose(stored_vectors(output).vectors, expected, atol=1e-5)


def test_what_is_read_is_never_written(tiny_checkpoint, source, refused):
    before, same = source.read_bytes(), source.parent / "." / source.name
    words = "embed", "--model", tiny_checkpoint, "--input", source, "--output", same
    assert "is what is read, and would be lost; choose another name" in refused(*words)
    assert source.read_bytes() == before


def neighbours(vectors, top, dialogues):
    """Return the rows nearest to the first, and their cosines."""
    hits = search(None, dialogues[: len(vectors)], 0, top, np.array(vectors, dtype=np.float32))
    return [hit.row for hit in hits], [hit.score for hit in hits]


def test_neighbours_come_by_cosine_and_lines_are_short(sample_dialogues):
    vectors = [[1, 0], [0, 3], [100, 100], [0.1, 0.01], [-5, 0], [1, 0]]
    rows, scores = neighbours(vectors, 10, sample_dialogues)
    assert rows == [5, 3, 2, 1, 4]  # a copy is a neighbour, the dialogue itself is not
    assert np.allclose(scores, [1, 0.1 / np.hypot(0.1, 0.01), np.sqrt(0.5), 0, -1])
    assert neighbours(vectors, 2, sample_dialogues) == (rows[:2], scores[:2])
    # zeros have no direction
    assert neighbours([[0, 0], [1, 0]], 1, sample_dialogues) == ([1], [0.0])
    turns = Turn("user", "my\n\naddress"), Turn("assistant", "ok\x1b[31m" + "x" * 1000)
    line = describe(Dialogue(turns, "a"))
    assert line.split(" ", 7)[-1].startswith("a my address / ok")
    assert line.isprintable()
    assert len(line) < 200


def test_the_command_finds_the_nearest_of_a_file(
    tiny_checkpoint, sample_dialogues, tmp_path, printed, refused
):
    dialogues = sample_dialogues[:9]
    write_jsonl(dialogues, tmp_path / "nine.jsonl")
    words = ["search", "--model", tiny_checkpoint, "--corpus", tmp_path / "nine.jsonl"]
    lines = printed(*words, "--id", dialogues[4].id, "--top", "3").splitlines()
    vectors = encode(*load_checkpoint(str(tiny_checkpoint)), dialogues)
    expected = search(None, dialogues, 4, 3, vectors)
    assert lines[0].split()[0] == dialogues[4].id
    assert [line.split()[1] for line in lines[1:]] == [hit.id for hit in expected]
    assert "id: got 'nobody', which none of 9 dialogues has" in refused(*words, "--id", "nobody")


def test_a_text_is_looked_for_among_stored_vectors(
    tiny_bert, sample_dialogues, tmp_path, printed, refused
):
    dialogues = sample_dialogues[:9]
    source, vectors = tmp_path / "nine.jsonl", tmp_path / "vectors.parquet"
    write_jsonl(dialogues, source)
    printed("embed", "--model", tiny_bert, "--input", source, "--output", vectors)
    words = ["search", "--corpus", source, "--query", "a taxi", "--top", "3"]
    expected = printed(*words, "--model", tiny_bert, "--whole").splitlines()
    lines = printed(*words, "--vectors", vectors).splitlines()
    assert lines[:3] == expected  # embed and search read a dialogue alike
    assert "got vectors of" in refused(*words, "--vectors", vectors, "--model", "dialogue-static")
    write_jsonl(dialogues[1:], source)
    assert "holds other dialogues" in refused(*words, "--vectors", vectors)
    other = replace(dialogues[4], turns=(*dialogues[4].turns, Turn("user", "a large pizza")))
    write_jsonl([*dialogues[:4], other, *dialogues[5:]], source)
    sentence = f"{other.id} had other text or roles than in {source}; embed again"
    assert sentence in refused(*words, "--vectors", vectors)


def test_stored_vectors_serve_as_embedded_ones(tmp_path, sample_dialogues, refused):
    source, whole, said = (tmp_path / name for name in ("d.jsonl", "d.parquet", "u.parquet"))
    write_jsonl(sample_dialogues[:30], source)
    for output, level in ((whole, "dialogues"), (said, "utterances")):
        assert embed_file("dialogue-static", source, output, level=level)
    assert len(pq.read_table(said)) == sum(len(entry.turns) for entry in sample_dialogues[:30])
    figures, words = [], ["evaluate", "--corpus", source, "--output", tmp_path / "r.json"]
    for model in (["--model", "dialogue-static"], ["--vectors", whole]):
        assert main([*map(str, [*words, "--seeds", 1, *model])]) == 0
        rows = json.loads((tmp_path / "r.json").read_text())["results"]
        measured = {(row["model"], row["metric"], row["setting"]): row["mean"] for row in rows}
        figures.append({key: mean for key, mean in measured.items() if key[1] != "seconds"})
    assert figures[0] == figures[1]
    sentence = "got vectors of utterances, expected those of dialogues"
    assert sentence in refused(*words, "--vectors", said)
