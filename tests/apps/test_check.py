"""Facts about checking.

Every problem with its place, and no error exactly when the data can be read.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_corpora import write
from talks import to_dataset

from hf_dialemb.apps.files.check import Problem, check
from hf_dialemb.apps.files.reading import read_path
from hf_dialemb.data.reading_options import ReadingOptions
from hf_dialemb.errors import InputError

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
