"""Facts about the readers of chats without slots and of utterances with intents, on small files of their formats."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from hf_dialemb.corpora import get_corpus, iterate_dialogues, load_dialogues
from hf_dialemb.models.errors import InputError

FILES = Path(__file__).parent / "corpora_files"


def write(folder, files):
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        file.write_bytes(content)


def contents(dialogue):
    return [turn.content for turn in dialogue.turns]


def daily(split, acts=("Inform",), **more):
    labels = {"binary": [{"intent": act, "domain": "", "slot": ""} for act in acts]}
    turn = {"speaker": "user", "utterance": "Hello.", "dialogue_acts": labels, "emotion": "happiness"}
    return {"dialogue_id": f"d-{split}", "data_split": split, "domains": ["Work"], "turns": [turn], **more}


def test_dailydialog_takes_each_split_out_of_one_file(tmp_path):
    write(tmp_path / "dailydialog", {"data/dialogues.json": [daily("test"), daily("validation"), daily("train")]})
    assert [dialogue.id for dialogue in load_dialogues("dailydialog", tmp_path, "all")] == [
        "d-train",
        "d-validation",
        "d-test",
    ]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_dailydialog_refuses_a_dialogue_of_no_split_whichever_is_read(tmp_path, split):
    write(tmp_path / "dailydialog", {"data/dialogues.json": [daily("valid")]})
    with pytest.raises(InputError, match="record 0: field data_split: got 'valid', expected train or validation or"):
        load_dialogues("dailydialog", tmp_path, split)


def test_dailydialog_acts_are_lower_cased_and_named_once(tmp_path):
    write(tmp_path / "dailydialog", {"data/dialogues.json": [daily("train", ("Inform", "question", "inform"))]})
    (dialogue,) = load_dialogues("dailydialog", tmp_path)
    assert dialogue.turns[0].dialogue_acts == ("inform", "question")


def irc(folder, messages, links, split="dev"):
    replies = "".join(f"{one} {other} -\n" for one, other in links)
    files = {
        f"{split}/log.ascii.txt": "".join(f"{line}\n" for line in messages),
        f"{split}/log.annotation.txt": replies,
    }
    write(folder / "ubuntu_irc", files)
    return load_dialogues("ubuntu_irc", folder, split)


ASKED = ["[10:00] <a> is it on?", "[10:01] <b> yes", "[10:02] <a> is it?", "[10:03] <c> it is"]


def test_ubuntu_irc_follows_replies_in_any_order_and_direction(tmp_path):
    (dialogue,) = irc(tmp_path, ASKED, [(1, 2), (3, 3), (1, 0), (2, 2)])
    assert dialogue.id == "dev/log/0"
    assert [(turn.role, turn.content) for turn in dialogue.turns] == [
        ("user", "is it on?"),
        ("assistant", "yes"),
        ("user", "is it?"),
    ]


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
    with pytest.raises(InputError, match="gave nothing"):
        irc(tmp_path, [*ASKED[:3], line], links)


def test_ubuntu_irc_takes_actions_for_messages(tmp_path):
    (dialogue,) = irc(tmp_path, [*ASKED[:2], "[10:02]  * a nods <slowly>"], [(0, 1), (1, 2)])
    assert dialogue.turns[2].role == "user"
    assert dialogue.turns[2].content == "nods <slowly>"


@pytest.mark.parametrize(
    ("messages", "replies", "expected"),
    [
        ("[10:00] <a> x\n", "0 1 -\n", "log.ascii.txt: got 1 messages, expected message 1 too"),
        ("[10:00] <a> x\n", "0 one -\n", "log.annotation.txt:1: got '0 one -', expected two numbers"),
        ("x\n", "0 0 -\n", "log.ascii.txt:1: got 'x', expected '[HH:MM] <nick> text'"),
        (None, "0 0 -\n", "log.annotation.txt: got replies without messages"),
        ("[10:00] <a> x\n", None, "log.ascii.txt: got no replies for its messages"),
    ],
)
def test_ubuntu_irc_broken_files(tmp_path, messages, replies, expected):
    files = {"test/log.ascii.txt": messages, "test/log.annotation.txt": replies}
    write(tmp_path / "ubuntu_irc", {path: content for path, content in files.items() if content is not None})
    with pytest.raises(InputError) as raised:
        load_dialogues("ubuntu_irc", tmp_path, "test", skip_invalid=True)
    assert f"{tmp_path}/ubuntu_irc/test/{expected}" in str(raised.value)


def cse(folder, **changes):
    cells = {
        "before": "嗯|在吗",
        "after": "谢谢",
        "roles": "1|0-1-0",
        "kind": "1",
        "candidates": "在的|没有",
        "labels": "1|0",
    }
    write(folder / "jddc", {"train/train_data.txt": "\t".join({**cells, **changes}.values()) + "\n"})
    return load_dialogues("jddc_dialogues", folder)


def test_dialogue_cse_puts_the_utterance_between_what_comes_before_and_after(tmp_path):
    (dialogue,) = cse(tmp_path)
    assert contents(dialogue) == ["嗯", "在吗", "在的", "谢谢"]
    assert [turn.role for turn in dialogue.turns] == ["assistant", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"roles": "1|0-1"}, "field roles: got '1|0-1', expected one for each of 4 utterances in 3 parts"),
        ({"roles": "1-0|1-0"}, "field roles: got '1-0|1-0', expected one for each of 4"),
        ({"roles": "1|2-1-0"}, "field roles: got '2', expected 0 or 1"),
        ({"labels": "0|1"}, "field labels: got '0|1', expected 1 for the first"),
        ({"before": "嗯|"}, "field content: got ''"),
        ({"kind": "1\t1"}, "got 7 cells, expected 6 with tabs between them"),
    ],
)
def test_dialogue_cse_malformed_line(tmp_path, changes, expected):
    with pytest.raises(InputError) as raised:
        cse(tmp_path, **changes)
    assert str(raised.value).startswith(f"{tmp_path}/jddc/train/train_data.txt:1: {expected}")


def test_jddc2018_takes_one_comma_off_and_leaves_out_a_reply_that_says_nothing(tmp_path):
    write(tmp_path / "jddc", {"devQuestions.txt": "到了吗,,\n好,\n", "devAnswers.txt": "还没,请稍等,\n, ,\n"})
    one, other = load_dialogues("jddc2018", tmp_path, "dev")
    assert contents(one) == ["到了吗,", "还没,请稍等"]
    assert contents(other) == ["好"]


def test_clinc150_needs_the_domains_of_its_intents(tmp_path):
    lists = {"train": [["say jam", "translate"]], "oos_train": [["sing", "oos"]]}
    write(tmp_path / "clinc150", {"data_full.json": lists, "domains.json": {"travel": []}})
    with pytest.raises(InputError, match=r"train record 0: field intent: got 'translate', which is in none of domains"):
        load_dialogues("clinc150", tmp_path)
    (left,) = load_dialogues("clinc150", tmp_path, skip_invalid=True)
    assert (left.id, left.domains, left.turns[0].intents) == ("train/oos/0", (), ("oos",))
    (tmp_path / "clinc150" / "domains.json").unlink()
    with pytest.raises(InputError, match=r"clinc150: got no domains\.json, expected it beside"):
        load_dialogues("clinc150", tmp_path)


def test_snips_reads_surrogates_and_refuses_other_broken_utf8(tmp_path):
    content = b'{"A": [{"data": [{"text": "owl "}, {"text": "%s", "entity": "moodName"}]}]}'
    path = "A/train_A_full.json"
    write(tmp_path / "snips", {path: content % b"\xed\xa0\xbd\xed\xb8\x80 "})
    (dialogue,) = load_dialogues("snips", tmp_path)
    assert contents(dialogue) == ["owl 😀"]
    assert dialogue.turns[0].slots == (("moodname", "😀"),)
    for broken in (b"\xed\xa0\xbd", b"\xe9"):
        write(tmp_path / "snips", {path: content % broken})
        with pytest.raises(InputError, match=r"train_A_full\.json: broken UTF-8 at byte"):
            load_dialogues("snips", tmp_path)


def few_shot(folder, text, label, tags):
    lines = {"seq.in": text, "label": label, "seq.out": tags}
    write(folder / "few_shot_intent", {f"ATIS/train/{name}": line for name, line in lines.items()})
    return load_dialogues("few_shot_atis", folder)


def test_few_shot_intent_slots_are_runs_of_words(tmp_path):
    (dialogue,) = few_shot(tmp_path, " to new york or york via oslo \n", "a#b\n", "O B-To I-To O B-To I-by B-by\n")
    assert dialogue.turns[0].slots == (("to", "new york"), ("to", "york"), ("by", "via"), ("by", "oslo"))
    assert dialogue.turns[0].intents == ("a", "b")
    assert contents(dialogue) == ["to new york or york via oslo"]


@pytest.mark.parametrize(
    ("text", "label", "tags", "expected"),
    [
        ("a b\n", "x\n", "O\n", "seq.in:1: field tags: got 1, expected one for each of 2 words"),
        ("a\n", "x\n", "B-\n", "seq.in:1: field tags: got 'B-', expected O, B-name or I-name"),
        ("a\n", "x\n", "O-b\n", "seq.in:1: field tags: got 'O-b', expected"),
        ("a\n", "x\n", "E-b\n", "seq.in:1: field tags: got 'E-b', expected"),
        ("a\n", "\n", "O\n", "seq.in:1: field label: got an empty line"),
        ("\n", "x\n", "\n", "seq.in:1: field content: got ''"),
        ("a\nb\n", "x\n", "O\nO\n", "seq.in:2: ATIS/train/label has no such line"),
        ("", "x\n", "O\n", "label:1: ATIS/train/seq.in has no such line"),
    ],
)
def test_few_shot_intent_malformed_line(tmp_path, text, label, tags, expected):
    with pytest.raises(InputError) as raised:
        few_shot(tmp_path, text, label, tags)
    assert str(raised.value).startswith(f"{tmp_path}/few_shot_intent/ATIS/train/{expected}")


def test_hwu64_label_without_a_scenario(tmp_path):
    write(tmp_path / "hwu64", {"HWU64/train/seq.in": "louder\n", "HWU64/train/label": "louder\n"})
    with pytest.raises(InputError, match=r"seq\.in:1: field label: got 'louder', expected scenario_intent"):
        load_dialogues("hwu64", tmp_path)


@pytest.mark.parametrize("row", ["a question", "a question,", "a, question,card"])
def test_banking77_row_of_another_size(tmp_path, row):
    write(tmp_path / "banking77", {"banking_data/train.csv": f"text,category\n{row}\n"})
    with pytest.raises(InputError, match=r"train\.csv:2: (field category: got nothing|got another number of cells)"):
        load_dialogues("banking77", tmp_path)


def test_amazonqa_every_line_is_in_one_split_and_may_be_a_dump(tmp_path):
    lines = [f"text:q{n}\tlabels:a\\n{n}\tepisode_done:True" if n % 2 else f"text:q{n}\ta\\n{n}" for n in range(50)]
    write(tmp_path / "amazonqa", {"amazonqa.txt": "\n".join(lines)})
    dialogues = {int(dialogue.id.split("/")[1]): dialogue for dialogue in load_dialogues("amazonqa", tmp_path, "all")}
    assert sorted(dialogues) == list(range(50))
    assert contents(dialogues[7]) == ["q7", "a 7"]
    assert contents(dialogues[8]) == ["text:q8", "a\\n8"]
    write(tmp_path / "amazonqa", {"amazonqa.txt": "a question without an answer"})
    with pytest.raises(InputError, match=r"amazonqa\.txt:1: got one cell"):
        load_dialogues("amazonqa", tmp_path, "test")


def test_dialog2flow_evaluation_keeps_the_action_whole_and_in_parts(tmp_path):
    write(tmp_path / "d2f_evaluation", {"train/data/val.csv": 'gone,"inform failure stop, date"\nhi,unheard of\n'})
    first, second = (dialogue.turns[0] for dialogue in load_dialogues("dialog2flow_evaluation", tmp_path, "test"))
    assert first.dialogue_acts == ("inform failure",)
    assert first.slots == (("stop", ""), ("date", ""))
    assert first.intents == ("inform failure stop, date",)
    assert (second.dialogue_acts, second.intents) == ((), ("unheard of",))


@pytest.mark.parametrize("name", ["dailydialog", "ubuntu_irc", "snips", "few_shot_snips", "jddc2018", "amazonqa"])
def test_reading_gives_a_dialogue_before_it_has_read_the_rest(name, tmp_path):
    first = next(iterate_dialogues(name, FILES, "train"))
    assert first == load_dialogues(name, FILES, "train")[0]


real = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")


@pytest.mark.slow
@real
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dailydialog", [(11_118, 87_170), (1_000, 8_069), (1_000, 7_740)]),
        # Published are 11,385 messages of train: actions ("/me waves") were not counted, and three of them are there.
        ("ubuntu_irc", [(1_631, 11_385 + 3), (69, 484), (122, 1_103)]),
        ("ecommerce_dialogues", [(1_000, 10_082)]),
        # Ten replies of train and one of dev are empty.
        ("jddc2018", [(10_270, 2 * 10_270 - 10), (1_141, 2 * 1_141 - 1)]),
    ],
)
def test_sizes_of_dialogues(name, expected):
    splits = [load_dialogues(name, None, split) for split in get_corpus(name).splits]
    assert [(len(split), sum(len(dialogue.turns) for dialogue in split)) for split in splits] == expected
    dialogues = [dialogue for split in splits for dialogue in split]
    assert len({dialogue.id for dialogue in dialogues}) == len(dialogues)
    assert {role for dialogue in dialogues for role in dialogue.roles} == {"user", "assistant"}


@pytest.mark.slow
@real
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("banking77", [(10_003, 77), (3_080, 77)]),
        ("clinc150", [(15_000 + 100, 150 + 1), (3_000 + 100, 150 + 1), (4_500 + 1_000, 150 + 1)]),
        ("snips", [(13_784, 7), (700, 7)]),
        ("few_shot_banking77", [(8_622, 77), (1_540, 77), (3_080, 77)]),
        ("few_shot_clinc150", [(15_000, 150), (3_000, 150), (4_500, 150)]),
        ("few_shot_snips", [(13_084, 7), (700, 7), (700, 7)]),
        ("few_shot_atis", [(4_478, 21), (500, 16), (893, 20)]),
        ("dialog2flow_evaluation", [(4_695, 313)]),
    ],
)
def test_sizes_and_labels_of_utterances(name, expected):
    splits = [load_dialogues(name, None, split) for split in get_corpus(name).splits]
    turns = [[turn for dialogue in split for turn in dialogue.turns] for split in splits]
    assert [(len(split), len({turn.intents for turn in split})) for split in turns] == expected
    assert [len(split) for split in splits] == [len(split) for split in turns]
    assert len({dialogue.id for split in splits for dialogue in split}) == sum(map(len, splits))
    assert {turn.role for split in turns for turn in split} == {"user"}


@pytest.mark.slow
@real
def test_labels_of_the_real_files():
    daily = load_dialogues("dailydialog", None, "test")
    acts = Counter(act for dialogue in daily for turn in dialogue.turns for act in turn.dialogue_acts)
    assert acts == {"directive": 1_278, "question": 2_210, "commissive": 718, "inform": 3_534}
    assert len({dialogue.domains for dialogue in daily}) == 10
    clinc = load_dialogues("clinc150", None, "dev")
    assert Counter(len(dialogue.domains) for dialogue in clinc) == {1: 3_000, 0: 100}
    assert len({dialogue.domains for dialogue in clinc}) == 10 + 1
    flow = load_dialogues("dialog2flow_evaluation", None, "test")
    assert all(len(dialogue.turns[0].dialogue_acts) == 1 for dialogue in flow)
    assert set(Counter(dialogue.turns[0].intents for dialogue in flow).values()) == {15}


@real
def test_values_of_slots_are_parts_of_their_utterances():
    for name in ("snips", "few_shot_snips", "few_shot_atis"):
        turns = [dialogue.turns[0] for dialogue in load_dialogues(name, None, "test")]
        assert sum(len(turn.slots) for turn in turns) > len(turns)
        for turn in turns:
            assert all(value and value in " ".join(turn.content.split()) for _, value in turn.slots)
