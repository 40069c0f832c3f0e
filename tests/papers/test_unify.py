"""Facts about corpora in the unified form.

The files, the figures, what may enter, and that it is all or nothing.
"""

import json
import operator
from dataclasses import replace
from functools import reduce

import pytest
from made_up_corpora import register, write
from talks import dialogue

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.data import CORPORA
from hf_dialemb.data.corpus import SPLITS
from hf_dialemb.papers.corpora.unify import unified_features, unify

FIRST = Dialogue(
    (
        Turn("assistant", "Hello!", ("greet",)),
        Turn(
            "user",
            "I look for two rooms",
            ("inform_intent", "INFORM"),
            (("intent", "FindHotel"), ("rooms", "2")),
        ),
        Turn("assistant", "Well, let me see"),
        Turn(
            "user",
            "In the centre, what is the price?",
            ("request", "inform"),
            (("price", ""), ("Area", "centre")),
        ),
        Turn(
            "assistant",
            '"It is 80 euros"',
            ("inform", "inform_count"),
            (("price", "80"),),
            ("FindHotel",),
        ),
        Turn("user", "Book it, please", (), (), ("BookHotel",)),
    ),
    "train/1",
    ("Hotels_1", "hotels_2"),
)
SECOND = Dialogue(
    (Turn("user", "Which area?", ("request",), (("area", ""),)),), "train/2", ("restaurant",)
)


@pytest.fixture
def data(tmp_path, monkeypatch):
    for name in list(CORPORA):
        monkeypatch.delitem(CORPORA, name)
    folder = tmp_path / "data"
    (folder / "empty").mkdir(parents=True)
    register(
        monkeypatch,
        folder,
        "hotel",
        {
            "train": [FIRST, SECOND],
            "dev": [Dialogue((Turn("user", "Bye then", ("bye",)),), "dev/1")],
        },
    )
    register(monkeypatch, folder, "woz2", {"train": [SECOND], "test": None}, terms="research")
    register(
        monkeypatch, folder, "chat", {"train": [dialogue("Nothing is known of this", id="plain")]}
    )
    register(monkeypatch, folder, "absent", {"train": None})
    register(monkeypatch, folder, "intents", {"train": [SECOND]}, kind="utterances")
    return folder


@pytest.fixture
def made(data, tmp_path):
    """A function that unifies corpora of ``data``, and returns the folder and the figures."""

    def make(names, folder="unified", within=".", **options):
        return tmp_path / folder, unify(names.split(), data / within, tmp_path / folder, **options)

    return make


def content_of(file):
    return json.loads(file.read_text())


def test_the_json_files_have_the_form_of_the_paper(made):
    folder, _ = made("hotel")

    def turn(speaker, text, domains, acts=(), original=None, **labels):
        names = {"acts": [*acts], "main_acts": [*acts], "original_acts": original or [*acts]}
        labels = {"dialog_acts": names} | labels if acts else labels
        return {"speaker": speaker, "text": text, "domains": domains, "labels": labels}

    hotel, counted = ["hotel"], ["inform", "inform count"]
    expected = {
        "train/1": [
            turn(
                "user",
                "I look for two rooms",
                hotel,
                ["inform"],
                slots=["room"],
                intents=["findhotel"],
            ),
            turn(
                "user",
                "In the centre, what is the price?",
                hotel,
                ["request", "inform"],
                slots=["price", "area"],
            ),
            turn("system", "It is 80 euros", hotel, ["inform"], counted, slots=["price"]),
            turn("user", "Book it, please", hotel, intents=["bookhotel"]),
        ],
        "train/2": [turn("user", "Which area?", ["restaurant"], ["request"], slots=["area"])],
        "dev/1": [turn("user", "Bye then", [], ["good bye"], ["bye"])],
    }
    acts = {"greeting": 1, "inform": 3, "request": 2, "good bye": 1}
    original = {"greet": 1, "inform": 3, "request": 2, "inform count": 1, "bye": 1}
    acts = {"acts": acts, "main_acts": acts, "original_acts": original}
    slots, intents = {"room": 1, "price": 2, "area": 2}, {"findhotel": 1, "bookhotel": 1}
    labels = {"dialog_acts": acts, "slots": slots, "intents": intents}
    stats = {"domains": {"hotel": 5, "restaurant": 1}, "labels": labels}
    assert content_of(folder / "json/hotel/data.json") == {"stats": stats, "dialogs": expected}
    assert content_of(folder / "json/hotel/stats.json") == stats


def test_the_folder_is_a_dataset(data, made, tmp_path, monkeypatch):
    from datasets import load_dataset
    from pyarrow import parquet

    monkeypatch.setattr("hf_dialemb.papers.corpora.unify._ROWS", 2)
    five = [Dialogue(SECOND.turns, str(index)) for index in range(5)]
    register(monkeypatch, data, "five", {"train": five})
    folder, _ = made("five hotel woz2", terms="research")
    assert parquet.ParquetFile(folder / "train/five.parquet").num_row_groups == 3
    dataset = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    ids = {"train": [*"01234", "train/1", "train/2", "train/2"], "validation": ["dev/1"]}
    assert {split: rows["id"][:] for split, rows in dataset.items()} == ids
    assert dataset["train"]["corpus"][:] == [*["five"] * 5, "hotel", "hotel", "woz2"]
    assert all(rows.features == unified_features() for rows in dataset.values())
    first = dataset["train"][5]
    acts, slots = (
        ["request", "inform"],
        [{"name": "price", "value": ""}, {"name": "area", "value": "centre"}],
    )
    assert first["messages"][3] == {
        **{
            "role": "user",
            "content": FIRST.turns[3].content,
            "dialogue_acts": acts,
            "main_acts": acts,
        },
        **{
            "original_acts": acts,
            "slots": slots,
            "intents": [],
            "action": "inform, request area, price",
        },
    }
    assert Dialogue.from_json(dataset["validation"][0]).turns == (
        Turn("user", "Bye then", ("good bye",)),
    )


def test_figures_are_those_that_the_paper_counts(made):
    folder, stats = made("hotel woz2", terms="research")
    assert content_of(folder / "stats.json") == stats
    hotel, totals = stats["corpora"]["hotel"], stats["totals"]
    assert hotel["dialogues"] == {"train": 2, "dev": 1}
    labels = (
        "turns",
        "labelled",
        "utterances",
        "domains",
        "original_acts",
        "acts",
        "slots",
        "actions",
    )
    assert [hotel[label] for label in labels] == [8, 7, 6, 2, 5, 4, 3, 5]
    assert [totals[label] for label in labels] == [9, 8, 7, 2, 5, 4, 3, 5]
    table = "\n".join(stats["table"])
    assert "| hotel | 6 | 2 | 5 | 4 | 3 | 5 |\n" in table
    assert "| woz2 | 1 | 1 | 1 | 1 | 1 | 1 |\n" in table
    assert stats["evaluation"] == ["hotel/dev"]


LONGER = Dialogue(
    (*FIRST.turns[:3], Turn("user", "What does the larger of these rooms cost?")), "train/3"
)
COPY = replace(FIRST, id="dev/9")
# Corpora that are there too, what is unified, and figures of that by their place.
TABLE = {
    "no label": ({}, "chat", {"ids/chat": [], "totals/utterances": 0}),
    "no id": (
        {"none": {"train": [replace(SECOND, id="")] * 2}},
        "none",
        {"ids/none": ["train/0", "train/1"]},
    ),
    "what the other splits hold": (
        {
            "flat": {"train": [FIRST, LONGER], "dev": [COPY]},
            "questions": {
                "test": [dialogue("what does the larger of these rooms cost", id="test/1")],
                "kind": "utterances",
            },
        },
        "flat questions",
        {
            "corpora/flat/excluded": {"dialogues": 1, "turns": len(FIRST.turns) + 1},
            "ids/flat": ["train/3", "dev/9"],
            "evaluation": ["flat/dev", "questions/test"],
        },
    ),
    "nothing is left of train": (
        {"flat": {"train": [FIRST], "dev": [COPY]}},
        "flat",
        {"totals/dialogues": {"dev": 1}, "files": ["dev/flat.parquet"]},
    ),
}


@pytest.mark.parametrize(("more", "names", "expected"), TABLE.values(), ids=TABLE)
def test_what_enters_and_its_figures(data, made, monkeypatch, more, names, expected):
    for name, about in more.items():
        splits = {split: about[split] for split in SPLITS if split in about}
        register(
            monkeypatch, data, name, splits, **{key: about[key] for key in about.keys() - splits}
        )
    folder, stats = made(names)
    ids = {
        name: list(content_of(folder / "json" / name / "data.json")["dialogs"])
        for name in stats["corpora"]
    }
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))
    found = stats | {"names": list(ids), "ids": ids, "files": files}
    assert {
        place: reduce(operator.getitem, place.split("/"), found) for place in expected
    } == expected


def test_what_cannot_enter_or_fails_is_refused_and_leaves_nothing(
    data, made, monkeypatch, tmp_path
):
    register(monkeypatch, data, "hollow", {"train": None})
    (data / "hollow").mkdir()
    for names, options, sentence in (
        (
            "woz2",
            {},
            r"Corpus woz2: its licence \(CC BY-NC 4.0\) counts as 'research', .* give --licence "
            r"research",
        ),
        (
            "hollow",
            {},
            "Corpus hollow: got no dialogue of train or dev or test in the data folder; add its "
            "files",
        ),
        ("absent", {}, "Corpus absent: .* holds neither absent/"),
    ):
        with pytest.raises(InputError, match=sentence):
            made(names, **options)
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data"]
    with (data / "hotel/dev.jsonl").open("a") as file:
        file.write('{"messages": 3}\n')
    with pytest.raises(InputError, match=r"dev\.jsonl: field messages: got int"):
        made("woz2 hotel", terms="research", strict=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data"]
    folder = write(tmp_path / "unified", {"mine.txt": "mine"})
    with pytest.raises(InputError, match="exists and is no empty folder"):
        made("hotel")
    assert [entry.name for entry in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    made("hotel")
    assert {entry.name for entry in folder.iterdir()} == {"dev", "json", "stats.json", "train"}


@pytest.mark.slow
def test_unify_writes_the_folder_and_prints_its_table(printed, tmp_path):
    words = ("papers", "corpus", "unify", "sample", "--output", tmp_path / "unified")
    assert "| sample |" in printed(*words)
