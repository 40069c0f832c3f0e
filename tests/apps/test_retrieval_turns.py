"""Turns found by words, meaning, speaker and time."""

import json
import math

import numpy as np
import pytest

import hf_dialemb
from hf_dialemb import Dialogue, InputError, Turn, TurnIndex
from hf_dialemb.apps.search.turn_scores import asked_time
from hf_dialemb.apps.search.word_index import K1, B, WordIndex, words_of

TALK = [
    ("Anna", "2023-05-07T10:00:00", "I finally found a flat near the river."),
    ("Ben", "2023-05-07T10:01:00", "Wonderful! How many rooms are there?"),
    ("Anna", "2023-05-07T10:02:00", "Three, and a tiny balcony."),
    ("Ben", "2023-06-01T09:00:00", "My flat has a leaking roof again."),
    ("Anna", "2023-06-01T09:01:00", "Oh no, call the landlord."),
    ("Ben", "2024-05-02T12:00:00", "I adopted a puppy called Rex."),
]
TURNS = tuple(
    Turn("user" if name == "Anna" else "assistant", text, name=name, time=time)
    for name, time, text in TALK
)
DIALOGUE = Dialogue(TURNS, "friends")


@pytest.fixture(scope="module")
def index():
    return TurnIndex("dialogue-static", [DIALOGUE])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    pytest.importorskip("lancedb")
    index = hf_dialemb.DialogueIndex(
        tmp_path_factory.mktemp("turns") / "c.lance", "dialogue-static", "turns"
    )
    index.add([DIALOGUE])
    return index


@pytest.mark.parametrize(
    ("query", "turn"),
    [
        ("Who has a dog?", 5),
        ("what did Anna say about the flat?", 0),
        ("what did Ben say about the flat?", 3),
        ("what was said about a flat in June?", 3),
        ("balcony", 2),
    ],
)
def test_questions_find_their_turn(index, stored, query, turn):
    assert [either.search(query, 1)[0].turn for either in (index, stored)] == [turn, turn]


def test_conditions_leave_turns_out(stored):
    hits = stored.search(
        "what did Ben say about the flat?", 9, "speaker = 'Anna' and time < '2023-06-01'"
    )
    assert [hit.turn for hit in hits] == [0, 2]
    assert [hit.turn for hit in stored.search("the", 9, "words like '%puppy%'")] == [5]
    assert [index.columns for index in stored._table.list_indices()] == [["words"]]


@pytest.mark.parametrize("kept", ["index", "stored"])
def test_a_hit_says_who_and_when_and_hits_are_a_table_of_falling_scores(request, kept):
    index = request.getfixturevalue(kept)
    (hit,) = index.search("how many rooms?", 1)
    assert (hit.id, hit.speaker, hit.time, hit.text) == ("friends", *TALK[1])
    assert (hit.before, hit.after) == (f"Anna: {TALK[0][2]}", f"Anna: {TALK[2][2]}")
    assert hit.words == ("many", "room")
    frame = index.search("a flat with a view", 4).to_pandas()
    assert len(frame) == 4
    assert frame.score.is_monotonic_decreasing


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("in may", r"\d{4}-05-\d\d"),
        ("On May 3, 2023", r"2023-05-03"),
        ("the 7th of May 2022", r"2022-05-07"),
        ("in 2023", r"2023-\d\d-\d\d"),
        ("last august", r"\d{4}-08-\d\d"),
        ("we may go", None),
        ("room 12", None),
        ("May I see it?", None),
        ("May 2023", r"2023-05-\d\d"),
        ("June", r"\d{4}-06-\d\d"),
    ],
)
def test_times_of_queries(query, expected):
    found = asked_time(query)
    assert (found and found.pattern) == expected


@pytest.mark.parametrize("parts", [1, 3])
def test_an_index_that_grew_turn_by_turn_finds_the_same(index, parts):
    grown = TurnIndex("dialogue-static")
    for turn in TURNS if parts == 1 else TURNS[:parts]:
        grown.add_turn(turn, "friends")
    grown.add_turns(TURNS[len(grown) :], "friends")
    for query in ("a flat in May", "what did Ben adopt?"):
        np.testing.assert_allclose(grown.scores(query), index.scores(query), atol=1e-5)


def test_dialogues_can_be_added_in_parts():
    other = Dialogue((Turn("user", "Is there a gym nearby?"),), "gym")
    apart, together = (
        TurnIndex("dialogue-static", [DIALOGUE]),
        TurnIndex("dialogue-static", [DIALOGUE, other]),
    )
    apart.add([other])
    np.testing.assert_allclose(apart.scores("a flat"), together.scores("a flat"), atol=1e-5)


def test_words_are_basic_forms_and_bm25_has_its_closed_form():
    actual = words_of("What did the children's dogs eat? Went running 你好")
    assert " ".join(actual) == "child s dog eat go run 你 好"
    index = WordIndex(["red house", "red red car by night", "blue sky"])
    lengths, mean = [2, 4, 2], 8 / 3  # "by" is a stop word
    expected = [
        math.log(1 + 1.5 / 2.5) * (K1 + 1) * count / (count + K1 * (1 - B + B * length / mean))
        for count, length in zip([1, 2, 0], lengths, strict=True)
    ]
    np.testing.assert_allclose(index.scores("the red one Red"), expected)
    for query in ("", "the", "zzz"):
        assert not index.scores(query).any()


def test_a_text_finds_turns_or_dialogues_by_an_encoder_not_fitted():
    turns, whole = (
        hf_dialemb.search("dialogue-static", [DIALOGUE], "a puppy", whole=whole)
        for whole in (False, True)
    )
    assert (turns[0].turn, len(turns), len(whole)) == (5, 5, 1)
    with pytest.raises(InputError, match="fitted on its input"):
        TurnIndex("tfidf", [DIALOGUE])


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.search(" "),
        lambda index: index.add([DIALOGUE]),
        lambda index: index.search("a", 0),
    ],
)
def test_an_index_refuses(index, call):
    with pytest.raises(InputError, match="expected"):
        call(index)


def test_the_command_shows_turns(tmp_path, printed):
    source, found = tmp_path / "talk.jsonl", tmp_path / "found.jsonl"
    source.write_text(json.dumps(DIALOGUE.to_json()))
    words = [
        "search",
        source,
        "--model",
        "dialogue-static",
        "--query",
        "what did Ben say about his flat?",
        "--top",
        1,
    ]
    lines = printed(*words, "--output", found).splitlines()
    assert "friends, turn 4 2023-06-01T09:00:00" in lines[0]
    assert lines[1:3] == [f"       Anna: {TALK[2][2]}", f"     > Ben: {TALK[3][2]}"]
    assert json.loads(found.read_text())["speaker"] == "Ben"
    assert "friends, turn" not in printed(*words, "--whole")
