"""Facts about corpora in the unified form: the files, the figures, what may enter, and that it is all or nothing."""

import json
import os
from dataclasses import replace
from types import ModuleType

import pytest
import yaml

from hf_dialemb.corpora import read_jsonl, registry, write_jsonl
from hf_dialemb.corpora.audit.dataset_card import PAPER_TABLE, dataset_card
from hf_dialemb.corpora.audit.unify import unified_features, unify
from hf_dialemb.corpora.corpus import SPLITS, Corpus
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

FIRST = Dialogue(
    (
        Turn("assistant", "Hello!", ("greet",)),
        Turn("user", "I look for two rooms", ("inform_intent", "INFORM"), (("intent", "FindHotel"), ("rooms", "2"))),
        Turn("assistant", "Well, let me see"),
        Turn("user", "In the centre, what is the price?", ("request", "inform"), (("price", ""), ("Area", "centre"))),
        Turn("assistant", '"It is 80 euros"', ("inform", "inform_count"), (("price", "80"),), ("FindHotel",)),
        Turn("user", "Book it, please", (), (), ("BookHotel",)),
    ),
    "train/1",
    ("Hotels_1", "hotels_2"),
)
SECOND = Dialogue((Turn("user", "Which area?", ("request",), (("area", ""),)),), "train/2", ("restaurant",))
HELD_OUT = Dialogue((Turn("user", "Bye then", ("bye",)),), "dev/1")
PLAIN = Dialogue((Turn("user", "Nothing is known of this"),), "plain")


def register(monkeypatch, folder, name, splits, terms="permissive", kind="dialogues", part_of="", shared=SPLITS):
    """Registers a corpus of .jsonl files and writes them; a split of None has no file."""
    for split, dialogues in splits.items():
        if dialogues is not None:
            (folder / name).mkdir(parents=True, exist_ok=True)
            write_jsonl(dialogues, folder / name / f"{split}.jsonl")

    def records(source, split):
        for place, stream in source.files(f"{split}.jsonl"):
            for line in stream:
                yield place, json.loads(line)

    files = {split: (f"{split}.jsonl",) for split in splits}
    licence = {"permissive": "MIT", "share-alike": "CC BY-SA 4.0", "research": "CC BY-NC 4.0"}[terms]
    corpus = Corpus(
        name,
        files,
        records,
        Dialogue.from_json,
        f"https://example.org/{name}",
        licence,
        terms,
        kind=kind,
        part_of=part_of,
        shared=shared,
        extract="a|b",
    )
    module = ModuleType(name)
    module.CORPORA = (corpus,)
    monkeypatch.setitem(__import__("sys").modules, f"hf_dialemb.corpora.readers.{name}", module)
    monkeypatch.setitem(registry.CORPORA, name, name)


@pytest.fixture
def data(tmp_path, monkeypatch):
    for name in list(registry.CORPORA):
        monkeypatch.delitem(registry.CORPORA, name)
    folder = tmp_path / "data"
    register(monkeypatch, folder, "hotel", {"train": [FIRST, SECOND], "dev": [HELD_OUT]})
    register(monkeypatch, folder, "woz2", {"train": [SECOND], "test": None}, terms="research")
    register(monkeypatch, folder, "chat", {"train": [PLAIN]})
    register(monkeypatch, folder, "absent", {"train": None})
    register(monkeypatch, folder, "intents", {"train": [SECOND]}, kind="utterances")
    return folder


def made(data, tmp_path, *names, **options):
    folder = tmp_path / "unified"
    return folder, unify(names, data, folder, show_progress=False, **options)


def test_the_json_files_have_the_form_of_the_paper(data, tmp_path):
    folder, _ = made(data, tmp_path, "hotel")
    acts = {"acts": ["inform"], "main_acts": ["inform"], "original_acts": ["inform"]}
    asked = {name: ["request", "inform"] for name in ("acts", "main_acts", "original_acts")}
    counted = {**acts, "original_acts": ["inform", "inform count"]}
    bye = {"acts": ["good bye"], "main_acts": ["good bye"], "original_acts": ["bye"]}
    request = {name: ["request"] for name in ("acts", "main_acts", "original_acts")}

    def turn(speaker, text, domains, **labels):
        return {"speaker": speaker, "text": text, "domains": domains, "labels": labels}

    expected = {
        "train/1": [
            turn("user", "I look for two rooms", ["hotel"], dialog_acts=acts, slots=["room"], intents=["findhotel"]),
            turn("user", "In the centre, what is the price?", ["hotel"], dialog_acts=asked, slots=["price", "area"]),
            turn("system", "It is 80 euros", ["hotel"], dialog_acts=counted, slots=["price"]),
            turn("user", "Book it, please", ["hotel"], intents=["bookhotel"]),
        ],
        "train/2": [turn("user", "Which area?", ["restaurant"], dialog_acts=request, slots=["area"])],
        "dev/1": [turn("user", "Bye then", [], dialog_acts=bye)],
    }
    stats = {
        "domains": {"hotel": 5, "restaurant": 1},
        "labels": {
            "dialog_acts": {
                "acts": {"greeting": 1, "inform": 3, "request": 2, "good bye": 1},
                "main_acts": {"greeting": 1, "inform": 3, "request": 2, "good bye": 1},
                "original_acts": {"greet": 1, "inform": 3, "request": 2, "inform count": 1, "bye": 1},
            },
            "slots": {"room": 1, "price": 2, "area": 2},
            "intents": {"findhotel": 1, "bookhotel": 1},
        },
    }
    assert json.loads((folder / "json/hotel/data.json").read_text()) == {"stats": stats, "dialogs": expected}
    assert json.loads((folder / "json/hotel/stats.json").read_text()) == stats


def test_the_folder_is_a_dataset(data, tmp_path):
    from datasets import load_dataset

    folder, _ = made(data, tmp_path, "hotel", "woz2", terms="research")
    cache = str(tmp_path / "cache")
    dataset = load_dataset(str(folder), cache_dir=cache)
    assert {split: rows["id"][:] for split, rows in dataset.items()} == {
        "train": ["train/1", "train/2", "train/2"],
        "validation": ["dev/1"],
    }
    assert dataset["train"]["corpus"][:] == ["hotel", "hotel", "woz2"]
    assert all(rows.features == unified_features() for rows in dataset.values())
    assert load_dataset(str(folder), "woz2", cache_dir=cache)["train"].num_rows == 1
    first = dataset["train"][0]
    assert first["domains"] == ["hotel"]
    assert [message["content"] for message in first["messages"]] == [turn.content for turn in FIRST.turns]
    assert first["messages"][3] == {
        "role": "user",
        "content": "In the centre, what is the price?",
        "dialogue_acts": ["request", "inform"],
        "main_acts": ["request", "inform"],
        "original_acts": ["request", "inform"],
        "slots": [{"name": "price", "value": ""}, {"name": "area", "value": "centre"}],
        "intents": [],
        "action": "inform, request area, price",
    }
    assert [message["intents"] for message in first["messages"][4:]] == [["findhotel"], ["bookhotel"]]
    assert Dialogue.from_json(dataset["validation"][0]).turns == (Turn("user", "Bye then", ("good bye",)),)


def test_figures_stand_beside_those_of_the_paper(data, tmp_path):
    folder, stats = made(data, tmp_path, "hotel", "woz2", terms="research")
    assert json.loads((folder / "stats.json").read_text()) == stats
    hotel, woz2, totals = stats["corpora"]["hotel"], stats["corpora"]["woz2"], stats["totals"]
    assert hotel["dialogues"] == {"train": 2, "dev": 1}
    labels = ("turns", "labelled", "utterances", "domains", "original_acts", "acts", "slots", "actions", "act_alone")
    assert [hotel[label] for label in labels] == [8, 7, 6, 2, 5, 4, 3, 5, 1]
    assert [totals[label] for label in labels] == [9, 8, 7, 2, 5, 4, 3, 5, 1]
    assert hotel["paper"] is None
    assert woz2["paper"] == PAPER_TABLE["woz2"]._asdict()
    assert totals["paper"] is None
    assert stats["totals_of_paper"]["paper"]["utterances"] == "3.4M"
    assert stats["totals_of_paper"]["utterances"] == woz2["utterances"]
    assert stats["shares"]["domains"] == {"hotel": 5 / 8, "restaurant": 2 / 8}
    assert list(stats["shares"]["acts"].items())[:2] == [("inform", 3 / 8), ("request", 3 / 8)]


def test_an_action_is_frequent_above_a_hundred(data, tmp_path, monkeypatch):
    for name, count in (("rare", 100), ("frequent", 101)):
        many = [Dialogue(SECOND.turns, str(index)) for index in range(count)]
        register(monkeypatch, data, name, {"train": many})
    _, stats = made(data, tmp_path, "rare", "frequent")
    assert {name: corpus["frequent_actions"] for name, corpus in stats["corpora"].items()} == {"rare": 0, "frequent": 1}
    assert stats["totals"]["frequent_actions"] == stats["totals"]["actions"] == 1


def test_row_groups_hold_all_rows_in_order(data, tmp_path, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr("hf_dialemb.corpora.audit.unify._ROWS", 2)
    register(monkeypatch, data, "five", {"train": [Dialogue(SECOND.turns, str(index)) for index in range(5)]})
    folder, _ = made(data, tmp_path, "five")
    file = parquet.ParquetFile(folder / "train/five.parquet")
    assert [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)] == [2, 2, 1]
    assert file.read().column("id").to_pylist() == ["0", "1", "2", "3", "4"]


def test_the_card_says_what_the_figures_say(data, tmp_path):
    folder, stats = made(data, tmp_path, "hotel", "woz2", terms="research")
    card = (folder / "README.md").read_text()
    assert card == dataset_card(json.loads(json.dumps(stats)))
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["license"] == "other"
    assert [config["config_name"] for config in front["configs"]] == ["default", "hotel", "woz2"]
    assert front["configs"][1]["data_files"] == [
        {"split": "train", "path": "train/hotel.parquet"},
        {"split": "validation", "path": "dev/hotel.parquet"},
    ]
    assert "| hotel (a\\|b) | MIT | 2 | 1 | 0 | 8 | https://example.org/hotel |" in card
    assert "| hotel | 6 | 2 | 5 | 4 | 3 | 5 | 7 | 0 | 1 |  |  |  |  |  |  |  |" in card
    assert "| woz2 | 1 | 1 | 1 | 1 | 1 | 1 | 1 | 0 | 0 | WOZ2.0 | 4.4K | 1 | 2 |  | 10 |  |" in card
    assert "| inform | 37.50% |" in card
    assert "Train was compared with hotel/dev; dialogues that equal or nearly equal one of theirs" in card
    assert "are counted too): none." in card
    tables = [line.count(" | ") for line in card.splitlines() if line.startswith("| ")]
    assert set(tables) == {6, 16, 1}


def test_the_card_lists_no_rare_acts_and_domains(data, tmp_path):
    _, stats = made(data, tmp_path, "hotel")
    stats["shares"]["acts"] = {"inform": 0.9, "offer": 0.001, "ask name": 0.0009, "ask day": 0.0001}
    card = dataset_card(stats)
    assert "| inform | 90.00% |\n| offer | 0.10% |\n| and 2 more | each below 0.10% |\n\n| Domains" in card


def test_the_hub_reads_the_card(data, tmp_path):
    from huggingface_hub import DatasetCard

    folder, _ = made(data, tmp_path, "hotel")
    metadata = DatasetCard.load(folder / "README.md").data
    assert metadata.license == "other"
    assert metadata.size_categories == ["n<1K"]


def test_all_takes_what_is_at_hand_labelled_and_allowed(data, tmp_path):
    folder, stats = made(data, tmp_path, "all")
    assert list(stats["corpora"]) == ["hotel"]
    assert stats["left_out"] == {
        "absent": "its files are not at hand",
        "chat": "it has neither dialogue acts nor slots",
        "woz2": "its licence (CC BY-NC 4.0) counts as 'research'",
    }
    assert "- chat: it has neither dialogue acts nor slots\n" in (folder / "README.md").read_text()


def test_all_under_any_licence(data, tmp_path):
    _, stats = made(data, tmp_path, "all", terms="research")
    assert list(stats["corpora"]) == ["hotel", "woz2"]


def test_all_of_nothing_is_refused(data, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"There is nothing to unify \(absent: its files are not at hand; chat: "):
        unify(["all"], tmp_path / "empty", tmp_path / "unified", show_progress=False)


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (["woz2"], {}, r"Corpus woz2: its licence \(CC BY-NC 4.0\) counts as 'research', .* give --licence research"),
        (["woz2"], {"terms": "permissive"}, "expected at most 'permissive'"),
        (["hotel"], {"terms": "free"}, "Unknown terms 'free'"),
        (["hotel"], {"splits": ["trian"]}, "Unknown split 'trian'. Did you mean 'train'"),
        (["hotel"], {"splits": "test"}, "Corpus hotel: got no dialogue of test in the data folder; add its files"),
        (["hotell"], {}, "Did you mean 'hotel'"),
        (["absent"], {}, "Corpus absent: .* holds neither absent/"),
        ([], {}, "got no corpus to unify"),
    ],
)
def test_what_cannot_enter_is_refused(data, tmp_path, names, options, sentence):
    with pytest.raises(InputError, match=sentence):
        unify(names, data, tmp_path / "unified", show_progress=False, **options)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data"]


def test_failing_midway_leaves_nothing(data, tmp_path):
    with (data / "hotel/dev.jsonl").open("a") as file:
        file.write('{"messages": 3}\n')
    with pytest.raises(InputError, match=r"dev\.jsonl: field messages: got int"):
        made(data, tmp_path, "woz2", "hotel", terms="research")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data"]
    _, stats = made(data, tmp_path, "hotel", skip_invalid=True)
    assert stats["corpora"]["hotel"]["dialogues"] == {"train": 2, "dev": 1}


def test_a_folder_with_files_is_not_touched(data, tmp_path):
    folder = tmp_path / "unified"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and is no empty folder"):
        made(data, tmp_path, "hotel")
    with pytest.raises(InputError, match="exists and is no empty folder"):
        unify(["hotel"], data, folder / "mine.txt", show_progress=False)
    assert [entry.name for entry in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    made(data, tmp_path, "hotel")
    assert sorted(entry.name for entry in folder.iterdir()) == ["README.md", "dev", "json", "stats.json", "train"]


def test_one_split(data, tmp_path):
    folder, stats = made(data, tmp_path, "hotel", splits="dev")
    assert stats["totals"]["dialogues"] == {"dev": 1}
    assert sorted(path.name for path in folder.rglob("*.parquet")) == ["hotel.parquet"]


def test_what_the_evaluation_sets_hold_is_left_out_of_train_and_counted(data, tmp_path, monkeypatch):
    longer = Dialogue((*FIRST.turns[:3], Turn("user", "What does the larger of these rooms cost?")), "train/3")
    utterance = Dialogue((Turn("user", "what does the larger of these rooms cost"),), "test/1")
    register(monkeypatch, data, "flat", {"train": [FIRST, longer], "dev": [replace(FIRST, id="dev/9")]})
    register(monkeypatch, data, "questions", {"test": [utterance]}, kind="utterances")
    folder, stats = made(data, tmp_path, "flat", evaluation=["questions/test"])
    assert stats["corpora"]["flat"]["excluded"] == {"dialogues": 1, "turns": len(FIRST.turns) + 1}
    assert stats["totals"]["dialogues"] == {"train": 1, "dev": 1}
    assert stats["evaluation"] == ["flat/dev", "questions/test"]
    card = (folder / "README.md").read_text()
    assert "compared with flat/dev, questions/test" in card
    assert "- flat: 1 dialogues, 7 turns" in card
    assert list(json.loads((folder / "json/flat/data.json").read_text())["dialogs"]) == ["train/3", "dev/9"]


def test_train_alone_is_kept_apart_from_the_splits_that_are_not_written(data, tmp_path, monkeypatch):
    longer = replace(SECOND, id="train/7")
    register(monkeypatch, data, "flat", {"train": [FIRST, longer], "dev": [replace(FIRST, id="dev/9")]})
    _, stats = made(data, tmp_path, "flat", splits="train")
    assert stats["corpora"]["flat"]["excluded"] == {"dialogues": 1, "turns": len(FIRST.turns)}
    assert stats["totals"]["dialogues"] == {"train": 1}
    assert stats["evaluation"] == ["flat/dev"]


def test_nothing_may_be_left_of_train(data, tmp_path, monkeypatch):
    register(monkeypatch, data, "flat", {"train": [FIRST], "dev": [replace(FIRST, id="dev/9")]})
    folder, stats = made(data, tmp_path, "flat")
    assert stats["totals"]["dialogues"] == {"dev": 1}
    assert not (folder / "train").exists()


def test_a_part_of_another_corpus_enters_only_without_that(data, tmp_path, monkeypatch):
    register(monkeypatch, data, "extract", {"train": [SECOND]}, part_of="hotel")
    register(monkeypatch, data, "orphan", {"train": [SECOND]}, part_of="absent")
    _, stats = made(data, tmp_path, "all")
    assert stats["left_out"]["extract"] == "hotel holds its dialogues"
    assert "orphan" in stats["corpora"]


def test_of_two_corpora_that_share_splits_the_one_with_more_enters(data, tmp_path, monkeypatch):
    small, whole = {"train": [SECOND], "dev": [HELD_OUT]}, {"train": [FIRST, SECOND], "dev": [HELD_OUT]}
    register(monkeypatch, data, "small", small, part_of="whole")
    register(monkeypatch, data, "whole", {"train": None, "dev": [HELD_OUT]}, part_of="small", shared=("dev",))
    register(monkeypatch, data, "smallest", {"train": [SECOND]}, part_of="small")
    _, stats = made(data, tmp_path, "all")
    assert {"small", "whole", "smallest"} & set(stats["corpora"]) == {"small"}
    register(monkeypatch, data, "whole", whole, part_of="small", shared=("dev",))
    stats = unify(["all"], data, tmp_path / "more", show_progress=False)
    assert {"small", "whole", "smallest"} & set(stats["corpora"]) == {"whole"}
    assert stats["left_out"]["smallest"] == stats["left_out"]["small"] == "whole holds its dialogues"
    (data / "small/train.jsonl").unlink()  # what is left of it is the same as in the other
    stats = unify(["all"], data, tmp_path / "least", splits="dev", show_progress=False)
    assert {"small", "whole"} & set(stats["corpora"]) == {"whole"}


def test_dialogues_without_an_id_get_one(data, tmp_path, monkeypatch):
    register(monkeypatch, data, "nameless", {"train": [Dialogue(SECOND.turns), Dialogue(SECOND.turns)]})
    folder, _ = made(data, tmp_path, "nameless")
    assert list(json.loads((folder / "json/nameless/data.json").read_text())["dialogs"]) == ["train/0", "train/1"]


def test_a_corpus_without_labels_gives_valid_files(data, tmp_path):
    folder, stats = made(data, tmp_path, "chat")
    assert json.loads((folder / "json/chat/data.json").read_text())["dialogs"] == {}
    assert stats["totals"]["utterances"] == 0
    assert stats["shares"] == {"acts": {}, "domains": {}}
    assert len(list(read_jsonl(data / "chat/train.jsonl"))) == 1


@pytest.mark.slow
@pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")
def test_woz_has_the_labels_that_the_paper_counts(tmp_path):
    """The paper's ten slots hold "areas" beside "area", of which one turn speaks."""
    stats = unify(["woz2"], None, tmp_path / "unified", terms="research", show_progress=False)
    woz2 = stats["corpora"]["woz2"]
    assert sum(woz2["dialogues"].values()) == 1200
    assert [woz2[label] for label in ("domains", "original_acts", "slots")] == [1, 2, 9]
    assert woz2["utterances"] == 4390
    assert woz2["paper"] == {"name": "WOZ2.0", "utterances": "4.4K", "domains": 1, "original_acts": 2, "slots": 10}
