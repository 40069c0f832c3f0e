"""Which files make the splits of the papers' corpora, oddities of their formats, and real files."""

import os
from collections import Counter

import pytest
from made_up_corpora import read

from hf_dialemb.data import load_examples
from hf_dialemb.errors import InputError

SPLITS = ("train", "dev", "test")


def ids(folder, corpus, files, *splits):
    found = [[item.id for item in read(folder, corpus, files, split)] for split in splits or SPLITS]
    return found if len(found) > 1 else found[0]


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


def real(test):
    """Marks a fact about the published files, which need not be at hand."""
    missing = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="no HF_DIALEMB_DATA")
    return pytest.mark.slow(missing(test))


def load(name, *splits):
    return [load_examples(name, None, split) for split in splits]


@real
def test_other_releases_of_multiwoz_have_its_dialogues_and_ids():
    def wording(dialogue):  # what is said, as all releases have it: their tokenisation differs
        return tuple("".join(filter(str.isalnum, turn.content.lower())) for turn in dialogue.turns)

    held_out = load("multiwoz", "dev", "test")
    assert load("multiwoz21", "dev", "test") == held_out
    known = {wording(dialogue) for split in held_out for dialogue in split}
    ids = {dialogue.id for split in held_out for dialogue in split}
    restaurants = load("multiwoz21_restaurant", *SPLITS)
    counts = [sum(wording(dialogue) in known for dialogue in found) for found in restaurants]
    assert counts == [85, 18, 8]
    assert not {dialogue.id for dialogue in load("multiwoz22_text", "train")[0]} & ids
    counts = [len({dialogue.id for dialogue in found} & ids) for found in load("titan", *SPLITS)]
    assert counts == [141, 22, 19]


@real
def test_pairs_and_queries():
    scores = [
        Counter(pair.score for pair in split)
        for split in (*load("ecommerce_sts", "dev"), *load("jddc_sts", "dev", "test"))
    ]
    published = [115, 50, 74, 79, 182], [210, 99, 125, 176, 390], [410, 195, 277, 302, 816]
    assert scores == [dict(zip(range(1, 6), counts, strict=True)) for counts in published]
    (ecommerce,) = load("ecommerce_retrieval", "dev")
    assert {(len(query.relevant), len(query.other), query.label) for query in ecommerce} == {
        (30, 40, "")
    }
    assert [
        len({query.label for query in split}) for split in load("jddc_retrieval", "dev", "test")
    ] == [51, 123]
