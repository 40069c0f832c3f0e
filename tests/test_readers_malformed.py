"""What readers say of records and files that are not as their format has them: the file, the place and the field."""

import copy
import json

import pytest
from made_up_corpora import read, refused, write

from hf_dialemb.corpora import load_dialogues, load_examples
from hf_dialemb.models.errors import InputError


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


def sgd(identifier):
    actions = [{"act": "INFORM", "slot": "city", "values": ["Oslo"]}, {"act": "REQUEST", "slot": "", "values": []}]
    frame = {"service": "Hotels_1", "actions": actions, "state": {"active_intent": "BookHotel"}}
    turns = [
        {"speaker": "USER", "utterance": "A room in Oslo", "frames": [frame]},
        {"speaker": "SYSTEM", "utterance": "Bye", "frames": []},
    ]
    return {"dialogue_id": identifier, "services": ["Hotels_1"], "turns": turns}


def extract(identifier):
    turns = ["Hello, how may I help you?", "A taxi", "Where to ?"]
    annotations = [{}, {"Taxi-Inform": [["Dest", "kfc"]]}, {"Taxi-Request": [["Dest", "?"]]}]
    return {"id": identifier, "domain": "taxi", "turns": turns, "annotations": annotations}


def doc2dial(identifier):
    turns = [{"role": "user", "utterance": "Hi"}, {"role": "agent", "utterance": "Hello", "da": "respond"}]
    return {"dial_id": identifier, "domain": "dmv", "turns": turns}


def option(identifier):
    return {"candidate-id": identifier, "utterance": f"say {identifier}"}


CORRECT = "options-for-correct-answers"


def dstc7(number):
    said = [{"speaker": "participant_2", "utterance": "hi"}]
    options = [option("A"), option("B")]
    return {"example-id": number, "messages-so-far": said, CORRECT: options[1:], "options-for-next": options}


# By corpus: split, file, the place of the second record, two good records, how a file holds records, what is malformed.
RECORDS = {
    "sgd": (
        ("dev", "dev/dialogues_001.json", ": record 1: ", sgd("a"), sgd("b"), list),
        [
            (("dialogue_id",), ..., "field dialogue_id: got nothing, expected str"),
            (("dialogue_id",), "a", "field id: got 'dev/a', which an earlier record has too"),
            (("services",), "Hotels_1", "field services: got str, expected list"),
            (("services",), [1], "field services: got 1 in the list, expected strings"),
            (("turns",), {}, "field turns: got dict, expected list"),
            (("turns",), [], "field messages: got no turn"),
            (("turns", 0), "hi", "turns[0]: got str, expected an object with the field speaker"),
            (("turns", 0, "speaker"), "BOT", "turns[0]: field speaker: got 'BOT', expected USER or SYSTEM"),
            (("turns", 0, "utterance"), "", "turns[0]: field content: got ''"),
            (("turns", 1, "utterance"), None, "field utterance: got NoneType, expected str"),
            (("turns", 0, "frames", 0, "actions", 1, "values"), "4", "turns[0]: field values: got str, expected list"),
            (("turns", 0, "frames", 0, "state"), [], "turns[0]: got list, expected an object with the field active_"),
        ],
    ),
    "multiwoz": (
        ("train", "multiwoz2.0_single_domain/dialogues/taxi.txt", ":2: ", extract("A"), extract("B"), "lines"),
        [
            (("id",), 3, "field id: got int, expected str"),
            (("domain",), ..., "field domain: got nothing"),
            (("turns", 1), None, "field turns: got None in the list, expected strings"),
            (("turns", 1), " ", "turns[0]: field content: got ' '"),
            (("annotations",), [], "field annotations: got 0, expected one for each of 3 turns"),
            (("annotations", 2), "x", "turns[1]: field dialog_act: got str, expected an object"),
            (
                ("annotations", 2, "Taxi-Request"),
                [["Dest"]],
                "turns[1]: field dialog_act: got ['Dest'], expected a pair",
            ),
        ],
    ),
    "doc2dial": (
        (
            *("test", "doc2dial_dial_finaltest.json", ": record dmv: document 'page' record 1: "),
            *(doc2dial("a"), doc2dial("b"), lambda records: {"dial_data": {"dmv": {"page": records}}}),
        ),
        [
            (("dial_id",), ..., "field dial_id: got nothing"),
            (("turns", 1, "role"), "robot", "turns[1]: field role: got 'robot', expected user or agent"),
            (("turns", 1, "utterance"), "", "turns[1]: field content: got ''"),
            (("turns", 1, "da"), 3, "turns[1]: field da: got int, expected str"),
        ],
    ),
    "dstc7_ubuntu": (
        ("train", "ubuntu_train_subtask_1.json", ": record 1: ", dstc7(1), dstc7(2), list),
        [
            ((CORRECT,), ..., f"field {CORRECT}: got nothing"),
            ((CORRECT,), [option("C")], "a correct answer is not among the candidates"),
            (("options-for-next",), [option("B"), {}], "options-for-next[1]: field candidate-id: got nothing"),
            (("messages-so-far", 0, "speaker"), "bot", "messages-so-far[0]: field speaker: got 'bot'"),
            (("messages-so-far",), [], "field context: got no turn"),
            (("example-id",), "7", "field example-id: got str, expected int"),
        ],
    ),
}


@pytest.mark.parametrize(
    ("corpus", "path", "value", "expected"),
    [(corpus, *change) for corpus, (_, changes) in RECORDS.items() for change in changes],
)
def test_a_malformed_record_is_named_or_left_out(tmp_path, corpus, path, value, expected):
    split, file, place, good, other, form = RECORDS[corpus][0]
    records = [good, changed(other, path, value)]
    content = "\n".join(map(json.dumps, records)) if form == "lines" else form(records)
    held_out = {f"multiwoz2.1_convlab2/{name}.json": {name: {}} for name in ("val", "test")}
    files = {file: content, **(held_out if corpus == "multiwoz" else {})}
    sentence = refused(tmp_path, corpus, files, split)
    assert sentence.startswith(file + place)
    assert expected in sentence
    assert len(read(tmp_path, corpus, files, split, skip_invalid=True)) == 1


CSE = ("嗯|在吗", "谢谢", "1|0-1-0", "1", "在的|没有", "1|0")


def cse(**changes):
    names = ("before", "after", "roles", "kind", "candidates", "labels")
    return "\t".join({**dict(zip(names, CSE, strict=True)), **changes}.values())


# By corpus: split, file, a good start of it, and malformed lines after that with the number of the line.
LINES = {
    "banking77": (
        ("train", "banking_data/train.csv", "text,category\nhi,card\n"),
        [
            ("a question", "3: field category: got nothing"),
            ("a question,", "3: got another number of cells"),
            ("a, question,card", "3: got another number of cells"),
        ],
    ),
    "ubuntu": (
        ("train", "train.csv", "Context,Utterance,Label\na,b,1\n"),
        [
            ("a,b,2", "3: field Label: got '2', expected 1 or 1.0 or 0 or 0.0"),
            ("a,b", "3: field Label: got nothing"),
            ("a,b,1,1", "3: got more cells than columns"),
            (" __eou__ __eot__,b,1", "3: field context: got no turn"),
            ("a, __eou__ ,1", "3: field responses: got ''"),
        ],
    ),
    "ecommerce": (
        ("train", "ECD_sample/train", "1\tx\ty\n"),
        [
            ("1\tb", "2: lines[0]: got 2 cells, expected a label, utterances and an answer"),
            ("2\ta\tb", "2: lines[0]: field label: got '2', expected 0 or 1"),
            ("1\ta\t", "2: field responses: got ''"),
            ("1\t\tb", "2: field content: got ''"),
        ],
    ),
    "jddc_retrieval": (
        ("dev", "dev/select.txt", "0\ta\t\t0\t0\n"),
        [
            ("1\tb\t\t0\t3", "2: field other: got '3', expected the id of a line"),
            ("1\tb\t\t\t0", "2: field relevant: got no candidate"),
            ("1\t \t\t0\t0", "2: field text: got ' '"),
            ("1\tb\t0\t0", "2: got 4 cells, expected 5"),
            ("0\tb\t\t0\t0", "2: field id: got 'dev/0', which an earlier record has too"),
        ],
    ),
    "jddc_sts": (
        ("dev", "dev/sts.txt", "2.5\ta\tb\n"),
        [
            (f"{score}\ta\tb", f"2: field score: got '{score}', expected a number")
            for score in ("", "high", "nan", "inf")
        ],
    ),
    "jddc_dialogues": (
        ("train", "train/train_data.txt", cse() + "\n"),
        [
            (cse(roles="1|0-1"), "2: field roles: got '1|0-1', expected one for each of 4 utterances in 3 parts"),
            (cse(roles="1-0|1-0"), "2: field roles: got '1-0|1-0', expected one for each of 4"),
            (cse(roles="1|2-1-0"), "2: field roles: got '2', expected 0 or 1"),
            (cse(labels="0|1"), "2: field labels: got '0|1', expected 1 for the first"),
            (cse(before="嗯|"), "2: field content: got ''"),
            (cse(kind="1\t1"), "2: got 7 cells, expected 6 with tabs between them"),
        ],
    ),
    "multiwoz22_text": (
        ("train", "multiwoz2.2_train_001_text/file.tsv", "B\tUSER\t\"hi\t['hotel, bus']\n"),
        [
            ("A\tUSER\thi", "2: turns[0]: field services: got nothing"),
            ("A\tUSER\thi\tNone\tmore", "2: turns[0]: got 'more' after the last column"),
            ("A\tuser\thi\tNone", "2: turns[0]: field speaker: got 'user', expected USER or SYSTEM"),
            ("A\tUSER\t\tNone", "2: turns[0]: field content: got ''"),
            ("A\tUSER\thi\thotel", "2: field services: got 'hotel', expected such as ['hotel, train']"),
        ],
    ),
    "dstc2_babi": (
        ("dev", "dialog-babi-task6-dstc2-dev.txt", "1 a\tb\n2 c\td\n\n1 a\tb\n"),
        [("3 e\tf", "4: lines[1]: got '3 e\\tf', expected a line that begins with 2")],
    ),
    "muldogo": (
        (
            "dev",
            "splits_annotated_at_turn_level/media/dev.tsv",
            "conversationId\tutterance\tslot-labels\tintent\na\thi\tO\t\n",
        ),
        [
            ("b\thi\tO\t\tmore", "3: rows[0]: got a row with more than 4 cells"),
            ("\thi\tO\t", "3: field conversationId: got an empty cell"),
        ],
    ),
    "msdc": (
        ("all", "movie_all.tsv", "session.ID\t\t\t\t\n2\t1\tt\tuser\tHi\n"),
        [
            *(
                (f"1\t{number}\tt\tuser\tHi", "3: field Message.ID: got ")
                for number in ("", "one", "-1", "1.5", "9" * 5_000)
            ),
            ("\t1\tt\tuser\tHi", "3: field session.ID: got an empty cell"),
        ],
    ),
}


@pytest.mark.parametrize(
    ("corpus", "line", "expected"), [(corpus, *line) for corpus, (_, lines) in LINES.items() for line in lines]
)
def test_a_malformed_line_is_named_or_left_out(tmp_path, corpus, line, expected):
    split, file, start = LINES[corpus][0]
    files = {file: f"{start}{line}\n"}
    assert refused(tmp_path, corpus, files, split).startswith(f"{file}:{expected}")
    assert len(read(tmp_path, corpus, files, split, skip_invalid=True)) == 1


def hdsa(*cells, replies=("no", "bye"), **changes):
    row = {"id": "A", "turn": "0", "database": "", "last": "so", "user": "hi", "acts": json.dumps([0] * 44), **changes}
    return {"dev.tsv": "\t".join((*row.values(), *cells)), "val_reference_nondelex.json": {"A": list(replies)}}


def atis(text, label, tags):
    return {f"ATIS/train/{name}": line for name, line in (("seq.in", text), ("label", label), ("seq.out", tags))}


def irc(messages, replies):
    files = {"test/log.ascii.txt": messages, "test/log.annotation.txt": replies}
    return {path: content for path, content in files.items() if content is not None}


def cut(answers):
    record = {key: value for key, value in dstc7(7).items() if key != CORRECT}
    return {"ubuntu_test_subtask_1.json": [record], "ubuntu_responses_subtask_1.tsv": answers}


def csv(header, row):
    return {"corpus/pop/batch.csv": f"AssignmentId,WorkerId,Answer.sentence1{header}\n{row}\n"}


WOZ = {"system_transcript": "", "system_acts": [], "transcript": "hi", "turn_label": []}
TWICE_SILENT = {"woz_validate_en.json": [{"dialogue_idx": 3, "dialogue": [WOZ, WOZ]}]}
ROBOT = {"dialogues/7.json": {"Events": [{"Agent": "Robot", "Action": "utter", "Text": "Beep"}]}}
NO_ACTS = {"X1": {"goal": {}, "log": [{"text": "hi", "dialog_act": {}}, {"text": "ok"}]}}
ROWS = {"original": [["agent", "hi"]] * 2, "delexed": [{"speaker": "agent", "text": "hi", "targets": []}]}
LISTS = {"data_full.json": {"train": [["say jam", "translate"]], "oos_train": [["sing", "oos"]]}}
NO_SERVICE = [{"dialogue_id": "1", "turns": [{"frames": []}, {"frames": [{}]}]}]
NO_TEST = {"multiwoz2.0_single_domain/dialogues/taxi.txt": "{}", "multiwoz2.1_convlab2/val.json": {"a": {}}}
NINE_ANSWERS = ",".join(["Context", "Ground Truth Utterance", *(f"Distractor_{number}" for number in range(8))])
VAL, SNIPS, DOC2DIAL = "multiwoz2.1_convlab2/val.json", "A/train_A_full.json", "doc2dial_dial_finaltest.json"

# By corpus and split: files, and what is said, after the first file's name if it begins with that.
FILES = {
    ("sgd", "dev"): [({"dev/dialogues_001.json": {}}, ": got an object, expected a list")],
    ("multiwoz", "dev"): [
        ({VAL: NO_ACTS}, ": record X1: log[1]: field dialog_act: got nothing"),
        ({VAL: []}, ": got a list, expected an object"),
    ],
    ("multiwoz", "train"): [(NO_TEST, ": split train needs multiwoz2.1_convlab2/test.json too")],
    ("woz2", "dev"): [(TWICE_SILENT, ": record 0: dialogue[1]: field content: got ''")],
    ("star", "all"): [(ROBOT, ": Events[0]: field Agent: got 'Robot', expected User or Wizard")],
    ("abcd", "train"): [
        ({"abcd_sample.json": [ROWS]}, ": record 0: field delexed: got 1 rows, expected one for each of 2 in original")
    ],
    ("ketod", "dev"): [({"dev.json": NO_SERVICE}, ": record 0: turns[1]: field service: got nothing")],
    ("clinc150", "train"): [
        (LISTS, ": got no domains.json, expected it beside"),
        (
            {**LISTS, "domains.json": {"a": []}},
            ": train record 0: field intent: got 'translate', which is in none of d",
        ),
    ],
    ("hwu64", "train"): [
        (
            {"HWU64/train/seq.in": "louder\n", "HWU64/train/label": "louder\n"},
            ":1: field label: got 'louder', expected scenario_intent",
        )
    ],
    ("amazonqa", "test"): [({"amazonqa.txt": "a question without an answer"}, ":1: got one cell")],
    ("few_shot_atis", "train"): [
        (atis("a b\n", "x\n", "O\n"), ":1: field tags: got 1, expected one for each of 2 words"),
        (atis("a\n", "x\n", "B-\n"), ":1: field tags: got 'B-', expected O, B-name or I-name"),
        (atis("a\n", "x\n", "O-b\n"), ":1: field tags: got 'O-b', expected"),
        (atis("a\n", "x\n", "E-b\n"), ":1: field tags: got 'E-b', expected"),
        (atis("a\n", "\n", "O\n"), ":1: field label: got an empty line"),
        (atis("\n", "x\n", "\n"), ":1: field content: got ''"),
        (atis("a\nb\n", "x\n", "O\nO\n"), ":2: ATIS/train/label has no such line"),
        (atis("", "x\n", "O\n"), "ATIS/train/label:1: ATIS/train/seq.in has no such line"),
    ],
    ("hdsa", "dev"): [
        (hdsa(turn="2"), ":1: turns[0]: field turn: got '2', expected 0"),
        (hdsa(acts="[0, 1]"), ":1: turns[0]: field acts: expected a list of 44 zeros and ones"),
        (hdsa(acts="[0"), ":1: turns[0]: field acts: broken JSON at column 3"),
        (hdsa("more"), ":1: turns[0]: got 'more' after the last column, expected 6 cells"),
        (hdsa(replies=[None]), ":1: field reference: got None in the list, expected strings"),
        (hdsa(replies=[]), ":1: field reference: got no reply, expected the last one"),
        (hdsa(id="B"), ":1: field reference: got NoneType, expected list"),
        ({"dev.tsv": "A"}, ": dev.tsv needs val_reference_nondelex.json too"),
    ],
    ("ubuntu_irc", "test"): [
        (irc("[10:00] <a> x\n", "0 1 -\n"), ": got 1 messages, expected message 1 too"),
        (irc("[10:00] <a> x\n", "0 one -\n"), "test/log.annotation.txt:1: got '0 one -', expected two numbers"),
        (irc("x\n", "0 0 -\n"), ":1: got 'x', expected '[HH:MM] <nick> text'"),
        (irc(None, "0 0 -\n"), ": got replies without messages"),
        (irc("[10:00] <a> x\n", None), ": got no replies for its messages"),
    ],
    ("dstc7_ubuntu", "test"): [
        (cut("6\tA\tno\n"), ": record 0: field example-id: got 7, which ubuntu_responses_subtask_1.tsv lacks"),
        (cut("7 A yes\n"), "ubuntu_responses_subtask_1.tsv:1: got one cell"),
    ],
    ("ubuntu", "test"): [({"test.csv": f"{NINE_ANSWERS}\n"}, ":1: column Distractor_8 is missing")],
    ("snips", "train"): [
        ({SNIPS: b'{"A": [{"data": [{"text": "\xed\xa0\xbd"}]}]}'}, ": broken UTF-8 at byte"),
        ({SNIPS: b'{"A": [{"data": [{"text": "\xe9"}]}]}'}, ": broken UTF-8 at byte"),
        ({SNIPS: {"A": [], "B": []}}, ": got no object with one intent"),
    ],
    ("self_dialogue", "all"): [
        (csv(",Reject", "x,W"), ": row 1: got a row with too few or too many cells"),
        (csv(",Reject", ",W,Hi,"), ": row 1: field AssignmentId: got an empty cell"),
        (csv("", "a,W,Hi"), ": column Reject is missing"),
    ],
    ("doc2dial", "test"): [
        ({DOC2DIAL: []}, ": got a list"),
        ({DOC2DIAL: {}}, ": field dial_data: got nothing"),
        ({DOC2DIAL: {"dial_data": {"dmv": []}}}, ": record dmv: field dmv: got list"),
        ({DOC2DIAL: {"dial_data": {"dmv": {"p": 1}}}}, ": record dmv: field p: got int"),
    ],
}


@pytest.mark.parametrize(
    ("corpus", "split", "files", "expected"), [(*where, *file) for where, files in FILES.items() for file in files]
)
def test_a_malformed_file_is_told(tmp_path, corpus, split, files, expected):
    sentence = refused(tmp_path, corpus, files, split)
    assert sentence.removeprefix(next(iter(files))).startswith(expected), sentence


def dailydialog(split):
    labels = {"binary": []}
    turns = [{"speaker": "user", "utterance": "Hello.", "dialogue_acts": labels}]
    return {"dialogue_id": f"d-{split}", "data_split": split, "domains": ["Work"], "turns": turns}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_record_of_no_split_is_told_whichever_is_read(tmp_path, split):
    records = {
        "dailydialog": (
            "data/dialogues.json",
            dailydialog("valid"),
            "field data_split: got 'valid', expected train or",
        ),
        "dstc2": ("data.json", dailydialog("dev"), "field data_split: got 'dev', expected train or val or test"),
        "camrest676": ("CamRest676.json", {"dial": []}, "field dialogue_id: got nothing"),
    }
    for corpus, (file, record, expected) in records.items():
        assert refused(tmp_path, corpus, {file: [record]}, split).startswith(f"{file}: record 0: {expected}")


def test_malformed_records_are_left_out_with_one_warning(tmp_path, caplog):
    files = {"dev/dialogues_001.json": [{}, sgd("a"), sgd("a"), 3], "dev/schema.json": "not a dialogue"}
    assert [dialogue.id for dialogue in read(tmp_path, "sgd", files, "dev", skip_invalid=True)] == ["dev/a"]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith(f"Skipped 3 malformed record(s):\n  {tmp_path}/sgd/dev/dialogues_001.json: record 0")
    assert warning.count("dialogues_001.json: record") == 3


def test_ids_are_unique_over_the_files_of_a_split(tmp_path):
    header = "conversationId\tutterance\tslot-labels\tintent\na\thi\tO\t\n"
    files = {f"splits_annotated_at_turn_level/{domain}/dev.tsv": header for domain in ("airline", "media")}
    assert refused(tmp_path, "muldogo", files, "dev").startswith(
        "splits_annotated_at_turn_level/media/dev.tsv:2: field id: got 'a', which an earlier record has too"
    )


@pytest.mark.parametrize("text", ["", "{", "nul", "[1]", "3", "[" * 100_000])
def test_side_information_of_dialogstudio_that_is_no_object(tmp_path, text):
    side = "original user side information"
    log = {"user utterance": "Hi", "system response": "Hi", side: text, "original system side information": {}}
    record = {"original dialog info": {}, "log": [{**log, side: {}}, log]}
    sentence = refused(tmp_path, "dialogstudio", {"a/WOZ2_0/train.json": {"WOZ2_0--train--1": record}})
    assert sentence.startswith(f"a/WOZ2_0/train.json: record WOZ2_0--train--1: log[1]: field {side}: ")


@pytest.mark.parametrize("name", ["ubuntu", "ecommerce_sts"])
def test_what_holds_no_dialogues_is_not_read_as_such(name, tmp_path):
    with pytest.raises(InputError, match=r"holds (response-selection|sentence-pairs), expected dialogues"):
        load_dialogues(name, tmp_path)


def test_what_is_not_at_hand_is_told_by_its_patterns(tmp_path):
    write(tmp_path / "metalwoz", {"dialogues/hotel.txt": "{}"})
    with pytest.raises(InputError, match=r"split train of corpus metalwoz gave nothing; looked for dialogues/\[A-Z\]"):
        load_examples("metalwoz", tmp_path)
