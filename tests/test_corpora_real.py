"""Facts about the published corpora themselves; needs them in the folder that HF_DIALEMB_DATA names."""

import os
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from hf_dialemb.corpora import load_dialogues, single_domain
from hf_dialemb.corpora.source.files import is_archive

pytestmark = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")

SPLITS = ("train", "dev", "test")


def load(corpus):
    return {split: load_dialogues(corpus, None, split) for split in SPLITS}


@pytest.fixture(scope="module")
def sgd():
    return load("sgd")


@pytest.fixture(scope="module")
def multiwoz():
    return load("multiwoz")


@pytest.fixture(scope="module")
def self_dialogue():
    return load("self_dialogue")


def counts(splits):
    return [(len(dialogues), sum(len(dialogue.turns) for dialogue in dialogues)) for dialogues in splits.values()]


def singles(splits):
    return [len(single_domain(dialogues)) for dialogues in splits.values()]


def alternate(dialogues):
    return all(
        dialogue.turns[0].role == "user" and all(one.role != other.role for one, other in pairwise(dialogue.turns))
        for dialogue in dialogues
    )


def all_ids_differ(splits):
    identifiers = [dialogue.id for dialogues in splits.values() for dialogue in dialogues]
    return all(identifiers) and len(set(identifiers)) == len(identifiers)


def test_sgd(sgd):
    # Two system turns of the test split have no text.
    assert counts(sgd) == [(14_734, 285_590), (2_482, 48_726), (3_817, 73_118 - 2)]
    assert singles(sgd) == [5_403, 836, 1_331]
    assert all_ids_differ(sgd)
    for dialogues in sgd.values():
        assert alternate(dialogues)
        assert all(turn.dialogue_acts for dialogue in dialogues for turn in dialogue.turns)
    intents = [intent for dialogue in sgd["dev"] for turn in dialogue.turns for intent in turn.intents]
    assert intents
    assert "NONE" not in intents


def test_multiwoz(multiwoz):
    assert counts(multiwoz) == [(2_494, 21_964), (999, 14_730), (1_000, 14_744)]
    assert singles(multiwoz) == [2_494, 204, 226]
    assert all_ids_differ(multiwoz)
    for dialogues in multiwoz.values():
        assert alternate(dialogues)
        assert any(turn.slots for dialogue in dialogues for turn in dialogue.turns if turn.role == "assistant")
    assert len({dialogue.domains for dialogue in multiwoz["train"]}) == 7
    assert not any("how may I help you?" in dialogue.turns[0].content for dialogue in multiwoz["train"])


def test_self_dialogue(self_dialogue):
    # The published 24,165 include one dialogue without a sentence; the rest gives the sizes in the dial2vec paper.
    assert counts(self_dialogue) == [(19_331, 298_258), (2_416, 37_377), (2_417, 37_083)]
    assert all_ids_differ(self_dialogue)
    everything = [dialogue for dialogues in self_dialogue.values() for dialogue in dialogues]
    assert Counter(len(dialogue.domains) for dialogue in everything)[2] == 216 + 198
    assert len({dialogue.domains for dialogue in single_domain(everything)}) == 21
    assert not any(turn.content.strip() == "{}" for dialogue in everything for turn in dialogue.turns)


def test_doc2dial():
    dialogues = load_dialogues("doc2dial", None, "test")
    assert counts({"test": dialogues}) == [(787, 5_264)]
    assert all_ids_differ({"test": dialogues})
    assert {dialogue.domains for dialogue in dialogues} == {("dmv",), ("ssa",), ("va",), ("studentaid",), ("cdccov19",)}
    assert Counter(turn.role for dialogue in dialogues for turn in dialogue.turns) == {
        "user": 3_016,
        "assistant": 2_248,
    }


def test_folder_equals_archive(tmp_path, multiwoz):
    archive = Path(os.environ["HF_DIALEMB_DATA"]) / "multiwoz" / "multiwoz.tar.xz"
    if not is_archive(archive):
        pytest.skip("the corpus is not packed")
    with tarfile.open(archive) as packed:
        for member in packed:
            if member.isreg():
                path = tmp_path / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(packed.extractfile(member).read())
    assert {split: load_dialogues("multiwoz", tmp_path, split) for split in SPLITS} == multiwoz
