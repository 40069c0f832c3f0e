"""The report on leakage: what was found, where, and what cleaning removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ...models.dialogue import Dialogue

DIALOGUE, UTTERANCE, TURN = "dialogue", "utterance", "turn"
"""What leaks: a dialogue of an evaluation set, an utterance of one, or (counted, not removed) a turn of a dialogue."""

EXAMPLES = 3
"""How many examples a report gives of each pair of sets."""


@dataclass(frozen=True)
class Leak:
    """Something of an evaluation set in a training dialogue.

    Attributes:
        evaluation: The evaluation set.
        id: The dialogue or utterance there.
        level: `DIALOGUE`, `UTTERANCE` or `TURN`.
        exact: Whether it equals what stands in training, and not only nearly.
        similarity: 1.0 if it is equal; of near duplicates, the share of the smaller dialogue's own shingles that the
            other has, or the Jaccard similarity of the utterances' shingles.
        turn: The position of the turn in the training dialogue; None if it is the dialogue that leaks.
    """

    evaluation: str
    id: str
    level: str
    exact: bool
    similarity: float
    turn: int | None = None


@dataclass
class Cleaning:
    """What `leakage.EvaluationIndex.clean` did.

    Attributes:
        dialogues: How many dialogues came.
        removed_dialogues: How many of them were left out.
        turns: How many turns came.
        removed_turns: How many of them were left out, those of dialogues that were left out included.
    """

    dialogues: int = 0
    removed_dialogues: int = 0
    turns: int = 0
    removed_turns: int = 0

    def count(self, dialogue: Dialogue, left: Dialogue | None) -> None:
        """Counts a dialogue and what was left of it."""
        self.dialogues += 1
        self.turns += len(dialogue.turns)
        self.removed_dialogues += left is None
        self.removed_turns += len(dialogue.turns) - (len(left.turns) if left else 0)


@dataclass(frozen=True)
class Example:
    """A leak and the training dialogue where it was found."""

    training_id: str
    leak: Leak


@dataclass
class Row:
    """What of one evaluation set stands in one training set.

    Attributes:
        training: The training set.
        evaluation: The evaluation set.
        level: `DIALOGUE` or `UTTERANCE`; `TURN` where a training set of utterances meets an evaluation set of
            dialogues: what is counted there is kept.
        items: How many dialogues, or else turns, the training set has.
        exact: How many of them equal something of the evaluation set.
        near: How many others nearly do.
        after: How many of both are found in what `leakage.EvaluationIndex.clean` leaves.
        examples: Some of them, near ones first.
    """

    training: str
    evaluation: str
    level: str
    items: int = 0
    exact: int = 0
    near: int = 0
    after: int = 0
    examples: list[Example] = field(default_factory=list)

    def count(self, identifier: str, leak: Leak) -> None:
        """Counts a leak of the training dialogue of that id."""
        self.exact += leak.exact
        self.near += not leak.exact
        self.examples.append(Example(identifier, leak))
        self.examples.sort(key=lambda example: (example.leak.exact, example.training_id, example.leak.turn or 0))
        del self.examples[EXAMPLES:]


@dataclass(frozen=True)
class LeakageReport:
    """What of each evaluation set stands in each training set, and what cleaning removed.

    Attributes:
        rows: One for each pair, also where nothing was found.
        cleaning: What cleaning did to each training set, against all evaluation sets at once.
    """

    rows: tuple[Row, ...]
    cleaning: Mapping[str, Cleaning]

    def markdown(self) -> str:
        """Returns the report as Markdown: the pairs in which something was found, and what each training set loses."""
        found = [row for row in self.rows if row.exact or row.near]
        leaks = [row for row in found if row.level != TURN]
        shared = [row for row in found if row.level == TURN]
        after = sum(row.after for row in leaks)
        parts = [
            f"{len(self.rows):,} pairs of a training and an evaluation set were compared. In {len(leaks):,} of them "
            f"something leaks; a second search, in what is left without it, finds {after:,}.",
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
