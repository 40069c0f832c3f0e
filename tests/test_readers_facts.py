"""What readers make of what is rare in their formats; the whole of a format is in ``corpora_files``."""

import gzip
import json

import pytest
from made_up_corpora import read, read_one, refused, write

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.corpora.readers import taskmaster
from hf_dialemb.corpora.readers.multiwoz import identifier, labels
from hf_dialemb.corpora.readers.unmet import bitod, msdc
from hf_dialemb.corpora.records import hashed_split
from hf_dialemb.models.dialogue import Turn

SPLITS = ("train", "dev", "test")


def ids(folder, corpus, files, split="all"):
    return [item.id for item in read(folder, corpus, files, split)]


def ids_by_split(folder, corpus, files):
    return [ids(folder, corpus, files, split) for split in SPLITS]


def contents(dialogue):
    return [turn.content for turn in dialogue.turns]


def labelled(dialogue, role="user"):
    """What the turns of a role do, such as "inform, request: area=north, phone="."""
    slots = [", ".join(f"{name}={value}" for name, value in turn.slots) for turn in dialogue.turns if turn.role == role]
    acts = [", ".join(turn.dialogue_acts) for turn in dialogue.turns if turn.role == role]
    return [f"{act}: {slot}" if slot else act for act, slot in zip(acts, slots, strict=True)]


# Files that stand in for others, and what makes the splits.


def test_taskmaster1_has_an_official_split_for_some_a_hash_for_the_others_and_a_sample(tmp_path):
    def conversation(name):
        said = [{"speaker": "USER", "text": "Hi"}]
        return {"conversation_id": name, "instruction_id": "auto-repair-appt-1", "utterances": said}

    listed, others = [f"dlg-{n}" for n in range(9)], [f"dlg-other-{n}" for n in range(40)]
    lists = {f"TM-1-2019/train-dev-test/{split}.csv": "".join(f"{each},\n" for each in listed[number::3])
             for number, split in enumerate(SPLITS)}  # fmt: skip
    sample = {"TM-1-2019/sample.json": conversation("dlg-1")}
    assert ids(tmp_path, "taskmaster1", {**lists, **sample}, "dev") == ["dlg-1"]
    names = {"TM-1-2019/self-dialogs.json": listed, "TM-1-2019/woz-dialogs.json": others}
    files = {file: [conversation(each) for each in found] for file, found in names.items()}
    for number, split in enumerate(SPLITS):
        hashed = [each for each in others if hashed_split(each) == split]
        assert ids(tmp_path, "taskmaster1", files, split) == [*listed[number::3], *hashed]


def test_the_sample_of_abcd_is_read_where_the_release_is_missing(tmp_path):
    row = {"speaker": "agent", "text": "hi", "targets": []}
    record = {"convo_id": 2, "scenario": {"flow": "account"}, "original": [["agent", "Hi"]], "delexed": [row]}
    assert ids(tmp_path, "abcd", {"abcd_sample.json": [record]}, "train") == ["2"]
    content = json.dumps({"train": [{**record, "convo_id": 3}], "dev": [], "test": []})
    assert ids(tmp_path, "abcd", {"abcd_v1.1.json.gz": gzip.compress(content.encode())}, "train") == ["3"]


def log(text="hi", **acts):
    said = {"text": text, "metadata": {}, "dialog_act": {name.replace("_", "-"): value for name, value in acts.items()}}
    return {"goal": {"hotel": {"info": {}}, "bus": {}, "message": "go", "profile": {"name": "A"}}, "log": [said]}


@pytest.mark.parametrize(
    ("corpus", "ending"), [("multiwoz21", "txt"), ("multiwoz24", "json"), ("disambiguation", "txt")]
)
def test_lists_of_ids_make_the_splits_of_multiwoz_and_so_do_files(tmp_path, corpus, ending):
    files = {"any/data.json": {"SNG1.json": log(), "sng2.json": log(), "SNG3": log(), "MUL4.json": log()}}
    files |= {f"titan_903/{name}ListFile.json": "SNG1" for name in ("val", "test")}  # those of another corpus
    files[f"any/valListFile.{ending}"] = "SNG2.json\n"
    assert "data.json needs testListFile.* too" in refused(tmp_path, corpus, files, "train")
    files[f"any/testListFile.{ending}"] = "SNG3.json\r\n\r\n"
    assert ids_by_split(tmp_path, corpus, files) == [["SNG1", "MUL4"], ["SNG2"], ["SNG3"]]
    assert {dialogue.domains for dialogue in read(tmp_path, corpus, files)} == {("hotel",)}
    files = {f"{name}.json": {name: log()} for name in ("train", "val", "test")}
    assert ids_by_split(tmp_path / "files", "multiwoz21", files) == [["TRAIN"], ["VAL"], ["TEST"]]


def test_the_domains_of_metalwoz_that_were_held_out_are_test(tmp_path):
    def lines(*names):
        return "".join(json.dumps({"id": name, "domain": "TIDE", "turns": ["Hi", "Hi"]}) + "\n" for name in names)

    names, held_out = ([f"{letter}{number}" for number in range(50)] for letter in "th")
    files = {"dialogues/TIDE_TABLE.txt": lines(*names), "dialogues/hotel.txt": lines("PMUL1")}
    files["dstc8_metalwoz_heldout/dialogues/KITES.txt"] = lines(*held_out)
    expected = [{name for name in names if hashed_split(name) == split} for split in SPLITS]
    expected[2].update(held_out)
    assert list(map(set, ids_by_split(tmp_path, "metalwoz", files))) == expected


def test_self_dialogue_split_is_fixed_and_complete(tmp_path):
    rows = [f"id{number:03d},W,Hi," for number in range(205)][::-1]
    files = {"corpus/pop/batch.csv": "\n".join(["AssignmentId,WorkerId,Answer.sentence1,Reject", *rows])}
    splits = ids_by_split(tmp_path, "self_dialogue", files)
    assert [len(split) for split in splits] == [164, 20, 21]
    assert len({name for split in splits for name in split}) == 205
    assert splits[1][:4] == sorted(splits[1])[:4]


def test_self_dialogue_leaves_out_what_its_authors_leave_out(tmp_path):
    columns = "AssignmentId,WorkerId,Answer.sentence1,Answer.sentence2,Answer.sentence10,Reject"
    rows = ["a,W,One,Two,Ten,", "gap,W,One,{},Ten,", "no,W,One,,,x", "blocked,B,One,,,", "nothing,W, ,{},,"]
    files = {
        "corpus/fashion/batch.csv": "\n".join([columns, *rows, "again,W,Old,,,"]),
        "corpus/fashion/later.csv": f'{columns}\nagain,W,"New,\n""so""",,,\nbytes,W,Caf\xe9,,,\n'.encode("latin-1"),
        "corpus/transition_music_movies/batch.csv": f"{columns}\nmixed,W,Hi,,,\n",
        "blocked_workers.txt": "B\n",
    }
    found = {dialogue.id: dialogue for dialogue in read(tmp_path, "self_dialogue", files)}
    said = {"a": ["One", "Two", "Ten"], "gap": ["One", "Ten"], "again": ['New,\n"so"'], "bytes": ["Caf\ufffd"]}
    assert {name: contents(dialogue) for name, dialogue in found.items()} == {**said, "mixed": ["Hi"]}
    assert [turn.role for turn in found["gap"].turns] == ["user", "assistant"]
    assert found["mixed"].domains == ("music", "movies")


def test_amazonqa_every_line_is_in_one_split_and_may_be_a_dump(tmp_path):
    lines = [f"text:q{n}\tlabels:a\\n{n}\tepisode_done:True" if n % 2 else f"text:q{n}\ta\\n{n}" for n in range(50)]
    found = read(tmp_path, "amazonqa", {"amazonqa.txt": "\n".join(lines) + "\n \n"})
    said = {int(dialogue.id.split("/")[1]): contents(dialogue) for dialogue in found}
    assert sorted(said) == list(range(50))
    assert (said[7], said[8]) == (["q7", "a 7"], ["text:q8", "a\\n8"])


# Labels.


def test_star_names_the_task_of_a_dialogue_with_one_and_leaves_out_what_broke_off_in_silence(tmp_path):
    events = [{"Agent": "UserGuide", "Action": "instruct", "Text": "Ask"}]
    silent = {f"dialogues/{number}.json": {"Events": events} for number in range(30)}
    assert "gave nothing" in refused(tmp_path / "silent", "star", silent)

    def dialogue(tasks, several):
        scenario = {"Domains": ["bank", None, "ride"], "MultiTask": several, "WizardCapabilities": tasks}
        said = [{"Agent": agent, "Action": "utter", "Text": "Hi"} for agent in ("Wizard", "User", "User")]
        record = {"DialogueID": 5, "CompletionLevel": "Complete", "Events": said, "Scenario": scenario}
        return read_one(tmp_path, "star", {"dialogues/5.json": record})

    balance = {"Domain": "bank", "Task": "bank_balance"}
    assert [turn.intents for turn in dialogue([balance], several=False).turns] == [(), ("bank_balance",), ()]
    for tasks, several in (([balance], True), ([balance] * 2, False)):
        assert not any(turn.intents for turn in dialogue(tasks, several).turns)
    assert dialogue([balance], several=False).domains == ("bank", "ride")


@pytest.mark.parametrize(
    ("text", "tags", "slots"),
    [
        ("i am ada king here", "O O name name O", ": name=ada king"),
        ("ada to bo", "name O Name", ": name=ada, name=bo"),
        ("ada 12 king", "name zip name", ": name=ada, zip=12, name=king"),
        *(("two words", "name", ": name="), ("one", "name O zip", ": name=, zip="), ("no slot", "O O O", "")),
        ('"cell \n with ""quotes"""', "O O zip", ': zip="quotes"'),
    ],
)
def test_muldogo_words_in_a_row_with_one_tag_are_one_value(tmp_path, text, tags, slots):
    header, row = "conversationId\tutterance\tslot-labels\tintent", f"c\t{text}\t{tags}\tseat<div>Book"
    files = {"splits_annotated_at_turn_level/media/dev.tsv": f"{header}\n{row}\nc\t \tO\t\n"}
    dialogue = read_one(tmp_path, "muldogo", files, "dev")
    assert (labelled(dialogue), dialogue.turns[0].intents) == ([slots], ("seat", "book"))


# What a driver says, or the assistant with values and flags.
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([["go"], ["ok", {"Poi": "Bar "}, ["poi"]]], ["inform, request: poi=Bar, poi="]),
        ([["go"], ["ok", {"poi": "Bar "}, ["poi"]]], ["inform: poi=Bar"]),
        ([["go"], ["ok", {"poi": "bar"}, ["Date"]]], ["inform, request: poi=bar, date="]),
        ([["go"], ["ok", {}, []]], [""]),
        ([["a"], ["b", {"poi": "Bar"}, []], ["c"], ["d", {"poi": "bar "}, []], ["e"], [" ", {"poi": "x"}, []], [" "],
          ["f", {"poi": "y"}, []]], ["inform: poi=Bar", "", "inform: poi=x"]),
        ([["a"], ["b"], ["c", {}, ["Date"]], ["d", {}, ["poi"]]], ["", "request: date="]),
    ],
)  # fmt: skip
def test_kvret_a_flag_without_a_value_is_a_request_and_labels_of_the_turn_right_before_are_new(
    tmp_path, said, expected
):
    turns = []
    for text, *annotation in said:
        data = {"utterance": text}
        if annotation:
            slots, flags = annotation
            data |= {"slots": slots, "requested": {"poi": "poi" in flags, "Date": "Date" in flags}}
        turns.append({"turn": "assistant" if annotation else "driver", "data": data})
    record = {"dialogue": turns, "scenario": {"task": {"intent": "navigate"}, "uuid": "k1"}}
    assert labelled(read_one(tmp_path, "kvret", {"kvret_dev_public.json": [record]}, "dev")) == expected


def test_camrest_turn_informs_of_what_the_turn_before_did_not_list_and_requests_again(tmp_path):
    thai, north, phone = ("inform", ["food", "thai"]), ("Inform", ["Area", "north"]), ("request", ["slot", "phone"])
    slus = [[phone, thai], [north, thai, phone], [thai], [thai, north, ("request", ["area", "any"])]]
    users = [{"transcript": "hi", "slu": [{"act": act, "slots": [pair]} for act, pair in slu]} for slu in slus]
    system = {"sent": "ok", "DA": ["food", ["area, centre"], ["area", "north"], ""]}
    record = {"dialogue_id": 0, "dial": [{"usr": user, "sys": system} for user in users]}
    found = read_one(tmp_path, "camrest676", {"CamRest676.json": [record]})
    first, second = "request, inform: phone=, food=thai", "inform, request: area=north, phone="
    assert labelled(found) == [first, second, "", "inform, request: area=north, area=any"]
    assert labelled(found, "assistant") == ["request, inform: food=, area=centre, area=north"] * 4


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        *(("pizza_ordering.name.pizza", "name.pizza"), ("pizza_ordering.name.pizza.Accept", "name.pizza")),
        *(("coffee_ordering.preference.reject", "preference"), ("pizza_ordering.accept", "accept")),
        *(("hotel_search. num.beds", "num.beds"), ("movie_search.time.end.", "time.end"), ("pizza_ordering", None)),
        *(("music.describes_type.music.more", "describes_type.music"), ("date.showing", "date.showing")),
        ("Location", "location"),
    ],
)
def test_names_of_slots_in_taskmaster(name, slot):
    segment = {"text": "x", "annotations": [{"name": name}, {"name": name}]}
    found = taskmaster.slots_of([segment, segment], prefixed=slot not in ("date.showing", "location"))
    assert found == (((slot, "x"),) if slot else ())


def test_labels_of_bitod():
    actions = [
        *(("inform_intent", "intent", "hotels_en_US_booking"), ("inform_intent", "intent", "HKMTR_en")),
        *(("inform", "Rating", 9, 10), ("Request", "name"), ("affirm", ""), ("inform", "rating", 9)),
        *(("inform_intent", "intent"), ("negate_intent", "intent", "weather_en")),
    ]
    raw = [{"act": act, "slot": slot, "relation": "", "value": values} for act, slot, *values in actions]
    expected = (("inform", "request", "affirm"), (("rating", "9"), ("name", "")), ("hotels_booking", "HKMTR"))
    assert bitod.labels_of(raw) == expected
    assert [bitod.domain_of(intent) for intent in ("hotels_en_US_booking", "chat")] == [("hotels",), ()]


@pytest.mark.parametrize(
    ("cells", "acts", "slots"),
    [
        (["inform(city=Oslo;date=today)"], ["inform"], [("city", "Oslo"), ("date", "today")]),
        (["request(ticket;city=Oslo)"], ["request", "inform"], [("ticket", ""), ("city", "Oslo")]),
        (["Request( City ; date )"], ["request"], [("city", ""), ("date", "")]),
        (["inform(city={Oslo# Bergen})"], ["inform"], [("city", "Oslo"), ("city", "Bergen")]),
        (["inform(result={})", "inform(result={)"], ["inform"], [("result", ""), ("result", "{")]),
        (["greeting(greeting=hi)"], ["greeting"], []),
        (["thanks()", "", "closing()"], ["thanks", "closing"], []),
        (['"inform(city=Oslo)" '], ["inform"], [("city", "Oslo")]),
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
        ["1", "10", "t", "agent", '"Ask for ""Owl"", please" ', "inform(name=Owl)", "thanks()", ""],
        [" 1", " 9", "t", "user", "To whom?", "request(name)", "", ""],
        ["2", "1", "t", "user", 'A 5" pizza'],
        ["2", "2", "t", "agent", '"'],
    ]
    content = "\ufeff" + "".join("\t".join(row) + "\n" for row in rows)
    found = {dialogue.id: dialogue for dialogue in read(tmp_path, "msdc", {"taxi_all.tsv": content})}
    assert contents(found["taxi/1"]) == ["To whom?", 'Ask for "Owl", please']
    assert labelled(found["taxi/1"]) == ["request: name="]
    assert labelled(found["taxi/1"], "assistant") == ["inform, thanks: name=Owl"]
    assert contents(found["taxi/2"]) == ['A 5" pizza', '"']
    assert {dialogue.domains for dialogue in found.values()} == {("taxi",)}


@pytest.mark.parametrize(
    ("annotation", "acts", "slots"),
    [
        ({}, (), ()),
        ({"general-bye": [["none", "none"], ["None", "x"]], "backchannel": []}, ("bye", "backchannel"), ()),
        ({"A-Inform": [["Area", "East"]], "B-Inform": [["Area", "?"]]}, ("inform",), (("area", "East"), ("area", ""))),
        ({"Hotel-NoOffer-Relevant": ["Stars", "none"]}, ("nooffer-relevant",), (("stars", ""),)),
    ],
)
def test_labels_of_multiwoz_lose_their_domain_and_nothing_else(annotation, acts, slots):
    assert labels(annotation) == (acts, slots)
    assert {identifier(key) for key in ("PMUL1", "pmul1.json", "PMUL1.JSON", "Pmul1.json")} == {"PMUL1"}


def test_acts_in_a_file_of_their_own_count_the_turns_of_the_system(tmp_path):
    bare = {"goal": {}, "log": [{"text": text, "metadata": {}} for text in ("hi", "who?", "me", "ok")]}
    acts = {"1": "No Annotation", "2": {"Hotel-Inform": [["Area", "east"]]}}
    own = {"goal": {}, "log": [*bare["log"][:1], *log(Hotel_Bye=[])["log"]]}
    files = {"train.json": {"A.json": bare, "B": own, "C": bare}, "dialogue_acts.json": {"A": acts, "B": acts}}
    found = read(tmp_path, "multiwoz24", files, "train")
    assert [labelled(each, "assistant") for each in found] == [["", "inform: area=east"], ["bye"], ["", ""]]
    assert not any(any(labelled(each)) for each in found)


FUNCTIONS = ("inform", "request", "recommend", "book", "select", "sorry")
ARGUMENTS = [
    *("pricerange", "id", "address", "postcode", "type", "food", "phone", "name", "area", "choice", "price", "time"),
    *("reference", "none", "parking", "stars", "internet", "day", "arriveby", "departure", "destination", "leaveat"),
    *("duration", "trainid", "people", "department", "stay"),
]
TOPICS = ("attraction", "bus", "hospital", "hotel", "police", "restaurant", "taxi", "train")


def hdsa(folder, *vectors, more=None):
    lines = [f"A\t{number}\t\tsaid {number}\thi\t{[int(place in ones) for place in range(44)]}\n"
             for number, ones in enumerate(vectors)]  # fmt: skip
    files = {"dev.tsv": "".join(lines), "val_reference_nondelex.json": {"A": ["bye"]}}
    return read_one(folder, "hdsa", files | (more or {}), "dev")


def test_hdsa_vectors_name_domains_functions_and_arguments(tmp_path):
    every = hdsa(tmp_path, range(44))
    assert every.turns[1].dialogue_acts == FUNCTIONS
    assert every.turns[1].slots == tuple((name, "") for name in ARGUMENTS if name != "none")
    assert every.domains == TOPICS
    assert hdsa(tmp_path, [1, 9], [8], [4]).domains == ("hotel", "taxi")
    assert contents(hdsa(tmp_path, [], [], [])) == ["hi", "said 1", "hi", "said 2", "hi", "bye"]


def test_hdsa_prefers_json_where_users_inform_of_what_is_new(tmp_path):
    east, west = [["Area", "east"]], [["area", "west"]]
    both = {"hotel": east, "taxi": west}
    states = [
        ({"hotel": east}, {"hotel-inform-stars": "4", "hotel-request-area": "?", "general-none-none": "none"}),
        (both, {"booking-inform-none": "none"}),
        (both, {"taxi-sorry-area": "none"}),
        ({"hotel": west}, {}),
    ]
    said = {"user": "[x]", "sys": "[x]", "user_orig": "u", "sys_orig": "s"}
    info = [said | {"BS": state, "act": acts} for state, acts in states]
    found = hdsa(tmp_path, [0], more={"val.json": [{"file": "Mul1.json", "info": info}]})
    assert labelled(found) == ["inform: area=east", "inform: area=west", "", "inform: area=west"]
    assert labelled(found, "assistant") == ["inform, request: stars=4, area=", "inform", "sorry: area=", ""]
    assert (found.id, found.domains) == ("MUL1", ("hotel", "taxi"))


@pytest.mark.parametrize(
    ("line", "links"),
    [
        ("[10:03] <c> it is", [(0, 1), (1, 2), (2, 3)]),  # three nicks
        ("[10:03] <a> it is", [(0, 2), (2, 3)]),  # one nick
        ("[10:03] <a> it is", [(0, 1), (2, 3)]),  # two messages
        ("=== c has joined #ubuntu", [(1, 2), (2, 3)]),  # two messages and what the system says
        ("[10:03] <b> ", [(1, 2), (2, 3)]),  # two messages with text
    ],
)
def test_ubuntu_irc_leaves_out_what_is_no_conversation_of_two(tmp_path, line, links):
    def files(*replies):
        lines = ["[10:00] <a> is it on?", "[10:01] <b> yes", "[10:02]  * a nods <slowly>", line]
        annotation = "".join(f"{one} {other} -\n" for one, other in replies)
        return {"dev/log.ascii.txt": "\n".join(lines), "dev/log.annotation.txt": annotation}

    assert "gave nothing" in refused(tmp_path, "ubuntu_irc", files(*links), "dev")
    found = read_one(tmp_path, "ubuntu_irc", files((1, 2), (3, 3), (1, 0)), "dev")  # in any order and direction
    turns = (Turn("user", "is it on?"), Turn("assistant", "yes"), Turn("user", "nods <slowly>"))
    assert (found.id, found.turns) == ("dev/log/0", turns)


# Utterances, and responses to choose from.


def test_jddc2018_takes_one_comma_off_and_leaves_out_a_reply_that_says_nothing(tmp_path):
    files = {"devQuestions.txt": "到了吗,,\n好,\n", "devAnswers.txt": "还没,请稍等,\n, ,\n"}
    assert [contents(each) for each in read(tmp_path, "jddc2018", files, "dev")] == [["到了吗,", "还没,请稍等"], ["好"]]


def test_snips_reads_characters_spelled_as_surrogates(tmp_path):
    content = b'{"A": [{"data": [{"text": "owl "}, {"text": "\xed\xa0\xbd\xed\xb8\x80 ", "entity": "moodName"}]}]}'
    dialogue = read_one(tmp_path, "snips", {"A/train_A_full.json": content}, "train")
    assert (contents(dialogue), dialogue.turns[0].slots) == (["owl 😀"], (("moodname", "😀"),))


def test_few_shot_intent_slots_are_runs_of_words(tmp_path):
    lines = {
        "seq.in": " to new york or york via oslo \n",
        "seq.out": "O B-To I-To O B-To I-by B-by\n",
        "label": "a#b\n",
    }
    files = {f"ATIS/train/{name}": line for name, line in lines.items()}
    (turn,) = read_one(tmp_path, "few_shot_atis", files, "train").turns
    slots = (("to", "new york"), ("to", "york"), ("by", "via"), ("by", "oslo"))
    assert turn == Turn("user", "to new york or york via oslo", (), slots, ("a", "b"))


def test_ubuntu_speakers_change_at_the_end_of_a_turn_even_an_empty_one(tmp_path):
    said = "a __eou__ b __eou__ __eot__ __eou__ __eot__ c __eou__ __eot__ d __eot__"
    rows = ["Context,Utterance,Label", f"{said},e __eou__ f __eou__,1", "a,b,0", "a,b,1.0", "a,b,0.0"]
    found = read(tmp_path, "ubuntu", {"train.csv": "\n".join(rows)}, "train")
    assert found[0].context == (Turn("user", "a"), Turn("user", "b"), Turn("user", "c"), Turn("assistant", "d"))
    assert found[0].responses == ("e f",)
    assert [item.correct for item in found] == [(0,), (), (0,), ()]


def test_dstc7_answers_of_test_may_come_from_a_file_of_their_own(tmp_path):
    options = [{"candidate-id": name, "utterance": f"say {name}"} for name in "AB"]
    said = [{"speaker": "participant_2", "utterance": "hi"}]
    record = {"example-id": 7, "messages-so-far": said, "options-for-next": options}
    answers = {"ubuntu_responses_subtask_1.tsv": "6\tA\tno\n7\tB,A\tyes\n"}
    right = "options-for-correct-answers"
    for split, more, correct in (("test", {}, (1, 0)), ("test", {right: options[1:]}, (1,)), ("dev", {right: []}, ())):
        files = {f"ubuntu_{split}_subtask_1.json": [record | more], **answers}
        assert read_one(tmp_path, "dstc7_ubuntu", files, split).correct == correct


def test_ecommerce_lines_of_one_context_are_one_example_of_at_most_ten(tmp_path):
    lines = ["1\ta\tb", *["0\ta\tc\tb"] * 10, "1\ta\tc\td"]
    one, more, rest = read(tmp_path, "ecommerce", {"ECD_sample/train": "\n".join(lines) + "\n\n"}, "train")
    assert (one.responses, one.correct, len(one.context)) == (("b",), (0,), 1)
    assert more.context == (Turn("user", "a"), Turn("assistant", "c"))
    assert (more.responses, more.correct) == (("b",) * 10, ())
    assert (rest.responses, rest.correct, rest.id) == (("d",), (0,), "train/2")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("as_lines", [False, True])
def test_dialogue_nli_as_a_list_and_as_lines(tmp_path, as_lines, mark):
    pairs = [{"sentence1": "i sing .", "sentence2": f"i am {n} .", "label": "neutral"} for n in range(3)]
    content = mark + ("\n".join(map(json.dumps, pairs)) if as_lines else json.dumps(pairs, indent=1))
    found = read(tmp_path, "dialogue_nli", {"dialogue_nli_test.jsonl": content}, "test")
    expected = [(f"i am {n} .", "neutral", f"test/{n}") for n in range(3)]
    assert [(pair.second, pair.label, pair.id) for pair in found] == expected


# DialogStudio.


def exchange(user, system, user_info=None, system_info=None, **more):
    sides = {"original user side information": user_info or {}, "original system side information": system_info or {}}
    return {"user utterance": user, "system response": system, **sides, **more}


def studio(folder, dataset, *exchanges, **about):
    record = {"original dialog info": about, "log": list(exchanges)}
    write(folder / dataset, {"train.json": {f"{dataset}--train--1": record}})
    (dialogue,) = load_dialogues("dialogstudio", folder / dataset)  # the folder of one dataset does as well
    return dialogue


def test_dialogstudio_reads_a_dataset_beyond_the_twenty_without_labels(tmp_path):
    exchanges = (exchange("Hi", "Hello", "{ not looked at", {"frames": 3}), exchange("", "Still?"))
    dialogue = studio(tmp_path, "STAR", *exchanges)
    assert dialogue.turns == (Turn("user", "Hi"), Turn("assistant", "Hello"), Turn("assistant", "Still?"))
    assert dialogue.domains == ()


FRAMES = {"frames": [{"state": {"requested_slots": ["taxi-phone"], "slot_values": {"taxi-day": []}}}]}
NO_VALUES = {"Hotel-Inform": [["None", "none"]], "Booking-Inform": [], "general-bye": []}
TAGGED = {"slot-labels": ["O name name O", None], "intent": ["greeting<div>book", None]}


@pytest.mark.parametrize(
    ("dataset", "user", "expected", "intents"),
    [
        ("GECOR", {"slu": [{"act": "request", "slots": [["slot", "phone"], ["area", "north"]]}]},
         "request: phone=, north=", ()),
        ("GECOR", {"slu": [{"act": "inform", "slots": [["slot", "phone"], ["stars", 4]]}]},
         "inform: phone=, stars=4", ()),
        ("MULTIWOZ2_2", FRAMES, "inform, request: day=, phone=", ("find_taxi", "NONE")),
        ("DSTC2-Clean", {"turn_label": [["request", "phone"], ["", "any"]]}, "request: phone=", ()),
        ("MultiWOZ_2.1", {"dialog_act": NO_VALUES}, "inform, bye", ("find_taxi", "NONE")),
        ("MulDoGO", TAGGED, ": name=", ("greeting", "book")),
        ("SimJointMovie", {}, "", ()),
    ],
)  # fmt: skip
def test_what_users_say_in_dialogstudio(tmp_path, dataset, user, expected, intents):
    dialogue = studio(tmp_path, dataset, exchange("So", "ok", user, intent="find_taxi , NONE"), domain="airline")
    assert (labelled(dialogue), dialogue.turns[0].intents) == ([expected], intents)


def test_system_acts_of_hdsa_in_dialogstudio(tmp_path):
    acts = {"hotel-inform-area": "north", "hotel-inform-parking": "none", "booking-request-day": "?"}
    acts["general-reqmore-none"] = "none"
    dialogue = studio(tmp_path, "HDSA-Dialog", exchange("", "x", {}, {"sys_orig": "Which day?", "act": acts}))
    assert labelled(dialogue, "assistant") == ["inform, request, reqmore: area=north, parking=, day="]
    assert contents(dialogue) == ["Which day?"]
    assert dialogue.domains == ("hotel",)
