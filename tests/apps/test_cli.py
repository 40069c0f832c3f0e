"""The corpus commands, dialogues as they are shown, and wrong requests, which end in a sentence.

Checking: every problem with its place, and no error exactly when the data can be read.
"""

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
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_corpora import write
from talks import dialogue, to_dataset
from training_runs import words_of

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.apps.cli import main
from hf_dialemb.apps.cli.show import find_dialogue, render_dialogue
from hf_dialemb.apps.files.check import Problem, check
from hf_dialemb.apps.files.reading import read_path
from hf_dialemb.data import CORPORA, read_jsonl, write_jsonl
from hf_dialemb.data.reading_options import ReadingOptions
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
            find_dialogue((dialogue("x", id=f"dev/{row:04}") for row in range(1, 2001)), wanted)
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
        (
            ["embed", "--input", "calls.jsonl", "--output", "o.parquet", "--model", "tfidf"],
            "fitted on the dialogues that it embeds",
        ),
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


GOOD = (
    '{"id": "1", "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", '
    '"content": "Hi"}]}'
)


def result(path, content, **options):
    """Return the problems of a file.

    Severity, the place without the path, and the beginning of the message.
    """
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = list(check(path, **options))
    assert all(";" in item.message for item in problems if item.severity != "note"), (
        "each says what to do"
    )
    return [
        f"{problem.severity[0].upper()}{problem.place.removeprefix(str(path))} "
        f"{problem.message.split(', expected')[0]}"
        for problem in problems
    ]


def starts(problems, *expected):
    assert [
        problem[: len(start)] for problem, start in zip(problems, expected, strict=True)
    ] == list(expected)


def test_good_data_have_no_problem(tmp_path, sample_dialogues):
    for name, content in (("d.jsonl", GOOD), ("d.txt", "Agent: Hi\nCustomer: Ho\n")):
        assert result(tmp_path / name, content) == []
    to_dataset(sample_dialogues[:5]).to_parquet(tmp_path / "d.parquet")
    assert list(check(tmp_path / "d.parquet")) == []


def test_the_first_fault_of_every_line_of_json(tmp_path):
    message = {"role": "user", "content": "Hi"}
    faults = [
        ({"messages": [{**message, "content": 3}]}, "messages[0]: field content: got 3"),
        ({"messages": [{"content": "Hi"}]}, "messages[0]: field role: got None"),
        ({"messages": "Hi"}, "field messages: got str"),
        (7, "got int"),
    ]
    lines = [GOOD, *(json.dumps(record) for record, _ in faults), "{", GOOD]
    half = '{"messages": [{"role": "user", "content": "\\ud800"}]}'
    starts(
        result(tmp_path / "d.jsonl", "\n".join([*lines, half, '{"messages": []}'])),
        *(f"E:{number} {sentence}" for number, (_, sentence) in enumerate(faults, start=2)),
        "E:6 broken JSON at column 2",
        f"E:7 field id: got '1', which {tmp_path}/d.jsonl:1 has too",
        "E:8 got half a character (a lone surrogate)",
        "N:9 left out a record in which nobody says anything",
    )


def test_every_bad_row_and_every_bad_line_of_transcripts(tmp_path):
    content = (
        b'id,role,text\n1,,\n1,A,Hi,\n,A,\xc3\xa9\n2,A,Hi\n2,B,\xff\n2,B,Ho\n1,A,Hi\n3,A,"a" '
        b"b\n4,A,Hi\n4,B,Ho\n"
    )
    starts(
        result(tmp_path / "d.csv", content),
        *("E:6 got bytes that are not UTF-8", "E:3 got 4 cell(s)", "E:9 got broken CSV"),
        "G roles: guessed A: user; B: assistant",
    )
    texts = {"a.txt": b"Hi\nA:\n\xff\xc3\xa9\nB: Ho\nA:\n", "b.txt": "A: Hi\nB: Ho\n", "c.txt": ""}
    folder = write(tmp_path / "texts", texts)
    starts(
        [
            f"{problem.place.removeprefix(str(folder))} {problem.message}"
            for problem in check(folder)
        ],
        *("/a.txt:3 got bytes th", "/c.txt:1 got 'no turn'", " roles: guessed A: user; B"),
    )


def test_a_name_that_no_speaker_has_is_told(tmp_path, caplog):
    table = "id,role,text\n1,agt_007,Hi\n1,Ann,Ho\n"
    expected = "roles: got the name 'agt_07', which no speaker has; correct it"
    for name, content in (("d.csv", table), ("d.txt", "agt_007: Hi\nAnn: Ho\n"), ("d.jsonl", GOOD)):
        path = tmp_path / name
        guesses = ["G roles: guessed agt_007: user; Ann: assistant; to "] if content != GOOD else []
        starts(result(path, content, roles="agt_07=assistant"), f"W {expected}", *guesses)
        caplog.clear()
        list(read_path(path, ReadingOptions(roles="agt_07=assistant")))
        assert caplog.messages[0] == f"{path}: {expected}"
    assert result(tmp_path / "d.csv", table, roles="Agt_007=assistant,*=user") == []
    rows, columns = "1,Ann,Hi\n1,Bob,Ho\n", "id=1,role=2,content=3"
    guessed, first = (
        "G roles: guessed Ann: user; Bob: assistant; to confirm",
        "W:1 got one speaker only (user)",
    )
    starts(result(tmp_path / "d.csv", rows, columns=columns), guessed)
    starts(result(tmp_path / "d.csv", rows, columns=columns, roles="Ann=user,Bob=user"), first)


def test_what_ends_the_reading_is_a_problem_too(tmp_path):
    assert result(tmp_path / "d.csv", "1,A,Hi\n") == ["E got no dialogue"]
    assert result(tmp_path / "d.jsonl", "\n") == ["E got no dialogue"]
    starts(result(tmp_path / "d.jsonl.gz", "no gzip"), "E cannot be read (Not a gzipped file")
    starts(result(tmp_path / "d.parquet", "no parquet"), "E cannot be read")
    problem = str(
        Problem("caf\udce9.csv:1", "got '\ud800" + "x" * 10_000 + "', expected less; shorten it")
    )
    assert problem.encode()  # can always be printed
    assert len(problem) < 1000
    assert problem.endswith("xxx', expected less; shorten it")


def test_warnings(tmp_path):
    rows = ["a,A,Hi", "a,B,Ho", "b,A,Hi", "b,B,Ho", "c,B,Hi", "c,B,Ho", "d,B,A single turn"]
    starts(
        result(tmp_path / "d.csv", "\n".join(["id,role,text", *rows])),
        *(f"W:4 got the same turns as {tmp_path}/d.csv:2;", "W:6 got one speaker only (user)"),
        *("W:8 got a single turn",),
        "G roles: given conversation by conversation to A, B:",
    )
    assert len(list(read_path(tmp_path / "d.csv"))) == 4


def test_what_cannot_be_opened_is_an_error(tmp_path):
    for corpus, options, sentence in (
        (tmp_path / "none.csv", {}, "none.csv: cannot be read"),
        ("sample", {}, "got a published corpus, expected conversations of your own"),
        ("org/name", {"columns": "id=call"}, "which only tables of your own take"),
    ):
        with pytest.raises(InputError, match=sentence):
            list(check(corpus, **options))


FILES = {  # by ending
    "jsonl": f"{GOOD}\n"
    + '{"messages": [{"role": "user", "content": "Hi", "slots": [], "intents": ["a"]}], "x": 1}\n',
    "csv": 'id,role,text\n1,A,Hi\n1,B,"Hi, you"\n2,A,"a ""b"""\n3,A,a|b\n1,B,Ho\n',
    "tsv": "id\trole\ttext\n1\tA\tHi\n1\tB\tHo\n2\tA\tHi\n",
    "txt": "A: Hi\nB: Ho\n\nC: x: y\nand so on\nA: Hm\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", FILES)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_without_an_error_the_file_can_be_read_and_with_one_not_strictly(
    tmp_path_factory, ending, data
):
    content = FILES[ending].encode()
    for _ in range(data.draw(st.integers(0, 3))):
        at, gone = data.draw(st.tuples(st.integers(0, len(content)), st.integers(0, 9)))
        new = data.draw(st.sampled_from([b"\n", b",", b'"', b"{", b"\xff"]) | st.binary(max_size=3))
        content = content[:at] + new + content[at + gone :]
    path = tmp_path_factory.mktemp("any") / f"d.{ending}"
    path.write_bytes(content)
    problems = [problem for problem in check(path) if problem.severity == "error"]
    assert all(str(problem).encode() for problem in problems)
    try:
        dialogues = list(read_path(path))
    except InputError:
        dialogues = []
    assert dialogues or problems
    if problems:
        with pytest.raises(InputError):
            list(read_path(path, ReadingOptions(strict=True)))
