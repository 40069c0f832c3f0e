"""The corpus commands, and dialogues as they are shown."""

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

from hf_dialemb.apps.cli import main
from hf_dialemb.apps.cli.show import find_dialogue, render_dialogue
from hf_dialemb.data import CORPORA, read_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.display import visible
from hf_dialemb.errors import InputError

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


def test_check_lists_every_problem_and_says_whether_there_is_one(capsys, tmp_path):
    path = (
        write(tmp_path, {"calls.csv": "call,who,words\n1,Agent,hello\n1,Ana\n2,Agent,a,b\n"})
        / "calls.csv"
    )
    columns = "id=call,role=who,content=words"
    out, error = run(capsys, "check", path, "--columns", columns, code=2)
    assert out.startswith(f"{path}: error: got 2 cell(s), expected 3 as in the first row; ")
    assert out.endswith(f" (2 times: {path}:3, {path}:4)\n")
    assert "errors: 2, warnings: 0" in error
    path.write_text("call,who,words\n" + "1,Agent\n" * 1200, encoding="utf-8")
    out, error = run(capsys, "check", path, "--columns", columns, code=2)
    (line,) = out.splitlines()
    assert line.startswith(f"{path}: error: got 2 cell(s), expected 3 as in the first row; ")
    assert line.endswith(f" (1,200 times, such as {path}:2, {path}:3, {path}:4)")
    assert "errors: 1,200, warnings: 0" in error
    write(tmp_path, {"calls.csv": "call,who,words\n1,Agent,hello\n1,Ana,hi\n"})
    texts = run(capsys, "check", path, "--columns", columns).splitlines()
    assert (
        texts[-1]
        == f"{path}: 1 dialogue, 2 turns: user 1, assistant 1. No errors, 1 thing guessed."
    )
    more = ("--columns", columns, "--roles", "Agent=assistant,Ana=user")
    assert run(capsys, "check", path, *more) == (
        "The first turns as they were read:\n  assistant     hello\n  Ana (user)    hi\n"
        f"{path}: 1 dialogue, 2 turns: user 1, assistant 1. No problems.\n"
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
    raw = run(capsys, "show", path, "--id", "0", "--raw", "--roles", "Agent=assistant,Ana=user")
    assert "<p>turn 0</p>" in raw
    assert "<p>" not in run(
        capsys, "show", path, "--id", "0", "--roles", "Agent=assistant,Ana=user"
    )


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


def test_letters_that_a_terminal_lacks_are_no_errors(tmp_path):
    command = [sys.executable, "-m", "hf_dialemb.apps.cli", "corpus"]
    command += ["show", "--corpus", write(tmp_path, {"d.jsonl": HELLO}) / "d.jsonl", "--id", "1"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, timeout=120
    )
    assert "caf?" in done.stdout


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
