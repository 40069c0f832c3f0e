"""The report on leakage: the leaks, their places, and what cleaning removed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ...dialogue import Dialogue

DIALOGUE, UTTERANCE, TURN = "dialogue", "utterance", "turn"
"""Levels of a leak: a dialogue, an utterance, or (counted, not removed) a turn of a dialogue of an evaluation set."""

EXAMPLES = 3  # examples in a report of each pair of sets


@dataclass(frozen=True)
class Leak:
    """A part of an evaluation set in a training dialogue.

    The similarity of equal texts is 1.0. Of near duplicates it is the share of the smaller dialogue's own shingles that
    the other has, or the Jaccard similarity of the utterances' shingles.
    """

    evaluation: str  # the evaluation set
    id: str  # of the dialogue or utterance there
    level: str  # `DIALOGUE`, `UTTERANCE` or `TURN`
    exact: bool  # equal, and not only nearly
    similarity: float
    turn: int | None = None  # position in the training dialogue; None if the whole dialogue leaks


@dataclass
class Cleaning:
    """The numbers of dialogues and turns before `leakage.EvaluationIndex.clean`, and of those left out."""

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

    def add(self, other: "Cleaning") -> None:
        """Add the counts of more training data."""
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)


@dataclass(frozen=True)
class Example:
    """A leak and the training dialogue that has it."""

    training_id: str
    leak: Leak


@dataclass
class Row:
    """The leaks of one evaluation set in one training set.

    The level is `TURN` where a training set of utterances meets an evaluation set of dialogues; those are kept.
    """

    training: str
    evaluation: str
    level: str
    items: int = 0  # dialogues, or else turns, of the training set
    exact: int = 0  # items that equal a part of the evaluation set
    near: int = 0  # other items that nearly do
    after: int = 0  # leaks in what `leakage.EvaluationIndex.clean` leaves
    examples: list[Example] = field(default_factory=list)  # near ones first

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Make a row of what `dataclasses.asdict` made of it."""
        examples = [Example(example["training_id"], Leak(**example["leak"])) for example in record["examples"]]
        return cls(**{**record, "examples": examples})

    def count(self, identifier: str, leak: Leak) -> None:
        """Count a leak of the training dialogue of that id."""
        self.exact += leak.exact
        self.near += not leak.exact
        self._show([Example(identifier, leak)])

    def add(self, other: "Row") -> None:
        """Add the counts of later dialogues of the same training set."""
        self.exact += other.exact
        self.near += other.near
        self.after += other.after
        self._show(other.examples)

    def _show(self, examples: Iterable[Example]) -> None:
        self.examples += examples
        self.examples.sort(key=lambda example: (example.leak.exact, example.training_id, example.leak.turn or 0))
        del self.examples[EXAMPLES:]


@dataclass(frozen=True)
class LeakageReport:
    """The leaks of each evaluation set in each training set, and what cleaning removed."""

    rows: tuple[Row, ...]  # one for each pair, also without leaks
    cleaning: Mapping[str, Cleaning]  # of each training set, against all evaluation sets at once

    def markdown(self) -> str:
        """Return the report as Markdown: the pairs with leaks, and the losses of each training set."""
        leaks = [row for row in self.rows if row.level != TURN and (row.exact or row.near)]
        shared = [row for row in self.rows if row.level == TURN and (row.exact or row.near)]
        after = sum(row.after for row in leaks)
        parts = [
            f"Pairs of a training and an evaluation set compared: {len(self.rows):,}; with leaks: {len(leaks):,}. "
            f"A second search, in what is left without them, finds {after:,}.",
            *_table("after cleaning", leaks),
        ]
        if shared:
            parts += [
                "",
                "Utterances that are also turns of evaluation dialogues are common property, counted and kept:",
                *_table("kept", shared),
            ]
        parts += [
            "",
            "What cleaning takes from each training set, all evaluation sets at once:",
            "",
            "| training | dialogues | removed | turns | removed |",
            "|:--|--:|--:|--:|--:|",
        ]
        for name, counts in self.cleaning.items():
            numbers = counts.dialogues, counts.removed_dialogues, counts.turns, counts.removed_turns
            parts.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
        return "\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object: ``rows``, ``cleaning`` and, under ``table``, the lines of the tables."""
        cleaning = {name: asdict(count) for name, count in self.cleaning.items()}
        return {"rows": [asdict(row) for row in self.rows], "cleaning": cleaning, "table": self.markdown().split("\n")}


def _table(last: str, rows: Sequence[Row]) -> list[str]:
    lines = [
        f"| {row.training} | {row.evaluation} | {row.level}s | {row.items:,} | {row.exact:,} | {row.near:,} "
        f"| {row.after:,} |"
        for row in rows
    ]
    header = f"| training | evaluation | compared | in training | exact | near | {last} |"
    return ["", header, "|:--|:--|:--|--:|--:|--:|--:|", *lines] if lines else []
