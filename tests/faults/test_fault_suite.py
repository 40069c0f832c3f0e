"""Every command against every fault: one sentence and exit 1 or 2, or a right result; see run.py for more of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from healthy import COMMANDS, registered

SEED = os.environ.get("HF_DIALEMB_FAULT_SEED", "0")


def run(count: int, parts: int) -> None:
    count = int(os.environ.get("HF_DIALEMB_FAULT_CASES", count))
    command = [sys.executable, str(Path(__file__).with_name("run.py")), "--cases", str(count), "--seed", SEED]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    begun = [subprocess.Popen([*command, "--part", f"{part}/{parts}"], **streams) for part in range(parts)]
    told = [process.communicate()[0] for process in begun]
    print("\n".join(told))
    assert [process.returncode for process in begun] == [0] * parts, "\n".join(each[-8000:] for each in told)


def test_every_command_has_healthy_arguments():
    assert {line.split(":")[0] for line in COMMANDS} == registered()


@pytest.mark.slow
def test_the_faults_are_told():
    run(3_000, 2)
