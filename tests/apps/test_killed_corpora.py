"""Searches for leaks that were killed: they go on where they were, and end in the same files."""

import signal
from functools import partial

import pytest
from afresh import printed_afresh, run_afresh
from killed import files_of, kill
from made_up_corpora import register_two

from hf_dialemb.data import write_jsonl
from hf_dialemb.data.audit import leakage
from hf_dialemb.errors import InputError
from hf_dialemb.storage import shards
from hf_dialemb.storage.files import locked


def find_leaks(data, output, evaluation=("one/dev", "two/test")):
    leakage.find_leakage(["one/train", "two/train"], evaluation, data, output=output)


@pytest.fixture
def command():
    """Return the function that is killed; other modules put theirs in its place."""
    return find_leaks


@pytest.fixture
def last():
    """Return the module and the name of the function that puts the parts together."""
    return leakage, "write_json_atomically"


@pytest.fixture
def data(tmp_path, monkeypatch, sample_dialogues):
    monkeypatch.setattr(leakage, "_SHARD", 5)
    return registered(tmp_path, monkeypatch, sample_dialogues)


def registered(tmp_path, monkeypatch, sample_dialogues):
    (tmp_path / "data").mkdir()
    register_two(monkeypatch, tmp_path / "data", sample_dialogues[:46])
    return tmp_path / "data"


@pytest.fixture
def whole(data, tmp_path):
    """Return a function that gives the files of an undisturbed run."""

    def run(command, name="whole", **options):
        command(data, tmp_path / name / "made", **options)
        return files_of(tmp_path / name)

    return run


def test_killed_and_run_again_it_goes_on_and_ends_in_the_same_files(
    command, data, whole, tmp_path, monkeypatch
):
    output, parts, written = tmp_path / "killed/made", tmp_path / "killed/made.parts", []
    kill(shards, "write_atomically", 4, command, data, output)
    assert not output.exists()
    damaged, *kept = sorted(parts.iterdir())
    assert len(kept) == 3
    damaged.write_bytes(damaged.read_bytes()[:-9])
    (parts / f".{damaged.name}.tmp").write_text("half a part")
    with locked(parts, "wait"), pytest.raises(InputError, match="another run writes there now"):
        command(data, output)
    with monkeypatch.context() as watched:
        write = shards.write_atomically
        watched.setattr(
            shards, "write_atomically", lambda file, make: written.append(file) or write(file, make)
        )
        command(data, output)
    assert damaged in written
    assert not {*kept} & {*written}
    assert files_of(tmp_path / "killed") == whole(command) != {}
    assert not parts.exists()


def test_killed_while_its_parts_are_put_together_it_makes_none_again(
    command, last, data, whole, tmp_path, monkeypatch
):
    expected = whole(command)
    kill(*last, 0, command, data, tmp_path / "killed/made")
    monkeypatch.delattr(shards, "write_atomically")
    command(data, tmp_path / "killed/made")
    assert files_of(tmp_path / "killed") == expected


def test_what_has_changed_since_the_kill_is_read_afresh(
    command, data, whole, tmp_path, sample_dialogues
):
    before = whole(command)
    for name, dialogues in (
        ("one/train", sample_dialogues[9:40]),
        ("two/test", sample_dialogues[20:24]),
    ):
        kill(shards, "write_atomically", 4, command, data, tmp_path / name / "made")
        write_jsonl(dialogues, data / f"{name}.jsonl")
        command(data, tmp_path / name / "made")
        after = whole(command, f"whole/{name}")
        assert files_of(tmp_path / name) == after != before


def test_parts_of_other_evaluation_sets_are_not_mixed_in(command, data, whole, tmp_path):
    kill(shards, "write_atomically", 4, command, data, tmp_path / "killed/made")
    other = partial(command, evaluation=["sample/dev"])
    other(data, tmp_path / "killed/made")
    assert files_of(tmp_path / "killed") == whole(other)


KILLED_AT_PART = """
import os, signal, sys
from hf_dialemb import cli
from hf_dialemb.data.audit import leakage
from hf_dialemb.storage import shards
leakage._SHARD = 100
parts, write = iter(range(int(sys.argv[1]))), shards.write_atomically
def write_or_die(file, make):
    def make_or_die(temporary):
        make(temporary)
        if next(parts, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
    write(file, make_or_die)
shards.write_atomically = write_or_die
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.mark.slow
def test_a_process_that_got_the_signal_is_gone_on_with(tmp_path, monkeypatch, printed):
    words = [
        "corpus",
        "leakage",
        "--train",
        "sample/train",
        "--evaluation",
        "sample/dev",
        "--output",
    ]
    output = tmp_path / "killed/made"
    assert run_afresh(KILLED_AT_PART, 2, *words, output).returncode == -signal.SIGKILL
    assert not output.exists()
    assert len([*output.with_name("made.parts").glob("part-*.parquet")]) == 2
    printed_afresh(KILLED_AT_PART, 99, *words, output)
    monkeypatch.setattr(leakage, "_SHARD", 100)
    printed(*words, tmp_path / "whole/made")
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole") != {}
