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
from hf_dialemb.apps.search.search import describe, nearest, search
from hf_dialemb.data import write_jsonl
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


def test_killed_and_run_again_it_goes_on_and_ends_in_the_same_file(
    tiny_checkpoint, source, tmp_path, monkeypatch
):
    whole, output, parts = (
        tmp_path / f"{name}" for name in ("whole.parquet", "some.parquet", "some.parquet.parts")
    )
    assert embed_file(str(tiny_checkpoint), source, whole, shard_size=3) == 11
    kill(Encoder, "encode", 2, embed_file, str(tiny_checkpoint), source, output, 3)
    assert not output.exists()
    written = {path: path.stat().st_mtime_ns for path in parts.glob("*.parquet")}
    assert len(written) == 2
    damaged, kept = sorted(written)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    (parts / "notes.txt").write_text("of somebody else")
    merge, seen = module._merge, {}

    def look_and_merge(files, *places):
        seen.update({file: file.stat().st_mtime_ns for file in files})
        return merge(files, *places)

    monkeypatch.setattr(module, "_merge", look_and_merge)
    with locked(parts, "wait"), pytest.raises(InputError, match="another run writes there now"):
        embed_file(str(tiny_checkpoint), source, output, shard_size=3)
    assert embed_file(str(tiny_checkpoint), source, output, shard_size=3) == 11
    assert len(seen) == 4
    assert seen[kept] == written[kept]
    assert pq.read_table(output).equals(pq.read_table(whole))
    assert [path.name for path in parts.iterdir()] == ["notes.txt"]
    output.write_text("of somebody else")
    with pytest.raises(InputError, match="is no file that dialemb embed wrote, and would be lost"):
        embed_file(str(tiny_checkpoint), source, output)


def test_killed_while_merging_it_embeds_nothing_again(
    tiny_checkpoint, source, tmp_path, monkeypatch
):
    request = str(tiny_checkpoint), source, tmp_path / "vectors.parquet", 6
    kill(module, "_merge", 0, embed_file, *request)
    monkeypatch.delattr(Encoder, "encode")
    assert embed_file(*request) == 11


def test_parts_of_another_request_are_not_mixed_in(tiny_checkpoint, source, tmp_path, refused):
    output, mine, other = tmp_path / "vectors.parquet", tmp_path / "mine.jsonl", tmp_path / "other"
    kill(Encoder, "encode", 1, embed_file, str(tiny_checkpoint), source, output, 3)
    model, tokenizer = load_checkpoint(str(tiny_checkpoint))
    torch.nn.init.normal_(model.role_embeddings.weight)
    save((model, tokenizer), other)
    mine.write_text(
        "".join(source.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8"
    )
    for encoder, file, size, named in (
        (other, source, 3, "model"),
        (tiny_checkpoint, mine, 3, "input"),
        (tiny_checkpoint, source, 4, "shard_size"),
    ):
        words = ("--model", encoder, "--input", file, "--output", output, "--shard-size", size)
        told = f"vectors.parquet.parts holds shards of another request (its {named} differs)"
        assert told in refused("embed", *words)
        assert not output.exists()


def test_vectors_of_two_widths_are_one_sentence(source, tmp_path):
    output = tmp_path / "vectors.parquet"

    def encoder(width):
        return Encoder(
            "changed", embed_texts=lambda texts, *_: np.ones((len(texts), width), np.float32)
        )

    kill(Encoder, "encode", 1, embed_file, encoder(4), source, output, 3)
    with pytest.raises(InputError, match=r"parts holds vectors of 4 and of 6 numbers"):
        embed_file(encoder(6), source, output, 3)


def test_what_is_read_is_never_written(tiny_checkpoint, source, refused):
    before = source.read_bytes()
    for words in (
        [
            "embed",
            "--model",
            tiny_checkpoint,
            "--input",
            source,
            "--output",
            source.parent / "." / source.name,
        ],
        ["evaluate", "--model", "tfidf", "--corpus", source, "--output", source],
    ):
        assert "is what is read, and would be lost; choose another name" in refused(*words)
    assert source.read_bytes() == before


def test_neighbours_come_by_cosine_and_lines_are_short(sample_dialogues):
    vectors = np.array([[1, 0], [0, 3], [100, 100], [0.1, 0.01], [-5, 0], [1, 0]], dtype=np.float32)
    found = nearest(vectors, 0, 10)
    assert [row for row, _ in found] == [
        5,
        3,
        2,
        1,
        4,
    ]  # a copy is a neighbour, the dialogue itself is not
    assert np.allclose(
        [score for _, score in found], [1, 0.1 / np.hypot(0.1, 0.01), np.sqrt(0.5), 0, -1]
    )
    assert nearest(vectors, 0, 2) == found[:2]
    assert nearest(np.array([[0, 0], [1, 0]], dtype=np.float32), 0, 1) == [
        (1, 0.0)
    ]  # zeros have no direction
    vectors = np.random.default_rng(0).normal(size=(len(sample_dialogues), 4)).astype(np.float32)
    start = sample_dialogues[5]
    first, *lines = [describe(start), *map(str, search("tfidf", sample_dialogues, 5, 4, vectors))]
    assert first.strip().startswith(
        f"{start.id} [{start.domains[0]}] {start.turns[0].content[:20]}"
    )
    assert len(lines) == 4
    assert not any(line.split()[1] == start.id for line in lines)
    assert max(map(len, [first, *lines])) < 200
    first = describe(
        Dialogue((Turn("user", "my\n\naddress"), Turn("assistant", "ok\x1b[31m")), "a")
    )
    assert first.split(" ", 7)[-1].startswith("a my address / ok")
    assert first.isprintable()


def test_what_is_found_by_a_text_is_shown_from_the_nearest_turn_on():
    turns = (
        Turn("user", "hello"),
        Turn("assistant", "hi"),
        Turn("user", "my card was stolen"),
        Turn("assistant", "oh"),
    )
    (found,) = search("dialogue-static", [Dialogue(turns)], "a stolen credit card", whole=True)
    assert found.text == "… my card was stolen / oh"
    assert search("dialogue-static", [Dialogue(turns)], "hello!", whole=True)[0].text.startswith(
        "hello / hi"
    )
    other = Dialogue((Turn("user", "hello"), Turn("assistant", "hi there")))
    every = [other, Dialogue(turns)]
    # which is fitted on all of them
    first, second = search("tfidf", every, "a stolen card", whole=True)
    assert (first.text, first.score > second.score) == ("… my card was stolen / oh", True)


def test_the_command_finds_the_nearest_of_a_file(
    tiny_checkpoint, sample_dialogues, tmp_path, printed, refused
):
    dialogues = sample_dialogues[:9]
    write_jsonl(dialogues, tmp_path / "nine.jsonl")
    words = ["search", "--model", tiny_checkpoint, "--corpus", tmp_path / "nine.jsonl"]
    lines = printed(*words, "--id", dialogues[4].id, "--top", "3").splitlines()
    expected = nearest(encode(*load_checkpoint(str(tiny_checkpoint)), dialogues), 4, 3)
    assert lines[0].split()[0] == dialogues[4].id
    assert [line.split()[1] for line in lines[1:]] == [dialogues[row].id for row, _ in expected]
    assert printed(*words, "--id", "#5", "--top", "3").splitlines() == lines
    assert "id: got 'nobody', which none of 9 dialogues has" in refused(*words, "--id", "nobody")
    assert "--top: got 0, expected at least 1" in refused(*words, "--id", "#5", "--top", "0")


def test_a_text_is_looked_for_among_stored_vectors(
    tiny_bert, sample_dialogues, tmp_path, printed, refused
):
    dialogues = sample_dialogues[:9]
    source, vectors, found = (
        tmp_path / name for name in ("nine.jsonl", "vectors.parquet", "found.jsonl")
    )
    write_jsonl(dialogues, source)
    printed("embed", "--model", tiny_bert, "--input", source, "--output", vectors)
    stored = stored_vectors(vectors)
    assert (stored.source.model, stored.ids) == (tiny_bert, [dialogue.id for dialogue in dialogues])
    words = ["search", "--corpus", source, "--query", "a taxi", "--top", "3"]
    expected = printed(*words, "--model", tiny_bert, "--whole").splitlines()
    lines = printed(*words, "--vectors", vectors, "--output", found).splitlines()
    assert lines[:3] == expected  # embed and search read a dialogue alike
    assert [json.loads(line)["id"] for line in found.read_text().splitlines()] == [
        line.split()[1] for line in expected
    ]
    assert "got vectors of" in refused(*words, "--vectors", vectors, "--model", "dialogue-static")
    write_jsonl(dialogues[1:], source)
    assert "holds other dialogues" in refused(*words, "--vectors", vectors)
    other = replace(
        dialogues[4], turns=(*dialogues[4].turns, Turn("user", "I want to order a large pizza"))
    )
    write_jsonl([*dialogues[:4], other, *dialogues[5:]], source)
    assert f"{other.id} had other text or roles than in {source}; embed again" in refused(
        *words, "--vectors", vectors
    )


def test_stored_vectors_serve_as_embedded_ones(tmp_path, sample_dialogues, refused):
    source, whole, said = (tmp_path / name for name in ("d.jsonl", "d.parquet", "u.parquet"))
    write_jsonl(sample_dialogues[:30], source)
    model = ["--model", "dialogue-static"]
    assert main(["embed", *model, "--input", str(source), "--output", str(whole)]) == 0
    assert (
        main(
            [
                "embed",
                *model,
                "--input",
                str(source),
                "--output",
                str(said),
                "--level",
                "utterances",
            ]
        )
        == 0
    )
    table = pq.read_table(said)
    assert table.column_names == ["id", "turn", "said", "metadata", "embedding"]
    assert len(table) == sum(len(dialogue.turns) for dialogue in sample_dialogues[:30])
    figures = []
    for words in (model, ["--vectors", str(whole)]):
        words = [
            *words,
            "--corpus",
            str(source),
            "--seeds",
            "1",
            "--output",
            str(tmp_path / "r.json"),
        ]
        assert main(["evaluate", *words]) == 0
        rows = json.loads((tmp_path / "r.json").read_text())["results"]
        figures.append({(row["model"], row["metric"], row["setting"]): row["mean"] for row in rows})
        figures[-1].pop(("dialogue-static", "seconds", ""), None)
    assert figures[0] == figures[1]
    words = ["evaluate", "--corpus", source, "--output", tmp_path / "r.json", "--vectors"]
    assert "got vectors of utterances, expected those of dialogues" in refused(*words, said)
    assert "this task embeds parts of them" in refused(
        *words, whole, "--task", "next-utterance-retrieval"
    )
    pizzas = (
        Dialogue((Turn("user", "pizza"),) * len(dialogue.turns))
        for dialogue in sample_dialogues[:30]
    )
    write_jsonl(pizzas, source)
    assert "holds other dialogues" in refused(*words, whole)
