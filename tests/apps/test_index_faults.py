"""What an index withstands.

Half-read conditions, other writers, damaged files, odd times, names and metadata.
"""

import json
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from hf_dialemb.apps.search.dialogue_index import DialogueIndex
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError

lancedb = pytest.importorskip("lancedb")
MODEL = "dialogue-static"


def dialogue(name, text=None, **known):
    return Dialogue((Turn("user", text or f"A taxi to {name}"),), name, **known)


def made(folder, *names, **options):
    index = DialogueIndex(folder / "c.lance", MODEL, **options)
    index.add([dialogue(name, time=f"2026-01-0{place + 1}") for place, name in enumerate(names)])
    return index


def ids(index, where=None):
    return sorted(hit.id for hit in index.search("a taxi", 99, where))


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return made(tmp_path_factory.mktemp("index"), "d1", "d2", "d3)")


@pytest.mark.parametrize(
    "rest",
    [
        " adn id = 'd2'",
        " id = 'd2'",
        "; id = 'd2'",
        ";",
        " -- and id = 'd2'",
        ", id = 'd2'",
        ") or (id = 'd2'",
        ")",
        ") -- and (id = 'd2'",
        " as id",
        " as string) = 'true' --",
        " 'd2'",
        " 5",
        " order by id",
        " limit 1",
        " group by id",
        "\x00",
        " and",
        " and (id = 'd2'",
        " /* and id = 'd2'",
    ],
)
def test_a_condition_with_anything_left_over_is_refused(three, rest):
    for ask in (three.search, three.near):
        with pytest.raises(
            InputError, match=r"^where: got .*, which is no condition on the columns"
        ):
            ask("d1", 9, f"id <> 'x'{rest}")


@pytest.mark.parametrize(
    "where", ["", " ", "()", "true) or (true", "id", "1", 5, b"true", "nope = 3", "id = $1"]
)
def test_what_is_no_condition_is_refused(three, where):
    with pytest.raises(InputError, match=r"^where: got "):
        three.search("d1", 9, where)


@pytest.mark.parametrize("where", ["1/0 = 1", "cast(text as int) > 3"])
def test_a_condition_that_fails_on_a_row_is_named(three, where):
    with pytest.raises(InputError, match=r"^where: got .* \(Arrow error: "):
        three.search("d1", 9, where)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("id = 'd3)'", ["d3)"]),
        ("id = 'd3)' /* whole */ or\n id = 'it''s --'", ["d3)"]),
        ("(id = 'd1') or (`id` = 'd2')", ["d1", "d2"]),
        ("not id like 'd%)' and time between '2026-01-02' and '2026-01-03'", ["d2"]),
        ("starts_with(id, 'd1') or cast(turn as string) = '1'", ["d1"]),
    ],
)
def test_a_whole_condition_filters(three, where, found):
    assert ids(three, where) == found
    assert sorted(hit.id for hit in three.near("d1", 9, where)) == [
        name for name in found if name != "d1"
    ]


@pytest.mark.parametrize("top", [2**31, 2**32, 2**40, 2**70])
def test_more_may_be_wanted_than_there_are(three, top):
    assert len(three.search("a taxi", top)) == 3
    assert len(three.near("d1", top)) == 2


@pytest.mark.parametrize("wanted", ["12", b"12", 12, None, [12], {"1", 2}])
def test_only_a_list_of_ids_is_deleted(tmp_path, wanted):
    index = made(tmp_path, "1", "2", "12")
    with pytest.raises(InputError, match=r"^ids: got .* expected a list of ids"):
        index.delete(wanted)
    assert ids(index) == ["1", "12", "2"]


@pytest.mark.parametrize("topics", [{1: "cards"}, {"1": 5}, [("1", "cards")], "1"])
def test_topics_are_texts_by_id(tmp_path, topics):
    index = made(tmp_path, "1")
    with pytest.raises(InputError, match=r"^topics: got .* expected a mapping of ids to topics"):
        index.label(topics)


def test_an_open_index_sees_what_others_wrote(tmp_path):
    first = DialogueIndex(tmp_path / "c.lance", MODEL)
    second = made(tmp_path, "a", "b")
    assert (len(first), ids(first)) == (2, ["a", "b"])
    assert first.add([dialogue("a", time="2026-01-01"), dialogue("c")]) == 1
    assert second.delete(["c", "b"]) == 2
    assert ids(first) == ["a"]
    second.add([dialogue("d")])
    assert first.label({"d": "cards"}) == 1
    assert [hit.id for hit in second.near("a", where="topic = 'cards'")] == ["d"]


def test_an_index_that_others_made_meanwhile_is_of_one_level(tmp_path):
    first = DialogueIndex(tmp_path / "c.lance", MODEL, "utterances")
    second = made(tmp_path, "a")
    with pytest.raises(InputError, match="is of dialogues, got the level utterances"):
        first.add([dialogue("b")])
    shutil.rmtree(second.path)
    with pytest.raises(InputError, match="is no longer there"):
        second.search("a taxi")


@pytest.mark.parametrize("level", ["dialogues", "turns"])
@pytest.mark.parametrize("change", ["delete", "replace"])
def test_compacting_takes_former_texts_off_the_disk(tmp_path, change, level):
    index = made(tmp_path, *"abcdefgh", level=level)
    index.add([dialogue("secretive", "My card is Rumpelstiltskin", metadata={"team": "north"})])
    index.label(dict.fromkeys("abcdefgh", "taxis"))
    if change == "delete":
        index.delete(["secretive"])
    else:
        index.add([dialogue("secretive", "Never mind")])

    def on_disk(said):
        return any(
            said in file.read_bytes().lower() for file in index.path.rglob("*") if file.is_file()
        )

    def hits(index):
        # how rare words are changes
        return [{**asdict(hit), "score": 0} for hit in index.search("a taxi", 99)]

    reader, before = DialogueIndex(index.path), hits(index)
    assert on_disk(b"rumpelstiltskin")
    index.compact()
    assert not on_disk(b"rumpelstiltskin")
    assert on_disk(b"secretive") == (change == "replace")
    assert hits(reader) == before
    assert index.add([dialogue("a", time="2026-01-01"), dialogue("z")]) == 1
    assert len(reader) == len(before) + 1


def test_the_command_compacts(tmp_path, printed):
    index = made(tmp_path, "a", "b")
    words = ["index", "--output", index.path]
    assert "Deleted 1 dialogues; their text stays on disk until --compact" in printed(
        *words, "--delete", "a"
    )
    assert f"Deleted 1 dialogues\n{index.path}: 0 rows" in printed(
        *words, "--delete", "b", "--compact"
    )
    assert not any(
        b"A taxi to" in file.read_bytes() for file in index.path.rglob("*") if file.is_file()
    )


@pytest.mark.parametrize("lost", ["_versions", "_versions/*"])
def test_an_index_without_its_versions_is_refused_and_stays(tmp_path, lost):
    index = DialogueIndex(tmp_path / "c.lance", MODEL)
    index.add([dialogue("a")])
    for path in index.path.glob(lost):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    left = sorted(index.path.rglob("*"))
    for again in (
        lambda: DialogueIndex(index.path, MODEL).add([dialogue("b")]),
        lambda: index.add([dialogue("b")]),
    ):
        with pytest.raises(InputError, match="lost the files in _versions; restore the folder"):
            again()
    assert sorted(index.path.rglob("*")) == left


DAMAGE = {"cut": lambda said: said[: len(said) // 2], "emptied": lambda said: b"", "lost": None}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("part", ["_versions/*.manifest", "data/*", "_deletions/*"])
def test_damaged_files_are_told_in_one_sentence(tmp_path, part, damage):
    index = made(tmp_path, *"abcdefghi")
    index.delete(["a"])
    for path in index.path.glob(part):
        path.write_bytes(DAMAGE[damage](path.read_bytes())) if DAMAGE[damage] else path.unlink()
    tries = {
        "search": lambda: DialogueIndex(index.path).search("a taxi"),
        "filter": lambda: DialogueIndex(index.path).search("a taxi", where="id = 'b'"),
        "near": lambda: DialogueIndex(index.path).near("b"),
        "add": lambda: DialogueIndex(index.path, MODEL).add([dialogue("new")]),
        "delete": lambda: DialogueIndex(index.path).delete(["b"]),
        "label": lambda: DialogueIndex(index.path).label({"b": "cards"}),
        "compact": lambda: DialogueIndex(index.path).compact(),
    }
    for again in tries.values():
        with pytest.raises(
            InputError, match=r"^index .*(LanceDB cannot use it \(|lost the files)[^\n]*restore"
        ) as told:
            again()
        assert ".cargo" not in str(told.value)


def test_labels_are_written_in_one_version_after_one_reading(tmp_path, monkeypatch):
    index = made(tmp_path, *"abcdefghi")
    asked, version = [], index._table.version
    plain = lancedb.table.LanceTable.search
    monkeypatch.setattr(
        lancedb.table.LanceTable,
        "search",
        lambda *args, **more: asked.append(1) or plain(*args, **more),
    )
    assert index.label(dict.fromkeys("abcdefghijk", "taxis")) == 9
    assert len(asked) == 1
    assert lancedb.connect(str(tmp_path)).open_table("c").version == version + 1


@pytest.mark.parametrize("level", ["dialogues", "turns"])
def test_a_changed_dialogue_keeps_its_topic(tmp_path, level):
    index = made(tmp_path, "a", "b", level=level)
    index.label({"a": "taxis"})
    index.add(
        [Dialogue((Turn("user", "A taxi"), Turn("assistant", "Where to?")), "a"), dialogue("new")]
    )
    assert {hit.id: hit.topic for hit in index.search("a taxi", 9)} == {
        "a": "taxis",
        "b": "",
        "new": "",
    }


@pytest.mark.parametrize("name", ["über", "日本", "٣", "a b", ".", "..", "", "x" * 201, "x" * 300])
def test_a_name_that_a_table_cannot_have_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="expected a name of at most 200 of the letters a to z"):
        DialogueIndex(tmp_path / f"{name}.lance", MODEL)


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00+02:00", "9999-12-31T23:59:00-05:00", "yesterday"]
)
def test_a_time_that_is_none_in_utc_is_refused_with_its_dialogue(tmp_path, time):
    index = made(tmp_path, "a")
    with pytest.raises(
        InputError,
        match=r"^dialogue 'b', field time: got .* expected a time of the years 1 to 9999",
    ):
        index.add([dialogue("b", time=time)])
    assert ids(index) == ["a"]


@pytest.mark.parametrize(
    ("first", "second", "where"),
    [
        ({"n": 5}, {"n": 5.5}, "n > 5"),
        ({"n": 5}, {"n": 2**70}, "n > 5"),
        ({"n": None}, {"n": "x"}, "n = 'x'"),
        ({"n": "a"}, {"n": 5}, "n = '5'"),
        ({"n": {"a": 1}}, {"n": {"b": 2}}, "n like '%b%'"),
        ({"n": [], "m": [1]}, {"n": ["x", "y"]}, "array_has(n, 'y')"),
        ({}, {"": "x"}, "metadata_ = 'x'"),
        ({}, {"_rowid": "x"}, "metadata__rowid = 'x'"),
        ({}, {"a`b": "x"}, "a_b = 'x'"),
    ],
)
def test_metadata_of_later_dialogues_filter_too(tmp_path, first, second, where):
    index = DialogueIndex(tmp_path / "c.lance", MODEL)
    index.add([dialogue("a", metadata=first)])
    index.add([dialogue("b", metadata=second)])
    assert ids(index, where) == ["b"]


def test_metadata_of_another_kind_than_before_are_refused(tmp_path):
    index = DialogueIndex(tmp_path / "c.lance", MODEL)
    index.add([dialogue("a", metadata={"n": 5})])
    with pytest.raises(InputError, match=r"^metadata n: got 'x', expected double"):
        index.add([dialogue("b", metadata={"n": "x"})])
    assert ids(index) == ["a"]


WRITER = """
import json, sys
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.apps.search import dialogue_index as module
module.BATCH = 2
index = module.DialogueIndex(sys.argv[1], "dialogue-static", "turns")
for line in sys.stdin:
    said, gone = json.loads(line)
    try:
        index.delete(gone) if gone else None
        if said:
            index.add([Dialogue(tuple(Turn("user", text) for text in texts), name) for name, texts in said.items()])
        print("done", flush=True)
    except InputError as error:
        print(error, flush=True)
"""
NAMES = st.sampled_from(["a", "b", "c", "d", "e'"])
TEXTS = st.lists(st.sampled_from(["a taxi", "my card", "it's ☃"]), min_size=1, max_size=3).map(
    tuple
)
SAID = st.dictionaries(NAMES, TEXTS, min_size=1)


class TwoWriters(RuleBasedStateMachine):
    """Two processes that write, and may be killed, beside an open reader and a dictionary of what
    it should see."""

    @initialize(said=SAID)
    def start(self, said):
        self.path = type(self).folder / str(len(list(type(self).folder.iterdir()))) / "c.lance"
        self.reader = DialogueIndex(self.path, MODEL, "turns")
        self.writers, self.held = [None, None], {}
        self.add(0, said)

    def teardown(self):
        for writer in filter(None, getattr(self, "writers", ())):
            writer.kill()
            writer.communicate()

    def send(self, place, said, gone=()):
        if self.writers[place] is None:
            words = [sys.executable, "-c", WRITER, str(self.path)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            self.writers[place] = subprocess.Popen(words, **pipes)
        self.writers[place].stdin.write(json.dumps([said, list(gone)]) + "\n")
        self.writers[place].stdin.flush()
        return self.writers[place]

    def seen(self):
        by_dialogue = {}
        for hit in self.reader.search("a taxi", 999) if len(self.reader) else ():
            by_dialogue.setdefault(hit.id, {})[hit.turn] = hit.text
        assert all(sorted(texts) == [*range(len(texts))] for texts in by_dialogue.values())
        return {
            name: tuple(texts[turn] for turn in range(len(texts)))
            for name, texts in by_dialogue.items()
        }

    def check_each_is_one_of(self, *worlds):
        seen = self.seen()
        for name in {name for world in (seen, *worlds) for name in world}:
            assert seen.get(name) in [world.get(name) for world in worlds]
        return seen

    @rule(place=st.integers(0, 1), said=SAID)
    def add(self, place, said):
        assert self.send(place, said).stdout.readline() == "done\n"
        self.held |= said

    @rule(place=st.integers(0, 1), gone=st.sets(NAMES, min_size=1))
    def delete(self, place, gone):
        assert self.send(place, {}, gone).stdout.readline() == "done\n"
        self.held = {name: texts for name, texts in self.held.items() if name not in gone}

    @rule(place=st.integers(0, 1), said=SAID, files=st.integers(1, 9))
    def kill_while_adding(self, place, said, files):
        """Kill as soon as there are so many files more, or after all of it."""
        before = sum(1 for _ in self.path.rglob("*"))
        writer = self.send(place, said)
        while (
            sum(1 for _ in self.path.rglob("*")) < before + files
            and not select.select([writer.stdout], [], [], 0)[0]
        ):
            self.check_each_is_one_of(self.held, self.held | said)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        self.writers[place] = None
        self.held = self.check_each_is_one_of(self.held, self.held | said)

    @rule(first=SAID, second=SAID)
    def add_both(self, first, second):
        writers = [self.send(0, first), self.send(1, second)]
        told = [writer.stdout.readline() for writer in writers]
        assert all(line == "done\n" or "another run writes there now" in line for line in told)
        done = [said for said, line in zip((first, second), told, strict=True) if line == "done\n"]
        assert done
        orders = [self.held | done[0] | done[-1], self.held | done[-1] | done[0]]
        self.held = self.check_each_is_one_of(*orders)

    @invariant()
    def the_reader_sees_what_is_held(self):
        if hasattr(self, "held"):
            assert self.seen() == self.held


@pytest.mark.slow
def test_two_writers_lose_and_double_nothing_however_they_are_killed(tmp_path):
    machine = type("Machine", (TwoWriters,), {"folder": tmp_path})
    how = settings(max_examples=4, stateful_step_count=6, deadline=None, phases=[Phase.generate])
    run_state_machine_as_test(machine, settings=how)
