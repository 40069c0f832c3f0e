"""Uses the Spaces of metrics as a stranger would: `python -I` this file with where they lie, inputs, and a report.

The package cannot be imported here. What is found is written as JSON, from metric to fact.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import runpy
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


def parted(metric, arguments):
    """Returns columns, one item per example, and the other arguments."""
    names = list(metric.features[0] if isinstance(metric.features, list) else metric.features)
    rest = {key: value for key, value in arguments.items() if key not in names}
    return {name: arguments[name] for name in names}, rest


def converted(arguments, convert):
    numeric = {key: value for key, value in arguments.items() if getattr(value, "dtype", np.dtype("O")).kind in "fib"}
    return {**arguments, **{key: convert(value) for key, value in numeric.items()}}


def in_batches(metric, arguments):
    columns, rest = parted(metric, arguments)
    for part in (slice(None, 3), slice(3, None)):
        metric.add_batch(**{key: column[part] for key, column in columns.items()})
    return metric.compute(**rest)


def one_by_one(metric, arguments):
    columns, rest = parted(metric, arguments)
    for items in zip(*columns.values(), strict=True):
        metric.add(**{key.removesuffix("s") if key != "candidates" else key: item
                      for key, item in zip(columns, items, strict=True)})  # fmt: skip
    return metric.compute(**rest)


def computed(name, arguments):
    return {
        "arrays": metric_at(name).compute(**arguments),
        "lists": metric_at(name).compute(**converted(arguments, np.ndarray.tolist)),
        "tensors": metric_at(name).compute(**converted(arguments, torch.from_numpy)),
        "batches": in_batches(metric_at(name), arguments),
        "examples": one_by_one(metric_at(name), converted(arguments, torch.from_numpy)),
        "in memory": metric_at(name, keep_in_memory=True).compute(**arguments),
    }


def refusals(name, arguments):
    """Returns what is raised of inputs that make no sense."""
    metric = metric_at(name)
    columns, rest = parted(metric, arguments)
    broken = np.array(columns["predictions"], dtype=float)
    broken.flat[-1] = np.nan
    attempts = {
        "empty": {key: column[:0] for key, column in columns.items()},
        "length": {**columns, "references": columns["references"][:-1]},
        "not a number": {**columns, "predictions": broken},
    }
    if isinstance(metric.features, list):
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


class Part:
    def __init__(self, **given):
        self.given = given


class RefusedError(Exception):
    pass


def page_of(name):
    """Runs app.py of a Space, whose folder has another name there."""
    space = REPORT.parent / "spaces" / name / "app"
    space.parent.mkdir(parents=True)
    space.symlink_to(FOLDERS / name)
    sys.modules["gradio"] = types.SimpleNamespace(Interface=Part, Textbox=Part, JSON=Part, Error=RefusedError)
    page = runpy.run_path(str(space / "app.py"), run_name="app")["page"].given
    try:
        refused = f"nothing: {page['fn']('[]')}"
    except RefusedError as error:
        refused = str(error)
    scores = page["fn"](page["inputs"].given["value"])
    return {"scores": scores, "title": page["title"], "article": page["article"][:200], "refused": refused}


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
        "computed": computed(name, arguments),
        "cases": [[metric_at(name).compute(**case), result] for case, result in zip(cases, expected, strict=True)],
        "documented": documented(name),
        "page": page_of(name),
        "refusals": refusals(name, arguments),
    }


def combined(names, arguments):
    """Computes several metrics together: at once, and in two batches."""
    several = evaluate.combine({name: metric_at(name) for name in names}, force_prefix=True)
    for part in (slice(None, 3), slice(3, None)):
        several.add_batch(**{key: column[part] for key, column in arguments.items()})
    return [evaluate.combine([str(FOLDERS / name) for name in names]).compute(**arguments), several.compute()]


if __name__ == "__main__":
    tasks = pickle.loads(INPUTS.read_bytes())
    os.chdir(FOLDERS)  # README.md loads "./name"
    report = {
        "two processes": of_two_processes(tasks["inputs"]),
        "facts": {name: facts(name, arguments) for name, arguments in tasks["inputs"].items()},
        "strings": {name: metric_at(name).compute(**arguments) for name, arguments in tasks["strings"].items()},
        "combined": combined(*tasks["combined"]),
    }
    assert not [name for name in sys.modules if name.split(".")[0] == "hf_dialemb"]
    REPORT.write_text(json.dumps(report), encoding="utf-8")
