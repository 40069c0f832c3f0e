"""Every command against every fault: one sentence and exit 1 or 2, or a right result.

See run.py for more of them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from healthy import COMMANDS, registered

SEED = os.environ.get("HF_DIALEMB_FAULT_SEED", "0")


def test_every_command_has_healthy_arguments():
    assert {line.split(":")[0] for line in COMMANDS} == registered()


@pytest.mark.slow
def test_the_faults_are_told():
    program, count = (
        str(Path(__file__).with_name("run.py")),
        os.environ.get("HF_DIALEMB_FAULT_CASES", "600"),
    )
    command = [sys.executable, program, "--cases", count, "--seed", SEED]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-8000:]
