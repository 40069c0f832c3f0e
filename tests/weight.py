"""Weigh the code: ``python tests/weight.py`` prints each part beside what it may weigh.

A statement of the syntax tree counts, but for docstrings; names, attributes, constants and
arguments are its leaves. Neither can be lowered by squeezing lines.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "src/hf_dialemb"


class Weight(NamedTuple):
    """The statements and leaves of some files, or the most that they may have."""

    statements: int
    leaves: float = float("inf")


LIMITS = {
    "library": Weight(8_300, 40_630),
    "apps": Weight(6_675, 34_998),
    "papers": Weight(2_348, 11_994),
    "tests": Weight(10_999),
    "benchmarks": Weight(2_200),
}
SCRIPT_LINES, WORDS, CARD_WORDS = 2_400, 25_000, 900
"""The most lines of JavaScript, words of documents, and words of a model card."""


def files(*patterns: str) -> list[Path]:
    """Return the files of the checkout that git tracks, by patterns of git."""
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def weigh(paths: Iterable[Path]) -> Weight:
    """Count the statements and the leaves of Python files."""
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    documented = [
        node
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    statements = sum(isinstance(node, ast.stmt) for node in nodes) - len(documented)
    leaves = sum(
        isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.arg) for node in nodes
    )
    return Weight(statements, leaves)


def parts() -> dict[str, Weight]:
    """Weigh the three floors, the tests and the benchmarks."""
    floors = {name: files(f"{PACKAGE}/{name}/*.py") for name in ("apps", "papers")}
    above = {path for paths in floors.values() for path in paths}
    floors["library"] = [path for path in files(f"{PACKAGE}/*.py") if path not in above]
    others = {name: files(f"{name}/*.py") for name in ("tests", "benchmarks")}
    return {name: weigh(paths) for name, paths in {**floors, **others}.items()}


def script_lines() -> int:
    """Count the lines of JavaScript that are ours."""
    own = [path for path in files(f"{PACKAGE}/*.js") if "vendor" not in path.parts]
    return sum(path.read_text("utf-8").count("\n") for path in own)


def words() -> int:
    """Count the words of the documents, without what the commands wrote into docs/results."""
    pages = files("README.md", "CONTRIBUTING.md", "docs/*.md", ":!docs/results")
    return sum(len(path.read_text("utf-8").split()) for path in pages)


def longest_card() -> int:
    """Count the words of the longest model card."""
    return max(len(path.read_text("utf-8").split()) for path in files("model_cards/*.md"))


def main() -> int:
    """Print every part beside its limit; return 1 if one is above it."""
    weights = parts()
    rows = [
        (f"{name}, statements", weights[name].statements, limit.statements)
        for name, limit in LIMITS.items()
    ]
    rows += [
        (f"{name}, leaves", weights[name].leaves, limit.leaves) for name, limit in LIMITS.items()
    ]
    rows += [
        ("own JavaScript, lines", script_lines(), SCRIPT_LINES),
        ("documents, words", words(), WORDS),
        ("longest model card, words", longest_card(), CARD_WORDS),
    ]
    limited = [row for row in rows if row[2] < float("inf")]
    for name, weight, limit in limited:
        mark = "  above" if weight > limit else ""
        print(f"{name:28} {weight:>7,} of {limit:>7,}{mark}")
    return int(any(weight > limit for _, weight, limit in limited))


if __name__ == "__main__":
    sys.exit(main())
