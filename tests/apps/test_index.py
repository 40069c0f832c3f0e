"""An index of dialogues that grows.

A LanceDB table, added to, changed, searched, killed, and opened by others.
"""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import hf_dialemb
from hf_dialemb.apps.cli import main
from hf_dialemb.apps.search import dialogue_index as module
from hf_dialemb.apps.search.dialogue_index import DialogueIndex
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.metrics.vectors import unit_vectors

lancedb = pytest.importorskip("lancedb")
MODEL = "dialogue-static"


def rows_of(path):
    return lancedb.connect(str(path.parent)).open_table(path.stem).to_arrow()


def test_the_command_adds_what_is_new_labels_deletes_and_finds(
    tmp_path, sample_dialogues, printed, refused
):
    path, source, topics, found = (
        tmp_path / name for name in ("c.lance", "c.jsonl", "t.csv", "f.jsonl")
    )
    dialogues = [
        Dialogue(each.turns, each.id, each.domains, "2026-02-01T01:00:00+02:00")
        for each in sample_dialogues
    ]
    words = ["index", source, "--output", path]
    for count, new in ((5, 5), (9, 4), (9, 0)):
        write_jsonl(dialogues[:count], source)
        told = f"Embedded {new} dialogues that are new or changed\n{path}: {count} rows"
        assert told in printed(*words, "--model", MODEL)
    topics.write_text(f"id,topic\n{dialogues[1].id},cards\n{dialogues[2].id},it's\nnobody,cards\n")
    words = ["index", "--output", path, "--labels", topics, "--delete", dialogues[0].id, "nobody"]
    told = (
        "Deleted 1 dialogues; their text stays on disk until --compact\nNamed the topic of 2 "
        "dialogues"
    )
    assert told in printed(*words)
    table = rows_of(path)
    assert set(table["id"].to_pylist()) == {dialogue.id for dialogue in dialogues[1:9]}
    assert set(table["time"].to_pylist()) == {"2026-01-31T23:00:00"}
    expected = hf_dialemb.load_encoder(MODEL).encode(
        [next(d for d in dialogues if d.id == table["id"][0].as_py())]
    )
    assert np.array_equal(table["vector"][0].as_py(), expected[0])
    words = ["search", "--index", path, "--query", "a taxi"]
    printed(*words, "--where", "topic = 'cards' and time > '2026-01-01'", "--output", found)
    (hit,) = map(json.loads, found.read_text().splitlines())
    assert (hit["id"], hit["topic"]) == (dialogues[1].id, "cards")
    assert len(printed(*words[:3], "--id", dialogues[3].id, "--top", "99").splitlines()) == 7
    assert "where: got 'nope = 3', which is no condition" in refused(*words, "--where", "nope = 3")
    assert f"is of dialogues by {MODEL} (" in refused(*words, "--model", "dialogue-minilm")


@pytest.mark.slow
def test_topics_that_were_found_label_an_index_by_their_names(tmp_path, sample_dialogues):
    dialogues = sample_dialogues[:20]
    topics = hf_dialemb.find_topics(dialogues, encoder=MODEL, topics=2)
    topics.save(tmp_path / "topics")
    index = DialogueIndex(tmp_path / "c.lance", MODEL)
    index.add(dialogues)
    labels = str(tmp_path / "topics/dialogues.csv")
    assert main(["index", "--output", str(index.path), "--labels", labels]) == 0
    rows = rows_of(index.path)
    expected = dict(zip(topics.dialogues["id"], topics.dialogues["name"], strict=True))
    assert dict(zip(rows["id"].to_pylist(), rows["topic"].to_pylist(), strict=True)) == expected


@pytest.mark.parametrize("level", module.LEVELS)
def test_what_is_replaced_leaves_no_row_and_other_rows_stay(tmp_path, sample_dialogues, level):
    index = DialogueIndex(tmp_path / "c.lance", hf_dialemb.load_encoder(MODEL), level)
    first, second = sample_dialogues[:2]
    assert (
        index.add([first, second, Dialogue((Turn("user", "Hm"),)), Dialogue((Turn("user", "Hm"),))])
        == 3
    )
    assert index.add([Dialogue(first.turns[:1], first.id), second]) == 1
    rows = DialogueIndex(tmp_path / "c.lance").search("Hi", top=99).to_pandas()
    parts = 1 if level == "dialogues" else len(second.turns)
    assert (len(rows), sum(rows["id"] == first.id), sum(rows["id"] == second.id)) == (
        2 + parts,
        1,
        parts,
    )
    with pytest.raises(InputError, match="twice for different dialogues"):
        index.add([first, Dialogue(second.turns, first.id)])


def test_a_large_index_is_searched_approximately(tmp_path, monkeypatch, sample_dialogues):
    monkeypatch.setattr(module, "LARGE", 300)
    index = DialogueIndex(tmp_path / "c.lance", MODEL)
    index.add(
        [
            Dialogue((*each.turns, Turn("user", f"{n}")), f"{n}")
            for n in range(20)
            for each in sample_dialogues[n : n + 1]
        ]
    )
    assert not index._table.list_indices()
    many = [
        Dialogue((Turn("user", f"{n} {each.turns[0].content}"),), f"{n} {each.id}")
        for n in range(8)
        for each in sample_dialogues[:50]
    ]
    index.add(many)
    assert len(index._table.list_indices()) == 1
    index.add([Dialogue((Turn("user", "An elephant"),), "new")])
    assert index.search("An elephant", 1)[0].id == "new"
    encoder = hf_dialemb.load_encoder(MODEL)
    scores = (
        unit_vectors(encoder.encode(many))
        @ unit_vectors(encoder.encode_utterances(["I lost my card"]))[0]
    )
    best = {many[row].id for row in np.argsort(-scores)[:20]}
    assert len(best & {hit.id for hit in index.search("I lost my card", 20)}) >= 18


ADD = (
    "import sys, hf_dialemb; from hf_dialemb.apps.search import dialogue_index as module; "
    "module.BATCH = 7\n"
    "hf_dialemb.DialogueIndex(sys.argv[1], 'dialogue-static', 'turns').add(sys.argv[2])"
)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 5, 34])
def test_a_kill_while_adding_leaves_whole_dialogues(tmp_path, sample_dialogues, moment):
    """The process is killed as soon as it has so many files, wherever it is then."""
    path, source, new = tmp_path / "c.lance", tmp_path / "c.jsonl", sample_dialogues[:60]
    write_jsonl(new, source)
    old = [Dialogue((Turn("user", "old"),), each.id) for each in new[:10]] if moment > 1 else []
    if old:
        DialogueIndex(path, MODEL, "turns").add(old)
    before = len(list(path.rglob("*")))
    with subprocess.Popen([sys.executable, "-c", ADD, str(path), str(source)]) as process:
        while process.poll() is None:
            if len(list(path.rglob("*"))) >= before + moment:
                process.kill()
                process.wait()
    whole = {(each.id, len(each.turns)) for each in new} | {(each.id, 1) for each in old}
    if any(path.glob("_versions/*.manifest")):
        rows = Counter(rows_of(path)["id"].to_pylist())
        assert {each.id for each in old} <= rows.keys()
        assert rows.items() <= whole
    DialogueIndex(path, MODEL, "turns").add(new)
    expected = {(each.id, place) for each in new for place in range(len(each.turns))}
    table = rows_of(path)
    rows = list(zip(table["id"].to_pylist(), table["turn"].to_pylist(), strict=True))
    assert (len(rows), set(rows)) == (len(expected), expected)


TEXTS = st.lists(
    st.sampled_from(
        ["a taxi to the airport", "my card was stolen", "a table for two", "it's ☃", "bye"]
    ),
    min_size=1,
    max_size=3,
)


class IndexMachine(RuleBasedStateMachine):
    """An index beside a plain dictionary of what it should hold."""

    @initialize(level=st.sampled_from(module.LEVELS))
    def start(self, level):
        self.path = type(self).folder / str(len(list(type(self).folder.iterdir()))) / "c.lance"
        self.level, self.encoder = level, hf_dialemb.load_encoder(MODEL)
        self.index, self.held = DialogueIndex(self.path, MODEL, level), {}

    def dialogues(self, said):
        return [Dialogue(tuple(Turn("user", text) for text in said[name]), name) for name in said]

    @rule(said=st.dictionaries(st.sampled_from(["a", "b'", "c d", "é"]), TEXTS, min_size=1))
    def add(self, said):
        new = {name: texts for name, texts in said.items() if self.held.get(name) != texts}
        assert self.index.add(self.dialogues(said)) == len(new)
        self.held |= new

    @rule(names=st.sets(st.sampled_from(["a", "b'", "c d", "z"])))
    def delete(self, names):
        assert self.index.delete(names) == len(self.held.keys() & names)
        self.held = {name: texts for name, texts in self.held.items() if name not in names}

    @rule()
    def reopen(self):
        self.index = DialogueIndex(self.path, MODEL, self.level)

    @rule(query=TEXTS, top=st.integers(1, 9))
    def search(self, query, top):
        if not self.held:
            return
        hits = self.index.search(" ".join(query), top)
        if self.level == "turns":
            memory = hf_dialemb.TurnIndex(self.encoder, self.dialogues(self.held))
            every = memory.search(" ".join(query), 99)
            expected = {(hit.id, hit.turn): hit for hit in every}
            assert len(hits) == min(top, len(expected))
            for hit in hits:
                same = expected[hit.id, hit.turn]
                assert (hit.text, hit.before, hit.after) == (same.text, same.before, same.after)
                assert (hit.words, hit.cosine) == (same.words, pytest.approx(same.cosine, abs=1e-5))
            return
        vectors = unit_vectors(self.encoder.encode(self.dialogues(self.held)))
        wanted = unit_vectors(self.encoder.encode_utterances([" ".join(query)]))[0]
        expected = np.sort(vectors @ wanted)[::-1][:top]
        np.testing.assert_allclose([hit.score for hit in hits], expected, atol=1e-5)

    @invariant()
    def rows_are_those_that_are_held(self):
        if hasattr(self, "held"):
            rows = [len(texts) if self.level == "turns" else 1 for texts in self.held.values()]
            assert len(self.index) == sum(rows)


@pytest.mark.slow
def test_an_index_holds_what_a_dictionary_would(tmp_path):
    machine = type("Machine", (IndexMachine,), {"folder": tmp_path})
    how = settings(max_examples=20, stateful_step_count=12, deadline=None)
    run_state_machine_as_test(machine, settings=how)
