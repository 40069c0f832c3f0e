"""The runs of an ensemble: side by side as far as asked for, and none at work once the command is over."""

import os
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest
from tqdm import tqdm

from hf_dialemb.errors import InputError
from hf_dialemb.papers.ensemble import runs as ensemble_runs
from hf_dialemb.papers.ensemble.runs import Runs
from hf_dialemb.papers.ensemble.training import EnsemblePlan

PATIENCE = 120  # seconds, after which what should come by itself has not come

LAUNCHER = """
import subprocess, sys
subprocess.run([sys.executable, "-c", *sys.argv[1:]], check=True)
"""
LONG_RUN = """
import os, signal, sys
from pathlib import Path
Path("processes").write_text(f"{os.getppid()} {os.getpid()}")
open("begun", "w").close()  # a pipe: it waits for the other end
signal.pause()
"""
FAILING_RUN = """
open("begun").close()
raise SystemExit("error: out of memory")
"""


def runs_of(folder, jobs=1, **changes):
    plan = EnsemblePlan("dual_encoder_multiwoz", "sample", folder / "runs", size=3, jobs=jobs, **changes)
    return Runs(plan, tqdm(disable=True), lambda line: None)


@pytest.mark.slow
def test_a_run_that_fails_is_named_with_its_own_message_and_not_with_what_failed_before(tmp_path):
    broken = {"corpus": "sample", "exclude": "none", "max_dialogues": 20, "num_candidates": 100_000}
    for name in ("candidates", "baseline"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    for changes, reason in (
        ({"launch": ("--no_such_option",)}, r"run baseline failed \(exit code 2\); see"),
        ({"overrides": broken}, r"run baseline failed \(num_candidates: got 100000.*logs"),
    ):
        with runs_of(tmp_path, **changes) as runs:
            runs.begin(["baseline"])
            with pytest.raises(InputError, match=reason):
                runs.wait()
        if "launch" in changes:
            assert "no_such_option" in (tmp_path / "runs" / "logs" / "baseline.log").read_text()


@pytest.fixture
def launched(monkeypatch):
    """Has a function take the place of the process of a run."""
    return lambda launch: monkeypatch.setattr(Runs, "launch", lambda runs, name: launch(name))


def test_as_many_runs_go_side_by_side_as_there_are_jobs(tmp_path, launched):
    begun, most, lock = threading.Barrier(2, timeout=PATIENCE), [0, 0], threading.Lock()

    def launch(name):
        with lock:
            most[0] += 1
            most[1] = max(most)
        begun.wait()  # it breaks unless another run is at work
        with lock:
            most[0] -= 1

    launched(launch)
    with runs_of(tmp_path, jobs=2) as runs:
        runs.begin(["baseline", "seed-2", "seed-3", "granularity-1"])
        runs.wait()
    assert most == [0, 2]


def test_a_named_run_is_waited_for_alone(tmp_path, launched):
    ended, may_end = [], threading.Event()

    def launch(name):
        assert name == "baseline" or may_end.wait(PATIENCE)
        ended.append(name)

    launched(launch)
    with runs_of(tmp_path, jobs=2) as runs:
        runs.begin(["seed-2", "baseline"])
        runs.wait("baseline")
        runs.wait("baseline")  # it is complete already
        assert ended == ["baseline"]
        may_end.set()
        runs.wait()
    assert ended == ["baseline", "seed-2"]


def test_after_one_that_fails_no_other_is_begun(tmp_path, launched):
    begun = []

    def launch(name):
        begun.append(name)
        raise InputError("failed")

    launched(launch)
    with runs_of(tmp_path) as runs:
        runs.begin(["granularity-1", "granularity-2", "granularity-3"])
        with pytest.raises(InputError, match="failed"):
            runs.wait()
    assert begun == ["granularity-1"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
@pytest.mark.parametrize("interrupted", [None, signal.SIGINT])
def test_what_is_at_work_is_ended_with_all_that_it_started(tmp_path, monkeypatch, interrupted):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("begun")
    words = {"baseline": [LAUNCHER, LONG_RUN], "seed-2": [LONG_RUN] if interrupted else [FAILING_RUN]}
    monkeypatch.setattr(ensemble_runs, "command", lambda plan, name: [sys.executable, "-c", *words[name]])

    # Other libraries leave handlers of their own in the process.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt():
        Path("begun").read_text()
        os.kill(os.getpid(), interrupted)

    with runs_of(tmp_path, jobs=1 if interrupted else 2) as runs:
        runs.begin(["baseline", "seed-2"])
        if interrupted:
            threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt if interrupted else InputError) as failure:
            runs.wait()
    signal.signal(signal.SIGINT, before)
    assert interrupted or "run seed-2 failed (exit code 1)" in str(failure.value)
    processes = [int(number) for number in Path("processes").read_text().split()]
    assert len(processes) == 2
    assert not any(map(psutil.pid_exists, processes))
    assert bool(interrupted) != (tmp_path / "runs" / "logs" / "seed-2.log").exists()
