"""The runs of an ensemble.

Each fails with its reason, and none is at work once the command is over.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest

from hf_dialemb.errors import InputError
from hf_dialemb.papers.ensemble import training as ensemble_runs
from hf_dialemb.papers.ensemble.training import EnsemblePlan, carry_out

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


def is_at_work(process):
    """Whether a process runs; one that ended may be listed until its parent asks for it."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def plan_in(folder, **changes):
    return EnsemblePlan("dual_encoder_multiwoz", "sample", folder / "runs", size=3, **changes)


@pytest.mark.slow
def test_a_run_that_fails_is_named_with_its_reason(tmp_path):
    broken = {"corpus": "sample", "exclude": "none", "max_dialogues": 20, "num_candidates": 100_000}
    (tmp_path / "runs" / "candidates").mkdir(parents=True)
    for changes, reason in (
        ({"launch": ("--no_such_option",)}, r"run baseline failed \(exit code 2\); see"),
        ({"overrides": broken}, r"run baseline failed \(num_candidates: got 100000.*logs"),
    ):
        with pytest.raises(InputError, match=reason):
            carry_out(plan_in(tmp_path, **changes), "baseline", print)
        if "launch" in changes:
            assert "no_such_option" in (tmp_path / "runs" / "logs" / "baseline.log").read_text()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
def test_an_interrupt_ends_a_run_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("begun")
    monkeypatch.setattr(
        ensemble_runs, "command", lambda *_: [sys.executable, "-c", LAUNCHER, LONG_RUN]
    )
    # libraries leave handlers in the process
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt():
        Path("begun").read_text()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        carry_out(plan_in(tmp_path), "baseline", print)
    signal.signal(signal.SIGINT, before)
    processes = [int(number) for number in Path("processes").read_text().split()]
    assert len(processes) == 2
    assert not any(map(is_at_work, processes))
