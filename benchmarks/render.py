"""Writes the tables of README.md, docs/ and the model cards from results files.

    python benchmarks/render.py [--check]

A block between ``<!-- results: FILE -->`` and ``<!-- end -->`` is replaced by the table of that
results file; ``<!-- results: FILE name=N -->`` shows the table N of a program's several. The
pages of docs/results, which stand beside results files, are written as the commands write
them, and a card from the record beside it, with figures of docs/results.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from encoder_tables import tables

from hf_dialemb.evaluation.evaluating import page_of
from hf_dialemb.evaluation.results.result_tables import markdown_table
from hf_dialemb.evaluation.results.rows import read_results
from hf_dialemb.hub.card.card import render_card
from hf_dialemb.hub.card.figures import measured, results_of
from hf_dialemb.papers.paper_tables import ensemble_tables

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CARDS = ROOT / "model_cards"
BLOCK = re.compile(r"(<!-- results: (\S+)(?: name=(\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page with what it should say."""
    for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md", *DOCS.glob("*.md")):
        yield page, render(page.read_text(encoding="utf-8"))
    for page in (DOCS / "results").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        beside = page.with_suffix(".json")
        whole = beside.is_file() and not BLOCK.search(text)
        yield page, page_of(read_results(beside)) if whole else render(text)
    for file in sorted(CARDS.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        names = [known["name"] for known in record["measured_as"]]
        figures = measured(record, results_of(names, DOCS / "results"))
        yield file.with_suffix(".md"), render_card(record, figures)


def render(text: str) -> str:
    """Replace every block of a text by what its file says."""
    return BLOCK.sub(
        lambda found: f"{found[1]}{table(ROOT / found[2], found[3] or 'table')}\n{found[4]}", text
    )


def table(path: Path, name: str) -> str:
    """Render one results file: evaluation tables, or the figures of a benchmark program."""
    record = json.loads(path.read_text(encoding="utf-8"))
    if "results" in record:
        results = read_results(path)
        run = results.run
        if "comparisons" in run["config"]:
            figures = ensemble_tables(results)
        else:
            figures = markdown_table(results.results)
        return f"{figures}\n`{run['command']}` on {run['hardware']}\n"
    if "lines" in record:
        turns = json.loads(path.with_name("turn_retrieval.json").read_text(encoding="utf-8"))
        record = tables(record["lines"], turns["entries"])
    lines = record[name]
    if not any(line.startswith("|") for line in lines):
        # plain text keeps its columns only in a code block
        lines = ["```text", *lines, "```"]
    return "".join(f"{line}\n" for line in lines)


def main() -> int:
    """Rewrites the pages, or only tells whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a page is out of date"
    )
    check = parser.parse_args().check
    stale = {
        page: text
        for page, text in pages()
        if not page.is_file() or page.read_text(encoding="utf-8") != text
    }
    for page, text in stale.items():
        if check:
            print(f"{page.name} is out of date: run python benchmarks/render.py", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
