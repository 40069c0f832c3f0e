"""Facts about the published corpora themselves.

Needs them in the folder that HF_DIALEMB_DATA names.
"""

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from hf_dialemb.data import (
    CORPORA,
    MissingFilesError,
    find_source,
    get_corpus,
    load_examples,
    single_domain,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="no HF_DIALEMB_DATA"),
]


# By corpus: dialogues (or what else it holds) and utterances of every split, as the docs state
# them.
FIGURES = json.loads(
    (Path(__file__).parents[2] / "docs/results/corpora.json").read_text(encoding="utf-8")
)["figures"]


# How many acts, slots and intents there are, and how many sets of domains.
LABELS = {
    **{
        "muldogo": ((0, 64, 50), 6),
        "sim_m": ((14, 5, 1), 1),
        "kvret": ((2, 13, 0), 3),
        "woz2": ((2, 10, 0), 1),
    },
    **{"camrest676": ((2, 8, 0), 1), "gecor": ((2, 8, 0), 1), "dstc2": ((0, 0, 0), 1)},
    "star": ((165, 0, 24), 26),
}

ALTERNATE = ("sgd", "hdsa", "titan", "sim_m", "woz2", "camrest676", "gecor", "dstc2")


# By corpus of utterances: how many intents every split has.
INTENTS = {
    **{
        "banking77": [77, 77],
        "clinc150": [150 + 1] * 3,
        "snips": [7, 7],
        "dialog2flow_evaluation": [313],
    }
}


def check_what_is_known(name, *splits):
    dialogues = [dialogue for split in splits for dialogue in split]
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    domains = {dialogue.domains for dialogue in dialogues}
    match name:
        case "sgd":
            assert [len(single_domain(split)) for split in splits] == [5_403, 836, 1_331]
            assert all(turn.dialogue_acts for turn in turns)
            assert "NONE" not in {intent for turn in turns for intent in turn.intents}
            assert len({domain for dialogue in splits[1] for domain in dialogue.domains}) == 17
        case "multiwoz":
            assert [len(single_domain(split)) for split in splits] == [2_494, 204, 226]
            assert all(
                any(dialogue.turns[1].slots for dialogue in split) for split in splits
            )  # of the assistant
            assert len({dialogue.domains for dialogue in splits[0]}) == 7
        case "self_dialogue":
            assert Counter(len(dialogue.domains) for dialogue in dialogues)[2] == 216 + 198
            assert len({dialogue.domains for dialogue in single_domain(dialogues)}) == 21
        case "star":
            complete = [dialogue for dialogue in dialogues if dialogue.id.startswith("Complete/")]
            # Among the 4,017 complete dialogues of one named domain are two in which nothing is
            # said.
            assert (len(complete), len(single_domain(complete))) == (5_820 - 2, 4_017 - 2)
            assert len({dialogue.domains for dialogue in single_domain(complete)}) == 13
            assert sum(len(turn.dialogue_acts) for turn in turns) == 46_640 + 49
        case "doc2dial":
            assert domains == {("dmv",), ("ssa",), ("va",), ("studentaid",), ("cdccov19",)}
            assert Counter(turn.role for turn in turns) == {"user": 3_016, "assistant": 2_248}
        case "dailydialog":
            assert len({dialogue.domains for dialogue in splits[2]}) == 10
        case "clinc150":
            assert Counter(len(dialogue.domains) for dialogue in splits[1]) == {1: 3_000, 0: 100}
            assert len({dialogue.domains for dialogue in splits[1]}) == 10 + 1
        case "dialog2flow_evaluation":
            assert all(len(turn.dialogue_acts) == 1 for turn in turns)
            assert set(Counter(turn.intents for turn in turns).values()) == {15}


@pytest.mark.parametrize("name", [name for name in FIGURES if name in CORPORA])
def test_sizes_ids_roles_and_labels(name):
    corpus = get_corpus(name)
    try:
        find_source(corpus)
    except MissingFilesError as error:
        pytest.skip(str(error))
    splits = {split: load_examples(name, None, split) for split in FIGURES[name]["splits"]}
    found = {
        split: {
            "items": len(items),
            "utterances": sum(len(getattr(item, "turns", " ")) for item in items),
        }
        for split, items in splits.items()
    }
    assert found == FIGURES[name]["splits"]
    items = [item for each in splits.values() for item in each]
    identifiers = {item.id for item in items}
    assert len(identifiers) == len(items)
    assert "" not in identifiers
    if corpus.kind in ("dialogues", "utterances"):
        roles = {role for dialogue in items for role in dialogue.roles}
        assert roles == (
            {"user"} if name == "muldogo" or name in INTENTS else {"user", "assistant"}
        )
        check_what_is_known(name, *splits.values())
    if name in ALTERNATE or name.startswith("multiwoz"):
        assert all(dialogue.turns[0].role == "user" for dialogue in items)
        assert all(
            one.role != other.role for dialogue in items for one, other in pairwise(dialogue.turns)
        )
    if name in LABELS:
        turns = [turn for dialogue in items for turn in dialogue.turns]
        acts = {act for turn in turns for act in turn.dialogue_acts}
        slots = {slot for turn in turns for slot, _ in turn.slots}
        intents = {intent for turn in turns for intent in turn.intents}
        domains = {dialogue.domains for dialogue in items}
        assert ((len(acts), len(slots), len(intents)), len(domains)) == LABELS[name]
    if name in INTENTS:
        assert corpus.kind == "utterances"
        assert [
            len({each.turns[0].intents for each in split}) for split in splits.values()
        ] == INTENTS[name]
