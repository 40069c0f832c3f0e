"""What readers say of records and files that are not as their format has them: the file, the place and the field."""

import copy
import functools
import json
import operator

import pytest
from made_up_corpora import read, refused

SPLITS = ("train", "dev", "test")
TAXI = "multiwoz2.0_single_domain/dialogues/taxi.txt"
VAL, TEST = "multiwoz2.1_convlab2/val.json", "multiwoz2.1_convlab2/test.json"
AIRLINE, MEDIA = (f"splits_annotated_at_turn_level/{domain}/dev.tsv" for domain in ("airline", "media"))
DOC2DIAL, ONE_TURN = "doc2dial_dial_finaltest.json", "conversationId\tutterance\tslot-labels\tintent\na\thi\tO\t\n"
SO_FAR, CORRECT, NEXT = "messages-so-far", "options-for-correct-answers", "options-for-next"
FRAME, REQUEST = ("turns", 0, "frames", 0), ("annotations", 2, "Taxi-Request")
SIDE, NO_OBJECTS = "original user side information", ("", "{", "nul", "[1]", "3", "[" * 100_000)
SCORES, NO_NUMBERS = ("", "high", "nan", "inf"), ("", "one", "-1", "1.5", "9" * 5_000)


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


def dstc7(number):
    said = [{"speaker": "participant_2", "utterance": "hi"}]
    return {"example-id": number, SO_FAR: said, CORRECT: [option("B")], NEXT: [option("A"), option("B")]}


# By corpus: split, file, the place of the second record, two good records, and how a file holds records.
RECORDS = {
    "sgd": ("dev", "dev/dialogues_001.json", ": record 1: ", sgd("a"), sgd("b"), list),
    "multiwoz": ("train", TAXI, ":2: ", extract("A"), extract("B"), "lines"),
    "doc2dial": ("test", DOC2DIAL, ": record dmv: document 'page' record 1: ", doc2dial("a"), doc2dial("b"),
                 lambda records: {"dial_data": {"dmv": {"page": records}}}),
    "dstc7_ubuntu": ("train", "ubuntu_train_subtask_1.json", ": record 1: ", dstc7(1), dstc7(2), list),
}  # fmt: skip
# By corpus: what is changed in the second record, ... for removed, and what is said.
CHANGES = [
    ("sgd", ["dialogue_id"], ..., "field dialogue_id: got nothing, expected str"),
    ("sgd", ["dialogue_id"], "a", "field id: got 'dev/a', which an earlier record has too"),
    ("sgd", ["services"], "Hotels_1", "field services: got str, expected list"),
    ("sgd", ["services"], [1], "field services: got 1 in the list, expected strings"),
    ("sgd", ["turns"], {}, "field turns: got dict, expected list"),
    ("sgd", ["turns"], [], "field messages: got no turn"),
    ("sgd", ["turns", 0], "hi", "turns[0]: got str, expected an object with the field speaker"),
    ("sgd", ["turns", 0, "speaker"], "BOT", "turns[0]: field speaker: got 'BOT', expected USER or SYSTEM"),
    ("sgd", ["turns", 0, "utterance"], "", "turns[0]: field content: got ''"),
    ("sgd", ["turns", 1, "utterance"], None, "field utterance: got NoneType, expected str"),
    ("sgd", [*FRAME, "actions", 1, "values"], "4", "turns[0]: field values: got str, expected list"),
    ("sgd", [*FRAME, "state"], [], "turns[0]: got list, expected an object with the field active_"),
    ("multiwoz", ["id"], 3, "field id: got int, expected str"),
    ("multiwoz", ["domain"], ..., "field domain: got nothing"),
    ("multiwoz", ["turns", 1], None, "field turns: got None in the list, expected strings"),
    ("multiwoz", ["turns", 1], " ", "turns[0]: field content: got ' '"),
    ("multiwoz", ["annotations"], [], "field annotations: got 0, expected one for each of 3 turns"),
    ("multiwoz", ["annotations", 2], "x", "turns[1]: field dialog_act: got str, expected an object"),
    ("multiwoz", REQUEST, [["Dest"]], "turns[1]: field dialog_act: got ['Dest'], expected a pair"),
    ("doc2dial", ["dial_id"], ..., "field dial_id: got nothing"),
    ("doc2dial", ["turns", 1, "role"], "robot", "turns[1]: field role: got 'robot', expected user or agent"),
    ("doc2dial", ["turns", 1, "utterance"], "", "turns[1]: field content: got ''"),
    ("doc2dial", ["turns", 1, "da"], 3, "turns[1]: field da: got int, expected str"),
    ("dstc7_ubuntu", [CORRECT], ..., f"field {CORRECT}: got nothing"),
    ("dstc7_ubuntu", [CORRECT], [option("C")], "a correct answer is not among the candidates"),
    ("dstc7_ubuntu", [NEXT], [option("B"), {}], f"{NEXT}[1]: field candidate-id: got nothing"),
    ("dstc7_ubuntu", [SO_FAR, 0, "speaker"], "bot", f"{SO_FAR}[0]: field speaker: got 'bot'"),
    ("dstc7_ubuntu", [SO_FAR], [], "field context: got no turn"),
    ("dstc7_ubuntu", ["example-id"], "7", "field example-id: got str, expected int"),
]


@pytest.mark.parametrize(("corpus", "path", "value", "expected"), CHANGES)
def test_a_malformed_record_is_named_or_left_out(tmp_path, corpus, path, value, expected):
    split, file, place, good, other, form = RECORDS[corpus]
    other = copy.deepcopy(other)
    inner = functools.reduce(operator.getitem, path[:-1], other)
    inner[path[-1]] = value
    if value is ...:
        del inner[path[-1]]
    content = "\n".join(map(json.dumps, [good, other])) if form == "lines" else form([good, other])
    files = {file: content} | ({VAL: {"val": {}}, TEST: {"test": {}}} if corpus == "multiwoz" else {})
    sentence = refused(tmp_path, corpus, files, split)
    assert sentence.startswith(file + place)
    assert expected in sentence
    assert len(read(tmp_path, corpus, files, split, skip_invalid=True)) == 1


def cse(**changes):
    good = {
        "before": "嗯|在吗",
        "after": "谢谢",
        "roles": "1|0-1-0",
        "kind": "1",
        "candidates": "在的|没有",
        "labels": "1|0",
    }
    return "\t".join((good | changes).values())


# By corpus: split, file, and a good start of it.
STARTS = {
    "banking77": ("train", "banking_data/train.csv", "text,category\nhi,card\n"),
    "ubuntu": ("train", "train.csv", "Context,Utterance,Label\na,b,1\n"),
    "ecommerce": ("train", "ECD_sample/train", "1\tx\ty\n"),
    "jddc_retrieval": ("dev", "dev/select.txt", "0\ta\t\t0\t0\n"),
    "jddc_sts": ("dev", "dev/sts.txt", "2.5\ta\tb\n"),
    "jddc_dialogues": ("train", "train/train_data.txt", cse() + "\n"),
    "multiwoz22_text": ("train", "multiwoz2.2_train_001_text/file.tsv", "B\tUSER\t\"hi\t['hotel, bus']\n"),
    "dstc2_babi": ("dev", "dialog-babi-task6-dstc2-dev.txt", "1 a\tb\n2 c\td\n\n1 a\tb\n"),
    "muldogo": ("dev", MEDIA, ONE_TURN),
    "msdc": ("all", "movie_all.tsv", "session.ID\t\t\t\t\n2\t1\tt\tuser\tHi\n"),
}
# Malformed lines after that, and what is said after the file's name.
LINES = [
    ("banking77", "a question", "3: field category: got nothing"),
    ("banking77", "a question,", "3: got another number of cells"),
    ("banking77", "a, question,card", "3: got another number of cells"),
    ("ubuntu", "a,b,2", "3: field Label: got '2', expected 1 or 1.0 or 0 or 0.0"),
    ("ubuntu", "a,b", "3: field Label: got nothing"),
    ("ubuntu", "a,b,1,1", "3: got more cells than columns"),
    ("ubuntu", " __eou__ __eot__,b,1", "3: field context: got no turn"),
    ("ubuntu", "a, __eou__ ,1", "3: field responses: got ''"),
    ("ecommerce", "1\tb", "2: lines[0]: got 2 cells, expected a label, utterances and an answer"),
    ("ecommerce", "2\ta\tb", "2: lines[0]: field label: got '2', expected 0 or 1"),
    ("ecommerce", "1\ta\t", "2: field responses: got ''"),
    ("ecommerce", "1\t\tb", "2: field content: got ''"),
    ("jddc_retrieval", "1\tb\t\t0\t3", "2: field other: got '3', expected the id of a line"),
    ("jddc_retrieval", "1\tb\t\t\t0", "2: field relevant: got no candidate"),
    ("jddc_retrieval", "1\t \t\t0\t0", "2: field text: got ' '"),
    ("jddc_retrieval", "1\tb\t0\t0", "2: got 4 cells, expected 5"),
    ("jddc_retrieval", "0\tb\t\t0\t0", "2: field id: got 'dev/0', which an earlier record has too"),
    *(("jddc_sts", f"{score}\ta\tb", f"2: field score: got '{score}', expected a number") for score in SCORES),
    ("jddc_dialogues", cse(roles="1|0-1"), "2: field roles: got '1|0-1', expected one for each of 4 utterances in "
     "3 parts"),
    ("jddc_dialogues", cse(roles="1-0|1-0"), "2: field roles: got '1-0|1-0', expected one for each of 4"),
    ("jddc_dialogues", cse(roles="1|2-1-0"), "2: field roles: got '2', expected 0 or 1"),
    ("jddc_dialogues", cse(labels="0|1"), "2: field labels: got '0|1', expected 1 for the first"),
    ("jddc_dialogues", cse(before="嗯|"), "2: field content: got ''"),
    ("jddc_dialogues", cse(kind="1\t1"), "2: got 7 cells, expected 6 with tabs between them"),
    ("multiwoz22_text", "A\tUSER\thi", "2: turns[0]: field services: got nothing"),
    ("multiwoz22_text", "A\tUSER\thi\tNone\tmore", "2: turns[0]: got 'more' after the last column"),
    ("multiwoz22_text", "A\tuser\thi\tNone", "2: turns[0]: field speaker: got 'user', expected USER or SYSTEM"),
    ("multiwoz22_text", "A\tUSER\t\tNone", "2: turns[0]: field content: got ''"),
    ("multiwoz22_text", "A\tUSER\thi\thotel", "2: field services: got 'hotel', expected such as ['hotel, train']"),
    ("dstc2_babi", "3 e\tf", "4: lines[1]: got '3 e\\tf', expected a line that begins with 2"),
    ("muldogo", "b\thi\tO\t\tmore", "3: rows[0]: got a row with more than 4 cells"),
    ("muldogo", "\thi\tO\t", "3: field conversationId: got an empty cell"),
    *(("msdc", f"1\t{number}\tt\tuser\tHi", "3: field Message.ID: got ") for number in NO_NUMBERS),
    ("msdc", "\t1\tt\tuser\tHi", "3: field session.ID: got an empty cell"),
]  # fmt: skip


@pytest.mark.parametrize(("corpus", "line", "expected"), LINES)
def test_a_malformed_line_is_named_or_left_out(tmp_path, corpus, line, expected):
    split, file, start = STARTS[corpus]
    files = {file: f"{start}{line}\n"}
    assert refused(tmp_path, corpus, files, split).startswith(f"{file}:{expected}")
    assert len(read(tmp_path, corpus, files, split, skip_invalid=True)) == 1


def hdsa(*cells, replies=("no", "bye"), **changes):
    row = {"id": "A", "turn": "0", "database": "", "last": "so", "user": "hi", "acts": json.dumps([0] * 44), **changes}
    return {"dev.tsv": "\t".join((*row.values(), *cells)), "val_reference_nondelex.json": {"A": list(replies)}}


def atis(text, label, tags):
    return {"ATIS/train/seq.in": text, "ATIS/train/label": label, "ATIS/train/seq.out": tags}


def cut(answers):
    record = {key: value for key, value in dstc7(7).items() if key != CORRECT}
    return {"ubuntu_test_subtask_1.json": [record], "ubuntu_responses_subtask_1.tsv": answers}


def csv(header, row):
    return {"corpus/pop/batch.csv": f"AssignmentId,WorkerId,Answer.sentence1{header}\n{row}\n"}


def daily(split):
    turns = [{"speaker": "user", "utterance": "Hello.", "dialogue_acts": {"binary": []}}]
    return [{"dialogue_id": f"d-{split}", "data_split": split, "domains": ["Work"], "turns": turns}]


def studio(text):
    log = {"user utterance": "Hi", "system response": "Hi", SIDE: text, "original system side information": {}}
    return {"a/WOZ2_0/train.json": {"WOZ2_0--1": {"original dialog info": {}, "log": [{**log, SIDE: {}}, log]}}}


SILENT = {"system_transcript": "", "system_acts": [], "transcript": "hi", "turn_label": []}
ROBOT = {"Events": [{"Agent": "Robot", "Action": "utter", "Text": "Beep"}]}
NO_ACTS = {"X1": {"goal": {}, "log": [{"text": "hi", "dialog_act": {}}, {"text": "ok"}]}}
ROWS = {"original": [["agent", "hi"]] * 2, "delexed": [{"speaker": "agent", "text": "hi", "targets": []}]}
LISTS = {"data_full.json": {"train": [["say jam", "translate"]], "oos_train": [["sing", "oos"]]}}
NO_SERVICE = {"dialogue_id": "1", "turns": [{"frames": []}, {"frames": [{}]}]}
NO_SCENARIO = {"HWU64/train/seq.in": "louder\n", "HWU64/train/label": "louder\n"}
NINE_ANSWERS = ",".join(["Context", "Ground Truth Utterance", *(f"Distractor_{number}" for number in range(8))])
SNIPS, LOG, REPLIES = "A/train_A_full.json", "test/log.ascii.txt", "test/log.annotation.txt"
HALF = {SNIPS: b'{"A": [{"data": [{"text": "\xed\xa0\xbd"}]}]}'}

# Corpus, split, files, and what is said, after the first file's name if it begins with that.
FILES = [
    ("sgd", "dev", {"dev/dialogues_001.json": {}}, ": got an object, expected a list"),
    ("multiwoz", "dev", {VAL: NO_ACTS}, ": record X1: log[1]: field dialog_act: got nothing"),
    ("multiwoz", "dev", {VAL: []}, ": got a list, expected an object"),
    ("multiwoz", "train", {TAXI: "{}", VAL: {"a": {}}}, f": split train needs {TEST} too"),
    ("woz2", "dev", {"woz_validate_en.json": [{"dialogue_idx": 3, "dialogue": [SILENT] * 2}]},
     ": record 0: dialogue[1]: field content: got ''"),
    ("star", "all", {"dialogues/7.json": ROBOT}, ": Events[0]: field Agent: got 'Robot', expected User or Wizard"),
    ("abcd", "train", {"abcd_sample.json": [ROWS]},
     ": record 0: field delexed: got 1 rows, expected one for each of 2 in original"),
    ("ketod", "dev", {"dev.json": [NO_SERVICE]}, ": record 0: turns[1]: field service: got nothing"),
    ("clinc150", "train", LISTS, ": got no domains.json, expected it beside"),
    ("clinc150", "train", {**LISTS, "domains.json": {"a": []}},
     ": train record 0: field intent: got 'translate', which is in none of d"),
    ("hwu64", "train", NO_SCENARIO, ":1: field label: got 'louder', expected scenario_intent"),
    ("amazonqa", "test", {"amazonqa.txt": "a question without an answer"}, ":1: got one cell"),
    ("few_shot_atis", "train", atis("a b\n", "x\n", "O\n"), ":1: field tags: got 1, expected one for each of 2 words"),
    ("few_shot_atis", "train", atis("a\n", "x\n", "B-\n"), ":1: field tags: got 'B-', expected O, B-name or I-name"),
    ("few_shot_atis", "train", atis("a\n", "x\n", "O-b\n"), ":1: field tags: got 'O-b', expected"),
    ("few_shot_atis", "train", atis("a\n", "x\n", "E-b\n"), ":1: field tags: got 'E-b', expected"),
    ("few_shot_atis", "train", atis("a\n", "\n", "O\n"), ":1: field label: got an empty line"),
    ("few_shot_atis", "train", atis("\n", "x\n", "\n"), ":1: field content: got ''"),
    ("few_shot_atis", "train", atis("a\nb\n", "x\n", "O\nO\n"), ":2: ATIS/train/label has no such line"),
    ("few_shot_atis", "train", atis("", "x\n", "O\n"), "ATIS/train/label:1: ATIS/train/seq.in has no such line"),
    ("hdsa", "dev", hdsa(turn="2"), ":1: turns[0]: field turn: got '2', expected 0"),
    ("hdsa", "dev", hdsa(acts="[0, 1]"), ":1: turns[0]: field acts: expected a list of 44 zeros and ones"),
    ("hdsa", "dev", hdsa(acts="[0"), ":1: turns[0]: field acts: broken JSON at column 3"),
    ("hdsa", "dev", hdsa("more"), ":1: turns[0]: got 'more' after the last column, expected 6 cells"),
    ("hdsa", "dev", hdsa(replies=[None]), ":1: field reference: got None in the list, expected strings"),
    ("hdsa", "dev", hdsa(replies=[]), ":1: field reference: got no reply, expected the last one"),
    ("hdsa", "dev", hdsa(id="B"), ":1: field reference: got NoneType, expected list"),
    ("hdsa", "dev", {"dev.tsv": "A"}, ": dev.tsv needs val_reference_nondelex.json too"),
    ("ubuntu_irc", "test", {LOG: "[10:00] <a> x\n", REPLIES: "0 1 -\n"}, ": got 1 messages, expected message 1 too"),
    ("ubuntu_irc", "test", {LOG: "[10:00] <a> x\n", REPLIES: "0 one -\n"},
     f"{REPLIES}:1: got '0 one -', expected two numbers"),
    ("ubuntu_irc", "test", {LOG: "x\n", REPLIES: "0 0 -\n"}, ":1: got 'x', expected '[HH:MM] <nick> text'"),
    ("ubuntu_irc", "test", {REPLIES: "0 0 -\n"}, ": got replies without messages"),
    ("ubuntu_irc", "test", {LOG: "[10:00] <a> x\n"}, ": got no replies for its messages"),
    ("dstc7_ubuntu", "test", cut("6\tA\tno\n"),
     ": record 0: field example-id: got 7, which ubuntu_responses_subtask_1.tsv lacks"),
    ("dstc7_ubuntu", "test", cut("7 A yes\n"), "ubuntu_responses_subtask_1.tsv:1: got one cell"),
    ("ubuntu", "test", {"test.csv": f"{NINE_ANSWERS}\n"}, ":1: column Distractor_8 is missing"),
    ("snips", "train", HALF, ": broken UTF-8 at byte"),
    ("snips", "train", {SNIPS: b'{"A": [{"data": [{"text": "\xe9"}]}]}'}, ": broken UTF-8 at byte"),
    ("snips", "train", {SNIPS: {"A": [], "B": []}}, ": got no object with one intent"),
    ("self_dialogue", "all", csv(",Reject", "x,W"), ": row 1: got a row with too few or too many cells"),
    ("self_dialogue", "all", csv(",Reject", ",W,Hi,"), ": row 1: field AssignmentId: got an empty cell"),
    ("self_dialogue", "all", csv("", "a,W,Hi"), ": column Reject is missing"),
    ("doc2dial", "test", {DOC2DIAL: []}, ": got a list"),
    ("doc2dial", "test", {DOC2DIAL: {}}, ": field dial_data: got nothing"),
    ("doc2dial", "test", {DOC2DIAL: {"dial_data": {"dmv": []}}}, ": record dmv: field dmv: got list"),
    ("doc2dial", "test", {DOC2DIAL: {"dial_data": {"dmv": {"p": 1}}}}, ": record dmv: field p: got int"),
    *(("dialogstudio", "all", studio(text), f": record WOZ2_0--1: log[1]: field {SIDE}: ") for text in NO_OBJECTS),
    # A record of no split is told whichever is read, and ids are unique over the files of a split.
    *(("dailydialog", split, {"data/dialogues.json": daily("valid")},
       ": record 0: field data_split: got 'valid', expected train or") for split in SPLITS),
    *(("dstc2", split, {"data.json": daily("dev")},
       ": record 0: field data_split: got 'dev', expected train or val or test") for split in SPLITS),
    *(("camrest676", split, {"CamRest676.json": [{"dial": []}]}, ": record 0: field dialogue_id: got nothing")
      for split in SPLITS),
    ("muldogo", "dev", {AIRLINE: ONE_TURN, MEDIA: ONE_TURN},
     f"{MEDIA}:2: field id: got 'a', which an earlier record has too"),
]  # fmt: skip


@pytest.mark.parametrize(("corpus", "split", "files", "expected"), FILES)
def test_a_malformed_file_is_told(tmp_path, corpus, split, files, expected):
    sentence = refused(tmp_path, corpus, files, split)
    assert sentence.removeprefix(next(iter(files))).startswith(expected), sentence


def test_malformed_records_are_left_out_with_one_warning(tmp_path, caplog):
    files = {"dev/dialogues_001.json": [{}, sgd("a"), sgd("a"), 3], "dev/schema.json": "not a dialogue"}
    assert [dialogue.id for dialogue in read(tmp_path, "sgd", files, "dev", skip_invalid=True)] == ["dev/a"]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith(f"Skipped 3 malformed record(s):\n  {tmp_path}/sgd/dev/dialogues_001.json: record 0")
    assert warning.count("dialogues_001.json: record") == 3
