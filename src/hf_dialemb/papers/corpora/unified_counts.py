"""The figures of a unified dataset, as the Dialog2Flow paper counts them (appendix A)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...data.corpus import SPLITS, Corpus
from ...dialogue import action_name
from ...display import table_lines

_COUNTED_LABELS = ("domains", "acts", "main_acts", "original_acts", "slots", "intents")
# whose figure is the number of distinct names
_LABELS = ("domains", "original_acts", "acts", "slots", "actions")
_COLUMNS = {
    "utterances": "Utterances",
    "domains": "Domains",
    "original_acts": "Acts by their own names",
    "acts": "Acts",
    "slots": "Slots",
    "actions": "Actions",
}


class Tally:
    """Counts of one corpus while it is written, or of several together.

    The first six `counters` are the paper's statistics: in how many labelled turns each label
    stands, turns of one word among them. The actions are those of the utterances, the labelled
    turns of two words and more. ``counts`` has the numbers of ``turns``, ``labelled`` turns,
    ``utterances``, and what was left out of train (``excluded_dialogues``, ``excluded_turns``).
    """

    def __init__(self) -> None:
        self.counters: dict[str, Counter[str]] = {
            kind: Counter() for kind in (*_COUNTED_LABELS, "actions", "dialogues", "counts")
        }

    @property
    def stats(self) -> dict[str, Any]:
        """The labels' counters in the paper's form."""
        acts = {kind: self.counters[kind] for kind in ("acts", "main_acts", "original_acts")}
        labels = {
            "dialog_acts": acts,
            "slots": self.counters["slots"],
            "intents": self.counters["intents"],
        }
        return {"domains": self.counters["domains"], "labels": labels}

    def take(
        self, split: str, turns: int, labelled: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Count a dialogue and return its utterances."""
        counts = self.counters["counts"]
        utterances = []
        self.counters["dialogues"][split] += 1
        counts.update(turns=turns, labelled=len(labelled))
        for turn in labelled:
            labels = {
                **turn["labels"],
                **turn["labels"].get("dialog_acts", {}),
                "domains": turn["domains"],
            }
            for kind in _COUNTED_LABELS:
                self.counters[kind].update(labels.get(kind, ()))
            acts = labels.get("acts", ())
            slots = labels.get("slots", ())
            if len(turn["text"].split()) > 1:
                utterances.append(turn)
                counts["utterances"] += 1
                if acts or slots:
                    self.counters["actions"][action_name(acts, slots)] += 1
        return utterances

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        for kind, counter in self.counters.items():
            counter.update(other.counters[kind])

    def figures(self) -> dict[str, Any]:
        """Return the counts of dialogues, turns, utterances and distinct labels."""
        dialogues = self.counters["dialogues"]
        counts = self.counters["counts"]
        return {
            "dialogues": {split: dialogues[split] for split in SPLITS if dialogues[split]},
            **{kind: counts[kind] for kind in ("turns", "labelled", "utterances")},
            **{kind: len(self.counters[kind]) for kind in _LABELS},
            "excluded": {kind: counts[f"excluded_{kind}"] for kind in ("dialogues", "turns")},
        }


def statistics(tallies: Iterable[tuple[Corpus, Tally]]) -> dict[str, Any]:
    """Return the figures of the corpora, and their totals."""
    total = Tally()
    corpora = {}
    for corpus, tally in tallies:
        total.add(tally)
        stated = {
            field: getattr(corpus, field) for field in ("source", "licence", "terms", "extract")
        }
        corpora[corpus.name] = {**stated, **tally.figures()}
    return {"corpora": corpora, "totals": total.figures()}


def figures_table(stats: Mapping[str, Any]) -> str:
    """Return a table of the corpora and their totals."""
    rows = {**stats["corpora"], "**all**": stats["totals"]}
    lines = [
        [name, *(f"{figures[field]:,}" for field in _COLUMNS)] for name, figures in rows.items()
    ]
    return "\n".join(table_lines(["Corpus"], list(_COLUMNS.values()), lines))
