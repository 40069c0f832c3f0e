"""Turns found by words, meaning, speaker and time.

Responses ranked by `dialemb rank`: pools and contexts, with any ranker, searched, and errors.
"""

import gzip
import json
import math
from datetime import datetime

import numpy as np
import pytest
import torch
from checkpoints import assembled, deep_attention_matching, dual_encoder

from hf_dialemb import Dialogue, InputError, Turn, TurnIndex
from hf_dialemb.apps.search import rank
from hf_dialemb.apps.search import search as search_module
from hf_dialemb.apps.search.query_reading import read_query
from hf_dialemb.apps.search.rank import rank_file, rank_pool, read_pool
from hf_dialemb.apps.search.turn_scores import SESSION, with_session
from hf_dialemb.apps.search.word_index import K1, B, WordIndex, words_of
from hf_dialemb.data import write_jsonl
from hf_dialemb.encoders import Encoder
from hf_dialemb.methods.ranker import RankingExample, score_candidates

TALK = [
    ("Anna", "2023-05-07T10:00:00", "I finally found a flat near the river."),
    ("Ben", "2023-05-07T10:01:00", "Wonderful! How many rooms are there?"),
    ("Anna", "2023-05-07T10:02:00", "Three, and a tiny balcony."),
    ("Ben", "2023-06-01T09:00:00", "My flat has a leaking roof again."),
    ("Anna", "2023-06-01T09:01:00", "Oh no, call the landlord."),
    ("Ben", "2024-05-02T12:00:00", "I adopted a puppy called Rex."),
    ("Anna", "2024-06-02T12:00:00", "I call the landlord."),
    ("Anna", "2024-07-02T12:00:00", "I call him tomorrow, the landlord."),
    ("Ben", "2024-08-02T12:00:00", "You eat porridge?"),
    ("Anna", "2024-09-02T12:00:00", "I eat porridge."),
]
TURNS = tuple(
    Turn("user" if name == "Anna" else "assistant", text, name=name, time=time)
    for name, time, text in TALK
)
DIALOGUE = Dialogue(TURNS, "friends")


def indexed(*dialogues):
    index = TurnIndex(encoder="dialogue-static")
    index.add(list(dialogues))
    return index


@pytest.fixture(scope="module")
def index():
    return indexed(DIALOGUE)


@pytest.mark.parametrize(
    ("query", "turn"),
    [
        ("Who has a dog?", 5),
        ("what did Anna say about the flat?", 0),
        ("what did Ben say about the flat?", 3),
        ("what was said about a flat in June?", 3),
        ("balcony", 2),
        ("Who eats porridge?", 9),
        ("When does Anna call the landlord?", 7),
    ],
)
def test_questions_find_their_turn(index, query, turn):
    assert index.search(query, 1)[0].turn == turn


def test_a_hit_says_who_and_when_and_hits_are_a_table_of_falling_scores(index):
    (hit,) = index.search("how many rooms?", 1)
    assert (hit.id, hit.speaker, hit.time, hit.text) == ("friends", *TALK[1])
    assert (hit.before, hit.after) == (f"Anna: {TALK[0][2]}", f"Anna: {TALK[2][2]}")
    assert hit.words == ("many", "room")
    frame = index.search("a flat with a view", 4).to_pandas()
    assert len(frame) == 4
    assert frame.score.is_monotonic_decreasing


NOW = datetime(2026, 5, 20, 12)  # a Wednesday
NAMES = ("Anna Jones", "Anna Smith", "Will", "Ben", "June")
EVERY = "every year"


@pytest.mark.parametrize(
    ("query", "time", "span"),
    [
        ("what was said at 9 on 4 July", "on 4 July", EVERY),
        ("room 12 in May", "in May", EVERY),
        ("31 st of December", "31 st of December", EVERY),
        ("on 2026-05-03", "on 2026-05-03", "2026-05-03 to before 2026-05-04"),
        ("On May 3, 2023", "On May 3, 2023", "2023-05-03 to before 2023-05-04"),
        ("the 7th of May 2022", "7th of May 2022", "2022-05-07 to before 2022-05-08"),
        ("May 2023", "May 2023", "2023-05-01 to before 2023-06-01"),
        ("in 2023", "in 2023", "2023-01-01 to before 2024-01-01"),
        ("since May", "since May", "2026-05-01 to before …"),
        ("since June", "since June", "2025-06-01 to before …"),
        ("until March", "until March", "… to before 2026-04-01"),
        ("after 3 May", "after 3 May", "2026-05-04 to before …"),
        ("yesterday", "yesterday", "2026-05-19 to before 2026-05-20"),
        ("last week", "last week", "2026-05-11 to before 2026-05-18"),
        ("three weeks ago", "three weeks ago", "2026-04-26 to before 2026-05-03"),
        ("two months ago", "two months ago", "2026-03-01 to before 2026-04-01"),
        ("in the past 3 days", "in the past 3 days", "2026-05-17 to before 2026-05-20"),
        ("on Monday", "on Monday", "2026-05-18 to before 2026-05-19"),
        ("since last Wednesday", "since last Wednesday", "2026-05-13 to before …"),
        ("the march on Sunday", "on Sunday", "2026-05-17 to before 2026-05-18"),
        *(
            (query, "", "")
            for query in ("we may go", "room 12", "May I see it?", "31 June", "2001")
        ),
        *((query, "", "") for query in ("a second dog", "the first floor")),
    ],
)
def test_times_of_queries(query, time, span):
    read = read_query(query, NAMES, NOW)
    assert read.time == time
    assert not time or str(read).endswith(f"time: {time} ({span})")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("what did Ben plant in spring?", "in spring"),
        ("the latest order", "the latest"),
        ("when did we meet the last time?", "the last time"),
        ("since last August", "since last August"),
        ("in April or July", "in April, July"),
    ],
)
def test_what_is_not_read_of_a_time_is_said(query, words):
    read = read_query(query, NAMES, NOW)
    assert (read.time, read.unread) == ("", words)
    assert str(read).endswith(f"not read: {words}")


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("what did Anna Jones say", "Anna Jones"),
        ("what did Anna say", ""),
        ("what will it cost", ""),
        ("Will it rain?", ""),
        ("what will Will pay?", "Will"),
        ("what did ben say?", "Ben"),
        ("June said no", "June"),
    ],
)
def test_speakers_of_queries(query, speaker):
    assert read_query(query, NAMES, NOW).speaker == speaker


def test_times_lift_turns_and_the_hits_say_how_they_were_read():
    days = ("2026-05-10", "2026-05-19", "2025-06-01", "2024-12-31")
    turns = [Turn("user", "We talked.", time=f"{day}T09:00:00") for day in days]
    index = indexed(*(Dialogue((turn,), f"d{place}") for place, turn in enumerate(turns)))
    for query, best in (
        ("yesterday", "d1"),
        ("last week", "d0"),
        ("in June", "d2"),
        ("in December", "d3"),
        ("before 2025", "d3"),
    ):
        hits = index.search(query, 1, now=NOW)
        assert (hits[0].id, hits.read_as) == (best, read_query(query, (), NOW))


def test_a_turn_gets_a_share_of_the_best_of_its_session():
    before, scores = np.array([-1, 0, -1, 2, 1]), np.array([1.0, 3, 2, -np.inf, 0])
    shared = with_session(scores, before) - SESSION * np.array([3, 3, 2, 2, 3])
    np.testing.assert_allclose(shared, scores, atol=1e-9)


def test_words_are_basic_forms_and_bm25_has_its_closed_form():
    actual = words_of("What did the children's dogs eat? Went running 你好")
    assert " ".join(actual) == "child s dog eat go run 你 好"
    index, texts = WordIndex(), ["red house", "red red car by night", "red", "blue sky"]
    for row, text in enumerate(texts):
        index.put(row, " ".join(words_of(text)))
    index.put(2, "")
    alive = np.array([True, True, False, True])
    lengths, mean = [2, 4, 0, 2], 8 / 3  # "by" is a stop word
    expected = [
        math.log(1 + 1.5 / 2.5) * (K1 + 1) * count / (count + K1 * (1 - B + B * length / mean))
        for count, length in zip([1, 2, 0, 0], lengths, strict=True)
    ]
    np.testing.assert_allclose(index.scores("the red one Red", alive), expected)
    for query in ("", "the", "zzz"):
        assert not index.scores(query, alive).any()


def test_the_command_shows_turns_and_keeps_what_it_embedded(tmp_path, printed, monkeypatch):
    source, found = tmp_path / "talk.jsonl", tmp_path / "found.jsonl"
    monkeypatch.setattr(search_module, "HF_HOME", str(tmp_path / "cache"))
    source.write_text(json.dumps(DIALOGUE.to_json()))
    words = ["search", source, "--model", "dialogue-static", "--top", 1]
    words += ["--query", "what did Ben say about his flat?"]
    printed(*words, "--output", found)
    lines = printed(*words).splitlines()
    assert lines[0] == "Read as speaker: Ben"
    assert "friends, turn 4 2023-06-01T09:00:00" in lines[1]
    assert lines[2:4] == [f"       Anna: {TALK[2][2]}", f"     > Ben: {TALK[3][2]}"]
    assert json.loads(found.read_text())["speaker"] == "Ben"
    (kept,) = (tmp_path / "cache" / "hf_dialemb").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "encode_turns", None)
        assert printed(*words).splitlines() == lines
    source.write_text(json.dumps(Dialogue(TURNS[:5], "friends").to_json()))
    printed(*words)
    assert len(list(kept.parent.iterdir())) == 2
    assert printed(*words, "--whole").count("friends, turn") == 1


@pytest.fixture(scope="module")
def dialogues(sample_dialogues):
    return [Dialogue(entry.turns[:3], entry.id) for entry in sample_dialogues[:4]]


@pytest.fixture(scope="module")
def responses(sample_dialogues):
    return list(dict.fromkeys(turn.content for entry in sample_dialogues for turn in entry.turns))[
        :60
    ]


def scores_of(ranker, dialogues, responses):
    """Return the ranker's own scores of all responses, (C, P)."""
    return np.stack(
        score_candidates(
            ranker, [RankingExample(entry.turns, tuple(responses)) for entry in dialogues]
        )
    )


def best(scores, responses, top):
    return [[(responses[place], row[place]) for place in np.argsort(-row)[:top]] for row in scores]


def assert_same(actual, expected):
    pairs = [
        pair for ranked in zip(actual, expected, strict=True) for pair in zip(*ranked, strict=True)
    ]
    assert [text for (text, _), _ in pairs] == [text for _, (text, _) in pairs]
    np.testing.assert_allclose(
        *zip(*((a, b) for (_, a), (_, b) in pairs), strict=True), rtol=1e-4, atol=1e-5
    )


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def test_a_pool_has_each_response_once(tmp_path):
    path = write(tmp_path / "pool.txt", "\ufeffYes .\n\n  \nno\r\n YES  .\nno\nmaybe".encode())
    assert read_pool(path) == ["Yes .", "no", "maybe"]
    assert read_pool(write(tmp_path / "pool.txt.gz", gzip.compress(b"yes\nno\n"))) == ["yes", "no"]


def rank_context(path):
    return list(rank_file("no/such", path, path))


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (read_pool, b"", "got no response, expected one on each line"),
        (read_pool, b"good\nb\xff\n", "save the file as UTF-8"),
        (read_pool, None, "cannot be read"),
        (rank_context, [], "got no dialogue"),
        (rank_context, {"turns": [3]}, "got no dialogue"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path, read, content, sentence):
    path = tmp_path / "file.json"
    if content is not None:
        write(path, content)
    with pytest.raises(InputError, match=rf"file\.json.*{sentence}"):
        read(path)


def test_scores_are_the_rankers_own(towers, sample_dialogues, dialogues, responses, monkeypatch):
    deep = deep_attention_matching(sample_dialogues)
    monkeypatch.setattr(rank, "_SCORED", 8)
    for ranker in towers:
        expected = best(scores_of(ranker, dialogues, responses), responses, 5)
        assert_same(rank_pool(ranker, dialogues, responses, 5), expected)
    # One without vectors scores the pool piece by piece.
    expected = best(scores_of(deep, dialogues[:2], responses[:20]), responses, 4)
    assert_same(rank_pool(deep, dialogues[:2], responses[:20], 4), expected)


def test_an_ensembles_probabilities_are_those_of_the_whole_pool(
    tower_folders, towers, dialogues, responses
):
    ensemble = assembled(tower_folders)
    whole = list(rank_pool(ensemble, dialogues, responses, len(responses)))
    assert [sum(score for _, score in ranked) for ranked in whole] == pytest.approx(
        [1] * len(dialogues)
    )
    members = [
        torch.from_numpy(scores_of(tower, dialogues, responses)).softmax(-1).numpy()
        for tower in towers
    ]
    assert_same(whole, best(np.mean(members, axis=0), responses, len(responses)))
    assert_same(
        whole, best(np.exp(scores_of(ensemble, dialogues, responses)), responses, len(responses))
    )
    assert_same(rank_pool(ensemble, dialogues, responses, 3), [ranked[:3] for ranked in whole])


def test_a_speaker_without_a_mark_is_an_error(sample_dialogues, responses):
    ranker = dual_encoder(sample_dialogues)
    user, assistant, *_, response = ranker.model.config.marker_ids
    ranker.model.config.marker_ids = [user, assistant, response]
    third = Dialogue((Turn("user", "hello"), Turn("speaker_3", "hi")), "call-3")
    with pytest.raises(
        InputError,
        match="context call-3: got the role speaker_3, expected one of user, assistant, ",
    ):
        next(rank_pool(ranker, [third], responses, 5))


@pytest.fixture
def files(tmp_path, dialogues, responses):
    write_jsonl(dialogues, tmp_path / "contexts.jsonl")
    (tmp_path / "pool.txt").write_text(
        "\n".join(["", *responses, responses[0].upper()]), encoding="utf-8"
    )
    return [
        "--context",
        str(tmp_path / "contexts.jsonl"),
        "--candidates",
        str(tmp_path / "pool.txt"),
    ]


def test_rank_prints(tower_folders, towers, dialogues, responses, files, printed):
    output = printed("rank", "--model", tower_folders[0], *files, "--top", "3")
    assert "60 distinct responses" in output
    expected = best(scores_of(towers[0], dialogues, responses), responses, 3)
    for dialogue, ranked in zip(dialogues, expected, strict=True):
        assert f"\n{dialogue.id}  " in output
        text, score = ranked[0]
        assert f"{1:>6} {score:>12.6g}  {text}" in output


def test_a_wrong_request_is_an_error(tower_folders, tiny_bert, files, refused):
    for words, sentence in (
        (["--top", "0"], "top: got 0, expected a whole number of at least 1"),
        (["--model", tiny_bert], "got a model of type bert, expected a ranker"),
    ):
        assert sentence in refused("rank", "--model", tower_folders[0], *files, *words)
