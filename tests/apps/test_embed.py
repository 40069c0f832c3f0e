"""Embedding a file, and searching in what was embedded.

The ids of dialogues come back unchanged from every file that is written of them.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from flow_words import ORDER, flow_of_turns
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from killed import kill
from openpyxl import load_workbook

import hf_dialemb
from hf_dialemb.apps.files.table_files import plain_cell
from hf_dialemb.apps.flow.flow_folder import read_flow, write_flow
from hf_dialemb.apps.search import embed as module
from hf_dialemb.apps.search.embed import embed_file
from hf_dialemb.data import load_dialogues, write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
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


FLOW = flow_of_turns(ORDER)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
TEXTS = TEXTS.filter(lambda text: text[0] != "'")
CELLS = ["007", "a  b", "1e5", "2026-01-01", "=1", "-2", " x ", "Å", "A\u030a", "\x01", "True"]


@pytest.fixture(scope="module")
def found():
    """Topics of four dialogues."""
    dialogues = [Dialogue((Turn("user", "hello"),), f"d{number}") for number in range(4)]
    return hf_dialemb.find_topics(dialogues, vectors=np.eye(4, dtype=np.float32), topics=2)


@given(st.lists(TEXTS | st.sampled_from(CELLS), min_size=4, max_size=4, unique=True))
@example(CELLS[:4])
@example(CELLS[4:8])
@example([*CELLS[8:], "\r"])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_ids_come_back_from_every_file(tmp_path_factory, found, ids):
    folder = tmp_path_factory.mktemp("ids")
    corpus = [replace(own, id=id) for own, id in zip(found.corpus, ids, strict=True)]
    replace(found, corpus=tuple(corpus)).save(folder)
    assert pq.read_table(folder / "dialogues.parquet")["id"].to_pylist() == ids
    sheet = load_workbook(folder / "topics.xlsx")["conversations"]
    cells = [cell for (cell,) in sheet.iter_rows(min_row=2, max_col=1)]
    assert {cell.data_type for cell in cells} == {"s"}
    for cell, id in zip(cells, ids, strict=True):
        assert plain_cell(cell.value) == id or not id.isprintable()
    write_jsonl(corpus, folder / "calls.jsonl")
    assert [own.id for own in load_dialogues(folder / "calls.jsonl")] == ids
    embed_file("dialogue-static", folder / "calls.jsonl", folder / "calls.parquet")
    assert pq.read_table(folder / "calls.parquet")["id"].to_pylist() == ids
    hf_dialemb.TurnIndex(folder / "calls.memory", "dialogue-static").add(corpus)
    hits = hf_dialemb.TurnIndex(folder / "calls.memory").search("hello", 9)
    assert sorted(hit.id for hit in hits) == sorted(ids)
    write_flow(replace(FLOW, utterances=replace(FLOW.utterances, dialogues=tuple(ids))), folder)
    assert read_flow(folder).utterances.dialogues == tuple(ids)
