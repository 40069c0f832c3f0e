"""Writes the tables of README.md, benchmarks/README.md and docs/ from the results files.

    python benchmarks/render_readme.py [--check]

A block between ``<!-- results: FILE -->`` and ``<!-- end -->`` is replaced by the table of that results file;
``<!-- results: FILE models=A,B tasks=T,U -->`` shows these models and tasks alone, and the paper's rows;
``<!-- results: FILE name=N -->`` shows the table N of a program's several.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from hf_dialemb.apps.ensemble.tables import ensemble_tables
from hf_dialemb.evaluation.results.flow_tables import flow_means, is_in_short
from hf_dialemb.evaluation.results.rows import Row, read_results
from hf_dialemb.evaluation.results.tables import markdown_table, paper_table

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- results: (\S+)((?: \w+=\S+)*) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(text: str) -> str:
    """Replaces every results block of a text by what its file says."""

    def block(found: re.Match[str]) -> str:
        chosen = {key: values.split(",") for key, values in (item.split("=", 1) for item in found[3].split())}
        return f"{found[1]}{table(ROOT / found[2], **chosen)}\n{found[4]}"

    return BLOCK.sub(block, text)


def table(path: Path, models: Sequence[str] = (), tasks: Sequence[str] = (), name: Sequence[str] = ()) -> str:
    """Renders one results file: evaluation tables, or the figures of a benchmark program."""
    record = json.loads(path.read_text(encoding="utf-8"))
    if "results" in record:
        results = read_results(path)
        run = results.run
        config = run["config"]
        if "comparisons" in config:
            figures = ensemble_tables(results)
        elif config.get("tasks") == ["flow-extraction"]:
            figures = flow_means(results.results)  # the file beside it, .md, has each domain
        elif {"paper", "suite"} & set(config):
            figures = paper_table(row for row in results.results if shown(row, models, tasks))
        else:
            figures = markdown_table(results.results)
        return f"{figures}\n`{run['command']}` on {run['hardware']}\n"
    lines = record[(*name, "table")[0]]
    if not any(line.startswith("|") for line in lines):  # plain text keeps its columns only in a code block
        lines = ["```text", *lines, "```"]
    return "".join(f"{line}\n" for line in lines)


def shown(row: Row, models: Sequence[str], tasks: Sequence[str]) -> bool:
    """Says whether a figure was asked for."""
    wanted = (not tasks or row.task in tasks) and (not models or row.model in models or row.quoted_from is not None)
    return wanted and is_in_short(row)


def main() -> int:
    """Rewrites the pages, or only tells whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a table is out of date")
    check = parser.parse_args().check
    for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        before = page.read_text(encoding="utf-8")
        after = render(before)
        if check and after != before:
            print(f"{page.name} is out of date: run python benchmarks/render_readme.py", file=sys.stderr)
            return 1
        if after != before:
            page.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
