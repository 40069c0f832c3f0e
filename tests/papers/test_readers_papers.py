"""Which files make the splits of the papers' corpora, and oddities of their formats."""

import pytest
from made_up_corpora import read, write

from hf_dialemb.data import load_dialogues
from hf_dialemb.data.raw_records import hashed_split
from hf_dialemb.dialogue import Turn
from hf_dialemb.errors import InputError

SPLITS = ("train", "dev", "test")


def ids(folder, corpus, files, *splits):
    found = [[item.id for item in read(folder, corpus, files, split)] for split in splits or SPLITS]
    return found if len(found) > 1 else found[0]


def test_taskmaster1_is_split_by_lists_a_hash_and_a_sample(tmp_path):
    def conversation(name):
        said = [{"speaker": "USER", "text": "Hi"}]
        return {"conversation_id": name, "instruction_id": "auto-repair-appt-1", "utterances": said}

    listed, others = [f"dlg-{n}" for n in range(9)], [f"dlg-other-{n}" for n in range(40)]
    lists = {
        f"TM-1-2019/train-dev-test/{split}.csv": "".join(f"{each},\n" for each in listed[number::3])
        for number, split in enumerate(SPLITS)
    }
    sample = {"TM-1-2019/sample.json": conversation("dlg-1")}
    assert ids(tmp_path, "taskmaster1", {**lists, **sample}, "dev") == ["dlg-1"]
    names = {"TM-1-2019/self-dialogs.json": listed, "TM-1-2019/woz-dialogs.json": others}
    files = {file: [conversation(each) for each in found] for file, found in names.items()}
    for number, split in enumerate(SPLITS):
        hashed = [each for each in others if hashed_split(each) == split]
        assert ids(tmp_path, "taskmaster1", files, split) == [*listed[number::3], *hashed]


def test_a_sample_of_abcd_and_one_dataset_of_dialogstudio_are_read(tmp_path):
    row = {"speaker": "agent", "text": "hi", "targets": []}
    record = {
        "convo_id": 2,
        "scenario": {"flow": "account"},
        "original": [["agent", "Hi"]],
        "delexed": [row],
    }
    assert ids(tmp_path, "abcd", {"abcd_sample.json": [record]}, "train") == ["2"]
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
