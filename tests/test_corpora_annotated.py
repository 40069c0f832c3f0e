"""Facts about the readers of SGD and MultiWOZ, on hand-made records in their own formats."""

import copy
import json
import logging

import pytest

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def changed(record, path, value):
    """A copy of the record with the value at a path, such as ``("turns", 0)``, replaced or, for ..., removed."""
    record = copy.deepcopy(record)
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return record


def act(name, slot="", *values):
    return {"act": name, "slot": slot, "values": list(values), "canonical_values": list(values)}


SGD = {
    "dialogue_id": "1_00000",
    "services": ["Hotels_1", "Taxi_1"],
    "turns": [
        {
            "speaker": "USER",
            "utterance": "A room in Oslo, and what is it?",
            "frames": [
                {
                    "service": "Hotels_1",
                    "slots": [],
                    "actions": [
                        act("INFORM", "city", "Oslo", "oslo"),
                        act("INFORM", "stars", "4"),
                        act("REQUEST", "price"),
                    ],
                    "state": {"active_intent": "BookHotel", "requested_slots": [], "slot_values": {}},
                },
                {"service": "Taxi_1", "slots": [], "actions": [], "state": {"active_intent": "NONE"}},
            ],
        },
        {
            "speaker": "SYSTEM",
            "utterance": "Bye",
            "frames": [{"service": "Hotels_1", "slots": [], "actions": [act("GOODBYE")]}],
        },
    ],
}
SGD_READ = Dialogue(
    (
        Turn(
            "user",
            "A room in Oslo, and what is it?",
            ("inform", "request"),
            (("city", "Oslo"), ("stars", "4"), ("price", "")),
            ("BookHotel",),
        ),
        Turn("assistant", "Bye", ("goodbye",)),
    ),
    "dev/1_00000",
    ("Hotels_1", "Taxi_1"),
)


def sgd(folder, *records, **options):
    write(folder / "sgd" / "dev" / "dialogues_001.json", list(records))
    return load_dialogues("sgd", folder, "dev", **options)


def test_sgd_turns_acts_slots_and_intents(tmp_path):
    write(tmp_path / "sgd" / "dev" / "schema.json", "not a dialogue")
    write(tmp_path / "sgd" / "train" / "dialogues_001.json", [changed(SGD, ("services",), ["Hotels_1"])])
    assert sgd(tmp_path, SGD) == [SGD_READ]
    (train,) = load_dialogues("sgd", tmp_path, "train")
    assert (train.id, train.domains) == ("train/1_00000", ("Hotels_1",))


def test_sgd_leaves_out_a_last_turn_without_text_and_no_other(tmp_path):
    (dialogue,) = sgd(tmp_path, changed(SGD, ("turns", 1, "utterance"), ""))
    assert dialogue.turns == SGD_READ.turns[:1]
    with pytest.raises(InputError, match=r"record 0: turns\[0\]: field content: got ''"):
        sgd(tmp_path, changed(SGD, ("turns", 0, "utterance"), ""))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("dialogue_id",), ..., "field dialogue_id: got nothing, expected str"),
        (("services",), "Hotels_1", "field services: got str, expected list"),
        (("services",), [1], "field services: got 1 in the list, expected strings"),
        (("turns",), {}, "field turns: got dict, expected list"),
        (("turns",), [], "field messages: got no turn"),
        (("turns", 0), "hi", "turns[0]: got str, expected an object with the field speaker"),
        (("turns", 0, "speaker"), "BOT", "turns[0]: field speaker: got 'BOT', expected USER or SYSTEM"),
        (("turns", 1, "utterance"), None, "field utterance: got NoneType, expected str"),
        (("turns", 0, "frames", 0, "actions", 1, "values"), "4", "turns[0]: field values: got str, expected list"),
        (("turns", 0, "frames", 0, "state"), [], "turns[0]: got list, expected an object with the field active_intent"),
    ],
)
def test_sgd_malformed_record(tmp_path, path, value, expected):
    with pytest.raises(InputError) as raised:
        sgd(tmp_path, changed(SGD, ("dialogue_id",), "other"), changed(SGD, path, value))
    place = f"{tmp_path}/sgd/dev/dialogues_001.json: record 1: "
    assert str(raised.value).startswith(place)
    assert expected in str(raised.value)


def test_sgd_skips_invalid_records_with_one_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        assert sgd(tmp_path, {}, SGD, SGD, 3, skip_invalid=True) == [SGD_READ]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith(f"Skipped 3 malformed record(s):\n  {tmp_path}/sgd/dev/dialogues_001.json: record 0")
    assert warning.count("dialogues_001.json: record") == 3


def test_sgd_file_that_is_no_list(tmp_path):
    write(tmp_path / "sgd" / "dev" / "dialogues_001.json", {})
    with pytest.raises(InputError, match=r"dialogues_001\.json: got an object, expected a list"):
        load_dialogues("sgd", tmp_path, "dev", skip_invalid=True)


GOAL = {"hotel": {"info": {}}, "taxi": {}, "police": {}, "message": ["go"], "topic": {"hotel": True}}
MULTIWOZ = {
    "goal": GOAL,
    "log": [
        {
            "text": "A hotel in the east",
            "dialog_act": {"Hotel-Inform": [["Area", "east"]], "Hotel-Request": [["Price", "?"]]},
        },
        {"text": "Bye", "dialog_act": {"general-bye": [["none", "none"]], "Hotel-Inform": [["Stars", "4"]]}},
    ],
}
EXTRACT = {
    "id": "SNG0001",
    "domain": "taxi",
    "turns": ["Hello, how may I help you?", "A taxi", "Where to ?"],
    "annotations": [{}, {"Taxi-Inform": [["Dest", "kfc"]]}, {"Taxi-Request": [["Dest", "?"]]}],
}


def multiwoz(folder, split, extract=(), val=None, test=None, **options):
    base = folder / "multiwoz"
    write(base / "multiwoz2.1_convlab2" / "val.json", {"SNG0002": MULTIWOZ} if val is None else val)
    write(base / "multiwoz2.1_convlab2" / "test.json", {"sng0003.json": MULTIWOZ} if test is None else test)
    lines = "".join(json.dumps(record) + "\n" for record in extract)
    write(base / "multiwoz2.0_single_domain" / "dialogues" / "taxi.txt", lines)
    return load_dialogues("multiwoz", folder, split, **options)


def test_multiwoz_dev_and_test(tmp_path):
    turns = (
        Turn("user", "A hotel in the east", ("inform", "request"), (("area", "east"), ("price", ""))),
        Turn("assistant", "Bye", ("bye", "inform"), (("stars", "4"),)),
    )
    assert multiwoz(tmp_path, "dev") == [Dialogue(turns, "SNG0002", ("hotel",))]
    both = changed(MULTIWOZ, ("goal", "taxi"), {"info": {}})
    assert multiwoz(tmp_path, "test", test={"a.json": both}) == [Dialogue(turns, "A", ("hotel", "taxi"))]


def test_multiwoz_train_drops_the_greeting_and_what_dev_or_test_hold(tmp_path):
    held_out = [changed(EXTRACT, ("id",), name) for name in ("SNG0002", "Sng0003", "sng0003.JSON")]
    assert multiwoz(tmp_path, "train", [*held_out, EXTRACT]) == [
        Dialogue(
            (
                Turn("user", "A taxi", ("inform",), (("dest", "kfc"),)),
                Turn("assistant", "Where to ?", ("request",), (("dest", ""),)),
            ),
            "SNG0001",
            ("taxi",),
        )
    ]


def test_multiwoz_train_without_annotations_or_greeting(tmp_path):
    bare = changed(changed(EXTRACT, ("annotations",), ...), ("turns", 0), "Hi")
    (dialogue,) = multiwoz(tmp_path, "train", [bare])
    assert dialogue.turns == (Turn("assistant", "Hi"), Turn("user", "A taxi"), Turn("assistant", "Where to ?"))


def test_multiwoz_train_never_comes_without_knowing_dev_and_test(tmp_path):
    with pytest.raises(InputError, match=r"split train needs multiwoz2\.1_convlab2/test\.json too"):
        multiwoz(tmp_path, "train", [EXTRACT], test={})


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("id",), 3, "field id: got int, expected str"),
        (("domain",), ..., "field domain: got nothing"),
        (("turns", 1), None, "field turns: got None in the list, expected strings"),
        (("turns", 1), " ", "turns[0]: field content: got ' '"),
        (("annotations",), [], "field annotations: got 0, expected one for each of 3 turns"),
        (("annotations", 2), "x", "turns[1]: field dialog_act: got str, expected an object"),
        (("annotations", 2, "Taxi-Request"), [["Dest"]], "turns[1]: field dialog_act: got ['Dest'], expected a pair"),
    ],
)
def test_multiwoz_malformed_record(tmp_path, path, value, expected):
    good = changed(EXTRACT, ("id",), "other")
    with pytest.raises(InputError) as raised:
        multiwoz(tmp_path, "train", [good, changed(EXTRACT, path, value)])
    place = f"{tmp_path}/multiwoz/multiwoz2.0_single_domain/dialogues/taxi.txt:2: "
    assert str(raised.value).startswith(place)
    assert expected in str(raised.value)
    records = [good, changed(EXTRACT, path, value)]
    assert [dialogue.id for dialogue in multiwoz(tmp_path, "train", records, skip_invalid=True)] == ["OTHER"]


def test_multiwoz_malformed_dialogue_is_named_by_its_key(tmp_path):
    broken = changed(MULTIWOZ, ("log", 1, "dialog_act"), ...)
    with pytest.raises(InputError, match=r"val\.json: record X1: log\[1\]: field dialog_act: got nothing"):
        multiwoz(tmp_path, "dev", val={"X1": broken})
    with pytest.raises(InputError, match="got a list, expected an object"):
        multiwoz(tmp_path, "dev", val=[])
