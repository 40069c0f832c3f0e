"""What an index withstands.

Half-read conditions, other writers, damaged files, odd times, names and metadata.
"""

import shutil

import pytest

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


@pytest.mark.parametrize("where", ["1/0 = 1", "cast(text as int) > 3"])
def test_a_condition_that_fails_on_a_row_is_named(three, where):
    with pytest.raises(InputError, match=r"^where: got .*, which fails on a row \("):
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


@pytest.mark.parametrize("level", ["dialogues", "turns"])
@pytest.mark.parametrize("change", ["delete", "replace"])
def test_compacting_takes_former_texts_off_the_disk(tmp_path, change, level):
    index = made(tmp_path, *"abcdefgh", level=level)
    index.add([dialogue("secretive", "My card is Rumpelstiltskin", metadata={"team": "north"})])
    if change == "delete":
        index.delete(["secretive"])
    else:
        index.add([dialogue("secretive", "Never mind")])

    def on_disk(said):
        return any(
            said in file.read_bytes().lower() for file in index.path.rglob("*") if file.is_file()
        )

    reader, before = DialogueIndex(index.path), ids(index)
    assert on_disk(b"rumpelstiltskin")
    index.compact()
    assert not on_disk(b"rumpelstiltskin")
    assert on_disk(b"secretive") == (change == "replace")
    assert ids(reader) == before


@pytest.mark.parametrize("lost", ["_versions", "_versions/*"])
def test_an_index_without_its_versions_is_refused_and_stays(tmp_path, lost):
    index = made(tmp_path, "a")
    for path in index.path.glob(lost):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    left = sorted(index.path.rglob("*"))
    with pytest.raises(InputError, match="lost its files in _versions; restore the folder"):
        DialogueIndex(index.path, MODEL).add([dialogue("b")])
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
            InputError, match=r"^index .*(LanceDB cannot use it \(|lost its files)[^\n]*restore"
        ) as told:
            again()
        assert ".cargo" not in str(told.value)


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
