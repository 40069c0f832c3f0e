"""The runs of multi-granularity training: each a process of ``accelerate launch``, several at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from threading import Lock, current_thread, main_thread
from typing import Any, Self

import psutil

from ...errors import InputError
from ...runs.files import write_json_atomically
from ...runs.folder import RunFolder
from .plan import EnsemblePlan

_PATIENCE = 30
"""Seconds that a run has to end itself."""


class Runs:
    """Runs of a plan, as many at a time as it says.

    It is a context that leaves nothing at work behind. Whatever ends it, a run that failed or an interruption as well:
    runs that wait are not begun any more, and those at work are ended; begun again, they go on from their last
    checkpoint. The bar moves by one for each complete run, and ``report`` receives a line.
    """

    def __init__(self, plan: EnsemblePlan, progress: Any, report: Callable[[str], None]) -> None:  # noqa: ANN401
        self.plan, self.progress, self.report = plan, progress, report
        self._pool = ThreadPoolExecutor(plan.jobs)
        self._begun: dict[Future[None], str] = {}
        self._at_work: set[subprocess.Popen[bytes]] = set()
        self._lock, self._over = Lock(), False
        self._failure: BaseException | None = None
        self._handler: Any = None

    def __enter__(self) -> Self:
        if current_thread() is main_thread():  # schedulers and kill send SIGTERM, which ends a process without a word
            self._handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)
        with self._lock:
            self._over, at_work = True, list(self._at_work)
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in at_work:
            _end(process)
        self._pool.shutdown()

    def begin(self, names: Sequence[str]) -> None:
        """Begins runs, in this order as others end, but for those that are complete."""
        for name in names:
            if is_complete(self.plan, name):
                self.progress.update()
            else:
                self._begun[self._pool.submit(self._carry_out, name)] = name

    def wait(self, until: str | None = None) -> None:
        """Waits for a run, or for all that were begun."""
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
        except BaseException as error:  # it is raised where the runs are waited for
            self._failure, self._over = self._failure or error, True

    def launch(self, name: str) -> None:
        """Carries out a run, as a process of its own with a log of its own; an InputError says that it failed."""
        plan, environment = self.plan, dict(os.environ)
        if plan.jobs > 1:  # several runs share the cores
            environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // plan.jobs)))
        log = plan.output / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as lines:
            with self._lock:
                if self._over:
                    return
                process = subprocess.Popen(
                    command(plan, name), env=environment, stdout=lines, stderr=subprocess.STDOUT, close_fds=False
                )
                self._at_work.add(process)
            code = process.wait()
            with self._lock:
                self._at_work.discard(process)
        if code != 0:
            reason = RunFolder(plan.run(name)).failure() or f"exit code {code}"
            raise InputError(f"run {name} failed ({reason}); see {log}, and run again")


def command(plan: EnsemblePlan, name: str) -> list[str]:
    """Returns the words that carry out a run, and writes what they ask for; see `training.process`."""
    request = plan.output / "logs" / f"{name}.json"
    RunFolder(plan.run(name)).failure_file.unlink(missing_ok=True)  # of the run before
    write_json_atomically(request, {"config": plan.config, "words": plan.words(name), "output": str(plan.run(name))})
    launch = [sys.executable, "-m", "accelerate.commands.launch", *plan.launch]
    return [*launch, "-m", "hf_dialemb.training.process", str(request)]


def is_complete(plan: EnsemblePlan, name: str) -> bool:
    """Says whether a run of a plan is at its end, with the settings of the plan."""
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
    for each in started:
        with suppress(psutil.NoSuchProcess):
            each.terminate()
    for each in psutil.wait_procs(started, _PATIENCE)[1]:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    process.kill()
