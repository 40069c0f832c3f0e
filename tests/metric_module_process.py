"""Uses every metric folder as a stranger would: `python -I` this file with where they lie, inputs, and where to report.

The package cannot be imported here. What is found is written as JSON, from metric to fact.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import runpy
import shutil
import sys
import types
from doctest import ELLIPSIS, DocTestParser, DocTestRunner
from importlib.abc import MetaPathFinder
from pathlib import Path

import evaluate
import numpy as np
import torch


class Absent(MetaPathFinder):
    """Hides the package, installed or not."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] == "hf_dialemb":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


sys.meta_path.insert(0, Absent())

FOLDERS, INPUTS, REPORT = map(Path, sys.argv[1:])
SPREAD = ("dialogue_retrieval", "ndcg", "purity")  # what two processes compute together


def metric_at(name, **options):
    return evaluate.load(str(FOLDERS / name), **options)


def features_of(metric):
    return list(metric.features[0] if isinstance(metric.features, list) else metric.features)


def parted(metric, arguments):
    """Returns columns, one item per example, and the other arguments."""
    names = features_of(metric)
    rest = {key: value for key, value in arguments.items() if key not in names}
    return {name: arguments[name] for name in names}, rest


def lists(arguments):
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in arguments.items()}


def tensors(arguments):
    return {
        key: torch.from_numpy(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fib" else value
        for key, value in arguments.items()
    }


def at_once(name, arguments):
    return metric_at(name).compute(**arguments)


def in_memory(name, arguments):
    return metric_at(name, keep_in_memory=True).compute(**arguments)


def in_batches(name, arguments):
    metric = metric_at(name)
    columns, rest = parted(metric, arguments)
    for part in (slice(None, 3), slice(3, None)):
        metric.add_batch(**{key: column[part] for key, column in columns.items()})
    return metric.compute(**rest)


def one_by_one(name, arguments):
    metric = metric_at(name)
    columns, rest = parted(metric, arguments)
    singular = {"predictions": "prediction", "references": "reference"}
    for items in zip(*columns.values(), strict=True):
        metric.add(**{singular.get(key, key): item for key, item in zip(columns, items, strict=True)})
    return metric.compute(**rest)


def refusals(name, arguments):
    """Returns what is raised of inputs that make no sense."""
    columns, rest = parted(metric_at(name), arguments)
    broken = np.array(columns["predictions"], dtype=float)
    broken.flat[-1] = np.nan
    attempts = {
        "empty": {key: column[:0] for key, column in columns.items()},
        "length": {**columns, "references": columns["references"][:-1]},
        "not a number": {**columns, "predictions": broken},
    }
    if isinstance(metric_at(name).features, list):
        attempts["missing"] = {**columns, "predictions": None}
    found = {}
    for what, columns in attempts.items():
        try:
            # An experiment of its own, since what is refused keeps the lock of its file for a while.
            found[what] = f"none: {metric_at(name, experiment_id=what).compute(**columns, **rest)}"
        except Exception as error:
            found[what] = f"{type(error).__name__}: {error}"
    return found


def documented(name):
    """Runs the examples of README.md; returns how many lines there are, and what differs from what they say."""
    text = (FOLDERS / name / "README.md").read_text(encoding="utf-8")
    examples, complaints = 0, []
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        test = DocTestParser().get_doctest(block, {}, name, None, 0)
        examples += len(test.examples)
        DocTestRunner(verbose=False, optionflags=ELLIPSIS).run(test, out=complaints.append)
    return examples, "".join(complaints)


def page_of(name, stub):
    """Runs app.py of a copy that is laid out as a Space, whose folder has another name."""
    space = REPORT.parent / "spaces" / name / "app"
    shutil.copytree(FOLDERS / name, space, ignore=shutil.ignore_patterns("__pycache__"))
    sys.modules["gradio"] = stub
    page = runpy.run_path(str(space / "app.py"), run_name="app")["page"].given
    try:
        page["fn"]("[]")
        refused = ""
    except stub.Error as error:
        refused = str(error)
    return {
        "scores": page["fn"](page["inputs"].given["value"]),
        "title": page["title"],
        "article": page["article"][:200],
        "refused": refused,
    }


def gradio():
    class Part:
        def __init__(self, **given):
            self.given = given

    class Error(Exception):
        pass

    return types.SimpleNamespace(Interface=Part, Textbox=Part, JSON=Part, Error=Error)


def rank(number, inputs):
    """Adds a half of the inputs as one of two processes; returns what it computes of them."""
    found = {}
    for name in SPREAD:
        metric = metric_at(name, num_process=2, process_id=number, experiment_id=name, timeout=60)
        columns, rest = parted(metric, inputs[name])
        half = slice(None, 4) if number == 0 else slice(4, None)
        metric.add_batch(**{key: column[half] for key, column in columns.items()})
        found[name] = metric.compute(**rest)
    return found


def of_two_processes(inputs):
    other = os.fork()
    if other == 0:
        code = 1
        try:
            code = 0 if set(rank(1, inputs).values()) == {None} else 2
        finally:
            os._exit(code)
    found = rank(0, inputs)
    return {"scores": found, "other": os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])}


def facts(name, arguments):
    loaded = metric_at(name)
    cases = [dict(case) for case in runpy.run_path(str(FOLDERS / name / "tests.py"))["test_cases"]]
    expected = [case.pop("result") for case in cases]
    return {
        "name": loaded.name,
        "module": type(loaded).__module__,
        "texts": [loaded.description, loaded.citation, loaded.inputs_description, *loaded.info.reference_urls],
        "computed": {
            f"{way.__name__} {kind.__name__}": way(name, kind(arguments))
            for way in (at_once, in_batches, one_by_one)
            for kind in (dict, lists, tensors)
        }
        | {"in memory": in_memory(name, arguments)},
        "cases": [[at_once(name, case), result] for case, result in zip(cases, expected, strict=True)],
        "documented": documented(name),
        "page": page_of(name, gradio()),
        "refusals": refusals(name, arguments),
    }


def combined(names, arguments):
    """Computes several metrics together: at once, and in two batches."""
    found = [evaluate.combine([str(FOLDERS / name) for name in names]).compute(**arguments)]
    several = evaluate.combine({name: metric_at(name) for name in names}, force_prefix=True)
    for part in (slice(None, 3), slice(3, None)):
        several.add_batch(**{key: column[part] for key, column in arguments.items()})
    return [*found, several.compute()]


if __name__ == "__main__":
    tasks = pickle.loads(INPUTS.read_bytes())
    os.chdir(FOLDERS)  # README.md loads "./name"
    report = {
        "two processes": of_two_processes(tasks["inputs"]),
        "facts": {name: facts(name, arguments) for name, arguments in tasks["inputs"].items()},
        "strings": {name: at_once(name, arguments) for name, arguments in tasks["strings"].items()},
        "combined": combined(*tasks["combined"]),
    }
    assert not [name for name in sys.modules if name.split(".")[0] == "hf_dialemb"]
    REPORT.write_text(json.dumps(report), encoding="utf-8")
