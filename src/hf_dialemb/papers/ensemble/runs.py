"""The runs of multi-granularity training: each a process of ``accelerate launch``, several at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from threading import Lock
from typing import Any, Self

import psutil

from ...errors import InputError
from ...runs.files import write_json_atomically
from ...runs.folder import RunFolder
from ...training.arguments import read_recipe
from .plan import EnsemblePlan

_PATIENCE = 30
"""Seconds that a run has to end itself."""

_ERROR = "dialemb: error: "


class Runs:
    """The runs of a plan, as many at a time as it says.

    It is a context that leaves no run at work, whether a run failed or the user interrupted: waiting runs are not
    begun, and those at work are ended; they resume from their last checkpoint. The bar moves by one for each complete
    run, and ``report`` receives a line.
    """

    def __init__(self, plan: EnsemblePlan, progress: Any, report: Callable[[str], None]) -> None:  # noqa: ANN401
        self.plan, self.progress, self.report = plan, progress, report
        self._pool = ThreadPoolExecutor(plan.jobs)
        self._begun: dict[Future[None], str] = {}
        self._at_work: set[subprocess.Popen[bytes]] = set()
        self._lock, self._over = Lock(), False
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._over, at_work = True, list(self._at_work)
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in at_work:
            _end(process)
        self._pool.shutdown()

    def begin(self, names: Sequence[str]) -> None:
        """Begin the runs that are not complete, in this order as others end."""
        for name in names:
            if is_complete(self.plan, name):
                self.progress.update()
            else:
                self._begun[self._pool.submit(self._carry_out, name)] = name

    def wait(self, until: str | None = None) -> None:
        """Wait for a run, or for all that were begun."""
        if until is not None and until not in self._begun.values():
            return
        for done in as_completed(list(self._begun)):
            name = self._begun.pop(done)
            if self._failure is not None:
                raise self._failure
            self.progress.update()
            self.report(f"Trained {name}: {self.plan.run(name)}")
            if name == until:
                return

    def _carry_out(self, name: str) -> None:
        try:
            if not self._over:
                self.launch(name)
        except BaseException as error:  # raised again where the runs are waited for
            self._failure, self._over = self._failure or error, True

    def launch(self, name: str) -> None:
        """Carry out a run as a process with a log; an InputError says that it failed."""
        plan, environment = self.plan, dict(os.environ)
        if plan.jobs > 1:  # several runs share the cores
            environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // plan.jobs)))
        log = plan.output / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as lines:
            with self._lock:
                if self._over:
                    return
                process = subprocess.Popen(command(plan, name), env=environment, stdout=lines, stderr=subprocess.STDOUT)
                self._at_work.add(process)
            code = process.wait()
            with self._lock:
                self._at_work.discard(process)
        if code != 0:
            printed = log.read_text(encoding="utf-8", errors="replace").splitlines()
            reasons = [line.removeprefix(_ERROR) for line in printed if line.startswith(_ERROR)]
            reason = reasons[-1] if reasons else f"exit code {code}"
            raise InputError(f"run {name} failed ({reason}); see {log}, and run again")


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
    try:
        started = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    process.terminate()
    for child in started:
        with suppress(psutil.NoSuchProcess):
            child.terminate()
    for child in psutil.wait_procs(started, _PATIENCE)[1]:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    process.kill()
