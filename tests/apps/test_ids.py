"""The ids of dialogues come back unchanged from every file that is written of them."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from flow_words import ORDER, flow_of_turns
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

import hf_dialemb
from hf_dialemb.apps.files.table_files import plain_cell
from hf_dialemb.apps.flow.flow_folder import read_flow, write_flow
from hf_dialemb.apps.search.embed import embed_file
from hf_dialemb.data import load_dialogues, write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn

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
