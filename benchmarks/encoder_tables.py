"""Draws the tables of `encoders.py`.

From its figures, by encoder, by what was measured, one of each run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hf_dialemb.display import table_lines

Lines = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
# its head, and what is averaged: of which measurement which figure
Column = tuple[str, Sequence[tuple[str, str]]]

TITLES = {
    "sgd": "SGD",
    "multiwoz": "MultiWOZ",
    "doc2dial": "Doc2Dial",
    "self_dialogue": "Self-dialogue",
    "star": "STAR",
    "kvret": "KVRET",
    "dailydialog": "DailyDialog",
    "clinc150": "CLINC150",
    "banking77": "BANKING77",
    "snips": "SNIPS",
    "sim_m": "Sim-M",
    "gecor": "GECOR",
}
SIX = ("sgd", "multiwoz", "doc2dial", "self_dialogue", "star", "kvret")
INTENTS = ("clinc150", "banking77", "snips")
FILE = "dialog2flow_evaluation"


def _of(task: str, corpora: Sequence[str], figure: str) -> list[tuple[str, str]]:
    return [(f"{task} {corpus}", figure) for corpus in corpora]


def _each(task: str, corpora: Sequence[str], figure: str, what: str = "") -> list[Column]:
    return [(f"{TITLES[corpus]}{what}", _of(task, [corpus], figure)) for corpus in corpora]


SIZE = "Parameters, M"
SHORT: list[Column] = [
    (SIZE, [("rate", "parameters")]),
    ("Dialogues, MAP", _of("domains", SIX, "map")),
    (
        "One speaker, MAP",
        _of("ablations", SIX, "map first speaker") + _of("ablations", SIX, "map second speaker"),
    ),
    # Of the set that none of ours learnt from.
    ("Intents, accuracy", _of("intent-classification", ["clinc150"], "accuracy 1-shot")),
    ("Actions, F1", [(FILE, "1-shot")]),
    ("Utterances/s", [("rate", "utterances/s")]),
]
"""What an encoder is for, in a few words each: the columns of the README's table."""

LONG: dict[str, list[Column]] = {
    "dialogues": _each("domains", SIX, "map"),
    "purity": _each("domains", SIX, "purity"),
    "intents": [
        *_each("intent-classification", INTENTS, "accuracy 1-shot", ", 1"),
        *_each("intent-classification", INTENTS, "accuracy 5-shot", ", 5"),
    ],
    "actions": [
        ("All, 1", [(FILE, "1-shot")]),
        ("All, 5", [(FILE, "5-shot")]),
        ("All, 5, unit", [(FILE, "5-shot, unit prototypes")]),
    ],
    "covered": [
        ("Covered, 1", [(FILE, "covered 1-shot")]),
        ("Covered, 5", [(FILE, "covered 5-shot")]),
        ("Uncovered, 1", [(FILE, "uncovered 1-shot")]),
        ("Uncovered, 5", [(FILE, "uncovered 5-shot")]),
    ],
    "corpora": _each(
        "action-similarity", ("sgd", "multiwoz", "star", "kvret", "sim_m", "gecor"), "f1 1-shot"
    ),
    "first": _each("ablations", (*SIX, "dailydialog"), "map first speaker"),
    "second": _each("ablations", (*SIX, "dailydialog"), "map second speaker"),
}
"""The same in full."""

UNSEEN = ("doc2dial", "star", "kvret")
FIRST: list[Column] = [
    ("Dialogues", _of("domains", UNSEEN, "map")),
    (
        "One speaker",
        _of("ablations", UNSEEN, "map first speaker")
        + _of("ablations", UNSEEN, "map second speaker"),
    ),
    ("Intents", _of("intent-classification", ["clinc150"], "accuracy 1-shot")),
    ("Actions", _of("action-similarity", ("star", "kvret", "sim_m", "gecor"), "f1 1-shot")),
    ("Turns", [("turns locomo/dev", "ndcg10")]),
]
"""The columns of the README: corpora that none of the encoders of `ROWS` learnt from."""

ROWS = {
    "all-MiniLM-L6-v2": "all-MiniLM-L6-v2",
    "all-mpnet-base-v2": "all-mpnet-base-v2",
    "dialogue-minilm": "`dialogue-minilm`, for dialogues",
    "dial2vec": "dial2vec, for one speaker",
    "action-mpnet": "`action-mpnet`, for utterances",
    "turn-minilm": "`turn-minilm`, for turns",
    "dialogue-multilingual": "`dialogue-multilingual`, for other languages",
}


def tables(lines: Lines, turns: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Draw all tables: ``table`` is the short one, ``readme`` has the figures of turns too."""
    every = {name: long(lines, columns) for name, columns in LONG.items()}
    return {"table": short(lines), "readme": first(lines, turns), **every}


def first(lines: Lines, turns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Draw the rows of the README; ``turns`` are the entries of `turn_retrieval.py`."""
    chosen = {name: dict(lines[name]) for name in ROWS}
    for entry in turns:
        if entry["model"] in chosen:
            figures = {"ndcg10": [entry["figures"]["alone"]["ndcg10"]]}
            chosen[entry["model"]][f"turns {entry['corpus']}"] = figures
    drawn = [cells(chosen, column) for column in FIRST]
    rows = [[title, *(column[name] for column in drawn)] for name, title in ROWS.items()]
    return table_lines(["Encoder"], [head for head, _ in FIRST], rows)


def values(
    line: Mapping[str, Mapping[str, Sequence[float]]], column: Column
) -> tuple[np.ndarray, bool] | None:
    """Average a column's figures, one of each run, and tell whether some were learnt from."""
    if any(what not in line or figure not in line[what] for what, figure in column[1]):
        return None
    learnt = any(any(line[what].get("learnt", [])) for what, _ in column[1])
    return np.mean([line[what][figure] for what, figure in column[1]], axis=0), learnt


def cells(lines: Lines, column: Column) -> dict[str, str]:
    """Draws a column.

    With the spread of several runs, the best in bold, what was learnt from with a mark.
    """
    found = {name: values(line, column) for name, line in lines.items()}
    fair = [own[0].mean() for own in found.values() if own is not None and not own[1]]
    drawn = {}
    for name, own in found.items():
        if own is None:
            drawn[name] = ""
            continue
        runs, learnt = own
        mean = runs.mean()
        text = f"{mean:,.0f}" if mean >= 100 and column[0].endswith("/s") else f"{mean:.1f}"
        text = (
            f"**{text}**"
            if column[0] != SIZE and not learnt and round(mean, 1) == round(max(fair), 1)
            else text
        )
        spread = (
            f" ± {runs.std(ddof=1):.1f}" if len(runs) > 1 and not column[0].endswith("/s") else ""
        )
        drawn[name] = text + ("†" if learnt else "") + spread
    return drawn


def long(lines: Lines, columns: Sequence[Column]) -> list[str]:
    """Draws the encoders that were measured for these columns."""
    chosen = {
        name: line
        for name, line in lines.items()
        if any(values(line, column) for column in columns)
    }
    drawn = [cells(chosen, column) for column in columns]
    across = len(chosen) < len(columns)  # a row for each of what there are more of
    table = [["" if across else "Encoder", *chosen]]
    table += [[head, *c.values()] for (head, _), c in zip(columns, drawn, strict=True)]
    table = table if across else [list(line) for line in zip(*table, strict=True)]
    return table_lines(table[0][:1], table[0][1:], table[1:])


def short(lines: Lines) -> list[str]:
    """Draws the encoders that were measured for two things or more."""
    chosen = {
        name: line
        for name, line in lines.items()
        if sum(values(line, each) is not None for each in SHORT) > 1
    }
    drawn = [cells(chosen, column) for column in SHORT]
    rows = [[name, *(column[name] for column in drawn)] for name in chosen]
    return table_lines(["Encoder"], [head for head, _ in SHORT], rows)
