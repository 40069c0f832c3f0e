"""Facts about the readers of Taskmaster, ABCD, BiTOD, MetaLWOZ, MS-DC and Frames, on hand-made records."""

import gzip
import json
import os

import pytest

from hf_dialemb.corpora import get_corpus, load_dialogues
from hf_dialemb.corpora.readers import taskmaster
from hf_dialemb.corpora.readers.unmet import bitod, msdc
from hf_dialemb.corpora.records import hashed_split
from hf_dialemb.models.dialogue import Turn
from hf_dialemb.models.errors import InputError

SPLITS = ("train", "dev", "test")


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def ids(corpus, folder, split="all"):
    return [dialogue.id for dialogue in load_dialogues(corpus, folder, split)]


def counts(corpus, *splits):
    found = [load_dialogues(corpus, None, split) for split in splits]
    names = [dialogue.id for dialogues in found for dialogue in dialogues]
    assert len(set(names)) == len(names)
    assert {turn.role for dialogues in found for dialogue in dialogues for turn in dialogue.turns} == {
        "user",
        "assistant",
    }
    return [(len(dialogues), sum(len(dialogue.turns) for dialogue in dialogues)) for dialogues in found]


def conversation(identifier, *texts, **more):
    utterances = [
        {"index": index, "speaker": "ASSISTANT" if index % 2 else "USER", "text": text}
        for index, text in enumerate(texts)
    ]
    return {"conversation_id": identifier, "instruction_id": "auto-repair-appt-1", "utterances": utterances, **more}


@pytest.mark.parametrize(
    ("name", "prefixed", "slot"),
    [
        ("pizza_ordering.name.pizza", True, "name.pizza"),
        ("pizza_ordering.name.pizza.accept", True, "name.pizza"),
        ("coffee_ordering.preference.reject", True, "preference"),
        ("pizza_ordering.accept", True, "accept"),
        ("hotel_search. num.beds", True, "num.beds"),
        ("movie_search.time.end.", True, "time.end"),
        ("music.describes_type.music", True, "describes_type.music"),
        ("date.showing", False, "date.showing"),
        ("Location", False, "location"),
    ],
)
def test_names_of_slots_in_taskmaster(name, prefixed, slot):
    segment = {"text": "x", "annotations": [{"name": name}, {"name": name}]}
    assert taskmaster.slots_of([segment, segment], prefixed=prefixed) == ((slot, "x"),)


def test_taskmaster1_has_an_official_split_for_some_and_a_hash_for_the_others(tmp_path):
    listed, others = [f"dlg-{n}" for n in range(9)], [f"dlg-other-{n}" for n in range(40)]
    for number, split in enumerate(SPLITS):
        write(tmp_path / f"TM-1-2019/train-dev-test/{split}.csv", "".join(f"{each},\n" for each in listed[number::3]))
    write(tmp_path / "TM-1-2019/self-dialogs.json", [conversation(each, "Hi") for each in listed])
    write(tmp_path / "TM-1-2019/woz-dialogs.json", [conversation(each, "Hi") for each in others])
    for number, split in enumerate(SPLITS):
        hashed = [each for each in others if hashed_split(each) == split]
        assert ids("taskmaster1", tmp_path, split) == [*listed[number::3], *hashed]


def test_the_sample_of_taskmaster1_is_read_where_the_files_are_missing(tmp_path):
    folder = tmp_path / "taskmaster"
    write(folder / "TM-1-2019/sample.json", conversation("dlg-1", "Hi", "Hello"))
    write(folder / "TM-1-2019/train-dev-test/dev.csv", "dlg-1,\n")
    (dialogue,) = load_dialogues("taskmaster1", folder, "dev")
    assert (dialogue.id, dialogue.domains) == ("dlg-1", ("auto",))
    write(folder / "TM-1-2019/self-dialogs.json", [conversation("dlg-1", "Hi"), conversation("dlg-2", "Hi")])
    assert sorted(ids("taskmaster1", folder)) == ["dlg-1", "dlg-2"]


def test_what_was_not_said_in_taskmaster_is_left_out(tmp_path):
    records = [conversation("dlg-1", "Hi", "(deleted)", "Bye"), conversation("dlg-2")]
    write(tmp_path / "TM-2-2020/data/food-ordering.json", records)
    (dialogue,) = load_dialogues("taskmaster2", tmp_path, "all")
    assert dialogue.turns == (Turn("user", "Hi"), Turn("user", "Bye"))
    assert dialogue.domains == ("food-ordering",)


def test_calls_are_the_intents_of_taskmaster4(tmp_path):
    calls = [
        {"name": "api_call", "value": "add_order_item", "context": "api_call_0"},
        {"name": "request", "value": "{}", "context": "api_call_0"},
        {"name": "api_response", "value": "add_order_item", "context": "api_response_0"},
    ]
    utterance = {"index": 0, "speaker": "user", "text": "A tea", "segments": [], "annotations": calls * 2}
    write(
        tmp_path / "TM-4-2024/data/data_00.json",
        [{**conversation("dlg-1"), "vertical": "Tea", "utterances": [utterance]}],
    )
    (dialogue,) = load_dialogues("taskmaster4", tmp_path, "all")
    assert dialogue.turns == (Turn("user", "A tea", (), (), ("add_order_item",)),)
    assert dialogue.domains == ("Tea",)


def abcd(*rows, identifier=1):
    return {
        "convo_id": identifier,
        "scenario": {"flow": "account", "subflow": "x"},
        "original": [[speaker, text] for speaker, text, _ in rows],
        "delexed": [
            {"speaker": speaker, "text": text, "targets": ["pay_bill", None, None, [], -1]} for speaker, _, text in rows
        ],
    }


def test_abcd_leaves_out_clicks_and_finds_marks(tmp_path):
    record = abcd(
        ("customer", "Pay bill 7 and 9 now", "pay bill <id> and <id> now"),
        ("action", "Paid 7.", "paid <id>."),
        ("agent", "Done, it was more than $5", "done, it was more than <Amount>"),
        ("customer", "ok ok thanks", "ok ok thanks"),
    )
    write(tmp_path / "abcd_v1.1.json", {"train": [record], "dev": [], "test": []})
    (dialogue,) = load_dialogues("abcd", tmp_path)
    assert dialogue.turns == (
        Turn("user", "Pay bill 7 and 9 now", (), (("id", ""),), ("pay_bill",)),
        Turn("assistant", "Done, it was more than $5", (), (("amount", ""),)),
        Turn("user", "ok ok thanks"),
    )


def test_the_sample_of_abcd_is_read_where_the_release_is_missing(tmp_path):
    write(tmp_path / "abcd_sample.json", [abcd(("agent", "Hi", "hi"), identifier=2)])
    assert ids("abcd", tmp_path, "train") == ["2"]
    content = json.dumps({"train": [abcd(("agent", "Hi", "hi"), identifier=3)], "dev": [], "test": []})
    (tmp_path / "abcd_v1.1.json.gz").write_bytes(gzip.compress(content.encode()))
    assert ids("abcd", tmp_path, "train") == ["3"]


def test_rows_of_abcd_must_be_as_many(tmp_path):
    record = abcd(("agent", "Hi", "hi"), ("agent", "Hi", "hi"))
    write(tmp_path / "abcd_sample.json", [{**record, "delexed": record["delexed"][:1]}])
    with pytest.raises(InputError, match="record 0: field delexed: got 1 rows, expected one for each of 2 in original"):
        load_dialogues("abcd", tmp_path)


def test_labels_of_bitod():
    def action(act, slot, *values):
        return {"act": act, "slot": slot, "relation": "", "value": list(values)}

    assert bitod.labels_of(
        [
            action("inform_intent", "intent", "hotels_en_US_booking"),
            action("inform_intent", "intent", "HKMTR_en"),
            action("inform", "Rating", 9, 10),
            action("request", "name"),
            action("affirm", ""),
            action("inform", "rating", 9),
        ]
    ) == (("inform", "request", "affirm"), (("rating", "9"), ("name", "")), ("hotels_booking", "HKMTR"))
    assert bitod.domain_of("hotels_en_US_booking") == ("hotels",)
    assert bitod.domain_of("chat") == ()


def test_bitod_reads_what_was_said_in_english(tmp_path):
    said = {"Agent": "Wizard", "Text": "Hi", "Actions": []}
    events = [{"Agent": "Wizard", "Actions": "query"}, said, {"Agent": "KnowledgeBase", "Item": {}, "TotalItems": 0}]
    write(tmp_path / "bitod/data/en_valid.json", {"a": {"Events": events}})
    write(tmp_path / "bitod/data/zh_valid.json", {"b": {"Events": [said]}})
    (dialogue,) = load_dialogues("bitod", tmp_path, "dev")
    assert (dialogue.id, dialogue.turns, dialogue.domains) == ("a", (Turn("assistant", "Hi"),), ())


def metalwoz(identifier, *turns):
    return json.dumps({"id": identifier, "domain": "TIDE_TABLE", "turns": turns}) + "\n"


def test_the_bot_of_metalwoz_begins_and_its_greeting_is_dropped(tmp_path):
    first = metalwoz("a", "Hello how may I help you?", "High tide?", "Six.")
    write(tmp_path / "dialogues/TIDE_TABLE.txt", first + metalwoz("b", "Ahoy", "High tide?"))
    dialogues = {dialogue.id: dialogue.turns for dialogue in load_dialogues("metalwoz", tmp_path, "all")}
    assert dialogues == {
        "a": (Turn("user", "High tide?"), Turn("assistant", "Six.")),
        "b": (Turn("assistant", "Ahoy"), Turn("user", "High tide?")),
    }


def test_the_held_out_domains_of_metalwoz_are_test(tmp_path):
    write(tmp_path / "dialogues/TIDE_TABLE.txt", "".join(metalwoz(f"t{n}", "Hi", "Hi") for n in range(50)))
    write(tmp_path / "dialogues/hotel.txt", metalwoz("PMUL1", "Hello, how may I help you?", "A room"))
    held_out = "".join(metalwoz(f"h{n}", "Hi", "Hi") for n in range(50))
    write(tmp_path / "dstc8_metalwoz_heldout/dialogues/KITES.txt", held_out)
    found = {split: set(ids("metalwoz", tmp_path, split)) for split in SPLITS}
    expected = {split: {f"t{n}" for n in range(50) if hashed_split(f"t{n}") == split} for split in SPLITS}
    expected["test"] |= {f"h{n}" for n in range(50)}
    assert found == expected


@pytest.mark.parametrize(
    ("cells", "acts", "slots"),
    [
        (["inform(city=Oslo;date=today)"], ["inform"], [("city", "Oslo"), ("date", "today")]),
        (["request(ticket;city=Oslo)"], ["request", "inform"], [("ticket", ""), ("city", "Oslo")]),
        (["Request( City ; date )"], ["request"], [("city", ""), ("date", "")]),
        (["inform(city={Oslo#Bergen})"], ["inform"], [("city", "Oslo"), ("city", "Bergen")]),
        (["inform(result={})"], ["inform"], [("result", "")]),
        (["greeting(greeting=hi)"], ["greeting"], []),
        (["thanks()", "", "closing()"], ["thanks", "closing"], []),
        (['"inform(city=Oslo)"'], ["inform"], [("city", "Oslo")]),
        (["inform(name=Owl (east)"], ["inform"], [("name", "Owl (east")]),
        (["inform(city=Oslo"], ["inform"], [("city", "Oslo")]),
        (["inform(a=b=c;;x y=1)"], ["inform"], [("a", "b=c")]),
        (["no act", "(x)", "??"], [], []),
        (["inform(city=Oslo)", "inform(city=Oslo)"], ["inform"], [("city", "Oslo")]),
    ],
)
def test_acts_of_msdc(cells, acts, slots):
    assert msdc.labels_of(cells) == (acts, slots)


def test_a_session_of_msdc_is_its_rows_in_the_order_of_their_numbers(tmp_path):
    rows = [
        ["session.ID", "Message.ID", "Message.Timestamp", "Message.From", "Message.Text", "Dialog-Acts", "", ""],
        ["1", "10", "t", "agent", '"Ask for ""Owl"", please"', "inform(name=Owl)", "thanks()", ""],
        ["1", "9", "t", "user", "To whom?", "request(name)", "", ""],
        ["2", "1", "t", "user", 'A 5" pizza'],
    ]
    write(tmp_path / "taxi_all.tsv", "\ufeff" + "".join("\t".join(row) + "\n" for row in rows))
    found = {dialogue.id: dialogue for dialogue in load_dialogues("msdc", tmp_path, "all")}
    assert found["taxi/1"].turns == (
        Turn("user", "To whom?", ("request",), (("name", ""),)),
        Turn("assistant", 'Ask for "Owl", please', ("inform", "thanks"), (("name", "Owl"),)),
    )
    assert found["taxi/2"].turns == (Turn("user", 'A 5" pizza'),)
    assert {dialogue.domains for dialogue in found.values()} == {("taxi",)}


@pytest.mark.parametrize("number", ["", "one", "-1", "1.5", "9" * 5_000])
def test_a_message_of_msdc_needs_its_number(tmp_path, number):
    write(tmp_path / "movie_all.tsv", f"session.ID\t\t\t\t\n1\t{number}\tt\tuser\tHi\n")
    with pytest.raises(InputError, match=r"movie_all\.tsv:2: field Message\.ID: got .*, expected a whole number"):
        load_dialogues("msdc", tmp_path, "all")


def test_arguments_of_frames_that_point_are_no_slots(tmp_path):
    arguments = [("ref", [{"frame": 1}]), ("id", 2), ("read", []), ("write", []), ("intent", "book"), ("seat", None)]
    acts = [{"name": "Inform", "args": [{"key": key, "val": value} for key, value in [*arguments, ("price", 1.5)]]}]
    turns = [{"author": "user", "text": "Book", "labels": {"acts": [*acts, *acts]}, "db": {}}]
    write(tmp_path / "frames.json", [{"id": "f", "turns": turns}])
    (dialogue,) = load_dialogues("frames", tmp_path, "all")
    assert dialogue.turns == (Turn("user", "Book", ("inform",), (("seat", ""), ("price", "1.5")), ("book",)),)


@pytest.mark.parametrize("name", ["taskmaster2", "taskmaster3", "bitod", "metalwoz", "msdc", "frames"])
def test_readers_of_files_that_are_not_at_hand_say_so(name):
    assert not get_corpus(name).real


@pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")
def test_counts_of_the_published_files():
    assert counts("taskmaster1", "dev") == [(1, 20)]  # where the official lists put the sample
    # 710 dialogues of 1,883 and 786 turns.
    assert counts("taskmaster4", *SPLITS) == [(568, 2_126), (68, 269), (74, 274)]
    assert 2_126 + 269 + 274 == 1_883 + 786
    assert counts("abcd", "train") == [(3, 72 - 9)]  # nine rows are clicks
