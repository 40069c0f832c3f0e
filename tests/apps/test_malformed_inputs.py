"""Malformed files, folders and options end in one sentence.

Nothing is left half-written, and what is read stays as it is.
"""

import contextlib
import io
import json
import operator
import os
import re
import resource
import shutil
from functools import reduce
from itertools import cycle
from pathlib import Path

import pytest
from checkpoints import save_dse
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hf_dialemb.apps.cli import main
from hf_dialemb.data import write_jsonl

COMMANDS = {
    "train": "--config recipe.yaml --output_dir out/run",
    "evaluate": "--model dse --corpus calls.jsonl --task domains --seeds 1 --output out/r.json",
    "embed": "--model dse --input calls.jsonl --output out/vectors.parquet",
    "embed:table": "--model bert --input calls.csv --output out/vectors.parquet",
    "embed:transcript": "--model bert --input talk.txt --output out/vectors.parquet",
    "search": "--model dse --corpus calls.jsonl --query card --output out/found.jsonl",
    "rank": "--model ranker --context calls.jsonl --candidates responses.txt",
    "topics": "calls.jsonl --model dse --output out/topics",
    "flow": "calls.jsonl --model dse --clusters 4 --output out/flow",
    "flow next": "--flow flow --input calls.jsonl",
    "flow compare": "--flow flow --input other.jsonl --output out/comparison",
    "corpus check": "calls.jsonl",
    "corpus convert": "calls.csv --output out/calls.jsonl",
}
RECIPE = """method: dse
backbone: bert
corpus: calls.jsonl
exclude: [none]
min_words: 1
max_tokens: 32
max_steps: 1
use_cpu: true
"""
GOOD = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}'
CONTENTS = {
    "empty": b"",
    "cut": GOOD[:40].encode(),
    "surrogate": GOOD.replace("hi", "\\ud800").encode(),
    "NUL bytes": GOOD.replace("hi", "h\0i").encode(),
    "huge number": b'{"time": 1e999, "messages": ' + b"9" * 5000 + b"}",
    "deep": b"[" * 100_000,
    "nested": b'[{"a": 1, "messages": [{"role": "user", "content": "hi", "slots": [{"name": "a", '
    b'"value": ' + b"[" * 700 + b"]" * 700 + b"}]}]}]",
    "list": b"[]",
    "number": b"7",
    "latin-1": b'{"messages": "\xe9"}',
    "utf-16": GOOD.encode("utf-16"),
    "pickle": b"cos\nsystem\n(S'touch ran'\ntR.",
}
FELL = [  # by command: a file, the place in it, and a value for which there was a traceback once
    ("flow compare", "flow/flow.json", ["settings"], 0),
    ("flow compare", "flow/flow.json", ["title"], 2**60),
    ("flow next", "flow/flow.json", ["settings", "model"], True),
    ("flow next", "flow/flow.json", ["clusters", 0, "name"], {}),
    ("evaluate", "dse/config.json", ["num_attention_heads"], -1),
    ("embed:table", "bert/tokenizer_config.json", ["model_max_length"], -1),
    ("embed:table", "bert/tokenizer.json", ["model", "vocab", "m"], True),
]


@pytest.fixture(scope="module", autouse=True)
def inputs(tiny_bert, tower_folders, sample_dialogues, tmp_path_factory):
    """The working folder, with all that the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    dialogues = sample_dialogues[:12]
    turns = [(each.id, turn.role, turn.content) for each in dialogues for turn in each.turns]
    with contextlib.chdir(folder):
        shutil.copytree(tiny_bert, "bert")
        shutil.copytree(tower_folders[0], "ranker")
        save_dse(tiny_bert, Path("dse"))
        write_jsonl(dialogues, Path("calls.jsonl"))
        write_jsonl(sample_dialogues[12:18], Path("other.jsonl"))
        rows = [",".join(f'"{cell}"' for cell in row) for row in turns]
        Path("calls.csv").write_text("\n".join(["id,role,content", *rows]) + "\n")
        Path("talk.txt").write_text("".join(f"{role}: {text}\n" for _, role, text in turns[:6]))
        Path("responses.txt").write_text("".join(f"{text}\n" for _, _, text in turns[:9]))
        Path("recipe.yaml").write_text(RECIPE)
        assert ends("flow", "calls.jsonl --model dse --clusters 4 --output flow") == ""
        assert ends("embed", "--model dse --input calls.jsonl --output vectors.parquet") == ""
        yield folder


def ends(command: str, words: str) -> str:
    """Return the sentence in which a command ends; its exit code goes with it."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = main([*command.partition(":")[0].split(), *words.split()])
    errors = [line for line in printed.getvalue().splitlines() if "error:" in line]
    assert len(errors) == (code != 0), errors
    assert code in (0, 1, 2)
    assert "Traceback" not in printed.getvalue()
    return "".join(errors)


def contents() -> dict[str, bytes]:
    """Return the content of every file in the working folder; what is cached may be repaired."""
    files = [path for path in Path().rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(file): file.read_bytes() for file in files if "cache" not in file.parts}


def holds(command: str, words: str = "") -> str:
    """Run a command on what is damaged; it must change none of it, nor leave half a result."""
    before = contents()
    Path("out").mkdir()
    try:
        sentence = ends(command, f"{COMMANDS[command]} {words}")
        after = contents()
        new = after.keys() - before.keys()
        assert {name: after[name] for name in before} == before
        begun = ("training_settings.json", "training_data.json", "training_texts.json", ".sqlite")
        assert not sentence or {name for name in new if not name.endswith(begun)} == set()
        return sentence
    finally:
        shutil.rmtree("out")


@contextlib.contextmanager
def in_place_of(file: Path):
    """Take a file away; afterwards it is there again."""
    kept = file.rename("kept")
    try:
        yield
    finally:
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
        file.unlink(missing_ok=True)
        kept.rename(file)


def files_read(command: str) -> list[Path]:
    """List the files that a command reads."""
    words = [Path(word) for word in COMMANDS[command].split() if Path(word).exists()]
    if command == "train":
        words += [Path("bert"), Path("calls.jsonl")]
    inside = [file for word in words for file in [word, *word.rglob("*")]]
    return sorted(file for file in inside if file.is_file() and "cache" not in file.parts)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_end_well_on_what_is_well_formed(command):
    assert holds(command) == ""


@pytest.mark.parametrize("content", CONTENTS)
def test_a_malformed_file_of_conversations_is_refused(content):
    for command in ("embed", "flow next"):
        with in_place_of(Path("calls.jsonl")):
            Path("calls.jsonl").write_bytes(CONTENTS[content])
            assert holds(command, "--strict").startswith("dialemb: error: calls.jsonl")


PLACES = {
    "missing": lambda path: None,
    "a folder": Path.mkdir,
    "a loop": lambda path: path.symlink_to(path.name),
    "unreadable": lambda path: path.symlink_to("/proc/self/mem"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (command, place)
        for number, command in enumerate(COMMANDS)
        for place in ([*PLACES] * 2)[number % 6 : number % 6 + 2]
    ],
)
def test_what_is_no_file_is_refused_by_its_name(command, place):
    file = next(file for file in files_read(command) if file.parent == Path())
    with in_place_of(file):
        PLACES[place](file)
        assert file.name in holds(command)


@pytest.mark.parametrize("place", ["calls.jsonl/out", "/proc/nothing/out"])
@pytest.mark.parametrize("command", [name for name in COMMANDS if "out/" in COMMANDS[name]])
def test_an_output_that_cannot_be_written_is_refused(command, place):
    words = COMMANDS[command].split()
    assert holds(command, f"{words[-2]} {place}{Path(words[-1]).suffix}")


@pytest.mark.parametrize(
    ("size", "command"),
    zip(cycle([0, 200]), [name for name in COMMANDS if "out/" in COMMANDS[name]]),
)
def test_a_full_disk_leaves_no_half_result(command, size):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))  # Python ignores the signal
    try:
        assert holds(command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


drawn = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


@drawn
@given(st.data())
def test_any_damage_to_a_file_ends_in_a_sentence_or_a_result(data):
    command = data.draw(st.sampled_from([*COMMANDS]))
    file = data.draw(st.sampled_from(files_read(command)))
    content = file.read_bytes()
    at = data.draw(st.integers(0, len(content)))
    value = json.dumps(
        data.draw(
            st.sampled_from([None, -1, 0, 2**60, 1e308, "x", [], {}, True]) | st.text(max_size=3)
        )
    ).encode()
    damaged = [
        content[:at],
        content[:at] + data.draw(st.binary(max_size=9)) + content[at + 9 :],
        content[:at] + re.sub(rb'"[^"]*"|[\d.]+', lambda _: value, content[at:], count=1),
        *CONTENTS.values(),
    ]
    with in_place_of(file):
        file.write_bytes(data.draw(st.sampled_from(damaged)))
        holds(command)


@pytest.mark.parametrize(("command", "file", "place", "value"), FELL)
def test_a_value_that_was_not_expected_is_told(command, file, place, value):
    record = json.loads(Path(file).read_bytes())
    reduce(operator.getitem, place[:-1], record)[place[-1]] = value
    with in_place_of(Path(file)):
        Path(file).write_text(json.dumps(record))
        holds(command)


@drawn
@given(st.data())
def test_any_value_of_an_option_ends_in_a_sentence_or_a_result(data):
    command = data.draw(st.sampled_from([*COMMANDS]))
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as text:
        main([*command.partition(":")[0].split(), "--help"])
    options = sorted({*re.findall(r"--[a-z][a-z-]+", text.getvalue())} - {"--help", "--output"})
    option = data.draw(st.sampled_from(options))
    value = data.draw(st.sampled_from(["x", "-1", "0", "nan", "1e999", "[]", "no/such", "\udc80"]))
    holds(command, f"{option}={value}")
