"""Facts about the reader of DialogStudio, on hand-made records in its layout and on its published examples."""

import json
import os

import pytest

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.corpora.readers.dialogstudio_labels import LABELS
from hf_dialemb.models.errors import InputError


def said(user, system, user_info=None, system_info=None, **more):
    return {
        "turn id": 7,  # datasets begin to count at 0, 1 or 2: nothing may rest on it
        "user utterance": user,
        "system response": system,
        "original user side information": user_info or {},
        "original system side information": system_info or {},
        **more,
    }


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def one(dataset, folder, *log, about=None, key=None):
    """Reads a dialogue of a dataset."""
    record = {"original dialog info": about or {}, "log": list(log)}
    write(folder / "task" / dataset / "train.json", {key or f"{dataset}--train--1": record})
    return load_dialogues("dialogstudio", folder / "task" / dataset)[0]


def labels(dialogue):
    return [(turn.dialogue_acts, turn.slots) for turn in dialogue.turns]


def test_twenty_datasets_have_labels():
    assert len(LABELS) == 20


def test_side_information_may_be_an_object_or_its_json(tmp_path):
    user, system = {"turn_label": [["food", "thai"]]}, {"system_acts": ["area"]}
    as_objects = one("WOZ2_0", tmp_path, said("Thai?", "Where?", user, system))
    as_json = one("WOZ2_0", tmp_path, said("Thai?", "Where?", json.dumps(user), json.dumps(system)), about="{}")
    assert as_objects == as_json
    assert labels(as_objects) == [(("inform",), (("food", "thai"),)), (("request",), (("area", ""),))]


@pytest.mark.parametrize("text", ["", "{", "nul", "[1]", "3", "[" * 100_000])
def test_broken_side_information_is_one_sentence(tmp_path, text):
    with pytest.raises(InputError, match=r"record WOZ2_0--train--1: log\[1\]: field original user side information: "):
        one(
            "WOZ2_0",
            tmp_path,
            said("Hi", "Hi"),
            said("Thai?", "Where?", text) | {"original user side information": text},
        )


def test_a_dataset_beyond_the_twenty_is_read_without_labels(tmp_path):
    dialogue = one("STAR", tmp_path, said("Hi", "Hello", "{ not looked at", {"frames": 3}), said("", "Still there?"))
    assert [(turn.role, turn.content) for turn in dialogue.turns] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("assistant", "Still there?"),
    ]
    assert labels(dialogue) == [((), ())] * 3
    assert dialogue.domains == ()


def test_only_what_is_new_since_the_turn_before_is_told(tmp_path):
    def slu(**slots):
        return {"slu": [{"act": "inform", "slots": [[name, value]]} for name, value in slots.items()]}

    def state(**slots):
        values = {f"train-{name}": [value] for name, value in slots.items()}
        return {"frames": [{"service": "train", "state": {"requested_slots": [], "slot_values": values}}]}

    first, second, third = {"day": "monday"}, {"day": "monday", "area": "east"}, {"area": "east", "day": "friday"}
    expected = [(("inform",), (("day", "monday"),)), (("inform",), (("area", "east"),))]
    expected.append((("inform",), (("day", "friday"),)))
    forms = {
        "GECOR": lambda wanted: slu(**wanted),
        "HDSA-Dialog": lambda wanted: {"BS": {"train": [[*pair] for pair in wanted.items()]}},
        "MULTIWOZ2_2": lambda wanted: state(**wanted),
        "SimJointGEN": lambda wanted: {"dialogue_state": wanted},
    }
    for dataset, form in forms.items():
        dialogue = one(dataset, tmp_path, *(said("So.", "", form(wanted)) for wanted in (first, second, third, third)))
        assert labels(dialogue) == [*expected, ((), ())], dataset


def test_what_a_user_asks_for_has_no_value(tmp_path):
    dialogue = one("GECOR", tmp_path, said("Phone?", "", {"slu": [{"act": "request", "slots": [["slot", "phone"]]}]}))
    assert labels(dialogue) == [(("request",), (("phone", ""),))]
    frame = {"service": "taxi", "state": {"requested_slots": ["taxi-phone"], "slot_values": {}}}
    dialogue = one("MULTIWOZ2_2", tmp_path, said("Phone?", "", {"frames": [frame]}, intent="find_taxi , NONE"))
    assert labels(dialogue) == [(("request",), (("phone", ""),))]
    assert dialogue.turns[0].intents == ("find_taxi", "NONE")
    dialogue = one("DSTC2-Clean", tmp_path, said("Phone?", "", {"turn_label": [["request", "phone"]]}))
    assert labels(dialogue) == [(("request",), (("phone", ""),))]


@pytest.mark.parametrize("dataset", ["MultiWOZ_2.1", "Disambiguation"])
def test_acts_without_a_slot_are_kept(tmp_path, dataset):
    acts = {
        "Hotel-Inform": [["Area", "east"], ["none", "none"]],
        "Booking-Inform": [["none", "none"]],
        "general-bye": [],
    }
    dialogue = one(dataset, tmp_path, said("Bye", "", {"dialog_act": acts}, intent="hotel-inform, general-bye"))
    assert labels(dialogue) == [(("inform", "bye"), (("area", "east"),))]
    assert dialogue.domains == ("hotel",)
    assert dialogue.turns[0].intents == ("hotel-inform", "general-bye")


def test_what_was_said_replaces_a_text_that_was_changed(tmp_path):
    dialogue = one(
        "HDSA-Dialog", tmp_path, said("a [type]", "[count]", {"user_orig": "a hotel"}, {"sys_orig": "one", "act": {}})
    )
    assert [turn.content for turn in dialogue.turns] == ["a hotel", "one"]
    chatty = said("Hi", "Hi! I love it!", {"frames": []}, {"frames": [], "original_utt": "Hi!"})
    assert [turn.content for turn in one("KETOD", tmp_path, chatty).turns] == ["Hi", "Hi!"]


def test_system_acts_of_hdsa(tmp_path):
    acts = {"hotel-inform-area": "north", "hotel-inform-parking": "none", "booking-request-day": "?"}
    acts["general-reqmore-none"] = "none"
    dialogue = one("HDSA-Dialog", tmp_path, said("", "x", {}, {"sys_orig": "Which day?", "act": acts}))
    assert labels(dialogue) == [(("inform", "request", "reqmore"), (("area", "north"), ("parking", ""), ("day", "")))]
    assert dialogue.domains == ("hotel",)


def test_the_task_of_frames_is_no_act(tmp_path):
    answer = {"da_label": "sorry", "slots": {"dst_city": "Oslo", "flex": False}}
    dialogue = one("FRAMES", tmp_path, said("Oslo", "No.", {"da_label": "inform"}, answer, dst="book dst_city Oslo"))
    assert labels(dialogue) == [(("inform",), (("dst_city", "Oslo"), ("flex", "False"))), (("sorry",), ())]


def test_stretches_of_users_in_taskmaster1_stand_under_speaker(tmp_path):
    annotated = [{"text": "oat", "annotations": [{"name": "coffee_ordering.preference.accept"}]}]
    dialogue = one(
        "Taskmaster1",
        tmp_path,
        said("oat", "ok", {"speaker": annotated}),
        about={"instruction_id": "coffee-ordering-2"},
    )
    assert labels(dialogue) == [(("inform",), (("preference", "oat"),)), ((), ())]
    assert dialogue.domains == ("coffee",)


def test_an_action_on_an_intent_is_an_intent_and_no_act(tmp_path):
    def action(act, slot, *values):
        return {"act": act, "slot": slot, "values": list(values)}

    acts = [
        action("INFORM_INTENT", "intent", "FindBus"),
        action("INFORM", "from_city", "Oslo"),
        action("INFORM_COUNT", ""),
    ]
    dialogue = one("SGD", tmp_path, said("From Oslo", "", {"frames": [{"service": "Buses_1", "actions": acts}]}))
    assert labels(dialogue) == [(("inform", "inform_count"), (("from_city", "Oslo"),))]
    assert dialogue.turns[0].intents == ("FindBus",)
    assert dialogue.domains == ("buses",)


def test_tags_and_intents_of_muldogo(tmp_path):
    tagged = {"slot-labels": ["O name name O", None], "intent": ["greeting<div>book", None]}
    dialogue = one("MulDoGO", tmp_path, said("hi", "hello", tagged), about={"domain": "airline"})
    assert labels(dialogue) == [((), (("name", ""),)), ((), ())]
    assert dialogue.turns[0].intents == ("greeting", "book")


def test_the_examples_stand_in_for_missing_files(tmp_path):
    root = tmp_path / "dialogstudio"
    for dataset in ("KVRET", "STAR"):
        record = {"original dialog info": {}, "log": [said("Where?", "Here.")]}
        write(root / "task" / dataset / "converted_examples.json", {f"{dataset}--train--1": record})
    write(root / "task" / "KVRET" / "train" / "dialogues_1.json", {"KVRET--train--2": record})
    assert [dialogue.id for dialogue in load_dialogues("dialogstudio", root)] == ["KVRET--train--2", "STAR--train--1"]
    assert [dialogue.id for dialogue in load_dialogues("dialogstudio", root / "task" / "STAR")] == ["STAR--train--1"]


def test_what_is_no_dialogue_is_left_out(tmp_path):
    single = {"original dialog info": {}, "log": said("play rain", "PlayMusic")}
    empty = {"original dialog info": {}, "log": []}
    spoken = {"original dialog info": {}, "log": [said("Hi", "Hi")]}
    write(tmp_path / "val.json", {"SNIPS--val--1": single, "QMSum--val--1": empty, "STAR--val--1": spoken})
    assert [dialogue.id for dialogue in load_dialogues("dialogstudio", tmp_path, "dev")] == ["STAR--val--1"]


@pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")
def test_the_published_examples():
    dialogues = load_dialogues("dialogstudio")
    # 46 of the 1,844 sides of exchanges have no text.
    assert (len(dialogues), sum(len(dialogue.turns) for dialogue in dialogues)) == (130, 1_844 - 46)
    assert len({dialogue.id for dialogue in dialogues}) == 130
    assert {turn.role for dialogue in dialogues for turn in dialogue.turns} == {"user", "assistant"}
    assert len({dialogue.id.partition("--")[0] for dialogue in dialogues}) == 26
    with pytest.raises(InputError, match="split dev of corpus dialogstudio gave nothing"):
        load_dialogues("dialogstudio", None, "dev")
