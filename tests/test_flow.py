"""What a dialogue flow is made of, and the same from disk."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hf_dialemb.flow.flow import Flow, flow_of_actions, grouped, read_utterances, restricted_to
from hf_dialemb.flow.graph import END, START
from hf_dialemb.flow.stored_flow import StoredFlow, read_flow, stored_flow, write_flow
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError


def dialogue(name: str, *said: tuple[str, str, str]) -> Dialogue:
    """Makes a dialogue of (role, text, act)."""
    return Dialogue(tuple(Turn(role, text, (act,) if act else ()) for role, text, act in said), id=name)


HELLO, TAXI = ("user", "hello", "greet"), ("user", "I need a  taxi", "request")
WHERE, BYE = ("assistant", "Where to?", "request"), ("assistant", "bye", "")
DIALOGUES = [dialogue("a", HELLO, WHERE, TAXI), dialogue("", TAXI, WHERE, TAXI, BYE), dialogue("c", BYE)]


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


def test_the_flow_of_actions_has_a_cluster_for_each_action_of_a_role():
    flow = flow_of_actions(read_utterances(DIALOGUES), "taxis")
    found = [(cluster.id, cluster.name, cluster.size) for cluster in flow.clusters]
    assert found == [("assistant-1", "request", 2), ("user-1", "request", 3), ("user-2", "greeting", 1)]
    assert flow.utterances.dialogues == ("a", "dialogue 2")
    greet, ask, where = ("user", "user-2"), ("user", "user-1"), ("assistant", "assistant-1")
    assert flow.trajectories == ((greet, where, ask), (ask, where, ask))
    assert flow.graph.states == {greet: 1, where: 2, ask: 3}
    assert flow.graph.edges == {
        (START, greet): 1, (greet, where): 1, (where, ask): 2, (ask, END): 2, (START, ask): 1, (ask, where): 1,
    }  # fmt: skip
    with pytest.raises(InputError, match="got no utterance with dialogue acts or slots"):
        flow_of_actions(read_utterances([dialogue("c", BYE)]))


@pytest.fixture
def stored() -> StoredFlow:
    said = read_utterances(DIALOGUES)
    flow = grouped("taxis", said, zip(said.roles, said.texts, strict=True))
    flow = Flow(flow.title, flow.utterances, flow.labels, flow.clusters, {"model": "m", "seed": 1})
    return StoredFlow(flow, np.eye(len(flow.clusters), 7, dtype=np.float32), "some-key")


def test_a_flow_comes_back_from_disk(stored, tmp_path):
    write_flow(stored, tmp_path / "flow")
    found = read_flow(tmp_path / "flow")
    assert (found.flow.clusters, found.flow.settings) == (stored.flow.clusters, stored.flow.settings)
    assert (found.flow.trajectories, found.flow.utterances.actions) == (
        stored.flow.trajectories,
        stored.flow.utterances.actions,
    )
    np.testing.assert_array_equal(found.centroids, stored.centroids)
    assert stored_flow(tmp_path / "flow", "some-key") is not None
    assert stored_flow(tmp_path / "flow", "other-key") is None


def test_damaged_files_and_those_of_other_runs_are_told_in_one_sentence(stored, tmp_path):
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
