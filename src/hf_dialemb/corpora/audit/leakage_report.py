"""The report on leakage: what was found, where, and what cleaning removed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ...dialogue import Dialogue

DIALOGUE, UTTERANCE, TURN = "dialogue", "utterance", "turn"
"""What leaks: a dialogue of an evaluation set, an utterance of one, or (counted, not removed) a turn of a dialogue."""

EXAMPLES = 3  # how many examples a report gives of each pair of sets


@dataclass(frozen=True)
class Leak:
    """Something of an evaluation set in a training dialogue.

    The similarity is 1.0 if it is equal; of near duplicates, the share of the smaller dialogue's own shingles that the
    other has, or the Jaccard similarity of the utterances' shingles.
    """

    evaluation: str  # the evaluation set
    id: str  # the dialogue or utterance there
    level: str  # `DIALOGUE`, `UTTERANCE` or `TURN`
    exact: bool  # whether it equals what stands in training, and not only nearly
    similarity: float
    turn: int | None = None  # its position in the training dialogue; None if it is the dialogue that leaks


@dataclass
class Cleaning:
    """What `leakage.EvaluationIndex.clean` did: how many dialogues and turns came, and how many were left out."""

    dialogues: int = 0
    removed_dialogues: int = 0
    turns: int = 0
    removed_turns: int = 0  # those of dialogues that were left out included

    def count(self, dialogue: Dialogue, left: Dialogue | None) -> None:
        """Counts a dialogue and what was left of it."""
        self.dialogues += 1
        self.turns += len(dialogue.turns)
        self.removed_dialogues += left is None
        self.removed_turns += len(dialogue.turns) - (len(left.turns) if left else 0)

    def add(self, other: "Cleaning") -> None:
        """Adds what was done to more of the training data."""
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)


@dataclass(frozen=True)
class Example:
    """A leak and the training dialogue where it was found."""

    training_id: str
    leak: Leak


@dataclass
class Row:
    """What of one evaluation set stands in one training set.

    The level is `TURN` where a training set of utterances meets an evaluation set of dialogues: what is counted there
    is kept.
    """

    training: str
    evaluation: str
    level: str
    items: int = 0  # how many dialogues, or else turns, the training set has
    exact: int = 0  # how many of them equal something of the evaluation set
    near: int = 0  # how many others nearly do
    after: int = 0  # how many of both are found in what `leakage.EvaluationIndex.clean` leaves
    examples: list[Example] = field(default_factory=list)  # near ones first

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Makes a row again of what `dataclasses.asdict` made of it."""
        examples = [Example(each["training_id"], Leak(**each["leak"])) for each in record["examples"]]
        return cls(**{**record, "examples": examples})

    def count(self, identifier: str, leak: Leak) -> None:
        """Counts a leak of the training dialogue of that id."""
        self.exact += leak.exact
        self.near += not leak.exact
        self._show([Example(identifier, leak)])

    def add(self, other: "Row") -> None:
        """Adds what was counted of dialogues that come later in the same training set."""
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
    """What of each evaluation set stands in each training set, and what cleaning removed."""

    rows: tuple[Row, ...]  # one for each pair, also where nothing was found
    cleaning: Mapping[str, Cleaning]  # of each training set, against all evaluation sets at once

    def markdown(self) -> str:
        """Returns the report as Markdown: the pairs in which something was found, and what each training set loses."""
        found = [row for row in self.rows if row.exact or row.near]
        leaks = [row for row in found if row.level != TURN]
        shared = [row for row in found if row.level == TURN]
        after = sum(row.after for row in leaks)
        parts = [
            f"Pairs of a training and an evaluation set compared: {len(self.rows):,}; with leaks: {len(leaks):,}. "
            f"A second search, in what is left without them, finds {after:,}.",
            *_table(("training", "evaluation", "compared", "in training", "exact", "near", "after cleaning"), leaks),
        ]
        if shared:
            parts += [
                "",
                "Utterances that are also turns of evaluation dialogues are common property, counted and kept:",
                *_table(("training", "evaluation", "compared", "in training", "exact", "near", "kept"), shared),
            ]
        parts += [
            "",
            "What cleaning takes from each training set, all evaluation sets at once:",
            "",
            "| training | dialogues | removed | turns | removed |",
            "|:--|--:|--:|--:|--:|",
        ]
        parts += [
            f"| {name} | {each.dialogues:,} | {each.removed_dialogues:,} | {each.turns:,} | {each.removed_turns:,} |"
            for name, each in self.cleaning.items()
        ]
        return "\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as a JSON object: ``rows``, ``cleaning`` and, under ``table``, the lines of the tables."""
        cleaning = {name: asdict(count) for name, count in self.cleaning.items()}
        return {"rows": [asdict(row) for row in self.rows], "cleaning": cleaning, "table": self.markdown().split("\n")}


def _table(header: Sequence[str], rows: Iterable[Row]) -> list[str]:
    lines = [
        f"| {row.training} | {row.evaluation} | {row.level}s | {row.items:,} | {row.exact:,} | {row.near:,} "
        f"| {row.after:,} |"
        for row in rows
    ]
    return ["", f"| {' | '.join(header)} |", "|:--|:--|:--|--:|--:|--:|--:|", *lines] if lines else []
