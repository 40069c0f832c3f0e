"""Writes the tables of README.md, benchmarks/README.md and docs/ from the results files.

    python benchmarks/render_readme.py [--check]

A block between ``<!-- results: FILE -->`` and ``<!-- end -->`` is replaced by the table of that
results file; ``<!-- results: FILE models=A,paper:B tasks=T metrics=M settings=,S -->`` shows these
alone: models by how their names begin, of tasks, metrics and settings those that are listed; ``<!--
results: FILE name=N -->`` shows the table N of a program's several. Between ``<!-- forms -->`` and
``<!-- end -->`` stand the names of the forms in which conversations are read. The pages of
docs/results, which stand beside results files, are written as the commands write them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from encoder_tables import tables

from hf_dialemb.apps.files.form import FOLDER, RECORD, TABLE, TEXT
from hf_dialemb.apps.files.forms import FORMS
from hf_dialemb.evaluation.evaluating import page_of
from hf_dialemb.evaluation.results.result_tables import is_in_short, markdown_table, paper_table
from hf_dialemb.evaluation.results.rows import Row, read_results
from hf_dialemb.papers.paper_tables import ensemble_tables, flow_means

ROOT = Path(__file__).parents[1]
KINDS = {RECORD: "JSON and Parquet", FOLDER: "Folders", TABLE: "Tables", TEXT: "Text"}
FORMS_BLOCK = re.compile(r"(<!-- forms -->\n).*?(<!-- end -->)", re.DOTALL)
BLOCK = re.compile(r"(<!-- results: (\S+)((?: \w+=\S*)*) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(text: str) -> str:
    """Replace every results block of a text by what its file says."""

    def block(found: re.Match[str]) -> str:
        chosen = {
            key: values.split(",")
            for key, values in (item.split("=", 1) for item in found[3].split())
        }
        return f"{found[1]}{table(ROOT / found[2], chosen)}\n{found[4]}"

    return FORMS_BLOCK.sub(
        lambda found: f"{found[1]}{forms_named()}\n{found[2]}", BLOCK.sub(block, text)
    )


def forms_named() -> str:
    """Name all forms in which conversations are read, in a sentence for each kind of file."""
    sentences = []
    for kind, title in KINDS.items():
        names = sorted(
            (form.name for form in FORMS.values() if form.container == kind), key=str.casefold
        )
        sentences.append(f"{title}: {'; '.join(names)}.\n")
    return "\n".join(sentences)


def table(path: Path, chosen: Mapping[str, Sequence[str]]) -> str:
    """Render one results file: evaluation tables, or the figures of a benchmark program."""
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
            figures = paper_table(row for row in results.results if shown(row, chosen))
        else:
            figures = markdown_table(results.results)
        return f"{figures}\n`{run['command']}` on {run['hardware']}\n"
    if "lines" in record:
        turns = json.loads(path.with_name("turn_retrieval.json").read_text(encoding="utf-8"))
        record = tables(record["lines"], turns["entries"])
    lines = record[chosen.get("name", ["table"])[0]]
    if not any(
        line.startswith("|") for line in lines
    ):  # plain text keeps its columns only in a code block
        lines = ["```text", *lines, "```"]
    return "".join(f"{line}\n" for line in lines)


def shown(row: Row, chosen: Mapping[str, Sequence[str]]) -> bool:
    """Says whether a figure was asked for."""
    model = f"paper:{row.model}" if row.quoted_from else row.model
    wanted = all(
        getattr(row, key[:-1]) in values for key, values in chosen.items() if key != "models"
    )
    return wanted and model.startswith(tuple(chosen.get("models", [""]))) and is_in_short(row)


def main() -> int:
    """Rewrites the pages, or only tells whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a table is out of date"
    )
    check = parser.parse_args().check
    results = (ROOT / "docs" / "results").rglob("*.md")
    for page in (
        ROOT / "README.md",
        ROOT / "benchmarks" / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *results,
    ):
        before, beside = page.read_text(encoding="utf-8"), page.with_suffix(".json")
        whole = beside.is_file() and not BLOCK.search(before)
        after = page_of(read_results(beside)) if whole else render(before)
        if check and after != before:
            print(
                f"{page.name} is out of date: run python benchmarks/render_readme.py",
                file=sys.stderr,
            )
            return 1
        if after != before:
            page.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
