"""Facts about published corpora that only the papers use."""

import os
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from hf_dialemb.data import load_dialogues, load_examples
from hf_dialemb.data.source import is_archive

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="no HF_DIALEMB_DATA"),
]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A data folder whose corpus multiwoz is not packed; much faster to read many times."""
    archive = Path(os.environ["HF_DIALEMB_DATA"], "multiwoz", "multiwoz.tar.xz")
    if not is_archive(archive):
        pytest.skip("the corpus is not packed")
    folder = tmp_path_factory.mktemp("data")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "multiwoz", filter="data")
    return folder


@pytest.fixture(scope="module")
def multiwoz(unpacked):
    return {
        split: load_dialogues("multiwoz", unpacked, split) for split in ("train", "dev", "test")
    }


def test_a_folder_of_multiwoz_equals_its_archive_and_has_extracts(multiwoz, unpacked):
    def wording(dialogue):  # what is said, as all releases have it: their tokenisation differs
        return tuple("".join(filter(str.isalnum, turn.content.lower())) for turn in dialogue.turns)

    def splits(name):
        return [load_dialogues(name, unpacked, split) for split in multiwoz]

    assert {split: load_dialogues("multiwoz", None, split) for split in multiwoz} == multiwoz
    for split in ("dev", "test"):
        assert load_dialogues("multiwoz21", unpacked, split) == multiwoz[split]
    held_out = [*multiwoz["dev"], *multiwoz["test"]]
    known, ids = (
        {wording(dialogue) for dialogue in held_out},
        {dialogue.id for dialogue in held_out},
    )
    restaurants = splits("multiwoz21_restaurant")
    assert [sum(wording(dialogue) in known for dialogue in found) for found in restaurants] == [
        85,
        18,
        8,
    ]
    assert {dialogue.domains for found in restaurants for dialogue in found} == {("restaurant",)}
    assert not {dialogue.id for dialogue in load_dialogues("multiwoz22_text", unpacked)} & ids
    assert [len({dialogue.id for dialogue in found} & ids) for found in splits("titan")] == [
        141,
        22,
        19,
    ]


def test_pairs_and_queries():
    def load(name, *splits):
        return [load_examples(name, None, split) for split in splits]

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
