"""The corpus commands, dialogues as they are shown, and wrong requests, which end in a sentence."""

import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from itertools import count

import pytest
import yaml
from made_up_corpora import write
from talks import dialogue
from training_runs import words_of

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.apps.cli import main
from hf_dialemb.apps.cli.show import find_dialogue, render_dialogue
from hf_dialemb.data import CORPORA, read_jsonl, write_jsonl
from hf_dialemb.display import visible

CALLS = "Agent: Hello, how may I help?\nAna: My bill is wrong.\n"
HELLO = '{"id": "1", "messages": [{"role": "user", "content": "hello, caf\u00e9"}]}\n'


def run(capsys, *words, code=0, before=()):
    capsys.readouterr()
    assert main([*before, "corpus", *map(str, words)]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out if code == 0 else (captured.out, captured.err.splitlines()[-1])


def test_list_has_every_corpus(capsys):
    table = run(capsys, "list")
    assert all(f"| {name} " in table for name in CORPORA)


COLUMNS = ("--columns", "id=call,role=who,content=words")


@pytest.mark.parametrize(
    ("rows", "places", "count"),
    [
        ("1,Agent,hello\n1,Ana\n2,Agent,a,b\n", "(2 times: {0}:3, {0}:4)", "2"),
        ("1,Agent\n" * 1200, "(1,200 times, such as {0}:2, {0}:3, {0}:4)", "1,200"),
    ],
)
def test_check_gathers_problems_of_one_kind(capsys, tmp_path, rows, places, count):
    path = write(tmp_path, {"calls.csv": f"call,who,words\n{rows}"}) / "calls.csv"
    out, error = run(capsys, "check", path, *COLUMNS, code=2)
    (line,) = out.splitlines()
    assert line.startswith(f"{path}: error: got 2 cell(s), expected 3 as in the first row; ")
    assert line.endswith(places.format(path))
    assert f"errors: {count}, warnings: 0" in error


def test_check_says_that_there_is_no_problem(capsys, tmp_path):
    path = write(tmp_path, {"calls.csv": "call,who,words\n1,Agent,hello\n1,Ana,hi\n"}) / "calls.csv"
    count = f"{path}: 1 dialogue, 2 turns: user 1, assistant 1. No"
    lines = run(capsys, "check", path, *COLUMNS).splitlines()
    assert lines[-1] == f"{count} errors, 1 thing guessed."
    assert run(capsys, "check", path, *COLUMNS, "--roles", "Agent=assistant,Ana=user") == (
        "The first turns as they were read:\n  assistant     hello\n  Ana (user)    hi\n"
        f"{count} problems.\n"
    )


def test_check_shows_ten_turns_as_they_were_read(capsys, tmp_path):
    rows = "".join(
        f"{n // 3},{('Agent', 'Ana')[n % 2]},2026-03-13 08:{n:02},<p>turn {n}</p>\n"
        for n in range(30)
    )
    path = write(tmp_path, {"calls.csv": "id,speaker,time,text\n" + rows}) / "calls.csv"
    lines = run(capsys, "check", path, "--roles", "Agent=assistant,Ana=user").splitlines()
    start = lines.index("The first turns as they were read:")
    assert len(lines[start + 1 : -1]) == 10
    assert lines[start + 1].split() == ["assistant", "2026-03-13T08:00:00", "turn", "0"]
    assert lines[start + 10].split() == ["Ana", "(user)", "2026-03-13T08:09:00", "turn", "9"]


def test_an_output_of_another_form_or_over_the_input_is_refused(capsys, tmp_path):
    write(tmp_path, {"d.jsonl": HELLO, "calls/one.txt": CALLS, "calls/two.txt": CALLS})
    path, calls = tmp_path / "d.jsonl", tmp_path / "calls"
    before = sorted(tmp_path.rglob("*"))
    for source, output, sentence in (
        (path, path, "is what is read"),
        (path, calls, "got a folder, expected a file; add a file name"),
        (path, tmp_path / "d.csv", "ends in .jsonl"),
    ):
        assert sentence in run(capsys, "convert", source, "--output", output, code=2)[1]
    for words, sentence in (
        (("sgd/test", "--split", "dev"), "got 'dev' for sgd/test"),
        (("sample", "--roles", "a=user"), "leave it out"),
    ):
        assert sentence in run(capsys, "show", "--id", "1", "--corpus", *words, code=2)[1]
    assert sorted(tmp_path.rglob("*")) == before
    assert (path.read_text(), (calls / "one.txt").read_text()) == (HELLO, CALLS)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target.jsonl")
    run(capsys, "convert", path, "--output", tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(list(read_jsonl(tmp_path / "target.jsonl"))) == 1
    os.mkfifo(tmp_path / "pipe.jsonl")
    reader = subprocess.Popen(["cat", tmp_path / "pipe.jsonl"], stdout=subprocess.PIPE)
    run(capsys, "convert", path, "--output", tmp_path / "pipe.jsonl")
    assert b"hello" in reader.communicate(timeout=60)[0]


def test_letters_that_a_terminal_lacks_are_no_errors(tmp_path, monkeypatch):
    terminal = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(terminal, encoding="ascii"))
    corpus = write(tmp_path, {"d.jsonl": HELLO}) / "d.jsonl"
    assert main(["corpus", "show", "--corpus", str(corpus), "--id", "1"]) == 0
    assert b"caf?" in terminal.getvalue()


def numbered(total):
    return [dialogue(f"text {index}", id=f"dev/{index:04}") for index in range(1, total + 1)]


SAID = (
    Turn("user", "I need a room", ("inform",), (("area", "north"), ("price", "")), ("book_hotel",)),
    Turn("assistant", "For how many people shall it be?", ("request",)),
    Turn("user", "two", slots=(("people", "2"),), intents=("book_hotel", "book_taxi")),
    Turn("speaker_3", "[inform] three", ("inform", "negate"), (("people", "3"),)),
)


def test_a_dialogue_is_shown_in_full_and_nothing_commands_the_terminal():
    whole = Dialogue(SAID, "dev/7", ("hotel", "taxi"))
    assert Dialogue.from_json(yaml.safe_load(render_dialogue(whole))) == whole
    assert render_dialogue(dialogue("hello")).endswith("- role: user\n  content: hello")
    turn = Turn("user", HARMFUL, (HARMFUL,), ((HARMFUL, HARMFUL),), (HARMFUL,))
    shown = render_dialogue(Dialogue((turn,), HARMFUL + "\n", (HARMFUL + "\t",)))
    kinds = {unicodedata.category(character) for character in shown if character != "\n"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert re.sub(r"\\\n *\\? ?", "", shown).count("\\u202eback\\u2066") == 7
    readable = "Zimmer für zwei, 你好 שלום \U0001f468\u200d\U0001f469 ان\u200cها \\x1b"
    assert visible(readable) == readable
    assert visible("\x1b\t\n\u202e\U000e0041") == "\\x1b\\t\\n\\u202e\\U000e0041"


HARMFUL = (
    "\x1b[31mred\x07 \x9b2J \u202eback\u2066 \u200f\u061c\ufeff\u00ad \x00 \u2028 \r \ud800 "
    "\U000e0041"
)


def test_a_dialogue_is_found_by_its_id_and_the_rest_is_not_read():
    def endless():
        for number in count(1):
            assert number <= 12
            yield dialogue(str(number), id=f"id{number // 2}")

    assert find_dialogue(endless(), "id3").turns[0].content == "6"
    assert find_dialogue(endless(), "#12").turns[0].content == "12"
    with pytest.raises(InputError, match="none of 2 dialogues has; give an id, or a position"):
        find_dialogue([dialogue("one"), dialogue("two")], "two")
    for wanted, sentence in (
        (
            "dev/0O12",
            "got 'dev/0O12', which none of 2,000 dialogues has; give an id, or a position ",
        ),
        ("dev/0O12", "such as '#12'. Did you mean 'dev/"),
        ("\x1b[2J", r"got '\x1b[2J', which none"),
        ("#2001", "got '#2001', which none of 2,000 dialogues has"),
        ("#0", "got '#0', which none of 2,000 dialogues has"),
    ):
        with pytest.raises(InputError) as refusal:
            find_dialogue(iter(numbered(2000)), wanted)
        assert sentence in str(refusal.value)


def test_a_dialogue_of_one_speaker_can_be_left_out(
    tiny_bert, tmp_path, refused, printed, sample_dialogues
):
    alone = Dialogue((Turn("user", "hello"), Turn("user", "anyone?")), "odd")
    file = tmp_path / "mine.jsonl"
    write_jsonl([*sample_dialogues[:4], alone], file)
    small = {"max_steps": 1, "num_negatives": 1, "max_tokens": 32, "backbone": tiny_bert}
    words = ["train", *words_of(tmp_path / "run", method="dial2vec", corpus=file, **small)]
    assert "dialogue 'odd' has one speaker ('user')" in refused(*words, "--strict", "true")
    assert "Left out 1 dialogues of one speaker" in printed(*words, "--resume", "false")
    assert json.loads((tmp_path / "run" / "training_report.json").read_text())["dialogues"] == 4


EMBED = ("embed", "--input", "calls.jsonl", "--output", "o.parquet", "--model")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "the following arguments are required: command"),
        (["trian"], "invalid choice: 'trian'"),
        (
            ["corpus", "show", "sample", "--id", "1", "--colour", "red"],
            "unknown argument '--colour'",
        ),
        (
            ["topics", "multiwos"],
            "got 'multiwos', which is neither a file nor a corpus. Did you mean 'multiwoz'? See",
        ),
        (["corpus", "check", "calls.csv", "--split", "dev"], "calls.csv has no splits"),
        ([*EMBED, "tfidf"], "fitted on the dialogues that it embeds"),
        (["search", "--corpus", "sample"], "the following arguments are required: --query"),
        (
            ["evaluate", "--model", "tfidf", "--corpus", "./calls.jsonl", "--split", "dev"],
            "got 'dev', but ./calls.jsonl has no splits and is read whole",
        ),
    ],
)
def test_a_wrong_request_is_told(tmp_path, refused, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)  # results.json is the default of --output
    assert sentence in refused(*words)
    assert list(tmp_path.iterdir()) == []
