"""The flow of dialogues in memory: what Python gets, and that the command does the same."""

from __future__ import annotations

import sys

import networkx
import numpy as np
import pytest

from hf_dialemb.cli import main
from hf_dialemb.encoders.specs import load_encoder
from hf_dialemb.flow import pipeline, report, run
from hf_dialemb.flow.extract import extract_flow
from hf_dialemb.flow.next import next_actions
from hf_dialemb.flow.stored_flow import read_flow
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

WORDS = ("hello", "taxi", "where", "station", "thanks", "bye")


class ByWords:
    """One axis for each word, and a little for all others."""

    def encode_utterances(self, utterances):
        return np.array([[word in text for word in WORDS] + [0.01 * len(text)] for text in utterances], np.float64)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Leaves pictures out: they take most of the time, and other tests look at them."""
    monkeypatch.setattr(report, "draw_graph", lambda *_: ((), ""))
    monkeypatch.setattr(report, "draw_dendrogram", lambda *_: None)


@pytest.fixture
def dialogues():
    said = [("user", "hello"), ("assistant", "where to?"), ("user", "to the station"), ("assistant", "bye")]
    asked = [("user", "a taxi please"), ("assistant", "where to?"), ("user", "the <b>station</b>")]
    made = [tuple(Turn(role, text) for role, text in (said, asked)[number % 3 == 0]) for number in range(9)]
    return [Dialogue(turns, id=f"d{number}") for number, turns in enumerate(made)]


def test_dialogues_in_memory_have_a_graph_states_and_a_page(dialogues, tmp_path):
    found = extract_flow(dialogues, ByWords(), clusters={"user": 3}, nodes=0, edges=0, title="Taxi <calls>")
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
    shown = found._repr_html_()
    assert "Taxi &lt;calls&gt;: 9 dialogues, 33 utterances, 5 states" in shown
    assert repr(found) == "Taxi <calls>: 9 dialogues, 33 utterances, 5 states"


def test_what_is_saved_is_what_the_command_writes(sample_dialogues, tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "load_dialogues", lambda *_, **__: sample_dialogues[:12])
    settings = {"clusters": 5, "edges": 0.2, "names": "phrases", "seed": 3}
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    assert main(["flow", "calls", "--model", tiny_bert, "--output", str(tmp_path / "by_command"), *words]) == 0
    encoder = load_encoder(tiny_bert)
    found = extract_flow(sample_dialogues[:12], encoder, model=tiny_bert, title="calls", **settings)
    found.save(tmp_path / "saved")
    settings["output"] = tmp_path / "kept"
    kept = extract_flow(sample_dialogues[:12], encoder, model=tiny_bert, title="calls", **settings)
    names = {path.name for path in (tmp_path / "by_command").iterdir()}
    for folder in (tmp_path / "saved", tmp_path / "kept"):
        assert {path.name for path in folder.iterdir()} == names
        for name in ("graph.graphml", "policy.md", "state_machine.json", "clusters-user.csv"):
            assert (folder / name).read_bytes() == (tmp_path / "by_command" / name).read_bytes()
    stored = read_flow(tmp_path / "saved")
    assert stored.flow.clusters == read_flow(tmp_path / "by_command").flow.clusters == kept.flow.clusters
    np.testing.assert_array_equal(stored.centroids, read_flow(tmp_path / "by_command").centroids)
    assert next_actions(stored.flow, stored.flow.trajectories[0][:1])


def test_what_a_folder_has_is_not_done_again(dialogues, tmp_path, monkeypatch):
    first = extract_flow(dialogues, ByWords(), output=tmp_path)
    monkeypatch.setattr(pipeline, "cluster_by_role", None)
    assert extract_flow(dialogues, ByWords(), output=tmp_path, nodes=0.9).flow.clusters == first.flow.clusters
    with pytest.raises(TypeError):
        extract_flow(dialogues, ByWords(), clusters=2, output=tmp_path)


def test_what_is_wrong_is_one_sentence(dialogues, monkeypatch):
    class Wrong:
        def __init__(self, vectors):
            self.encode_utterances = lambda texts: np.stack([vectors] * len(texts))

    for settings, sentence in (
        ({"clusters": 99}, "role assistant: field clusters: got 99, expected at most 2"),
        ({"clusters": {"agent": 1}}, "field clusters: got role 'agent', expected one of assistant, user"),
        ({"clusters": 2, "threshold": {"user": 0.5}}, "role user: got field clusters and field threshold"),
        ({"nodes": 1}, "field nodes: got 1, expected a share"),
        ({"seed": -1}, "field seed: got -1"),
        ({"names": "api:"}, "api:"),
    ):
        with pytest.raises(InputError, match=sentence):
            extract_flow(dialogues, ByWords(), **settings)
    with pytest.raises(InputError, match="got none"):
        extract_flow([], ByWords())
    with pytest.raises(InputError, match="model 'Wrong': got NaN or infinity, expected a vector of finite numbers"):
        extract_flow(dialogues, Wrong(np.full(3, np.nan)))
    with pytest.raises(InputError, match=r"model 'Wrong': got vectors of shape \(2, 2\)"):
        extract_flow(dialogues, Wrong(np.ones((2, 2))))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed; pip install pandas"):
        _ = extract_flow(dialogues, ByWords()).states
