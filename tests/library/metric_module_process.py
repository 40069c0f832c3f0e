"""Uses the Spaces of metrics as a stranger would.

`python -I` this file with where they lie, and a report.

The package cannot be imported here. What is found is written as JSON, from metric to fact.
"""

import json
import os
import re
import runpy
import sys
from doctest import ELLIPSIS, DocTestParser, DocTestRunner
from pathlib import Path

import evaluate

sys.modules["hf_dialemb"] = None  # hides the package, installed or not
FOLDERS, REPORT = map(Path, sys.argv[1:])


def documented(name):
    """Runs the examples of README.md.

    Returns how many lines there are, and what differs from what they say.
    """
    text = (FOLDERS / name / "README.md").read_text(encoding="utf-8")
    examples, complaints = 0, []
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        test = DocTestParser().get_doctest(block, {}, name, None, 0)
        examples += len(test.examples)
        DocTestRunner(verbose=False, optionflags=ELLIPSIS).run(test, out=complaints.append)
    return examples, "".join(complaints)


def facts(name):
    cases = [dict(case) for case in runpy.run_path(str(FOLDERS / name / "tests.py"))["test_cases"]]
    expected = [case.pop("result") for case in cases]
    metric = evaluate.load(str(FOLDERS / name))
    return {
        "name": metric.name,
        "module": type(metric).__module__,
        "texts": [
            metric.description,
            metric.citation,
            metric.inputs_description,
            *metric.info.reference_urls,
        ],
        "cases": [
            [metric.compute(**case), result] for case, result in zip(cases, expected, strict=True)
        ],
        "documented": documented(name),
    }


if __name__ == "__main__":
    os.chdir(FOLDERS)  # README.md loads "./name"
    report = {folder.name: facts(folder.name) for folder in FOLDERS.iterdir()}
    assert [found for name, found in sys.modules.items() if name.split(".")[0] == "hf_dialemb"] == [
        None
    ]
    REPORT.write_text(json.dumps(report), encoding="utf-8")
