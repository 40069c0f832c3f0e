"""What a dialogue flow is made of, the same from disk and in memory, and what comes next in one."""

import json
import sys
from dataclasses import replace

import networkx
import numpy as np
import pytest
from flow_words import flow_of, flow_of_actions, named, random_words, state_of

from hf_dialemb.cli import main
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.flow.extract import extract_flow
from hf_dialemb.flow.flow import read_utterances, restricted_to
from hf_dialemb.flow.folder import StoredFlow, read_flow, write_flow
from hf_dialemb.flow.graph import END
from hf_dialemb.flow.new_dialogues import assign, next_actions

HELLO, TAXI = Turn("user", "hello", ("greet",)), Turn("user", "I need a  taxi", ("request",))
WHERE, BYE = Turn("assistant", "Where to?", ("request",)), Turn("assistant", "bye")
DIALOGUES = [Dialogue((HELLO, WHERE, TAXI), "a"), Dialogue((TAXI, WHERE, TAXI, BYE)), Dialogue((BYE,), "c")]
WORDS = ("hello", "taxi", "where", "station", "thanks", "bye")


def test_utterances_are_in_order_and_know_their_dialogue():
    said = read_utterances(DIALOGUES)
    assert (said.dialogues, said.places.tolist()) == (("a", "dialogue 2", "c"), [0, 0, 0, 1, 1, 1, 1, 2])
    assert (said.texts[2], list(said.rows_of(1))) == ("I need a taxi", [3, 4, 5, 6])
    rows = {role: rows.tolist() for role, rows in said.rows_by_role().items()}
    assert rows == {"assistant": [1, 4, 6, 7], "user": [0, 2, 3, 5]}
    part = restricted_to(said, np.array([1, 6, 7]))
    assert (part.dialogues, part.texts) == (("a", "dialogue 2", "c"), ("Where to?", "bye", "bye"))
    assert restricted_to(part, np.array([2])).dialogues == ("c",)
    with pytest.raises(InputError, match="dialogue 2: field id: got 'a' a second time"):
        read_utterances([DIALOGUES[0], DIALOGUES[0]])
    with pytest.raises(InputError, match="got no dialogue, expected"):
        read_utterances([])


def test_a_flow_reads_back_and_damaged_or_mixed_files_are_refused(tmp_path):
    flow = replace(flow_of_actions(DIALOGUES, "taxis"), settings={"model": "m", "seed": 1})
    stored = StoredFlow(flow, np.eye(len(flow.clusters), 7, dtype=np.float32), "some-key")
    write_flow(stored, tmp_path / "flow")
    found = read_flow(tmp_path / "flow").flow
    assert (found.title, found.clusters, found.settings) == (flow.title, flow.clusters, flow.settings)
    assert (found.trajectories, found.utterances.actions) == (flow.trajectories, flow.utterances.actions)
    np.testing.assert_array_equal(read_flow(tmp_path / "flow").centroids, stored.centroids)
    assert read_flow(tmp_path / "flow").key == "some-key"
    for file in ("flow.json", "utterances.parquet", "centroids.safetensors"):
        write_flow(stored, tmp_path)
        (tmp_path / file).write_bytes(b"{")
        with pytest.raises(InputError, match="cannot be read"):
            read_flow(tmp_path)
        (tmp_path / file).unlink()
        with pytest.raises(InputError, match="run dialemb flow again"):
            read_flow(tmp_path)
    write_flow(stored, tmp_path)
    record = json.loads((tmp_path / "flow.json").read_text())
    (tmp_path / "flow.json").write_text(json.dumps({**record, "key": "other"}))
    with pytest.raises(InputError, match=r"different runs.*run dialemb flow again"):
        read_flow(tmp_path)
    for damaged in ({**record, "title": 2**60}, {**record, "settings": {"model": True}}):
        (tmp_path / "flow.json").write_text(json.dumps(damaged))
        with pytest.raises(InputError, match=r"damaged.*run dialemb flow again"):
            read_flow(tmp_path)


def chances(flow, history, top=99):
    found = next_actions(flow, [state_of(flow, letter) for letter in history], top)
    return {named(flow, [one.state]): one.probability for one in found}


def test_an_utterance_is_in_the_nearest_cluster_of_its_role():
    flow = flow_of("aAbBc")
    centroids = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1], "A": [1, 1, 0], "B": [0, 0, 5]}
    means = np.array([centroids[cluster.name] for cluster in flow.clusters], dtype=np.float32)
    vectors = np.array([[9, 8, 0], [9, 8, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])
    labels = assign(vectors, ["user", "assistant", "user", "assistant", "user"], means, flow.clusters)
    assert (labels.dtype, labels.shape) == (np.int32, (5,))
    assert "".join(flow.clusters[label].name for label in labels) == "aAcBa"
    assert assign(np.zeros((0, 3)), [], means, flow.clusters).shape == (0,)
    with pytest.raises(InputError, match="field role: got 'speaker_3', expected one of assistant, user"):
        assign(np.ones((1, 3)), ["speaker_3"], means, flow.clusters)


def test_the_last_two_states_predict_the_next():
    flow = flow_of(*["aAbB"] * 10, *["cAcC"] * 10)
    assert max(chances(flow, ""), key=chances(flow, "").get) in "ac"
    after_a, after_c = chances(flow, "aA"), chances(flow, "cA")
    assert after_a["b"] > 0.8 < after_c["c"]
    assert chances(flow, "A")["b"] == pytest.approx(chances(flow, "A")["c"], abs=0.2)
    assert chances(flow, "aAbBaA") == after_a
    flow = flow_of(*["aAb"] * 3, "cB")
    # Nothing followed c and A, so A alone decides: three times b, smoothed to how often all was done: 15 times, each of
    # the six outcomes at least once.
    unigram = (3 + 6 * (1 / 6)) / (15 + 6)
    assert chances(flow, "cA")["b"] == pytest.approx((3 + 1 * unigram) / (3 + 1))
    flow = flow_of(*random_words(0))  # chances sum to one, and fall
    for history in ("", "a", "aA", "DD", "abc"):
        found = chances(flow, history)
        assert set(found) == {*(cluster.name for cluster in flow.clusters), ">"}
        assert sum(found.values()) == pytest.approx(1)
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert min(found.values()) > 0


def test_the_end_can_be_next_and_what_is_unknown_is_told():
    flow = flow_of(*["aA"] * 5)
    (first,) = next_actions(flow, flow.trajectories[0], top=1)
    assert (first.state, first.name) == (END, "end")
    assert first.probability > 0.8
    for history, top, sentence in (
        ([("user", "user-2")], 5, r"Unknown state 'user-2'\. Did you mean 'user-1'"),
        ([END], 5, "Unknown state"),
        ([], 0, "field top: got 0, expected at least 1"),
    ):
        with pytest.raises(InputError, match=sentence):
            next_actions(flow, history, top)


class ByWords:
    """One axis for each word, and a little for all others."""

    def encode_utterances(self, utterances):
        return np.array([[word in text for word in WORDS] + [0.01 * len(text)] for text in utterances], np.float64)


@pytest.fixture
def taxis():
    """Dialogues about taxis."""
    said = [("user", "hello"), ("assistant", "where to?"), ("user", "to the station"), ("assistant", "bye")]
    asked = [("user", "a taxi please"), ("assistant", "where to?"), ("user", "the <b>station</b>")]
    made = [tuple(Turn(role, text) for role, text in (said, asked)[number % 3 == 0]) for number in range(9)]
    return [Dialogue(turns, id=f"d{number}") for number, turns in enumerate(made)]


def test_dialogues_in_memory_have_a_graph_states_and_a_page(taxis, tmp_path):
    found = extract_flow(taxis, ByWords(), clusters={"user": 3}, nodes=0, edges=0, title="Taxi <calls>")
    assert isinstance(found.graph, networkx.DiGraph)
    sizes = {data["name"]: data["count"] for _, data in found.graph.nodes(data=True)}
    assert sizes == {
        "start": 9, "end": 9, "hello": 6, "to the station": 9, "a taxi please": 3, "where to?": 9, "bye": 6,
    }  # fmt: skip
    for node in set(found.graph) - {"[end]"}:
        assert sum(data["probability"] for *_, data in found.graph.out_edges(node, data=True)) == pytest.approx(1)
    table = found.states
    assert list(table.columns) == ["id", "role", "name", "size", "examples"]
    assert table["size"].sum() == len(found.flow.utterances) == 33
    assert set(table["id"]) == set(found.graph) - {"[start]", "[end]"}
    found.page(tmp_path / "page.html")
    assert "where to?" in (tmp_path / "page.html").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert "Taxi &lt;calls&gt;: 9 dialogues, 33 utterances, 5 states" in found._repr_html_()
    assert repr(found) == "Taxi <calls>: 9 dialogues, 33 utterances, 5 states"


def test_what_is_saved_is_what_the_command_writes(sample_dialogues, tiny_bert, tmp_path):
    write_jsonl(sample_dialogues[:12], tmp_path / "calls.jsonl")
    settings = {"clusters": 5, "edges": 0.2, "names": "phrases", "seed": 3}
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    assert (
        main(
            [
                "flow",
                str(tmp_path / "calls.jsonl"),
                "--by",
                "all",
                "--model",
                tiny_bert,
                "--output",
                str(tmp_path / "by_command"),
                *words,
            ]
        )
        == 0
    )
    settings |= {"encoder": tiny_bert, "title": "calls.jsonl"}
    extract_flow(sample_dialogues[:12], **settings).save(tmp_path / "saved")
    kept = extract_flow(sample_dialogues[:12], **settings, output=tmp_path / "kept")
    names = {path.name for path in (tmp_path / "by_command").iterdir()}
    for folder in (tmp_path / "saved", tmp_path / "kept"):
        assert {path.name for path in folder.iterdir()} == names
        for name in ("graph.json", "policy.md", "clusters-user.csv"):
            assert (folder / name).read_bytes() == (tmp_path / "by_command" / name).read_bytes()
    stored, written = read_flow(tmp_path / "saved"), read_flow(tmp_path / "by_command")
    assert stored.flow.clusters == written.flow.clusters == kept.flow.clusters
    np.testing.assert_array_equal(stored.centroids, written.centroids)
    assert next_actions(stored.flow, stored.flow.trajectories[0][:1])


class Wrong:
    def __init__(self, vectors):
        self.encode_utterances = lambda texts: np.stack([vectors] * len(texts))


def test_what_is_wrong_is_one_sentence(taxis, monkeypatch):
    nothing = np.full(3, np.nan)
    for settings, sentence in (
        ({"dialogues": []}, "got none"),
        ({"encoder": Wrong(nothing)}, "model 'Wrong': got NaN or infinity, expected a vector of finite numbers"),
    ):
        with pytest.raises(InputError, match=sentence):
            extract_flow(**{"dialogues": taxis, "encoder": ByWords(), **settings})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed; pip install pandas"):
        _ = extract_flow(taxis, ByWords()).states
