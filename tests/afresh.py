"""Programs in processes of their own, forked from one that has imported the libraries, which takes
ten seconds."""

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from types import SimpleNamespace

LIBRARIES = (
    "torch",
    "transformers",
    "sentence_transformers",
    "datasets",
    "accelerate",
    "transformers.trainer",
    "transformers.models.bert.modeling_bert",
    "sklearn.cluster",
)

COMMAND = "import sys; from hf_dialemb.apps.cli import main; assert main(sys.argv[1:]) == 0"
"""The command line."""


def run_afresh(
    program: str,
    *words: object,
    environment: dict[str, str] | None = None,
    folder: Path | str = ".",
):
    """Run a program as ``python -c`` does, and return how it ended, as `subprocess.run` does."""
    with tempfile.TemporaryDirectory() as place:
        files, words = [f"{place}/out", f"{place}/err"], ["-c", *map(str, words)]
        variables = dict(os.environ if environment is None else environment)
        code = _ask(program, words, str(Path(folder).resolve()), variables, files)
        return subprocess.CompletedProcess(words, code, *(Path(file).read_text() for file in files))


def running(file: Path) -> str:
    """Return a program that runs a file as Python does."""
    return (
        f"import runpy, sys; sys.path.insert(0, {str(file.parent)!r}); "
        f"runpy.run_path({str(file)!r}, run_name='__main__')"
    )


def stand_in(run) -> SimpleNamespace:
    """Return what stands for the module `subprocess` where it starts Python, with a way to run."""

    def run_words(words: list[str], env: dict[str, str], cwd: str, **_: object):
        return run(*words[2:], environment=env, folder=cwd)

    return SimpleNamespace(run=run_words)


def printed_afresh(program: str, *words: object, **options: object) -> str:
    """Run a program that must end well, and return what it printed."""
    done = run_afresh(program, *words, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def of_ranks(program: str, processes: int = 2, *, machines: int = 1) -> str:
    """Return a program that becomes the processes of one training, as launchers start them, and
    waits for all."""
    near = processes // machines
    return (
        "import os, socket\nwith socket.socket() as free:\n    free.bind(('127.0.0.1', 0))\n"
        f"    os.environ.update(WORLD_SIZE='{processes}', MASTER_ADDR='127.0.0.1', "
        "MASTER_PORT=str(free.getsockname()[1]))\n"
        f"ranks = range(1, {processes})\nrank = next((own for own in ranks if not os.fork()), 0)\n"
        f"os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank % {near}), "
        f"LOCAL_WORLD_SIZE='{near}')\n"
        f"{program}\nassert rank or not any(os.wait()[1] for _ in ranks)\n"
    )


@cache
def _server() -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _ask(*request: object) -> int:
    """Have the server fork; return the status of the child."""
    _server().stdin.write(json.dumps(request) + "\n")
    _server().stdin.flush()
    return int(_server().stdout.readline())


def _forked(program: str, *surroundings: object) -> int:
    child = os.fork()
    if not child:
        _begin(*surroundings)
        status = _status(program)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # taking all modules apart takes seconds
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _begin(words: list[str], folder: str, environment: dict[str, str], files: list[str]) -> None:
    """Make the process what a new one would be, with the libraries' settings read anew from the
    environment."""
    for descriptor, file in enumerate((os.devnull, *files)):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), descriptor)
    sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, range(3), "rww")
    # what is to be done at the end of the process that forked is not for its children
    atexit._clear()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv, sys.path[0] = words, ""
    for name in [name for name in sys.modules if name.split(".")[0] == "hf_dialemb"]:
        del sys.modules[name]
    from datasets import config
    from huggingface_hub import constants, hf_api

    for settings in (constants, config):
        importlib.reload(settings)
    hf_api.api.endpoint = constants.ENDPOINT
    modules = os.environ.get("HF_MODULES_CACHE", f"{constants.HF_HOME}/modules")
    for name in ("transformers.utils.hub", "transformers.dynamic_module_utils"):
        sys.modules[name].HF_MODULES_CACHE = modules


def _status(program: str) -> int:
    """Run a program; return the status that Python would end with."""
    try:
        exec(compile(program, "-c", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if not isinstance(end.code, str):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        sys.stdout.write(f"{_forked(*json.loads(line))}\n")
        sys.stdout.flush()
