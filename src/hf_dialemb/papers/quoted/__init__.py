"""The figures of the papers' own tables, to stand beside measured ones: one JSON file a paper.

A file names the paper, the models that tables show, what to know before comparing, and the tables:
for each column the corpus (one that this package cannot read by the paper's own name), task, metric
and setting, and for each row the model, the row's printed name and its figures, ``[mean, std]``
where a deviation is printed.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ...evaluation.results.rows import Row, place_of, rows_of

SPLIT = "test"  # the split that all quoted figures are of


class Quoted(NamedTuple):
    """What is quoted of a paper.

    Who wrote it when, its figures, which models are shown, and what to know before.
    """

    paper: str
    rows: tuple[Row, ...]
    shown: tuple[str, ...]
    notes: tuple[str, ...]


def quoted_figures(suite: str) -> Quoted:
    """Read the figures of a suite's paper, in the order of its tables."""
    record = json.loads(Path(__file__).with_name(f"{suite}.json").read_text(encoding="utf-8"))
    rows = []
    for table in record["tables"]:
        for line in table["rows"]:
            source = f"{record['paper']}, {table['table']}, row {line['row']}"
            for (corpus, task, metric, setting), figure in zip(
                table["columns"], line["figures"], strict=True
            ):
                mean, std = figure if isinstance(figure, list) else (figure, None)
                measured = Row(
                    task=task, metric=metric, setting=setting, mean=mean, std=std, n=table["n"]
                )
                rows += rows_of(line["model"], corpus, SPLIT, [measured], quoted_from=source)
    return Quoted(str(record["paper"]), tuple(rows), tuple(record["shown"]), tuple(record["notes"]))


def quoted_beside(rows: Iterable[Row], suites: Sequence[str] = ()) -> list[Row]:
    """Find the figures of papers (those of suites, or all) for the measured places.

    They come model by model.
    """
    measured = set(map(place_of, rows))
    results = []
    for suite in suites or sorted(file.stem for file in Path(__file__).parent.glob("*.json")):
        quoted = quoted_figures(suite)
        beside = [row for row in quoted.rows if place_of(row) in measured]
        results += [row for model in quoted.shown for row in beside if row.model == model]
    return results
