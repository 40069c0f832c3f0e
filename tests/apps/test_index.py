"""An index that lasts: added to, changed, deleted from, searched, killed, damaged and shared."""

import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime

import numpy as np
import pytest

from hf_dialemb import Dialogue, InputError, Turn, TurnIndex
from hf_dialemb.apps.search.turn_store import FILE
from hf_dialemb.data import write_jsonl

MODEL = "dialogue-static"


def dialogue(name, *texts, **known):
    texts = texts or (f"A taxi to {name}",)
    return Dialogue(tuple(Turn("user", text) for text in texts), name, **known)


def made(path, *names, **options):
    index = TurnIndex(path, MODEL, **options)
    index.add([dialogue(name, time=f"2026-01-0{place + 1}") for place, name in enumerate(names)])
    return index


def ids(index, **scope):
    return sorted(hit.id for hit in index.search("a taxi", 99, **scope))


def found(index, query="a taxi", **scope):
    return [(hit.id, hit.turn, hit.score, hit.text) for hit in index.search(query, 99, **scope)]


def test_the_command_adds_what_is_new_deletes_embeds_anew_and_finds(
    tmp_path, sample_dialogues, printed, refused
):
    path, source, hits = (tmp_path / name for name in ("c", "c.jsonl", "f.jsonl"))
    dialogues = [
        Dialogue(each.turns, each.id, each.domains, "2026-02-01T01:00:00+02:00")
        for each in sample_dialogues
    ]
    for count, new in ((5, 5), (9, 4), (9, 0)):
        write_jsonl(dialogues[:count], source)
        output = printed("index", source, "--output", path, "--model", MODEL)
        assert f"Embedded {new} dialogues that are new or changed" in output
    words = ["index", "--output", path, "--delete", dialogues[0].id, "nobody"]
    gone, left = len(dialogues[0].turns), sum(len(each.turns) for each in dialogues[1:9])
    assert printed(*words) == f"Deleted {gone} turns\n{path}: {left} turns\n"
    words = ["search", "--index", path, "--query", "a taxi"]
    printed(*words, "--output", hits, "--where", f"dialogue={dialogues[1].id}", "since=2026-01-31")
    read = [json.loads(line) for line in hits.read_text().splitlines()]
    assert {hit["id"] for hit in read} == {dialogues[1].id}
    assert {hit["time"] for hit in read} == {"2026-01-31T23:00:00"}
    assert len(printed(*words, "--whole", "--top", 99).split(", turn ")) == 9
    assert "scope: got 'nope', expected one of user" in refused(*words, "--where", "nope=3")
    assert "--where: got 'nope', expected NAME=VALUE" in refused(*words, "--where", "nope")
    assert "--model dialogue-minilm --reembed" in refused(*words, "--model", "dialogue-minilm")
    printed("index", "--output", path, "--model", "action-static", "--reembed")
    assert "--model dialogue-static --reembed" in refused(*words, "--model", MODEL)
    assert printed(*words)


def test_a_folder_and_memory_have_the_same_scores_and_a_copy_opens_the_same(
    tmp_path, sample_dialogues
):
    kept, memory = TurnIndex(tmp_path / "a.memory", encoder=MODEL), TurnIndex(encoder=MODEL)
    for index in (kept, memory):
        index.add(sample_dialogues[:30])
        index.add_turn(Turn("user", "I moved to Berlin.", name="Anna"), "today", user="anna")
        index.delete(dialogue=sample_dialogues[3].id)
    memory.save(tmp_path / "b.memory")
    expected = found(memory, "when does the taxi leave?")
    assert expected == found(kept, "when does the taxi leave?")
    for path in ("a.memory", "b.memory"):
        assert found(TurnIndex(tmp_path / path), "when does the taxi leave?") == expected
    with pytest.raises(InputError, match="expected a new folder"):
        memory.save(tmp_path / "a.memory")


def test_ties_come_by_id_however_they_were_added():
    names, orders = [f"d{number}" for number in range(8)], np.random.default_rng(0)
    for _ in range(6):
        index = TurnIndex(encoder=MODEL)
        for name in orders.permutation(names).tolist():
            index.add([dialogue(name, "A taxi, please")])
        assert [hit.id for hit in index.search("a taxi", 3)] == ["d0", "d1", "d2"]


def test_a_user_finds_what_an_index_of_the_user_alone_would():
    both, own = TurnIndex(encoder=MODEL), TurnIndex(encoder=MODEL)
    for user, place in (("u1", "France"), ("u2", "the USA"), ("u1", "a flat")):
        for index in (both, own) if user == "u1" else (both,):
            index.add_turn(Turn("user", f"I live in {place}.", name=user), "chat", user=user)
    assert found(both, "Where do I live?", user="u1") == found(own, "Where do I live?")
    assert {hit.user for hit in both.search("u2?", 9, user="u1")} == {"u1"}
    hits = both.search("Where do I live?", 9, user="u1")
    assert not any("USA" in hit.before + hit.after for hit in hits)
    assert both.delete(user="u1") == 2
    assert {hit.user for hit in both.search("Where do I live?", 9)} == {"u2"}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"since": date(2026, 1, 2)}, ["b", "c"]),
        ({"until": date(2026, 1, 2)}, ["a", "b"]),
        ({"since": datetime.fromisoformat("2026-01-03T01:00:00+02:00")}, ["c"]),
        ({"dialogue": ["a", "c"], "role": "user"}, ["a", "c"]),
        ({"team": "north"}, ["c"]),
        ({"user": "anna"}, ["c"]),
        ({"team": "south"}, []),
        ({"n": 2**70}, ["c"]),
        ({"a.b": 1, "a_b": 2}, ["c"]),
        ({"a.b": 2}, []),
        ({"since": "2026-01-02", "until": "2026-01-02T23:00:00"}, ["b"]),
        ({"dialogue": "a' OR 'a' = 'a"}, []),
    ],
)
def test_conditions_hold_before_the_best_are_taken(scope, expected):
    index = made(None, "a", "b")
    known = {"user": "anna", "team": "north", "n": 2**70, "a.b": 1, "a_b": 2}
    many = [dialogue(f"x{n}", "A taxi") for n in range(50)]
    index.add([dialogue("c", "A cab", time="2026-01-03", metadata=known), *many])
    hits = index.search("a taxi", 3, **scope)
    assert sorted(hit.id for hit in hits) == expected


def test_one_late_turn_is_found_among_many_nearer_ones(tmp_path):
    index = TurnIndex(tmp_path / "c.memory", MODEL)
    index.add(
        [
            *(dialogue(f"d{n}", f"Session {n} was saved.", time="2026-04-01") for n in range(1500)),
            dialogue("late", "The session stops for lunch.", time="2026-05-25T12:00:00"),
        ]
    )
    assert ids(index, since="2026-05-25", until="2026-05-25") == ["late"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda index: index.search("a", tema="x"), "got 'tema', expected one of user, dialogue"),
        (lambda index: index.search("a", since=3), "since: got 3, expected a date"),
        (lambda index: index.search(" "), "query: got no text"),
        (lambda index: index.search("caf\udce9"), "query: got no text in UTF-8"),
        (lambda index: index.search("a", 0), "top: got 0"),
        (lambda index: index.delete(), "delete: got no condition"),
        (lambda index: index.add([dialogue("z", "1"), dialogue("z", "2")]), "got 'z' twice"),
        (lambda index: index.add([dialogue("z", time="yesterday")]), "'z', field time: got 'yest"),
        (lambda index: index.add_turn(Turn("user", "a", time="9999-12-31T23:59:00-05:00")), "time"),
        (lambda index: TurnIndex(index.path.parent, MODEL), "is none that dialemb index made"),
        (lambda index: TurnIndex("no.memory"), "no such index; make one with dialemb index"),
        (lambda index: TurnIndex(index.path / "new", lambda texts: texts), "got function"),
        (lambda index: TurnIndex("tfidf"), "fitted on the dialogues"),
    ],
)
def test_what_is_refused_leaves_the_index_as_it_was(tmp_path, call, message):
    index = made(tmp_path / "c.memory", "a", "b")
    with pytest.raises(InputError, match=message):
        call(index)
    assert ids(index) == ids(TurnIndex(index.path)) == ["a", "b"]
    assert index.add_turn(Turn("user", "A taxi"), "c") == 2


def test_only_what_is_new_or_changed_is_embedded_and_takes_the_place_of_what_was():
    index = made(None, "a", "b")
    index.add_turn(Turn("user", "A cab"), "b")
    assert index.add([dialogue("a", "A taxi", "Where to?"), dialogue("", "Hm")]) == 2
    assert index.add([dialogue("a", "A taxi", "Where to?"), dialogue("", "Hm")]) == 0
    assert index.add([dialogue("b", time="2026-01-02")]) == 1
    assert len(index) == 4


SECRET = Turn("user", "My card is Rumpelstiltskin", name="Zebulon", time="1987-06-05T04:03:02")


@pytest.mark.parametrize("encoder", [MODEL, pytest.param("turn-minilm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("change", ["delete", "replace", "update", "user"])
def test_what_is_forgotten_is_as_if_it_had_never_been_said(tmp_path, change, encoder):
    turns = [
        Turn("user", f"Turn {number} of the chat, about {number % 7} cats") for number in range(30)
    ]
    index = TurnIndex(tmp_path / "c.memory", encoder)
    never = TurnIndex(encoder=encoder)
    reader = TurnIndex(index.path)
    if change == "user":
        index.add_turns([SECRET], "zebulons-own", user="zebulon")
        index.add_turns(turns, "chat")
        index.delete(user="zebulon")
    else:
        known = {"team": "ogdru"} if change == "replace" else {}
        kept = turns[12:] if change == "update" else turns[11:]
        index.add([Dialogue((*turns[:11], SECRET, *kept), "chat", metadata=known)])
        (hit,) = index.search("Rumpelstiltskin", 1)
    if change == "delete":
        assert index.delete(dialogue="chat", turn=hit.turn) == 1
    if change == "replace":
        index.add([Dialogue(tuple(turns), "chat")])
    if change == "update":
        index.update(hit.row, turns[11])
    never.add([Dialogue(tuple(turns), "chat")])
    expected = [(text, pytest.approx(score, abs=0.02)) for _, _, score, text in found(never)]
    for either in (index, reader, TurnIndex(index.path)):
        assert sorted((text, score) for _, _, score, text in found(either)) == sorted(
            expected, key=lambda pair: (pair[0], pair[1].expected)
        )
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()).lower()
    for word in (b"rumpelstiltskin", b"zebulon", b"1987-06-05", b"ogdru"):
        assert word not in on_disk


def test_eight_threads_write_and_search_one_index():
    index = TurnIndex(encoder=MODEL)

    def work(name):
        for number in range(25):
            index.add_turn(Turn("user", f"I am {name}, {number}"), name, user=name)
            assert {hit.user for hit in index.search("who?", 9, user=name)} == {name}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [f"thread{number}" for number in range(8)]))
    assert len(index) == 200


def test_a_turn_that_fails_is_not_there_and_may_be_added_again(monkeypatch):
    index = made(None, "a")
    with monkeypatch.context() as patch:
        patch.setattr(type(index.encoder), "encode_turns", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index.add_turn(Turn("user", "A taxi"), "b")
    assert ids(index) == ["a"]
    index.add_turn(Turn("user", "A taxi"), "b")
    assert ids(index) == ["a", "b"]


def test_an_open_index_sees_what_others_wrote(tmp_path):
    first, second = (made(tmp_path / "c", "a", "b") for _ in range(2))
    assert first.add([dialogue("a", "A cab"), dialogue("c")]) == 2
    assert second.delete(dialogue=["c", "b"]) == 2
    assert ids(first) == ids(second) == ["a"]
    first.reembed("action-static")
    with pytest.raises(InputError, match=f"action-static .*--model {MODEL} --reembed"):
        second.search("a taxi")
    assert ids(TurnIndex(first.path)) == ids(first) == ["a"]


ADD = """
import sys, hf_dialemb
from hf_dialemb import Turn
memory = hf_dialemb.TurnIndex(sys.argv[1], "dialogue-static")
for number in range(int(sys.argv[3])):
    memory.add_turn(Turn("user", f"Turn {number} by {sys.argv[2]}"), sys.argv[2])
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1, 7])
def test_a_kill_loses_at_most_the_turn_being_written_while_another_process_writes(tmp_path, moment):
    path = tmp_path / "c.memory"
    start = [sys.executable, "-c", ADD, str(path)]
    with (
        subprocess.Popen([*start, "other", "40"], stdout=subprocess.DEVNULL) as other,
        subprocess.Popen([*start, "mine", "99"], stdout=subprocess.PIPE, text=True) as mine,
    ):
        written = [mine.stdout.readline() for _ in range(moment + 1)]
        mine.kill()
        written += mine.stdout.readlines()
        mine.wait()
        assert other.wait() == 0
    hits = TurnIndex(path).search("Turn", 999)
    kept = sorted(hit.turn for hit in hits if hit.id == "mine")
    assert kept in (list(range(len(written))), list(range(len(written) + 1)))
    assert sum(hit.id == "other" for hit in hits) == 40


@pytest.mark.parametrize("damage", [lambda said: said[: len(said) // 2], lambda said: b"\xff" * 99])
def test_a_damaged_index_is_refused_and_stays(tmp_path, damage):
    path = made(tmp_path / "c", *"abcdefgh").path
    (path / FILE).write_bytes(damage((path / FILE).read_bytes()))
    for extra in path.glob(f"{FILE}-*"):
        extra.unlink()
    before = (path / FILE).read_bytes()
    with pytest.raises(InputError, match=r"SQLite cannot use it \(.*restore the folder"):
        TurnIndex(path).search("a taxi")
    assert (path / FILE).read_bytes() == before


@pytest.mark.parametrize("seed", range(5))
def test_an_index_holds_what_a_dictionary_would(tmp_path, seed):
    index, held, draw = TurnIndex(tmp_path / "c", MODEL), {}, random.Random(seed)
    for _ in range(20):
        name, texts = (
            draw.choice(["a", "b'", "c d", "é"]),
            draw.choices(
                ["a taxi to the airport", "my card was stolen", "a table", "it's ☃", "bye"],
                k=draw.randint(1, 3),
            ),
        )
        way = draw.choice(["add", "add_turns", "delete"])
        if way == "add":
            index.add([dialogue(name, *texts)])
            held[name] = texts
        elif way == "add_turns":
            index.add_turns([Turn("user", text) for text in texts], name)
            held[name] = held.get(name, []) + texts
        else:
            assert index.delete(dialogue=name) == len(held.pop(name, []))
    plain = TurnIndex(encoder=MODEL)
    plain.add([dialogue(name, *texts) for name, texts in held.items()])
    expected = sorted((text, score) for _, _, score, text in found(plain, "my card"))
    for either in (index, TurnIndex(index.path)):
        hits = sorted((text, score) for _, _, score, text in found(either, "my card"))
        assert [text for text, _ in hits] == [text for text, _ in expected]
        scores = [[score for _, score in pairs] for pairs in (hits, expected)]
        np.testing.assert_allclose(*scores, atol=0.02)
