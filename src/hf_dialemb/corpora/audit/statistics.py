"""Counts of a corpus, made in one pass that keeps no dialogue."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Self

from ...dialogue import ROLES, Dialogue, Turn, plain
from ...drawing import visible


class Histogram(Counter[int]):
    """The frequencies of whole numbers."""

    @property
    def sum(self) -> int:
        """The sum of the numbers."""
        return sum(value * count for value, count in self.items())

    @property
    def mean(self) -> float | None:
        """The arithmetic mean; None without numbers."""
        return self.sum / self.total() if self else None

    @property
    def median(self) -> float | None:
        """The middle number, or the mean of the two in the middle; None without numbers."""
        total = self.total()
        return (self._at((total - 1) // 2) + self._at(total // 2)) / 2 if self else None

    def percentile(self, percent: int) -> int:
        """Return the smallest number that is not exceeded by ``percent`` in a hundred numbers."""
        return self._at((self.total() * percent + 99) // 100 - 1)

    def to_json(self) -> dict[str, Any]:
        """Return ``mean``, ``median``, ``min``, ``max`` and ``histogram``: the counts in the order of the numbers."""
        histogram = {str(value): self[value] for value in sorted(self)}
        least, most = min(self, default=None), max(self, default=None)
        return {"mean": self.mean, "median": self.median, "min": least, "max": most, "histogram": histogram}

    def _at(self, rank: int) -> int:
        """Return the number at a rank, from 0, in the order of size."""
        values = sorted(self)
        return values[bisect_right(list(accumulate(map(self.__getitem__, values))), rank)]


class Statistics:
    """Counts of the dialogues that were added; their order does not matter.

    A word stands between spaces. Two texts are the same if they differ in case and white space at most. Memory grows
    with the number of different labels, and by eight bytes per turn.
    """

    def __init__(self) -> None:
        self.turns_per_dialogue = Histogram()
        self.words_per_dialogue = Histogram()
        self.words_per_turn = Histogram()
        self.single_domain_turns = Histogram()  # per dialogue of exactly one domain
        self.single_domain_words = Histogram()
        self.turns_by_role: Counter[str] = Counter()
        self.one_speaker_dialogues = 0
        self.domains: Counter[str] = Counter()  # dialogues that have each; of the other labels, turns
        self.dialogue_acts: Counter[str] = Counter()
        self.slots: Counter[str] = Counter()
        self.intents: Counter[str] = Counter()
        self.labelled_turns = 0  # with an act, a slot or an intent
        self._dialogue_hashes = array("Q")
        self._utterance_hashes = array("Q")

    @classmethod
    def of(cls, dialogues: Iterable[Dialogue]) -> Self:
        """Count dialogues."""
        statistics = cls()
        for dialogue in dialogues:
            statistics.add(dialogue)
        return statistics

    def counting(self, dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
        """Count dialogues while they pass."""
        for dialogue in dialogues:
            self.add(dialogue)
            yield dialogue

    def add(self, dialogue: Dialogue) -> None:
        """Count one more dialogue."""
        words = sum(map(self._add_turn, dialogue.turns))
        self._dialogue_hashes.frombytes(content_hash(dialogue))
        self.turns_per_dialogue[len(dialogue.turns)] += 1
        self.words_per_dialogue[words] += 1
        self.one_speaker_dialogues += len(dialogue.roles) == 1
        self.domains.update(set(dialogue.domains))
        if len(dialogue.domains) == 1:
            self.single_domain_turns[len(dialogue.turns)] += 1
            self.single_domain_words[words] += 1

    def _add_turn(self, turn: Turn) -> int:
        words = len(turn.content.split())
        self.words_per_turn[words] += 1
        self.turns_by_role[turn.role] += 1
        self.dialogue_acts.update(set(turn.dialogue_acts))
        self.slots.update({name for name, _ in turn.slots})
        self.intents.update(set(turn.intents))
        self.labelled_turns += bool(turn.dialogue_acts or turn.slots or turn.intents)
        self._utterance_hashes.frombytes(blake2b(_encoded(turn.content), digest_size=8).digest())
        return words

    @property
    def dialogues(self) -> int:
        """The number of dialogues."""
        return self.turns_per_dialogue.total()

    @property
    def turns(self) -> int:
        """The number of turns."""
        return self.words_per_turn.total()

    @property
    def duplicate_dialogues(self) -> int:
        """The number of dialogues that repeat an earlier one: the same roles say the same in the same order."""
        return _repeats(self._dialogue_hashes)

    @property
    def duplicate_utterances(self) -> int:
        """The number of turns that repeat the text of an earlier one, whoever speaks."""
        return _repeats(self._utterance_hashes)

    def to_json(self) -> dict[str, Any]:
        """Return all counts as a JSON object; labels by falling count, means of nothing as null."""
        return {
            "dialogues": self.dialogues,
            "turns": self.turns,
            "words": self.words_per_turn.sum,
            "turns_per_dialogue": self.turns_per_dialogue.to_json(),
            "words_per_turn": self.words_per_turn.to_json(),
            "words_per_dialogue": self.words_per_dialogue.to_json(),
            "turns_by_role": {role: self.turns_by_role[role] for role in ROLES if role in self.turns_by_role},
            "one_speaker_dialogues": self.one_speaker_dialogues,
            "single_domain": {
                "dialogues": self.single_domain_turns.total(),
                "mean_turns": self.single_domain_turns.mean,
                "mean_words": self.single_domain_words.mean,
            },
            "domains": _labels_to_json(self.domains),
            "dialogue_acts": _labels_to_json(self.dialogue_acts),
            "slots": _labels_to_json(self.slots),
            "intents": _labels_to_json(self.intents),
            "labelled_turns": self.labelled_turns,
            "duplicates": {
                "dialogues": self.duplicate_dialogues,
                "dialogue_share": self.duplicate_dialogues / max(1, self.dialogues),
                "utterances": self.duplicate_utterances,
                "utterance_share": self.duplicate_utterances / max(1, self.turns),
            },
        }

    def to_table(self) -> str:
        """Return a plain table with one count per line; see `describe`."""
        roles = sorted(self.turns_by_role, key=lambda role: (-self.turns_by_role[role], ROLES.index(role)))
        rows = [
            ("dialogues", f"{self.dialogues:,}"),
            ("turns", f"{self.turns:,}"),
            *_means(self.turns_per_dialogue, self.words_per_dialogue, ""),
            ("single-domain dialogues", f"{self.single_domain_turns.total():,}"),
            *_means(self.single_domain_turns, self.single_domain_words, "  "),
            ("speakers", f"{len(roles):,}"),
            *((f"  {role}", f"{self.turns_by_role[role]:,} turns") for role in roles),
            *_label_rows("labels", self.domains, ""),
        ]
        for name, labels in (("dialogue acts", self.dialogue_acts), ("slots", self.slots), ("intents", self.intents)):
            rows += _label_rows(name, labels, " turns") if labels else []
        dialogues, utterances = self.duplicate_dialogues, self.duplicate_utterances
        if dialogues or utterances:
            rows.append(("duplicate dialogues", f"{dialogues:,} ({dialogues / self.dialogues:.1%})"))
            rows.append(("duplicate utterances", f"{utterances:,} ({utterances / self.turns:.1%})"))
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def describe(dialogues: Iterable[Dialogue]) -> str:
    """Count a corpus, also as a stream, and return a plain table with one count per line.

    Labels are the ten most frequent: domains by dialogues; acts, slots and intents by turns. A word stands between
    spaces.
    """
    return Statistics.of(dialogues).to_table()


def most_frequent(labels: Counter[str], limit: int) -> list[str]:
    """Return the most frequent labels; ties in alphabetical order."""
    return sorted(labels, key=lambda label: (-labels[label], label))[:limit]


def content_hash(dialogue: Dialogue) -> bytes:
    """Return 8 bytes, the same for dialogues whose turns differ in case and white space alone."""
    whole = blake2b(digest_size=8)
    for turn in dialogue.turns:
        whole.update(turn.role.encode() + b"\t" + _encoded(turn.content) + b"\n")
    return whole.digest()


def _encoded(text: str) -> bytes:
    return plain(text).encode("utf-8", "surrogatepass")  # JSON can spell half a character


def _repeats(hashes: "array[int]") -> int:
    """Count the hashes that came before; a sorted array takes a tenth of the memory of a set."""
    import numpy as np

    return len(hashes) - len(np.unique(np.array(hashes, dtype=np.uint64)))


def _labels_to_json(labels: Counter[str]) -> dict[str, Any]:
    return {"distinct": len(labels), "counts": {label: labels[label] for label in most_frequent(labels, len(labels))}}


def _means(turns: Histogram, words: Histogram, indent: str) -> list[tuple[str, str]]:
    if not turns:
        return []
    return [(f"{indent}mean turns", f"{turns.mean:.1f}"), (f"{indent}mean words", f"{words.mean:.1f}")]


def _label_rows(name: str, labels: Counter[str], unit: str) -> list[tuple[str, str]]:
    frequent = most_frequent(labels, 10)
    return [(name, f"{len(labels):,}"), *((f"  {visible(label)}", f"{labels[label]:,}{unit}") for label in frequent)]
