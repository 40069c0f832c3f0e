"""The corpora as a table for people: what they are, what may be done with them, and whether their reader met them."""

from pathlib import Path

from ...runs.files import write_json_atomically
from ..corpus import Corpus
from ..registry import CORPORA, get_corpus

COLUMNS = ("corpus", "holds", "splits", "licence", "terms", "run on", "source")


def catalogue(output: Path | None = None) -> str:
    """Lists the registered corpora."""
    rows = [COLUMNS, *(_row(get_corpus(name)) for name in sorted(CORPORA))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in padded]
    table = [lines[0], "|" + "|".join(":" + "-" * (width + 1) for width in widths) + "|", *lines[1:]]
    if output:
        write_json_atomically(output, {"table": table})
    return "\n".join(table)


def _row(corpus: Corpus) -> tuple[str, ...]:
    met = corpus.extract or "the real files" if corpus.real else "not run on the real files"
    return (
        corpus.name,
        corpus.kind,
        ", ".join(corpus.splits),
        corpus.licence,
        corpus.terms,
        met if corpus.patterns or corpus.extract else "nothing: it is generated",
        corpus.source,
    )
