"""What every reader makes of small files made by hand in its format.

And what it says of records and files that are not as their format has them.
"""

import dataclasses
import gzip
import json
import shutil

import pytest
from made_up_corpora import expected_of, folder_of, pack, read, write

from hf_dialemb import Dialogue, InputError
from hf_dialemb.data import CORPORA, find_source, get_corpus, load_examples

NAMES = [name for name in CORPORA if name not in ("sample", "star_small")]


def every_item(name, data_dir):
    """Every item of every split as JSON."""
    found = [
        (split, item)
        for split in get_corpus(name).splits
        for item in load_examples(name, data_dir, split)
    ]
    plain = (
        dataclasses.asdict
        if get_corpus(name).kind not in ("dialogues", "utterances")
        else Dialogue.to_json
    )
    return json.loads(json.dumps([{"split": split, "item": plain(item)} for split, item in found]))


@pytest.mark.parametrize("name", NAMES)
def test_reads_what_the_format_says(name):
    assert find_source(get_corpus(name), folder_of(name).parent).path == folder_of(name)
    found = every_item(name, folder_of(name))
    assert found == expected_of(name)
    identifiers = [line["item"]["id"] for line in found if line["item"]["id"]]
    assert len(set(identifiers)) == len(identifiers)


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_and_files_packed_by_themselves_read_as_the_folder(name, tmp_path):
    folder = folder_of(name)
    # out of order on purpose
    files = (file for file in sorted(folder.rglob("*"), reverse=True) if file.is_file())
    contents = {str(file.relative_to(folder)): file.read_bytes() for file in files}
    for suffix in ("tar.gz", "zip", "tar.xz"):
        assert every_item(name, pack(tmp_path / f"packed.{suffix}", contents)) == expected_of(name)
    packed = {f"{file}.gz": gzip.compress(content) for file, content in contents.items()}
    assert every_item(name, write(tmp_path / folder.name, packed)) == expected_of(name)


TAXI, VAL = "taxi.txt", "multiwoz2.1_convlab2/val.json"
MULDOGO = "splits_annotated_at_turn_level/media/dev.tsv"
HWU64 = "Datasets/HWU64/train/seq.in"
CSE = "嗯|在吗\t谢谢\t1|0-1-0\t1\t在的|没有\t1|0\n"

# Corpus, split and file; what is replaced there, "" to append; by what; and what is said of the
# record.
RECORDS = [
    (
        "sgd",
        "dev",
        "dev/*.json",
        '"dialogue_id": "1_00000", ',
        "",
        ": record 0: got another form than expected (KeyError: 'dialogue_id')",
    ),
    (
        "sgd",
        "dev",
        "dev/*.json",
        '"turns": [',
        '"turns": [], "x": [',
        ": record 0: field messages: got no turn",
    ),
    (
        "sgd",
        "dev",
        "dev/*.json",
        "I'd buy a red kite.",
        " ",
        ": record 0: field content: got ' ', expected",
    ),
    (
        "multiwoz",
        "train",
        TAXI,
        "[{}, ",
        "[",
        ":1: field annotations: got 2, expected one for each of 3 turns",
    ),
    (
        "multiwoz",
        "train",
        TAXI,
        '{"Taxi-Request": [["Dest", "?"]]}',
        '"x"',
        ":1: got another form than expected (Attr",
    ),
    (
        "multiwoz",
        "train",
        TAXI,
        '["Dest", "?"]',
        '["Dest"]',
        ":1: got another form than expected (ValueE",
    ),
    (
        "doc2dial",
        "train",
        "*train.json",
        '"user"',
        '"robot"',
        ": record owls: document 'Feeding owls#1_0' record 0: got another form",
    ),
    (
        "jddc_retrieval",
        "dev",
        "dev/select.txt",
        "",
        "7\tb\t\t0\t9\n",
        ":5: got the id '9' of a candidate",
    ),
    (
        "jddc_sts",
        "dev",
        "dev/sts.txt",
        "",
        "high\ta\tb\n",
        ":3: field score: got 'high', expected a number",
    ),
    (
        "jddc_dialogues",
        "train",
        "train_data.txt",
        "",
        CSE.replace("-0", ""),
        ":2: field roles: got '1|0-1', expected ",
    ),
    (
        "jddc_dialogues",
        "train",
        "train_data.txt",
        "",
        CSE.replace("1|0\n", "0|1\n"),
        ":2: field labels: got '0|1', ex",
    ),
    (
        "muldogo",
        "dev",
        MULDOGO,
        "",
        "b\t0\t1\thi\tO\t\tmore\n",
        ":8: got a row with more cells than columns",
    ),
    (
        "muldogo",
        "dev",
        MULDOGO,
        "",
        "a3\t0\t1\thi\tO\t\n",
        ":8: field id: got 'a3', which an earlier record has too",
    ),
    (
        "chitchat",
        "all",
        "dataset.json",
        '"Only one"',
        "1",
        ": record conversation-0: got another form",
    ),
    (
        "clinc150",
        "train",
        "data_full.json",
        "translate",
        "jam",
        ": train record 0: got another form",
    ),
    (
        "hwu64",
        "train",
        "HWU64/train/label",
        "alarm_set",
        "alarm",
        f"{HWU64}:1: field label: got 'alarm', expe",
    ),
    ("hdsa", "dev", "dev.tsv", "[1, 1", "[1", ":5: got another form than expected (ValueError"),
    ("self_dialogue", "all", "Batch_5.csv", "", "x,W\n", ":4: got another form"),
]

# The same of a whole file, or of a record that concerns every split; None as the old text stands
# for all of the file, as the new one for no file.
WHOLE = [
    ("hdsa", "dev", "val_ref*", None, None, ": dev.tsv needs val_reference_nondelex.json too"),
    ("sgd", "dev", "dev/*.json", None, "{}", ": got an object, expected a list"),
    ("multiwoz", "train", VAL, None, "{}", f": split train needs {VAL} too"),
    ("clinc150", "train", "domains.json", None, None, ": domains.json is missing beside"),
    (
        "ubuntu_irc",
        "test",
        "test/*tion.txt",
        "2 2",
        "2 9",
        "data/test/2004-03-03_04.ascii.txt: got 4 messages, expect",
    ),
    (
        "ubuntu_irc",
        "test",
        "test/*tion.txt",
        "2 2",
        "2 two",
        ":4: got '2 two - ', expected two numbers",
    ),
    (
        "ubuntu_irc",
        "test",
        "test/*ascii.txt",
        "[13:00]",
        "x",
        ":1: got 'x <yew> sound is gone after the update', exp",
    ),
    (
        "ubuntu_irc",
        "test",
        "test/*tion.txt",
        None,
        None,
        "data/test/2004-03-03_04.ascii.txt: got messages without",
    ),
    ("snips", "train", "*Weather_full.json", "Bergen", "\ud83d", ": broken UTF-8 at byte"),
    (
        "snips",
        "train",
        "*Weather_full.json",
        None,
        '{"A": [], "B": []}',
        ": expected an object from the only",
    ),
    ("self_dialogue", "all", "Batch_5.csv", ",Reject", "", ":1: column Reject is missing"),
    ("doc2dial", "test", "test/*", '"dial_data"', '"x"', ": field dial_data: got nothing"),
    ("doc2dial", "test", "test/*", None, '{"dial_data": {"dmv": []}}', ": cannot be read"),
    ("dailydialog", "train", "dialogues.json", '"train"', '"valid"', ": cannot be read"),
    (
        "camrest676",
        "dev",
        "CamRest676.json",
        '"dialogue_id"',
        '"x"',
        ": record 0: got another form",
    ),
]


@pytest.mark.parametrize(
    "case", [case for case in (*RECORDS, *WHOLE) if case[0] in CORPORA], ids=lambda case: case[0]
)
def test_what_is_malformed_is_named_and_a_record_left_out(tmp_path, case):
    corpus, split, file, old, new, sentence = case
    folder = tmp_path / folder_of(corpus).name
    shutil.copytree(folder_of(corpus), folder)
    (path,) = folder.rglob(file)
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        content = json.dumps(json.loads(content))  # on one line
    changed = new if old is None else content.replace(old, new, 1) if old else content + new
    path.unlink()
    if changed is not None:
        assert changed != content
        path.write_bytes(changed.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError) as raised:
        load_examples(corpus, folder, split, strict=True)
    place, inner = (
        str(raised.value).removeprefix(str(folder)).lstrip("/"),
        path.relative_to(folder).as_posix(),
    )
    assert place.removeprefix(inner).startswith(sentence)
    if case in RECORDS:
        items = [line for line in expected_of(corpus) if split in (line["split"], "all")]
        assert len(load_examples(corpus, folder, split)) == len(items) - bool(old)


def test_malformed_records_are_left_out_with_one_warning_up_to_a_fifth(tmp_path, caplog):
    good = {
        "dialogue_id": "a",
        "services": [],
        "turns": [{"speaker": "USER", "utterance": "Hi", "frames": []}],
    }
    others = [{**good, "dialogue_id": str(number)} for number in range(16)]
    files = {
        "dev/dialogues_001.json": [{}, good, good, 3, *others, []],
        "dev/schema.json": "not a dialogue",
    }
    assert len(read(tmp_path, "sgd", files, "dev")) == 17
    (warning,) = [record.getMessage() for record in caplog.records]
    assert ": left out 4 of 21, which cannot be read:\n" in warning
    for records in ([{}, good, good, 3], [{}, 3]):
        files = {"dev/dialogues_001.json": records}
        with pytest.raises(
            InputError,
            match=r"of . cannot be read, expected at most a fifth; the first is .*record 0",
        ):
            read(tmp_path, "sgd", files, "dev")
