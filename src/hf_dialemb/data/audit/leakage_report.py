"""The report on leakage: the leaks, their places, and what cleaning removed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...dialogue import Dialogue
from ...display import table_lines
from .near_duplicates import Leak

EXAMPLES = 3  # examples in a report of each pair of sets


@dataclass
class Cleaning:
    """Counts of dialogues and turns, and of those that `EvaluationIndex.clean` leaves out."""

    dialogues: int = 0
    removed_dialogues: int = 0
    turns: int = 0
    removed_turns: int = 0  # those of removed dialogues included

    def count(self, dialogue: Dialogue, left: Dialogue | None) -> None:
        """Count a dialogue and what was left of it."""
        self.dialogues += 1
        self.turns += len(dialogue.turns)
        self.removed_dialogues += left is None
        self.removed_turns += len(dialogue.turns) - (len(left.turns) if left else 0)


@dataclass
class Row:
    """The leaks of one evaluation set in one training set."""

    training: str
    evaluation: str
    level: str
    items: int = 0  # dialogues, or else turns, of the training set
    exact: int = 0  # items that equal a part of the evaluation set
    near: int = 0  # other items that nearly do
    # training_id and leak, near ones first
    examples: list[dict[str, Any]] = field(default_factory=list)

    def count(self, identifier: str, leak: Leak) -> None:
        """Count a leak of the training dialogue of that id."""
        self.exact += leak.exact
        self.near += not leak.exact
        self.examples.append({"training_id": identifier, "leak": leak._asdict()})
        self.examples.sort(
            key=lambda item: (item["leak"]["exact"], item["training_id"], item["leak"]["turn"] or 0)
        )
        del self.examples[EXAMPLES:]


@dataclass(frozen=True)
class LeakageReport:
    """The leaks of each evaluation set in each training set, and what cleaning removed."""

    rows: tuple[Row, ...]  # one for each pair, also without leaks
    cleaning: Mapping[str, Cleaning]  # of each training set, against all evaluation sets at once

    def markdown(self) -> str:
        """Return the pairs with leaks, and the losses of each training set, as Markdown."""
        leaks = [row for row in self.rows if row.exact or row.near]
        compared = f"{len(self.rows):,}; with leaks: {len(leaks):,}."
        parts = [f"Pairs of a training and an evaluation set compared: {compared}"]
        if leaks:
            pairs = []
            for row in leaks:
                counts = map("{:,}".format, (row.items, row.exact, row.near))
                pairs.append((row.training, row.evaluation, f"{row.level}s", *counts))
            columns = ["in training", "exact", "near"]
            parts += ["", *table_lines(["training", "evaluation", "compared"], columns, pairs)]
        removed = [
            (name, *map("{:,}".format, asdict(cleaning).values()))
            for name, cleaning in self.cleaning.items()
        ]
        parts += [
            *("", "What cleaning takes from each training set, all evaluation sets at once:", ""),
            *table_lines(["training"], ["dialogues", "removed", "turns", "removed"], removed),
        ]
        return "\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return ``rows``, ``cleaning`` and the lines of the Markdown as ``table``."""
        return {**asdict(self), "table": self.markdown().split("\n")}
