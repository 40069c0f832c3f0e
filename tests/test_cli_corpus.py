"""`dialemb corpus`: each action on small files, what it prints, what it leaves, and how it fails."""

import json
import os
import shlex
import subprocess
import sys

import pytest
from made_up_corpora import write
from talks import dialogue

from hf_dialemb.cli import main
from hf_dialemb.corpora import CORPORA, describe, load_dialogues, read_jsonl
from hf_dialemb.corpora.show import render_dialogue

CALLS = "Agent: Hello, how may I help?\nAna: My bill is wrong.\n"
HELLO = '{"id": "1", "messages": [{"role": "user", "content": "hello, caf\u00e9"}]}\n'


def run(capsys, *words, code=0):
    capsys.readouterr()
    assert main(["corpus", *map(str, words)]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out if code == 0 else (captured.out, captured.err.splitlines()[-1])


def test_list_has_every_corpus(capsys):
    table = run(capsys, "list")
    assert all(f"| {name} " in table for name in CORPORA)


@pytest.mark.slow
def test_stats_counts_draws_and_writes_what_it_read(capsys, tmp_path):
    output, plot, report = (tmp_path / f"sample.{ending}" for ending in ("jsonl.gz", "png", "json"))
    words = ("--split", "all", "--output", output, "--plot", plot, "--report", report)
    table = run(capsys, "stats", "--corpus", "sample", *words)
    assert json.loads(report.read_text())["dialogues"] == 816
    assert table.split()[:2] == ["dialogues", "816"]
    assert all(f"Wrote {path}" in table for path in (output, plot))
    assert list(read_jsonl(output)) == load_dialogues("sample", None, "all")
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_own_transcripts_are_counted_shown_and_written_as_jsonl(capsys, tmp_path):
    calls, output = write(tmp_path / "calls", {"billing/one.txt": CALLS}), tmp_path / "calls.jsonl"
    table = run(capsys, "stats", "--corpus", calls, "--roles", "Ana=user", "--output", output)
    said = ("Hello, how may I help?", "My bill is wrong.")
    expected = dialogue(*said, id="billing/one", domains=("billing",), roles=("assistant", "user"))
    assert list(read_jsonl(output)) == [expected]
    assert table == f"{describe([expected])}\nWrote {output}\n"
    assert run(capsys, "show", "--corpus", calls, "--id", "billing/one") == render_dialogue(expected) + "\n"
    assert "billing/one" in run(capsys, "show", "--corpus", calls, "--id", "billing/on", code=2)[1]


def test_skipped_dialogues_are_counted_and_listed(capsys, tmp_path, caplog):
    path = write(tmp_path, {"d.jsonl": f"{HELLO}broken\n{{}}\n"}) / "d.jsonl"
    assert f"{path}:2: broken JSON" in run(capsys, "stats", "--corpus", path, code=2)[1]
    run(capsys, "stats", "--corpus", path, "--skip-invalid")
    assert caplog.messages[-1].startswith(f"Skipped 2 malformed record(s):\n  {path}:2: ")
    assert f"\n  {path}:3: " in caplog.messages[-1]


def test_check_lists_every_problem_and_says_whether_there_is_one(capsys, tmp_path):
    path = write(tmp_path, {"calls.csv": "call,who,words\n1,Agent,hello\n1,Ana\n2,Agent,a,b\n"}) / "calls.csv"
    columns = "id=call,role=who,content=words"
    out, error = run(capsys, "check", path, "--columns", columns, code=2)
    assert f"{path}:3: error: " in out
    assert f"{path}:4: error: " in out
    assert "errors: 2, warnings: 0" in error
    path.write_text("call,who,words\n" + "1,Agent\n" * 1200, encoding="utf-8")
    out, error = run(capsys, "check", path, "--columns", columns, code=2)
    assert out.count(": error: ") == 4  # three examples, and a line for the rest
    assert f"{path}: error: 1,197 more problems like: got 2 cell(s), expected 3 as in the first row" in out
    assert "errors: 1,200, warnings: 0" in error
    write(tmp_path, {"calls.csv": "call,who,words\n1,Agent,hello\n1,Ana,hi\n"})
    assert f"{path}: errors: 0" in run(capsys, "check", path, "--columns", columns)
    assert "sample: errors: 0" in run(capsys, "check", "sample")


@pytest.mark.slow
def test_unify_writes_the_folder_and_prints_its_table(capsys, tmp_path):
    assert "| sample |" in run(capsys, "unify", "sample", "--output", tmp_path / "unified")
    assert (tmp_path / "unified" / "README.md").read_text(encoding="utf-8").startswith("---\n")
    assert "choose another" in run(capsys, "unify", "sample", "--output", tmp_path / "unified", code=2)[1]
    assert "--licence research" in run(capsys, "unify", "kvret", "--output", tmp_path / "other", code=2)[1]
    assert not (tmp_path / "other").exists()


def test_leakage_between_splits(capsys, tmp_path):
    output = tmp_path / "leakage.json"
    words = ("leakage", "--train", "sample/train", "--evaluation")
    assert "sample/train" in run(capsys, *words, "sample/dev", "sample/test", "--output", output)
    assert len(json.loads(output.read_text())["rows"]) == 2
    assert "Did you mean 'sample'" in run(capsys, *words, "samples/test", code=2)[1]


def test_benchmark_says_what_is_not_at_hand(capsys, tmp_path):
    turns = [{"speaker": "USER", "utterance": "hello", "frames": []}]
    one = {"dialogue_id": "1", "services": ["Hotels_1"], "turns": turns}
    two = {**one, "dialogue_id": "2", "services": ["Hotels_1", "Taxi_1"]}
    data, output = write(tmp_path / "data", {"sgd/test/dialogues_001.json": [one, two]}), tmp_path / "benchmark"
    table = run(capsys, "benchmark", "--data-dir", data, "--output", output)
    assert "| sgd | test | 1 | 1,331 | 1.0 | 12 | 1.0 | 124 | 1 | 45 |" in table
    assert "| bitod | train | - | 2,952 |" in table
    assert [dialogue.id for dialogue in read_jsonl(output / "sgd" / "test.jsonl")] == ["test/1"]
    assert "None of bitod" in run(capsys, "benchmark", "--data-dir", output, "--output", tmp_path / "b", code=2)[1]


def test_an_output_of_another_form_or_over_what_is_read_or_written_is_refused(capsys, tmp_path):
    write(tmp_path, {"d.jsonl": HELLO, "calls/one.txt": CALLS, "calls/two.txt": CALLS})
    path, calls, report = tmp_path / "d.jsonl", tmp_path / "calls", tmp_path / "r.json"
    before = sorted(tmp_path.rglob("*"))
    for words, sentence in (
        ((path, "--output", path), "is the file that is read"),
        ((calls, "--report", calls / "one.txt"), "is the file that is read"),
        ((path, "--report", report, "--plot", report), "got one file twice"),
        ((path, "--output", calls), "got a folder, expected a file; add a file name"),
        ((path, "--output", tmp_path / "d.csv"), "ends in .jsonl"),
        (("sgd/test",), "--corpus sgd --split test"),
        (("sample", "--roles", "a=user"), "leave them out"),
    ):
        assert sentence in run(capsys, "stats", "--corpus", *words, code=2)[1]
    assert sorted(tmp_path.rglob("*")) == before
    assert (path.read_text(), (calls / "one.txt").read_text()) == (HELLO, CALLS)
    for _ in range(2):  # its own report may be made again
        run(capsys, "stats", "--corpus", calls, "--report", report)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target.jsonl")
    run(capsys, "stats", "--corpus", path, "--output", tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(list(read_jsonl(tmp_path / "target.jsonl"))) == 1
    os.mkfifo(tmp_path / "pipe.jsonl")
    reader = subprocess.Popen(["cat", tmp_path / "pipe.jsonl"], stdout=subprocess.PIPE)
    run(capsys, "stats", "--corpus", path, "--output", tmp_path / "pipe.jsonl")
    assert b"hello" in reader.communicate(timeout=60)[0]


def test_a_reader_that_has_seen_enough_is_no_error_nor_text_that_the_terminal_cannot_show(tmp_path):
    command = [sys.executable, "-m", "hf_dialemb.cli", "corpus"]
    listed = f"{shlex.join(command)} list | head -1"
    done = subprocess.run(["bash", "-c", listed], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.startswith("| corpus")
    assert done.stderr == ""
    command += ["show", "--corpus", write(tmp_path, {"d.jsonl": HELLO}) / "d.jsonl", "--id", "1"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120)
    assert "caf?" in done.stdout
