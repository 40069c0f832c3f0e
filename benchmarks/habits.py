"""Runs the suite of Hugging Face users' habits, and writes which of them work and which differ.

A test of `tests/library/conformance` names its habit and what comes of it in a marker, as in
``@pytest.mark.habit("Trainer.predict(dialogues)", "works")``. The program writes a row for each
habit whose tests passed; a failure ends it without a file.

    python benchmarks/habits.py [--only test_trainer.py]
"""

import argparse
import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "tests" / "library" / "conformance"
LIBRARIES = (
    "transformers",
    "sentence-transformers",
    "accelerate",
    "peft",
    "datasets",
    "huggingface-hub",
)


class Recorder:
    """A plugin of pytest that keeps the outcome of every habit's tests."""

    def __init__(self) -> None:
        self.outcomes: dict[tuple[str, str, str], set[str]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Any:
        """Note the outcome of a test, or of a set-up that failed or skipped."""
        report = (yield).get_result()
        marker = item.get_closest_marker("habit")
        if marker is not None and (report.when == "call" or not report.passed):
            part = Path(str(item.path)).stem.removeprefix("test_").replace("_", " ").capitalize()
            self.outcomes.setdefault((part, *marker.args), set()).add(report.outcome)


def main() -> int:
    """Run the suite and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="a file of the suite")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "docs" / "results" / "huggingface.json"
    )
    options = parser.parse_args()
    recorder = Recorder()
    code = pytest.main(
        ["-q", "-p", "no:cacheprovider", str(SUITE / options.only)], plugins=[recorder]
    )
    if code:
        return int(code)
    lines = ["| | Habit | In hf_dialemb |", "|-|-|-|"]
    before = ""
    for (part, habit, answer), outcomes in sorted(recorder.outcomes.items()):
        if outcomes == {"passed"}:
            lines.append(f"| {part if part != before else ''} | {habit} | {answer} |")
            before = part
    versions = {name: metadata.version(name) for name in LIBRARIES}
    options.output.write_text(
        json.dumps({"versions": versions, "table": lines}, indent=1) + "\n", encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
