"""Facts about the readers of the task corpora, on hand-made records in their own formats, and on the real files."""

import functools
import json
import os
import random
from itertools import pairwise

import pytest

from hf_dialemb.corpora import get_corpus, load_dialogues, single_domain
from hf_dialemb.corpora.records import hashed_split
from hf_dialemb.models.dialogue import Turn
from hf_dialemb.models.errors import InputError

needs_corpora = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA names no corpora")


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def labels(turn):
    return turn.dialogue_acts, turn.slots


def star_event(agent, action, text, **more):
    return {"Agent": agent, "Action": action, "Text": text, **more}


SAID = [
    star_event("UserGuide", "instruct", "Ask"),
    star_event("User", "utter", "Hi"),
    star_event("Wizard", "request_suggestions", "draft"),
    star_event("Wizard", "pick_suggestion", "Yes?", ActionLabel="Ask_Name"),
    star_event("Wizard", "utter", "Hm"),
]


def star(folder, number, events=SAID, tasks=("bank_balance",), domains=("bank",), level="Complete"):
    scenario = {
        "Domains": list(domains),
        "MultiTask": len(tasks) > 1,
        "WizardCapabilities": [{"Domain": "bank", "Task": task} for task in tasks],
    }
    record = {"DialogueID": number, "CompletionLevel": level, "Events": events, "Scenario": scenario}
    write(folder / "star" / "dialogues" / f"{number}.json", record)
    return load_dialogues("star", folder, "all")


def test_star_keeps_what_is_said_with_the_wizards_label_and_the_task_as_the_first_intent(tmp_path):
    (dialogue,) = star(tmp_path, 5)
    assert dialogue.turns == (
        Turn("user", "Hi", intents=("bank_balance",)),
        Turn("assistant", "Yes?", ("ask_name",)),
        Turn("assistant", "Hm"),
    )
    assert (dialogue.id, dialogue.domains) == ("Complete/5", ("bank",))


def test_star_dialogue_of_several_tasks_has_no_intent_and_an_unnamed_domain_is_no_label(tmp_path):
    (dialogue,) = star(tmp_path, 5, tasks=("bank_balance", "ride_book"), domains=("bank", None, "ride"))
    assert dialogue.domains == ("bank", "ride")
    assert not any(turn.intents for turn in dialogue.turns)


def test_star_leaves_out_dialogues_that_broke_off_in_silence_but_no_broken_record(tmp_path):
    star(tmp_path, 5)
    assert len(star(tmp_path, 6, events=SAID[:1], level="EarlyDisconnectDuringDialogue")) == 1
    with pytest.raises(InputError, match=r"7\.json: Events\[0\]: field Agent: got 'Robot', expected User or Wizard"):
        star(tmp_path, 7, events=[star_event("Robot", "utter", "Beep")])


def test_star_split_is_decided_by_the_number(tmp_path):
    for number in range(1, 40):
        star(tmp_path, number)
    for split in ("train", "dev", "test"):
        numbers = [dialogue.id.removeprefix("Complete/") for dialogue in load_dialogues("star", tmp_path, split)]
        assert numbers == sorted(str(number) for number in range(1, 40) if hashed_split(str(number)) == split)


def muldogo(folder, *rows, domain="media"):
    header = "conversationId\tturnNumber\tutteranceId\tutterance\tslot-labels\tintent"
    path = folder / "muldogo" / "splits_annotated_at_turn_level" / domain / "dev.tsv"
    write(path, "\n".join([header, *("\t".join(row) for row in rows)]) + "\n")
    return load_dialogues("muldogo", folder, "dev")


def row(conversation, text, tags, intent="contentonly"):
    return conversation, "0", f"<CONV>{conversation}<TURN>0", text, tags, intent


@pytest.mark.parametrize(
    ("text", "tags", "slots"),
    [
        ("i am ada king here", "O O name name O", (("name", "ada king"),)),
        ("ada to bo", "name O Name", (("name", "ada"), ("name", "bo"))),
        ("ada 12 king", "name zip name", (("name", "ada"), ("zip", "12"), ("name", "king"))),
        ("two words", "name", (("name", ""),)),
        ("one", "name O zip", (("name", ""), ("zip", ""))),
        ("no slot", "O O O", ()),
        ('"cell \n with ""quotes"""', "O O zip", (("zip", '"quotes"'),)),
    ],
)
def test_muldogo_words_in_a_row_with_one_tag_are_one_value(tmp_path, text, tags, slots):
    ((turn,),) = (dialogue.turns for dialogue in muldogo(tmp_path, row("c", text, tags)))
    assert turn.slots == slots


def test_muldogo_intents_domain_and_turns_without_text(tmp_path):
    (first, second) = muldogo(
        tmp_path, row("a", "my seat", "O O", "getseatinfo<div>BookFlight"), row("a", "", "O"), row("b", "hi", "O", "")
    )
    assert first.turns == (Turn("user", "my seat", intents=("getseatinfo", "bookflight")),)
    assert second.turns == (Turn("user", "hi"),)
    assert {first.domains, second.domains} == {("media",)}


def test_muldogo_conversation_ends_with_its_file_and_a_row_with_its_last_column(tmp_path):
    muldogo(tmp_path, row("a", "hi", "O"), domain="airline")
    with pytest.raises(InputError, match=r"media/dev\.tsv:2: field id: got 'a', which an earlier record has too"):
        muldogo(tmp_path, row("a", "hi", "O"), domain="media")
    with pytest.raises(InputError, match=r"media/dev\.tsv:2: rows\[0\]: got a row with more than 6 cells"):
        muldogo(tmp_path, (*row("b", "hi", "O"), "more"), domain="media")


def test_simulated_spans_and_labels(tmp_path):
    heard = {"text": "at six or 8 pm", "tokens": ["at", "six", "or", "8", "pm"], "slots": []}
    spans = [{"slot": "Time", "start": 1, "exclusive_end": 2}, {"slot": "time", "start": 3, "exclusive_end": 5}]
    turns = [
        {"user_utterance": heard, "user_acts": [], "user_intents": ["BUY_MOVIE_TICKETS"]},
        {
            "system_utterance": {"text": "Which date?"},
            "system_acts": [{"type": "REQUEST", "slot": "date"}, {"type": "SELECT", "slot": "time", "value": "8 pm"}],
            "user_utterance": {**heard, "slots": spans},
            "user_acts": [{"type": "INFORM"}, {"type": "AFFIRM", "slot": "time"}, {"type": "INFORM"}],
        },
    ]
    write(tmp_path / "sim_m" / "sim-M" / "dev.json", [{"dialogue_id": "m1", "turns": turns}])
    (dialogue,) = load_dialogues("sim_m", tmp_path, "dev")
    assert dialogue.turns == (
        Turn("user", "at six or 8 pm", intents=("BUY_MOVIE_TICKETS",)),
        Turn("assistant", "Which date?", ("request", "select"), (("date", ""), ("time", "8 pm"))),
        Turn("user", "at six or 8 pm", ("inform", "affirm"), (("time", "six"), ("time", "8 pm"))),
    )


def sim_gen(folder, *states, system="Yes?", user="ok"):
    said = {"system_acts": [], "system_utterance": system, "user_utterance": user}
    turns = [{**said, "dialogue_state": state} for state in states]
    write(folder / "sim_gen" / "dev.json", [{"dialogue_id": "g1", "turns": turns}])
    (dialogue,) = load_dialogues("sim_gen", folder, "dev")
    return dialogue.turns


def test_sim_gen_state_is_the_sum_of_what_the_user_informed_of(tmp_path):
    draw = random.Random(1)
    states = [{}]
    for _ in range(50):
        states.append({**states[-1], draw.choice("abcd"): str(draw.randrange(3))})
    known = {}
    for turn, state in zip(sim_gen(tmp_path, *states, system=""), states, strict=True):
        assert not set(turn.slots) & set(known.items())
        assert turn.dialogue_acts == (("inform",) if turn.slots else ())
        known.update(turn.slots)
        assert known == state


def test_sim_gen_a_side_without_text_said_nothing(tmp_path):
    assert [turn.role for turn in sim_gen(tmp_path, {}, {}, system=" ")] == ["user", "user"]
    assert [turn.role for turn in sim_gen(tmp_path, {}, {}, user="")] == ["assistant", "assistant"]


def kvret(folder, *said):
    turns = []
    for text, *annotation in said:
        data = {"utterance": text, "end_dialogue": False}
        if annotation:
            slots, flags = annotation
            data |= {"slots": slots, "requested": {"poi": "poi" in flags, "date": "date" in flags}}
        turns.append({"turn": "assistant" if annotation else "driver", "data": data})
    scenario = {"task": {"intent": "navigate"}, "uuid": "k1", "kb": {"items": None}}
    write(folder / "kvret" / "kvret_dev_public.json", [{"dialogue": turns, "scenario": scenario}])
    (dialogue,) = load_dialogues("kvret", folder, "dev")
    return [(turn.role, *labels(turn)) for turn in dialogue.turns]


@pytest.mark.parametrize(
    ("slots", "flags", "acts", "read"),
    [
        ({"poi": "Bar "}, ["poi"], ("inform",), (("poi", "Bar"),)),
        ({}, ["date"], ("request",), (("date", ""),)),
        ({"poi": "bar"}, ["date"], ("inform", "request"), (("poi", "bar"), ("date", ""))),
        ({}, [], (), ()),
    ],
)
def test_kvret_a_flag_without_a_value_is_a_request(tmp_path, slots, flags, acts, read):
    assert kvret(tmp_path, ["go"], ["ok", slots, flags]) == [("user", acts, read), ("assistant", (), ())]


def test_kvret_value_that_was_given_before_is_not_informed_of_again(tmp_path):
    read = kvret(
        tmp_path, ["a"], ["b", {"poi": "Bar"}, []], ["c"], ["d", {"poi": "bar "}, []], ["e"], ["f", {"poi": "x"}, []]
    )
    assert [slots for role, _, slots in read if role == "user"] == [(("poi", "Bar"),), (), (("poi", "x"),)]


def test_kvret_labels_belong_to_the_drivers_turn_right_before(tmp_path):
    read = kvret(tmp_path, ["a"], ["b"], ["c", {}, ["date"]], ["d", {}, ["poi"]])
    assert [acts for _, acts, _ in read] == [(), ("request",), (), ()]


def test_kvret_turn_without_text_is_left_out_with_its_labels(tmp_path):
    read = kvret(tmp_path, ["a"], ["b", {}, []], [" "], ["c", {"poi": "x"}, []], ["d"], ["", {"date": "y"}, []])
    assert [(role, slots) for role, _, slots in read] == [
        ("user", ()),
        ("assistant", ()),
        ("assistant", ()),
        ("user", (("date", "y"),)),
    ]


def woz(folder, *turns, corpus="woz2", prefix="woz"):
    keys = ("system_transcript", "system_acts", "transcript", "turn_label")
    dialogue = [dict(zip(keys, turn, strict=True)) for turn in turns]
    write(folder / corpus / f"{prefix}_validate_en.json", [{"dialogue_idx": 3, "dialogue": dialogue}])
    (read,) = load_dialogues(corpus, folder, "dev")
    return read


@pytest.mark.parametrize(("corpus", "prefix"), [("woz2", "woz"), ("dstc2_clean", "dstc2")])
def test_woz_labels(tmp_path, corpus, prefix):
    wanted = [["request", "phone"], ["food", "thai"], ["", "dontcare"], ["request", "food"]]
    read = woz(tmp_path, ("Hm?", ["area", ["Food", "thai"]], "yes", wanted), corpus=corpus, prefix=prefix)
    assert [labels(turn) for turn in read.turns] == [
        (("request", "inform"), (("area", ""), ("food", "thai"))),
        (("request", "inform"), (("phone", ""), ("food", "thai"), ("food", ""))),
    ]
    assert (read.id, read.domains) == ("dev/3", ("restaurant",))


def test_woz_system_may_be_silent_at_the_start_only(tmp_path):
    assert [turn.role for turn in woz(tmp_path, ("", [], "hi", [])).turns] == ["user"]
    with pytest.raises(InputError, match=r"record 0: dialogue\[1\]: field content: got ''"):
        woz(tmp_path, ("", [], "hi", []), ("", [], "hi", []))


def camrest(folder, *slus, answer=(), number=0, corpus="camrest676", file="CamRest676"):
    dial = []
    for slu in slus:
        acts = [{"act": act, "slots": [pair]} for act, pair in slu]
        dial.append({"usr": {"transcript": "hi", "slu": acts}, "sys": {"sent": "ok", "DA": list(answer)}})
    write(folder / "camrest_gecor" / f"{file}.json", [{"dialogue_id": number, "dial": dial}])
    (dialogue,) = load_dialogues(corpus, folder, "all")
    return dialogue.turns


THAI, NORTH = ("inform", ["food", "thai"]), ("inform", ["Area", "north"])
PHONE = ("request", ["slot", "phone"])


@pytest.mark.parametrize(("corpus", "file"), [("camrest676", "CamRest676"), ("gecor", "CamRest676_annotated")])
def test_camrest_turn_informs_of_what_the_turn_before_did_not_list(tmp_path, corpus, file):
    turns = camrest(tmp_path, [THAI], [NORTH, THAI], [THAI], [THAI, NORTH], corpus=corpus, file=file)
    assert [labels(turn) for turn in turns[::2]] == [
        (("inform",), (("food", "thai"),)),
        (("inform",), (("area", "north"),)),
        ((), ()),
        (("inform",), (("area", "north"),)),
    ]


def test_camrest_request_is_not_carried_along_and_a_pair_with_a_slots_own_name_keeps_its_value(tmp_path):
    turns = camrest(tmp_path, [PHONE, THAI], [PHONE, THAI], [("request", ["area", "dontcare"])])
    assert [labels(turn) for turn in turns[::2]] == [
        (("request", "inform"), (("phone", ""), ("food", "thai"))),
        (("request",), (("phone", ""),)),
        (("request",), (("area", "dontcare"),)),
    ]


def test_camrest_system_asks_for_slots_and_puts_values(tmp_path):
    (_, system) = camrest(tmp_path, [], answer=["food", ["area, centre"], ["area", "north"]])
    assert labels(system) == (("request", "inform"), (("food", ""), ("area", "centre"), ("area", "north")))


@pytest.mark.parametrize(
    ("number", "split"), [(0, "train"), (405, "train"), (406, "dev"), (540, "dev"), (541, "test"), (675, "test")]
)
def test_camrest_splits_by_position(tmp_path, number, split):
    camrest(tmp_path, [], number=number)
    assert [dialogue.id for dialogue in load_dialogues("camrest676", tmp_path, split)] == [str(number)]


def test_camrest_record_without_a_number_is_an_error_in_every_split(tmp_path):
    write(tmp_path / "camrest_gecor" / "CamRest676.json", [{"dial": []}])
    for split in ("train", "dev", "test"):
        with pytest.raises(InputError, match="record 0: field dialogue_id: got nothing"):
            load_dialogues("camrest676", tmp_path, split)


def babi(folder, *dialogues):
    text = "\n".join("".join(f"{number} {line}\n" for number, line in enumerate(lines, 1)) for lines in dialogues)
    write(folder / "dstc2" / "dialog-babi-task6-dstc2-dev.txt", text)
    return load_dialogues("dstc2_babi", folder, "dev")


def test_babi_silence_queries_and_facts_are_no_turns(tmp_path):
    lines = ["<SILENCE>\tHello", "thai\tapi_call thai", "mole R_food thai", "<SILENCE>\t The mole", "\tStill there?"]
    (dialogue,) = babi(tmp_path, [*lines, "api_call\tapi_calls"])
    assert [(turn.role, turn.content) for turn in dialogue.turns] == [
        ("assistant", "Hello"),
        ("user", "thai"),
        ("assistant", "The mole"),
        ("assistant", "Still there?"),
        ("user", "api_call"),
        ("assistant", "api_calls"),
    ]


def test_babi_dialogues_are_numbered_and_lines_may_not_be_missing(tmp_path):
    assert [dialogue.id for dialogue in babi(tmp_path, ["a\tb"], ["a\tb"], ["a\tb"])] == ["dev/0", "dev/1", "dev/2"]
    path = tmp_path / "dstc2" / "dialog-babi-task6-dstc2-dev.txt"
    write(path, "1 a\tb\n2 c\td\n\n1 a\tb\n3 e\tf\n")
    with pytest.raises(InputError, match=r"dev\.txt:4: lines\[1\]: got '3 e\\tf', expected a line that begins with 2"):
        load_dialogues("dstc2_babi", tmp_path, "dev")


def call(number, split, *texts):
    turns = [{"speaker": ("user", "system")[index % 2], "utterance": text} for index, text in enumerate(texts)]
    return {"dialogue_id": f"dstc2_{number}", "data_split": split, "turns": turns}


def test_dstc2_splits_of_one_file(tmp_path):
    path = tmp_path / "dstc2" / "data.json"
    write(path, [call(0, "train", "hi", "Yes?"), call(1, "val", "noise"), call(2, "test", "a"), call(3, "train", "b")])
    splits = ("train", "dev", "test")
    found = {split: [dialogue.id for dialogue in load_dialogues("dstc2", tmp_path, split)] for split in splits}
    assert found == {"train": ["dstc2_0", "dstc2_3"], "dev": ["dstc2_1"], "test": ["dstc2_2"]}
    write(path, [call(0, "train", "hi"), call(1, "dev", "hi")])
    for split in splits:
        with pytest.raises(InputError, match="record 1: field data_split: got 'dev', expected train or val or test"):
            load_dialogues("dstc2", tmp_path, split)


# By corpus: dialogues and turns of every split; how many acts, slots and intents there are; how many sets of domains.
REAL = {
    # 60, 7 and 10 turns have no text.
    "muldogo": ([(9_900, 81_676 - 60), (1_413, 11_585 - 7), (2_834, 23_336 - 10)], (0, 64, 50), 6),
    "sim_m": ([(384, 3_562), (120, 1_134), (264, 2_464)], (14, 5, 1), 1),
    # 7, 1 and 2 turns have no text; one dialogue has no turn.
    "kvret": ([(2_425 - 1, 12_732 - 7), (302, 1_567 - 1), (304, 1_629 - 2)], (2, 13, 0), 3),
    "woz2": ([(600, 4_472), (200, 1_460), (400, 2_892)], (2, 10, 0), 1),
    # 676 dialogues with 5,488 turns, 3:1:1 by position.
    "camrest676": ([(406, 3_342), (135, 1_076), (135, 1_070)], (2, 8, 0), 1),
    "gecor": ([(406, 3_342), (135, 1_076), (135, 1_070)], (2, 8, 0), 1),
    "dstc2": ([(1_612, 21_742), (506, 7_362), (1_117, 18_663)], (0, 0, 0), 1),
    # 28,808, 8,318 and 22,474 halves of exchanges; 5,732, 1,961 and 3,674 are silences, blanks and queries.
    "dstc2_babi": ([(1_618, 23_076), (500, 6_357), (1_117, 18_800)], (0, 0, 0), 1),
    # Of 6,652 dialogues with 108,137 turns, 447 dialogues have no turn. The split is our own.
    "star": ([(4_961, 86_224), (625, 11_040), (619, 10_873)], (165, 0, 24), 26),
}


@functools.lru_cache(maxsize=1)
def real(name):
    return [load_dialogues(name, None, split) for split in get_corpus(name).splits]


@pytest.mark.slow
@needs_corpora
@pytest.mark.parametrize("name", REAL)
def test_real_counts_ids_roles_and_labels(name):
    counts, label_counts, domain_count = REAL[name]
    assert [(len(found), sum(len(dialogue.turns) for dialogue in found)) for found in real(name)] == counts
    dialogues = [dialogue for found in real(name) for dialogue in found]
    identifiers = {dialogue.id for dialogue in dialogues}
    assert len(identifiers) == len(dialogues)
    assert "" not in identifiers
    roles = {role for dialogue in dialogues for role in dialogue.roles}
    assert roles == ({"user"} if name == "muldogo" else {"user", "assistant"})
    if name in ("sim_m", "woz2", "camrest676", "gecor", "dstc2"):
        assert all(one.role != other.role for dialogue in dialogues for one, other in pairwise(dialogue.turns))
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    acts = {act for turn in turns for act in turn.dialogue_acts}
    intents = {intent for turn in turns for intent in turn.intents}
    assert (len(acts), len({slot for turn in turns for slot, _ in turn.slots}), len(intents)) == label_counts
    assert len({dialogue.domains for dialogue in dialogues}) == domain_count


@needs_corpora
def test_real_star_dialogues_of_one_domain():
    everything = [dialogue for found in real("star") for dialogue in found]
    complete = [dialogue for dialogue in everything if dialogue.id.startswith("Complete/")]
    # Among the 4,017 complete dialogues of one named domain are two in which nothing is said.
    assert (len(complete), len(single_domain(complete))) == (5_820 - 2, 4_017 - 2)
    assert len({dialogue.domains for dialogue in single_domain(complete)}) == 13
    assert sum(len(turn.dialogue_acts) for dialogue in everything for turn in dialogue.turns) == 46_640 + 49
