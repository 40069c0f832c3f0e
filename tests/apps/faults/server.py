"""A process that has imported everything, and forks a child for each command.

What it did, and whether that holds.
"""

import contextlib
import gc
import hashlib
import json
import os
import re
import resource
import selectors
import shutil
import signal
import sys
import time
import traceback
import zipfile
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

import cases
import healthy
import numpy as np
import pyarrow.parquet as parquet
import torch
from afresh import run_forked, stand_in
from safetensors.torch import load_file

PATIENCE = 60  # seconds: exports are verified in fresh processes
MEGABYTE = 1 << 20
LIBRARIES = (
    "torch",
    "transformers",
    "sentence_transformers",
    "hf_dialemb.apps.cli",
    "hf_dialemb.training.training_run",
    "pyarrow.parquet",
    "sklearn.cluster",
    "matplotlib.figure",
    "safetensors.torch",
    "transformers.models.auto.modeling_auto",
)


@dataclass
class Ended:
    """How a child ended.

    Its status (negative for a signal), what it printed, MB of memory, seconds, what it wrote.
    """

    status: int
    out: str
    err: str
    memory: float
    seconds: float
    written: dict[str, str] = field(default_factory=dict)


class Server:
    """Runs commands in copies of a folder that `healthy.build` wrote into ``root/made``."""

    def __init__(self, root: Path):
        self.made, self.work, self._healthy = root / "made", root / "work", {}
        self.made.mkdir()
        self._patience = 300
        os.environ.update(HF_HUB_OFFLINE="1", HF_HOME=str(root / "hub"))
        os.environ.update(TOKENIZERS_PARALLELISM="false", MPLBACKEND="agg")
        for name in LIBRARIES:
            import_module(name)
        # pictures are blank, and quick
        sys.modules["matplotlib.figure"].Figure.draw = lambda figure, renderer: None
        ended = self._fork(self._build, self.made)
        assert ended.status == 0, ended.err[-3000:]
        self._patience = PATIENCE
        for name in (self.made / "imported").read_text().split():
            with contextlib.suppress(Exception):
                import_module(name)
        sys.modules["transformers.conversion_mapping"].get_checkpoint_conversion_mapping("bert")
        sys.modules["lemminflect"].getLemma("went", "VERB")  # as slow at first, and never again
        gc.collect()
        gc.freeze()  # or each child would copy all that its collector looks at
        os.chdir(self.made)

    def _build(self) -> int:
        from hf_dialemb.apps.cli import main

        healthy.build(main)
        kept = r"hf_dialemb\.|transformers\.|sklearn|networkx|PIL\.|lemm"
        names = [name for name in sys.modules if re.match(kept, name)]
        Path("imported").write_text("\n".join(names))
        return 0

    def _fork(
        self, action, folder: Path, fault: str = "", stop: tuple[int, float] | None = None
    ) -> Ended:
        """Does something in a child, in a folder.

        ``stop`` is a signal and the seconds after which it is sent.
        """
        started, pipes = time.monotonic(), [os.pipe(), os.pipe()]
        child = _forked_quietly()
        if not child:
            _as_child(action, folder, fault, [writer for _, writer in pipes])
        with contextlib.suppress(OSError):
            os.setpgid(child, child)
        texts = {reader: b"" for reader, _ in pipes}
        with selectors.DefaultSelector() as waiting:
            for reader, writer in pipes:
                os.close(writer)
                waiting.register(reader, selectors.EVENT_READ)
            killed = (
                0  # twice, where a process that the child started and left keeps its output open
            )
            while waiting.get_map() and killed < 2:
                passed = time.monotonic() - started
                until = stop[1] if stop else self._patience * (1 + killed)
                if passed >= until:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, stop[0] if stop else signal.SIGKILL)
                    killed, stop = killed + (stop is None), None
                for key, _ in waiting.select(max(0.0, until - passed)):
                    read = os.read(key.fd, MEGABYTE)
                    texts[key.fd] += read
                    if not read:
                        waiting.unregister(key.fd)
                        os.close(key.fd)
            for reader in [*waiting.get_map()]:
                os.close(reader)
        _, status, usage = os.wait4(child, 0)
        out, err = (text.decode("utf-8", "replace") for text in texts.values())
        code = os.waitstatus_to_exitcode(status)
        return Ended(code, out, err, usage.ru_maxrss / 1024, time.monotonic() - started)

    def run(
        self, name: str, kind: str, place: str, fault: str, stop: tuple[int, float] | None = None
    ) -> Ended:
        """Runs a command in a fresh folder, under a fault."""
        self._fresh(name)
        os.chdir(self.work)
        if kind in ("file", "field"):
            cases.apply(kind, place, fault)
        module = import_module(kind) if kind in cases.MORE else None
        words = module.words(name, place, fault) if module else cases.words_of(name, kind, fault)
        self.before = _digests(Path())
        begin = partial(module.inside, place, fault) if hasattr(module, "inside") else None
        return self._again(words, fault if kind == "output" else "", stop, begin)

    def _again(
        self, words: list[str], fault: str = "", stop: tuple[int, float] | None = None, begin=None
    ) -> Ended:
        ended = self._fork(lambda: _command(words, begin), self.work, fault, stop)
        os.chdir(self.work)
        ended.written = _digests(Path())
        os.chdir(self.made)
        return ended

    def _fresh(self, name: str) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        (self.work / "out").mkdir(parents=True)
        roots = [Path("bert"), Path("calls.jsonl"), *healthy.inputs(healthy.COMMANDS[name])]
        for path in dict.fromkeys(path for path in roots if (self.made / path).exists()):
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            if (self.made / path).is_dir():
                shutil.copytree(self.made / path, self.work / path, dirs_exist_ok=True)
            else:
                shutil.copy(self.made / path, self.work / path)

    def healthy(self, name: str) -> Ended:
        """What a command does when nothing is wrong.

        ``""`` is the digest of what two runs write differently.
        """
        if name not in self._healthy:
            first, second = self.run(name, "", "", ""), self.run(name, "", "", "")
            assert first.status == second.status == 0, first.err[-3000:] + first.out[-300:]
            for path, digest in first.written.items():
                first.written[path] = digest if second.written[path] == digest else ""
            first.seconds = second.seconds
            self._healthy[name] = first
        return self._healthy[name]

    def judge(self, case: str) -> str:
        """Runs a case; says what does not hold, or nothing."""
        name, kind, place, fault = case.split(" | ", 3)
        usual = None if name in healthy.LONG else self.healthy(name)
        if kind == "signal":
            return self._judge_stopped(
                name, getattr(signal, place), float(fault) * usual.seconds, usual
            )
        ended = self.run(name, kind, place, fault)
        more = {path for path in ended.written if self.before.get(path) != ended.written[path]}
        wrong = told_wrong(ended)
        if usual and ended.memory > 2 * usual.memory:
            wrong.append(f"took {ended.memory:.0f} MB in place of {usual.memory:.0f}")
        if lost := [
            path
            for path in self.before
            if path not in ended.written and "begun/checkpoint-" not in path
        ]:
            wrong.append(f"lost {lost[0]}")
        if written := {
            path for path in more & self.before.keys() if not path.startswith("out/begun")
        }:
            wrong.append(f"wrote over {min(written)}")
        wrong += [f"half a file: {path}" for path in sorted(more) if not self._may_stay(path)]
        if "ran" in ended.written:
            wrong.append("code of a checkpoint ran")
        if ended.status == 0 and usual and kind != "output":
            said = place.split("/")[0] in DATA or place.endswith(".jinja")  # a template may be any
            # as may numbers
            said = said or (fault == "flipped" and place.endswith((".safetensors", ".npy")))
            wrong += self.other(
                ended, usual, same=kind == "rights" or (kind == "file" and not said)
            )
        return "; ".join(wrong[:3])

    def _judge_stopped(self, name: str, number: int, after: float, usual: Ended) -> str:
        ended = self.run(name, "signal", "", "", (number, after))
        words = healthy.COMMANDS[name].split()
        allowed = {0, -number, 130} if number != signal.SIGTERM else {0, -number, 130, 143}
        wrong = (
            [] if ended.status in allowed else [f"ended with {ended.status}: {ended.err[-300:]}"]
        )
        if number == signal.SIGINT and "Traceback" in ended.err:
            wrong.append("a traceback")
        new = [path for path, digest in ended.written.items() if self.before.get(path) != digest]
        wrong += [f"half a file: {path}" for path in new if not self._may_stay(path)]
        if name in ANEW and not self.other(ended, usual, same=True):
            return "; ".join(wrong)  # it was through already
        again = self._again(words)
        failed = [f"the rerun failed: {again.err[-300:]}"] if again.status else []
        return "; ".join(wrong + told_wrong(again) + failed + self.other(again, usual, same=True))

    def _may_stay(self, path: str) -> bool:
        """A run without its report is not finished.

        Whoever goes on with it writes its files again.
        """
        file = self.work / path
        begun = (
            path.startswith(("out/begun", "out/run"))
            and not (file.parent / "training_report.json").exists()
        )
        # a killed command's own folder, which the next one clears
        return begun or "/." in path or _is_whole(file)

    def other(self, ended: Ended, usual: Ended, same: bool) -> list[str]:
        """What a command that went well wrote in another way than usual."""
        made = {
            path
            for path in usual.written
            if path.startswith("out/") and not re.search(NOT_KEPT, path)
        }
        gone = made - ended.written.keys()
        if gone and (same or gone == made):
            return [f"exit 0 without {min(gone)}"]
        new = [
            path
            for path in ended.written
            if path.startswith("out/") and not re.search(NOT_KEPT, path)
        ]
        if left := [path for path in new if path not in made and same]:
            return [f"left {left[0]}"]
        other = [
            path for path in made - gone if usual.written[path] not in ("", ended.written[path])
        ]
        return [f"exit 0 with another {min(other)}"] if same and other else []


DATA = {
    "calls.jsonl",
    "calls.csv",
    "talk.txt",
    "other.jsonl",
    "responses.txt",
    "data",
    "recipe.yaml",
    "results.json",
}
"""What is read for what it says: another one means another result."""

NOT_KEPT = "begun/checkpoint-|/cache/"
"""Checkpoints are removed where they are damaged.

What is kept for another time is named for what was read.
"""

ANEW = {"export", "papers corpus unify", "model distil"}
"""Commands whose folder must not exist yet."""


def _as_child(action, folder: Path, fault: str, writers: list[int]) -> None:
    status = 99
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        for descriptor, writer in enumerate(writers, 1):
            os.dup2(writer, descriptor)
        os.closerange(3, 64)
        answers, given = os.pipe()
        os.write(given, b"y\n" * 9)  # whoever asks gets an answer
        os.close(given)
        os.dup2(answers, 0)
        sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, range(3), "rww")
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        if fault.startswith("full"):
            # Python ignores its signal
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(fault[5:]), int(fault[5:])))
        if fault == "closed":
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, 1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        status = action()
    except BaseException as error:
        # not within its try
        entering = str(traceback.extract_tb(error.__traceback__)[-1].line).startswith("def main(")
        early = isinstance(error, KeyboardInterrupt) and (
            entering or "/hf_dialemb/" not in traceback.format_exc()
        )
        status = 130 if early else 99
        if not early:
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _forked_quietly() -> int:
    """Forks; libraries' hooks in the child are not interrupted, which they tell in tracebacks.

    It is to unblock.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return child


def _command(words: list[str], begin=None) -> int:
    from hf_dialemb.apps.cli import main
    from hf_dialemb.hub import published_folder
    from hf_dialemb.storage import pretrained

    published_folder.subprocess = stand_in(run_forked)
    pretrained.FOLDER = Path("weights")
    if begin:
        begin()
    return main(words)


def told_wrong(ended: Ended) -> list[str]:
    """What an ended command should not have said, or not so."""
    lines = ended.err.replace("\r", "\n").splitlines()
    said, wrong = (
        [
            line
            for line in lines
            if line.startswith("dialemb: error: ") or line.startswith("usage:")
        ],
        [],
    )
    if "Traceback" in ended.err or ended.status not in (0, 1, 2):
        wrong.append(f"ended with {ended.status}: {lines[-1] if lines else ''}"[:300])
    elif len(said) != (ended.status != 0):
        wrong.append(f"exit {ended.status} with {len(said)} sentences: {lines[-3:]}"[:300])
    elif said and not said[0].isprintable():
        wrong.append(f"not printable: {said[0]!r}"[:300])
    if ended.seconds > PATIENCE:
        wrong.append("took too long")
    return wrong


def _digests(folder: Path) -> dict[str, str]:
    files = (
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() or (file.is_dir() and file.name[0] == ".")
    )
    return {
        str(file): hashlib.sha256(_content(file)).hexdigest() if file.is_file() else ""
        for file in files
        if not (file.name.startswith(".") and file.is_file())
        and file.suffix not in (".lock", ".tmp")
    }


def _content(file: Path) -> bytes:
    """What a file says, but for digests of what was read, which may differ where the result does
    not."""
    if file.suffix == ".parquet" and _is_whole(file):
        return repr(parquet.read_table(file).to_pydict()).encode()
    if file.suffix == ".xlsx" and _is_whole(file):
        with zipfile.ZipFile(file) as book:  # docProps/core.xml has the second of its writing
            return b"".join(
                book.read(part) for part in sorted(book.namelist()) if part != "docProps/core.xml"
            )
    if file.suffix == ".safetensors" and _is_whole(file):
        values = sorted(load_file(file).items())
        return b"".join(
            repr((name, value.dtype, value.shape)).encode()
            + value.reshape(-1).view(torch.uint8).numpy().tobytes()
            for name, value in values
        )
    if file.name in ("results.json", "results.md"):
        return b""  # how long it took is in it
    if file.suffix != ".json":
        return file.read_bytes()
    # And the padding, which Trainer notes in the config once it has trained a step.
    return re.sub(rb'"[0-9a-f]{16,64}"|"pad_token_id": 0,\s*', b"", file.read_bytes())


def _is_whole(file: Path) -> bool:
    """Whether a file can be read in its form, to its end, and all its numbers are finite."""
    try:
        if file.suffix == ".json":
            json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda name: 1 / 0)
        elif file.suffix == ".jsonl":
            text = file.read_text(encoding="utf-8")
            return text.endswith("\n") and all(map(json.loads, text.splitlines()))
        elif file.suffix == ".parquet":
            table = parquet.read_table(file)
            return "embedding" not in table.column_names or bool(
                np.isfinite(table["embedding"].combine_chunks().flatten().to_numpy()).all()
            )
        elif file.suffix == ".xlsx":
            return zipfile.ZipFile(file).testzip() is None
        elif file.suffix == ".safetensors":
            return all(
                bool(torch.isfinite(value.float()).all()) for value in load_file(file).values()
            )
        return True
    except Exception:
        return False
