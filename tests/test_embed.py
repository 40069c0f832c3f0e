"""Embedding files: the rows, going on after a kill, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModel
from utterance_checkpoints import save_dse

from hf_dialemb.apps import embed as module
from hf_dialemb.apps.embed import embed_file
from hf_dialemb.cli import main
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.encoders.checkpoints import DialogueModelEncoder
from hf_dialemb.hub.export import load_checkpoint
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.utterance import encode_utterances


@pytest.fixture
def source(tmp_path, sample_dialogues) -> Path:
    write_jsonl(sample_dialogues[:11], tmp_path / "eleven.jsonl")
    return tmp_path / "eleven.jsonl"


class KilledError(Exception):
    """Stands for the end of the process."""


def kill_after(monkeypatch, shards: int) -> None:
    calls = []

    encode_all = DialogueModelEncoder.encode

    def encode_until_killed(*arguments):
        calls.append(arguments)
        if len(calls) > shards:
            raise KilledError
        return encode_all(*arguments)

    monkeypatch.setattr(DialogueModelEncoder, "encode", encode_until_killed)


def refused(capsys, *words: object) -> str:
    """Runs a command that must end in one sentence, and returns it."""
    assert main([str(word) for word in words]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("dialemb: error: ")]
    assert len(lines) == 1
    return lines[0]


def test_the_rows_are_those_of_encode_in_the_order_of_the_lines(
    tiny_checkpoint, source, tmp_path, sample_dialogues, capsys
):
    output = tmp_path / "vectors.parquet"
    words = ["embed", "--model", tiny_checkpoint, "--input", source, "--output", output, "--shard-size", 4]
    assert main([str(word) for word in words]) == 0
    assert f"Wrote 11 embeddings to {output}" in capsys.readouterr().out
    table = pq.read_table(output)
    assert table.column_names == ["id", "embedding"]
    assert table["id"].to_pylist() == [dialogue.id for dialogue in sample_dialogues[:11]]
    expected = encode(*load_checkpoint(str(tiny_checkpoint)), sample_dialogues[:11])
    assert np.abs(np.array(table["embedding"].to_pylist()) - expected).max() <= 1e-5 * np.abs(expected).max()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["eleven.jsonl", "vectors.parquet"]


def test_an_utterance_encoder_gives_the_mean_of_the_utterances_if_asked_to(tiny_bert, tmp_path, sample_dialogues):
    short = [Dialogue(dialogue.turns[:1], id=f"one-{dialogue.id}") for dialogue in sample_dialogues[:3]]
    dialogues = [*sample_dialogues[:5], *short]
    write_jsonl(dialogues, tmp_path / "dialogues.jsonl")
    checkpoint = save_dse(tiny_bert, tmp_path / "dse")
    assert embed_file(f"{checkpoint}@utterances", tmp_path / "dialogues.jsonl", tmp_path / "vectors.parquet", 3) == 8
    rows = np.array(pq.read_table(tmp_path / "vectors.parquet")["embedding"].to_pylist())
    model, tokenizer = load_checkpoint(str(checkpoint))
    for row, dialogue in zip(rows, dialogues, strict=True):
        expected = encode_utterances(model, tokenizer, [turn.content for turn in dialogue.turns]).mean(axis=0)
        np.testing.assert_allclose(row, expected, atol=2e-6)


def test_killed_and_run_again_it_goes_on_and_ends_in_the_same_file(tiny_checkpoint, source, tmp_path, monkeypatch):
    whole, output = tmp_path / "whole.parquet", tmp_path / "vectors.parquet"
    assert embed_file(str(tiny_checkpoint), source, whole, shard_size=3) == 11
    with monkeypatch.context() as patch:
        kill_after(patch, 2)
        with pytest.raises(KilledError):
            embed_file(str(tiny_checkpoint), source, output, shard_size=3)
    assert not output.exists()
    parts = sorted((tmp_path / "vectors.parquet.parts").glob("*.parquet"))
    assert len(parts) == 2
    written = {path.name: path.stat().st_mtime_ns for path in parts}
    seen = {}
    merge = module._merge

    def look_and_merge(files, folder, target):
        seen.update({file.name: file.stat().st_mtime_ns for file in files})
        return merge(files, folder, target)

    monkeypatch.setattr(module, "_merge", look_and_merge)
    assert embed_file(str(tiny_checkpoint), source, output, shard_size=3) == 11
    assert len(seen) == 4
    assert {name: seen[name] for name in written} == written
    assert pq.read_table(output).equals(pq.read_table(whole))
    assert not (tmp_path / "vectors.parquet.parts").exists()


def test_killed_while_merging_it_embeds_nothing_again(tiny_checkpoint, source, tmp_path, monkeypatch):
    output = tmp_path / "vectors.parquet"

    def killed(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(module, "_merge", killed)
        with pytest.raises(KilledError):
            embed_file(str(tiny_checkpoint), source, output, shard_size=6)
    monkeypatch.setattr(DialogueModelEncoder, "encode", killed)
    assert embed_file(str(tiny_checkpoint), source, output, shard_size=6) == 11


def test_killed_while_cleaning_up_its_parts_are_not_taken_for_those_of_another(tiny_checkpoint, source, tmp_path):
    output, other = tmp_path / "vectors.parquet", tmp_path / "other.jsonl"
    other.write_text("".join(source.read_text(encoding="utf-8").splitlines(keepends=True)[6:9]), encoding="utf-8")
    whole = tmp_path / "whole.parquet"
    embed_file(str(tiny_checkpoint), other, whole, shard_size=3)
    (tmp_path / "vectors.parquet.parts").mkdir()
    embed_file(str(tiny_checkpoint), source, tmp_path / "first.parquet", shard_size=3)
    shutil.copy(tmp_path / "first.parquet", tmp_path / "vectors.parquet.parts" / "part-000000.parquet")
    assert embed_file(str(tiny_checkpoint), other, output, shard_size=3) == 3
    assert pq.read_table(output).equals(pq.read_table(whole))


def test_parts_go_before_what_says_whose_they_are(tiny_checkpoint, source, tmp_path, monkeypatch):
    left = []
    monkeypatch.setattr(module.shutil, "rmtree", lambda folder: left.extend(path.name for path in folder.iterdir()))
    embed_file(str(tiny_checkpoint), source, tmp_path / "vectors.parquet", shard_size=3)
    assert left == ["request.json"]


def other_model(checkpoint: Path, source: Path, folder: Path) -> tuple[Path, Path, int]:
    model = AutoModel.from_pretrained(checkpoint)
    torch.nn.init.normal_(model.role_embeddings.weight)
    model.save_pretrained(folder / "other")
    load_checkpoint(str(checkpoint))[1].save_pretrained(folder / "other")
    return folder / "other", source, 3


def other_input(checkpoint: Path, source: Path, folder: Path) -> tuple[Path, Path, int]:
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "other.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    return checkpoint, folder / "other.jsonl", 3


def other_shards(checkpoint: Path, source: Path, folder: Path) -> tuple[Path, Path, int]:
    return checkpoint, source, 4


@pytest.mark.parametrize(
    ("change", "named"), [(other_model, "model"), (other_input, "input"), (other_shards, "shard_size")]
)
def test_parts_of_another_request_are_not_mixed_in(
    tiny_checkpoint, source, tmp_path, monkeypatch, capsys, change, named
):
    output = tmp_path / "vectors.parquet"
    kill_after(monkeypatch, 1)
    with pytest.raises(KilledError):
        embed_file(str(tiny_checkpoint), source, output, shard_size=3)
    model, file, size = change(tiny_checkpoint, source, tmp_path)
    message = refused(capsys, "embed", "--model", model, "--input", file, "--output", output, "--shard-size", size)
    assert f"shards of another request (its {named} differs)" in message
    assert str(tmp_path / "vectors.parquet.parts") in message
    assert not output.exists()


def test_a_mended_input_is_taken_where_the_broken_one_made_nothing(tiny_checkpoint, source, tmp_path):
    output, broken = tmp_path / "vectors.parquet", tmp_path / "calls.jsonl"
    broken.write_text('{"messages": []}\n')
    with pytest.raises(InputError, match="got no turn"):
        embed_file(str(tiny_checkpoint), broken, output)
    shutil.copy(source, broken)
    assert embed_file(str(tiny_checkpoint), broken, output) > 1


def test_an_input_without_a_dialogue_is_told(tiny_checkpoint, tmp_path, capsys):
    (tmp_path / "empty.jsonl").write_text("\n")
    output = tmp_path / "vectors.parquet"
    message = refused(
        capsys, "embed", "--model", tiny_checkpoint, "--input", tmp_path / "empty.jsonl", "--output", output
    )
    assert f"{tmp_path / 'empty.jsonl'}: got no dialogue" in message
    assert not output.exists()


def test_a_broken_line_is_told_with_its_number_and_leaves_no_output(tiny_checkpoint, source, tmp_path, capsys):
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[6] = '{"messages": [\n'
    source.write_text("".join(lines), encoding="utf-8")
    output = tmp_path / "vectors.parquet"
    message = refused(
        capsys, "embed", "--model", tiny_checkpoint, "--input", source, "--output", output, "--shard-size", 3
    )
    assert f"{source}:7: broken JSON" in message
    assert not output.exists()


def test_the_input_is_never_in_memory_as_a_whole(tiny_checkpoint, source, tmp_path, monkeypatch):
    read, counts = module.read_own, []
    state = {"taken": 0}

    def counted(path, **options):
        for dialogue in read(path, **options):
            state["taken"] += 1
            yield dialogue

    encode_all = DialogueModelEncoder.encode

    def encode_and_note(encoder, dialogues):
        counts.append((state["taken"], len(dialogues)))
        return encode_all(encoder, dialogues)

    monkeypatch.setattr(module, "read_own", counted)
    monkeypatch.setattr(DialogueModelEncoder, "encode", encode_and_note)
    embed_file(str(tiny_checkpoint), source, tmp_path / "vectors.parquet", shard_size=4)
    assert counts == [(4, 4), (8, 4), (11, 3)]


def test_a_shard_holds_at_least_one_dialogue(tiny_checkpoint, source, tmp_path):
    with pytest.raises(InputError, match="--shard-size: got 0, expected at least 1"):
        embed_file(str(tiny_checkpoint), source, tmp_path / "vectors.parquet", shard_size=0)


@pytest.mark.parametrize("model", ["tfidf", "{}@whitened"])
def test_what_is_fitted_on_its_input_is_refused(tiny_bert, source, tmp_path, capsys, model):
    words = ["--model", model.format(tiny_bert), "--input", source, "--output", tmp_path / "vectors.parquet"]
    assert "fitted on the dialogues that it embeds" in refused(capsys, "embed", *words)


def test_what_is_read_is_never_written(tiny_checkpoint, source, capsys):
    before = source.read_bytes()
    words = ["embed", "--model", tiny_checkpoint, "--input", source, "--output", source.parent / "." / source.name]
    assert "is the file that is read; choose another name" in refused(capsys, *words)
    words = ["evaluate", "--model", "tfidf", "--corpus", source, "--output", source]
    assert "is the file that is read; choose another name" in refused(capsys, *words)
    assert source.read_bytes() == before
