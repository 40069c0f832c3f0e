"""The runs of multi-granularity training, each a process of ``accelerate launch``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

from ...errors import InputError
from ...runs.files import write_json_atomically
from ...runs.folder import RunFolder
from ...training.arguments import read_recipe
from .plan import EnsemblePlan

_PATIENCE = 30
"""Seconds that a run has to end itself."""

_ERROR = "dialemb: error: "


def carry_out(plan: EnsemblePlan, name: str, report: Callable[[str], None]) -> None:
    """Carry out a run with a log, unless it is complete; an interrupt ends it.

    Raises:
        InputError: The run failed.
    """
    if is_complete(plan, name):
        return
    log = plan.output / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as lines:
        process = subprocess.Popen(command(plan, name), stdout=lines, stderr=subprocess.STDOUT)
        try:
            code = process.wait()
        except BaseException:
            _end(process)
            raise
    if code != 0:
        printed = log.read_text(encoding="utf-8", errors="replace").splitlines()
        reasons = [line.removeprefix(_ERROR) for line in printed if line.startswith(_ERROR)]
        reason = reasons[-1] if reasons else f"exit code {code}"
        raise InputError(f"run {name} failed ({reason}); see {log}, and run again")
    report(f"Trained {name}: {plan.run(name)}")


def command(plan: EnsemblePlan, name: str) -> list[str]:
    """Write the settings of a run to a file, and return the command that trains by it."""
    config = plan.output / "logs" / f"{name}.json"
    write_json_atomically(config, read_recipe(plan.config) | plan.values(name))
    launch = [sys.executable, "-m", "accelerate.commands.launch", *plan.launch]
    return [*launch, "-m", "hf_dialemb.cli", "train", "--config", str(config)]


def is_complete(plan: EnsemblePlan, name: str) -> bool:
    """Return whether a run of a plan is at its end, with the settings of the plan."""
    folder = RunFolder(plan.run(name))
    if not folder.complete or not folder.settings_file.is_file():
        return False
    before = folder.settings()
    return all(before.get(key, value) == value for key, value in plan.settings(name).fingerprint().items())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    with suppress(psutil.NoSuchProcess):
        processes = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
        for running in processes:
            with suppress(psutil.NoSuchProcess):
                running.terminate()
        for running in psutil.wait_procs(processes, _PATIENCE)[1]:
            running.kill()
    process.wait()
