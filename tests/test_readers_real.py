"""Facts about the published corpora themselves; needs them in the folder that HF_DIALEMB_DATA names."""

import os
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from hf_dialemb.corpora import get_corpus, load_dialogues, load_examples, single_domain
from hf_dialemb.corpora.source.files import is_archive
from hf_dialemb.models.errors import InputError

pytestmark = [pytest.mark.slow, pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="no HF_DIALEMB_DATA")]

# By corpus: dialogues and turns of every split that is at hand.
SIZES = {
    # Two system turns of the test split have no text.
    "sgd": {"train": (14_734, 285_590), "dev": (2_482, 48_726), "test": (3_817, 73_118 - 2)},
    "multiwoz": {"train": (2_494, 21_964), "dev": (999, 14_730), "test": (1_000, 14_744)},
    # Without the greeting of each of the 2,924 dialogues with 28,912 turns.
    "multiwoz20_single_domain": {"train": (2_494, 21_964), "dev": (204, 1_924), "test": (226, 2_100)},
    "multiwoz21": {"dev": (999, 14_730), "test": (1_000, 14_744)},
    # 442 dialogues with 4,048 turns; the split is our own.
    "multiwoz21_restaurant": {"train": (338, 3_126), "dev": (58, 522), "test": (46, 400)},
    "multiwoz22_text": {"train": (512, 7_060)},
    # 903 dialogues with 14,188 turns.
    "titan": {"train": (723, 11_304), "dev": (90, 1_432), "test": (90, 1_452)},
    "hdsa": {"dev": (1_000, 14_748), "test": (1_000, 14_744)},
    # The published 24,165 include one dialogue without a sentence; the rest gives the sizes in the dial2vec paper.
    "self_dialogue": {"train": (19_331, 298_258), "dev": (2_416, 37_377), "test": (2_417, 37_083)},
    "doc2dial": {"test": (787, 5_264)},
    # 60, 7 and 10 turns have no text.
    "muldogo": {"train": (9_900, 81_676 - 60), "dev": (1_413, 11_585 - 7), "test": (2_834, 23_336 - 10)},
    "sim_m": {"train": (384, 3_562), "dev": (120, 1_134), "test": (264, 2_464)},
    # 7, 1 and 2 turns have no text; one dialogue has no turn.
    "kvret": {"train": (2_425 - 1, 12_732 - 7), "dev": (302, 1_567 - 1), "test": (304, 1_629 - 2)},
    "woz2": {"train": (600, 4_472), "dev": (200, 1_460), "test": (400, 2_892)},
    # 676 dialogues with 5,488 turns, 3:1:1 by position.
    "camrest676": {"train": (406, 3_342), "dev": (135, 1_076), "test": (135, 1_070)},
    "gecor": {"train": (406, 3_342), "dev": (135, 1_076), "test": (135, 1_070)},
    "dstc2": {"train": (1_612, 21_742), "dev": (506, 7_362), "test": (1_117, 18_663)},
    # 28,808, 8,318 and 22,474 halves of exchanges; 5,732, 1,961 and 3,674 are silences, blanks and queries.
    "dstc2_babi": {"train": (1_618, 23_076), "dev": (500, 6_357), "test": (1_117, 18_800)},
    # Of 6,652 dialogues with 108,137 turns, 447 dialogues have no turn. The split is our own.
    "star": {"train": (4_961, 86_224), "dev": (625, 11_040), "test": (619, 10_873)},
    "dailydialog": {"train": (11_118, 87_170), "dev": (1_000, 8_069), "test": (1_000, 7_740)},
    # Published are 11,385 messages of train: actions ("/me waves") were not counted, and three of them are there.
    "ubuntu_irc": {"train": (1_631, 11_385 + 3), "dev": (69, 484), "test": (122, 1_103)},
    "ecommerce_dialogues": {"train": (1_000, 10_082)},
    # Ten replies of train and one of dev are empty.
    "jddc2018": {"train": (10_270, 2 * 10_270 - 10), "dev": (1_141, 2 * 1_141 - 1)},
    "taskmaster1": {"dev": (1, 20)},  # where the official lists put the sample
    # 710 dialogues of 1,883 and 786 turns.
    "taskmaster4": {"train": (568, 2_126), "dev": (68, 269), "test": (74, 1_883 + 786 - 2_126 - 269)},
    "abcd": {"train": (3, 72 - 9)},  # nine rows are clicks
    # 46 of the 1,844 sides of exchanges have no text.
    "dialogstudio": {"train": (130, 1_844 - 46)},
}
# How many acts, slots and intents there are, and how many sets of domains.
LABELS = {
    **{"muldogo": ((0, 64, 50), 6), "sim_m": ((14, 5, 1), 1), "kvret": ((2, 13, 0), 3), "woz2": ((2, 10, 0), 1)},
    **{"camrest676": ((2, 8, 0), 1), "gecor": ((2, 8, 0), 1), "dstc2": ((0, 0, 0), 1), "dstc2_babi": ((0, 0, 0), 1)},
    "star": ((165, 0, 24), 26),
}
ALTERNATE = ("sgd", "hdsa", "titan", "sim_m", "woz2", "camrest676", "gecor", "dstc2")
# By corpus: utterances and their labels in every split.
UTTERANCES = {
    "banking77": [(10_003, 77), (3_080, 77)],
    "clinc150": [(15_000 + 100, 150 + 1), (3_000 + 100, 150 + 1), (4_500 + 1_000, 150 + 1)],
    "snips": [(13_784, 7), (700, 7)],
    "few_shot_banking77": [(8_622, 77), (1_540, 77), (3_080, 77)],
    "few_shot_clinc150": [(15_000, 150), (3_000, 150), (4_500, 150)],
    "few_shot_snips": [(13_084, 7), (700, 7), (700, 7)],
    "few_shot_atis": [(4_478, 21), (500, 16), (893, 20)],
    "dialog2flow_evaluation": [(4_695, 313)],
}


def check_what_is_known(name, *splits):
    dialogues = [dialogue for split in splits for dialogue in split]
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    domains = {dialogue.domains for dialogue in dialogues}
    match name:
        case "sgd":
            assert [len(single_domain(split)) for split in splits] == [5_403, 836, 1_331]
            assert all(turn.dialogue_acts for turn in turns)
            intents = {intent for dialogue in splits[1] for turn in dialogue.turns for intent in turn.intents}
            assert intents
            assert "NONE" not in intents
        case "multiwoz":
            assert [len(single_domain(split)) for split in splits] == [2_494, 204, 226]
            assert all(any(dialogue.turns[1].slots for dialogue in split) for split in splits)  # of the assistant
            assert len({dialogue.domains for dialogue in splits[0]}) == 7
            assert not any("how may I help you?" in dialogue.turns[0].content for dialogue in splits[0])
        case "self_dialogue":
            assert Counter(len(dialogue.domains) for dialogue in dialogues)[2] == 216 + 198
            assert len({dialogue.domains for dialogue in single_domain(dialogues)}) == 21
            assert not any(turn.content.strip() == "{}" for turn in turns)
        case "star":
            complete = [dialogue for dialogue in dialogues if dialogue.id.startswith("Complete/")]
            # Among the 4,017 complete dialogues of one named domain are two in which nothing is said.
            assert (len(complete), len(single_domain(complete))) == (5_820 - 2, 4_017 - 2)
            assert len({dialogue.domains for dialogue in single_domain(complete)}) == 13
            assert sum(len(turn.dialogue_acts) for turn in turns) == 46_640 + 49
        case "doc2dial":
            assert domains == {("dmv",), ("ssa",), ("va",), ("studentaid",), ("cdccov19",)}
            assert Counter(turn.role for turn in turns) == {"user": 3_016, "assistant": 2_248}
        case "dailydialog":
            acts = Counter(act for dialogue in splits[2] for turn in dialogue.turns for act in turn.dialogue_acts)
            assert acts == {"directive": 1_278, "question": 2_210, "commissive": 718, "inform": 3_534}
            assert len({dialogue.domains for dialogue in splits[2]}) == 10
        case "dialogstudio":
            assert len({dialogue.id.partition("--")[0] for dialogue in dialogues}) == 26
        case "clinc150":
            assert Counter(len(dialogue.domains) for dialogue in splits[1]) == {1: 3_000, 0: 100}
            assert len({dialogue.domains for dialogue in splits[1]}) == 10 + 1
        case "dialog2flow_evaluation":
            assert all(len(turn.dialogue_acts) == 1 for turn in turns)
            assert set(Counter(turn.intents for turn in turns).values()) == {15}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_ids_roles_and_labels(name):
    splits = {split: load_dialogues(name, None, split) for split in SIZES[name]}
    sizes = {split: (len(found), sum(len(dialogue.turns) for dialogue in found)) for split, found in splits.items()}
    assert sizes == SIZES[name]
    for split in set(get_corpus(name).splits) - set(splits) - {"train"}:
        with pytest.raises(InputError, match=f"split {split} of corpus {name} gave nothing"):
            load_dialogues(name, None, split)
    dialogues = [dialogue for found in splits.values() for dialogue in found]
    identifiers = {dialogue.id for dialogue in dialogues}
    assert len(identifiers) == len(dialogues)
    assert "" not in identifiers
    roles = {role for dialogue in dialogues for role in dialogue.roles}
    assert roles == ({"user"} if name == "muldogo" else {"user", "assistant"})
    if name in ALTERNATE or name.startswith("multiwoz"):
        assert all(dialogue.turns[0].role == "user" for dialogue in dialogues)
        assert all(one.role != other.role for dialogue in dialogues for one, other in pairwise(dialogue.turns))
    if name in LABELS:
        turns = [turn for dialogue in dialogues for turn in dialogue.turns]
        acts = {act for turn in turns for act in turn.dialogue_acts}
        slots = {slot for turn in turns for slot, _ in turn.slots}
        intents = {intent for turn in turns for intent in turn.intents}
        domains = {dialogue.domains for dialogue in dialogues}
        assert ((len(acts), len(slots), len(intents)), len(domains)) == LABELS[name]
    check_what_is_known(name, *splits.values())


@pytest.mark.parametrize("name", UTTERANCES)
def test_sizes_and_labels_of_utterances(name):
    splits = [load_dialogues(name, None, split) for split in get_corpus(name).splits]
    turns = [[turn for dialogue in split for turn in dialogue.turns] for split in splits]
    assert [(len(split), len({turn.intents for turn in split})) for split in turns] == UTTERANCES[name]
    assert [len(split) for split in splits] == [len(split) for split in turns]
    assert len({dialogue.id for split in splits for dialogue in split}) == sum(map(len, splits))
    assert {turn.role for split in turns for turn in split} == {"user"}
    check_what_is_known(name, *splits)
    if name in ("snips", "few_shot_snips", "few_shot_atis"):
        assert sum(len(turn.slots) for turn in turns[-1]) > len(turns[-1])
        for turn in turns[-1]:
            assert all(value and value in " ".join(turn.content.split()) for _, value in turn.slots)


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
    return {split: load_dialogues("multiwoz", unpacked, split) for split in ("train", "dev", "test")}


def test_a_folder_of_multiwoz_equals_its_archive_and_has_extracts(multiwoz, unpacked):
    def wording(dialogue):  # what is said, as all releases have it: their tokenisation differs
        return tuple("".join(filter(str.isalnum, turn.content.lower())) for turn in dialogue.turns)

    def splits(name):
        return [load_dialogues(name, unpacked, split) for split in multiwoz]

    assert {split: load_dialogues("multiwoz", None, split) for split in multiwoz} == multiwoz
    assert load_dialogues("multiwoz20_single_domain", unpacked) == multiwoz["train"]
    for split in ("dev", "test"):
        assert load_dialogues("multiwoz21", unpacked, split) == multiwoz[split]
    held_out = [*multiwoz["dev"], *multiwoz["test"]]
    known, ids = {wording(dialogue) for dialogue in held_out}, {dialogue.id for dialogue in held_out}
    restaurants = splits("multiwoz21_restaurant")
    assert [sum(wording(dialogue) in known for dialogue in found) for found in restaurants] == [85, 18, 8]
    assert {dialogue.domains for found in restaurants for dialogue in found} == {("restaurant",)}
    assert not {dialogue.id for dialogue in load_dialogues("multiwoz22_text", unpacked)} & ids
    assert [len({dialogue.id for dialogue in found} & ids) for found in splits("titan")] == [141, 22, 19]


def test_vectors_of_hdsa_say_what_version_2_1_says(multiwoz):
    functions = {"inform", "request", "recommend", "book", "select", "sorry"}
    other = {"nooffer": "sorry", "nobook": "sorry", "offerbook": "book", "offerbooked": "book"}
    same = []
    for split in ("dev", "test"):
        table = {dialogue.id: dialogue for dialogue in load_dialogues("hdsa", None, split)}
        for dialogue in multiwoz[split]:
            for theirs, ours in zip(dialogue.turns[1::2], table[dialogue.id].turns[1::2], strict=True):
                acts = {other.get(act, act) for act in theirs.dialogue_acts}
                same.append(acts & functions == set(ours.dialogue_acts))
    assert sum(same) / len(same) > 0.999


def test_responses_pairs_and_queries_to_choose_from():
    def load(name, *splits):
        items = [load_examples(name, None, split) for split in splits or get_corpus(name).splits]
        identifiers = [item.id for split in items for item in split]
        assert len(set(identifiers)) == len(identifiers)
        return items

    train, dev, test = load("ecommerce")
    # Published are lines, 154, 154 and 1,000: one for each answer.
    assert [len(split) for split in (train, dev, test)] == [77, 77, 100]
    assert [sum(len(item.responses) for item in split) for split in (train, dev, test)] == [154, 154, 1_000]
    assert all(len(item.correct) == 1 for split in (train, dev, test) for item in split)
    assert {len(item.responses) for item in test} == {10}
    assert [item.context for item in train] == [item.context for item in dev]
    pairs = [*load("ecommerce_sts", "dev"), *load("jddc_sts")]
    scores = [Counter(pair.score for pair in split) for split in pairs]
    published = [115, 50, 74, 79, 182], [210, 99, 125, 176, 390], [410, 195, 277, 302, 816]
    assert scores == [dict(zip(range(1, 6), counts, strict=True)) for counts in published]
    assert list(map(len, pairs)) == [500, 1_000, 2_000]
    (ecommerce,) = load("ecommerce_retrieval", "dev")
    assert len(ecommerce) == 2_373
    assert {(len(query.relevant), len(query.other), query.label) for query in ecommerce} == {(30, 40, "")}
    topics = [(len(split), len({query.label for query in split})) for split in load("jddc_retrieval")]
    assert topics == [(2_094, 51), (6_970, 123)]
