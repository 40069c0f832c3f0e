"""What a flow is made of, the same from disk and in memory.

What comes next in one, and how two sets differ.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from flow_words import ORDER, flow_of, flow_of_turns, graph, named, random_words, state_of
from scipy import stats

from hf_dialemb.apps.flow.extract import extract_flow
from hf_dialemb.apps.flow.flow import read_utterances, restricted_to
from hf_dialemb.apps.flow.flow_comparison import compared
from hf_dialemb.apps.flow.flow_folder import read_flow, write_flow
from hf_dialemb.apps.flow.graph import END, FlowGraph
from hf_dialemb.apps.flow.new_dialogues import assign, next_actions
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError

HELLO, TAXI = Turn("user", "hello", ("greet",)), Turn("user", "I need a  taxi", ("request",))
WHERE, BYE = Turn("assistant", "Where to?", ("request",)), Turn("assistant", "bye")
DIALOGUES = [
    Dialogue((HELLO, WHERE, TAXI), "a"),
    Dialogue((TAXI, WHERE, TAXI, BYE)),
    Dialogue((BYE,), "c"),
]
WORDS = ("hello", "taxi", "where", "station", "thanks", "bye")


def test_utterances_are_in_order_and_know_their_dialogue():
    said = read_utterances(DIALOGUES)
    assert (said.dialogues, said.places.tolist()) == (
        ("a", "dialogue 2", "c"),
        [0, 0, 0, 1, 1, 1, 1, 2],
    )
    assert (said.texts[2], list(said.rows_of(1))) == ("I need a taxi", [3, 4, 5, 6])
    rows = {role: rows.tolist() for role, rows in said.rows_by_role().items()}
    assert rows == {"assistant": [1, 4, 6, 7], "user": [0, 2, 3, 5]}
    part = restricted_to(said, np.array([1, 6, 7]))
    assert (part.dialogues, part.texts) == (("a", "dialogue 2", "c"), ("Where to?", "bye", "bye"))
    assert restricted_to(part, np.array([2])).dialogues == ("c",)
    with pytest.raises(InputError, match="dialogue 2: field id: got 'a' a second time"):
        read_utterances([DIALOGUES[0], DIALOGUES[0]])


@pytest.fixture
def stored():
    flow = replace(flow_of_turns(ORDER, "taxis"), settings={"model": "m", "seed": 1})
    return replace(flow, centroids=np.eye(len(flow.clusters), 7, dtype=np.float32))


def test_a_flow_reads_back(stored, tmp_path):
    write_flow(stored, tmp_path / "flow")
    found = read_flow(tmp_path / "flow")
    for name in ("title", "clusters", "settings", "trajectories"):
        assert getattr(found, name) == getattr(stored, name)
    assert found.utterances.texts == stored.utterances.texts
    np.testing.assert_array_equal(found.centroids, stored.centroids)


def chances(flow, history, top=99):
    found = next_actions(flow, [state_of(flow, letter) for letter in history], top)
    return {named(flow, [one.state]): one.probability for one in found}


def test_an_utterance_is_in_the_nearest_cluster_of_its_role():
    flow = flow_of("aAbBc")
    centroids = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1], "A": [1, 1, 0], "B": [0, 0, 5]}
    means = np.array([centroids[cluster.name] for cluster in flow.clusters], dtype=np.float32)
    vectors = np.array([[9, 8, 0], [9, 8, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])
    labels = assign(
        vectors, ["user", "assistant", "user", "assistant", "user"], means, flow.clusters
    )
    assert (labels.dtype, labels.shape) == (np.int32, (5,))
    assert "".join(flow.clusters[label].name for label in labels) == "aAcBa"
    assert assign(np.zeros((0, 3)), [], means, flow.clusters).shape == (0,)
    with pytest.raises(
        InputError, match="field role: got 'speaker_3', expected one of assistant, user"
    ):
        assign(np.ones((1, 3)), ["speaker_3"], means, flow.clusters)


def test_the_last_two_states_predict_the_next_by_smoothed_chances():
    flow = flow_of(*["aAbB"] * 10, *["cAcC"] * 10)
    assert chances(flow, "aA")["b"] > 0.8 < chances(flow, "cA")["c"]
    assert chances(flow, "aAbBaA") == chances(flow, "aA")
    flow = flow_of(*["aAb"] * 3, "cB")
    # Nothing followed c and A, so A alone decides: three times b, smoothed to how often all was
    # done: 15 times, each of the six outcomes at least once.
    unigram = (3 + 6 * (1 / 6)) / (15 + 6)
    assert chances(flow, "cA")["b"] == pytest.approx((3 + 1 * unigram) / (3 + 1))
    flow = flow_of(*random_words(0))
    for history in ("", "a", "aA", "DD", "abc"):
        found = chances(flow, history)
        assert set(found) == {*(cluster.name for cluster in flow.clusters), ">"}
        assert sum(found.values()) == pytest.approx(1)
        assert list(found.values()) == sorted(found.values(), reverse=True)
    flow = flow_of(*["aA"] * 5)
    (first,) = next_actions(flow, flow.trajectories[0], top=1)
    assert (first.state, first.name) == (END, "end")


def test_transitions_of_two_sets_are_compared_exactly():
    found = compared(graph(*["aA"] * 30, *["aB"] * 10), graph(*["aA"] * 15, *["aB"] * 25))
    edge = found[0]
    assert (edge.counts, edge.shares, edge.gain) == ((30, 15), [0.75, 0.375], -0.375)
    p = stats.fisher_exact([[30, 10], [15, 25]]).pvalue
    # the least p of five transitions; the other has the same, but none is less than one before
    assert [own.p for own in found] == pytest.approx([5 * p, 5 * p, 1, 1, 1])
    assert [own.gain for own in found] == [-0.375, 0.375, 0, 0, 0]
    counts = (1, 199), (1, 1)
    change, *_ = compared(
        *(FlowGraph({}, {("a", str(place)): n for place, n in enumerate(own)}) for own in counts)
    )
    assert change.p == pytest.approx(2 * 0.0198, abs=2e-4)  # a normal curve would say 2e-12


class ByWords:
    """One axis for each word, and a little for all others."""

    def encode_utterances(self, utterances):
        return np.array(
            [[word in text for word in WORDS] + [0.01 * len(text)] for text in utterances],
            np.float64,
        )


@pytest.fixture
def taxis():
    """Dialogues about taxis."""
    said = [
        ("user", "hello"),
        ("assistant", "where to?"),
        ("user", "to the station"),
        ("assistant", "bye"),
    ]
    asked = [("user", "a taxi please"), ("assistant", "where to?"), ("user", "the <b>station</b>")]
    made = [
        tuple(Turn(role, text) for role, text in (said, asked)[number % 3 == 0])
        for number in range(9)
    ]
    return [Dialogue(turns, id=f"d{number}") for number, turns in enumerate(made)]


def test_dialogues_in_memory_have_states_and_a_page(taxis, tmp_path):
    found = extract_flow(
        taxis, ByWords(), clusters={"user": 3}, nodes=0, edges=0, title="Taxi <calls>"
    )
    sizes = {cluster.name: cluster.size for cluster in found.flow.clusters}
    expected = {"hello": 6, "to the station": 9, "a taxi please": 3, "where to?": 9, "bye": 6}
    assert sizes == expected
    found.page(tmp_path / "page.html")
    assert "where to?" in (tmp_path / "page.html").read_text()
    assert repr(found) == "Taxi <calls>: 9 dialogues, 33 utterances, 5 states"


WRONG = SimpleNamespace(encode_utterances=lambda texts: np.full((len(texts), 3), np.nan))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"encoder": WRONG}, "got NaN or infinity, expected a vector of finite numbers"),
        ({"vectors": np.ones((32, 3))}, r"expected floats of shape \(33, D\)"),
        ({"vectors": np.full((33, 3), 1e200)}, "got NaN or infinity"),
    ],
)
def test_what_is_wrong_is_one_sentence(taxis, given, sentence):
    with np.errstate(over="ignore"), pytest.raises(InputError, match=sentence):
        extract_flow(taxis, **given)


def test_ready_vectors_are_taken(taxis):
    assert len(extract_flow(taxis, vectors=np.ones((33, 3))).flow.clusters) >= 2
