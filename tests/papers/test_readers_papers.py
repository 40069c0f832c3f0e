"""Which files make the splits of the papers' corpora, and oddities of their formats."""

import pytest
from made_up_corpora import read, write

from hf_dialemb.data import load_dialogues
from hf_dialemb.dialogue import Turn
from hf_dialemb.errors import InputError

SPLITS = ("train", "dev", "test")


def ids(folder, corpus, files, *splits):
    found = [[item.id for item in read(folder, corpus, files, split)] for split in splits or SPLITS]
    return found if len(found) > 1 else found[0]


def test_one_dataset_of_dialogstudio_is_read(tmp_path):
    user, system = "original user side information", "original system side information"
    said = {
        "user utterance": "Hi",
        "system response": "Hello",
        user: "{ not looked at",
        system: {"frames": 3},
    }
    silent = {"user utterance": "", "system response": "Still?", user: {}, system: {}}
    record = {"STAR--train--1": {"original dialog info": {}, "log": [said, silent]}}
    (found,) = load_dialogues("dialogstudio", write(tmp_path / "STAR", {"train.json": record}))
    assert found.turns == (
        Turn("user", "Hi"),
        Turn("assistant", "Hello"),
        Turn("assistant", "Still?"),
    )
    assert found.domains == ()


@pytest.mark.parametrize("ending", ["txt", "json"])
def test_lists_of_ids_make_the_splits_of_multiwoz_and_so_do_files(tmp_path, ending):
    corpus = "multiwoz21"
    goal = {"hotel": {"info": {}}, "bus": {}, "message": "go", "profile": {"name": "A"}}
    record = {"goal": goal, "log": [{"text": "hi", "metadata": {}, "dialog_act": {}}]}
    files = {
        "any/data.json": dict.fromkeys(("SNG1.json", "sng2.json", "SNG3", "MUL4.JSON"), record)
    }
    # those of another corpus
    files |= {f"titan_903/{name}ListFile.json": "SNG1" for name in ("val", "test")}
    files[f"any/valListFile.{ending}"] = "SNG2.json\n"
    with pytest.raises(InputError, match=r"data\.json needs testListFile\.\* too"):
        read(tmp_path, corpus, files, "train")
    files[f"any/testListFile.{ending}"] = "SNG3.json\r\n\r\n"
    assert ids(tmp_path, corpus, files) == [["SNG1", "MUL4"], ["SNG2"], ["SNG3"]]
    assert {dialogue.domains for dialogue in read(tmp_path, corpus, files)} == {("hotel",)}
    files = {f"{name}.json": {name: record} for name in ("train", "val", "test")}
    assert ids(tmp_path / "files", "multiwoz21", files) == [["TRAIN"], ["VAL"], ["TEST"]]
