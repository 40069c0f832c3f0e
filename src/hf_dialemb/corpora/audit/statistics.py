"""What a corpus holds, counted in one pass that keeps no dialogue."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Self

from ...dialogue import ROLES, Dialogue, Turn
from ...drawing import visible


class Histogram(Counter[int]):
    """How often each whole number came."""

    @property
    def sum(self) -> int:
        """The sum of the numbers."""
        return sum(value * count for value, count in self.items())

    @property
    def mean(self) -> float | None:
        """The arithmetic mean; None where no number came."""
        return self.sum / self.total() if self else None

    @property
    def median(self) -> float | None:
        """The middle number, or the mean of the two in the middle; None where no number came."""
        total = self.total()
        return (self._at((total - 1) // 2) + self._at(total // 2)) / 2 if self else None

    def percentile(self, percent: int) -> int:
        """Returns the smallest number that at least so many in a hundred do not exceed."""
        return self._at((self.total() * percent + 99) // 100 - 1)

    def to_json(self) -> dict[str, Any]:
        """Returns ``mean``, ``median``, ``min``, ``max`` and ``histogram``: the counts in the order of the numbers."""
        histogram = {str(value): self[value] for value in sorted(self)}
        least, most = min(self, default=None), max(self, default=None)
        return {"mean": self.mean, "median": self.median, "min": least, "max": most, "histogram": histogram}

    def _at(self, rank: int) -> int:
        """The number at a place, from 0, in the order of size."""
        values = sorted(self)
        return values[bisect_right(list(accumulate(map(self.__getitem__, values))), rank)]


class Statistics:
    """Counts of the dialogues that were added; their order does not matter.

    A word is what stands between spaces. Two texts are the same if they differ in upper and lower case and in white
    space at most. Memory grows with the number of different labels, and by eight bytes per turn.
    """

    def __init__(self) -> None:
        self.turns_per_dialogue = Histogram()
        self.words_per_dialogue = Histogram()
        self.words_per_turn = Histogram()
        self.single_domain_turns = Histogram()  # per dialogue, of those with exactly one domain
        self.single_domain_words = Histogram()  # of the same
        self.turns_by_role: Counter[str] = Counter()
        self.one_speaker_dialogues = 0
        self.domains: Counter[str] = Counter()  # in how many dialogues each stands; of the others, in how many turns
        self.dialogue_acts: Counter[str] = Counter()
        self.slots: Counter[str] = Counter()
        self.intents: Counter[str] = Counter()
        self.labelled_turns = 0  # those that have an act, a slot or an intent
        self._dialogue_hashes = array("Q")
        self._utterance_hashes = array("Q")

    @classmethod
    def of(cls, dialogues: Iterable[Dialogue]) -> Self:
        """Counts dialogues."""
        statistics = cls()
        for dialogue in dialogues:
            statistics.add(dialogue)
        return statistics

    def counting(self, dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
        """Counts dialogues while they pass."""
        for dialogue in dialogues:
            self.add(dialogue)
            yield dialogue

    def add(self, dialogue: Dialogue) -> None:
        """Counts one more dialogue."""
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
        self._utterance_hashes.frombytes(blake2b(_normalised(turn.content), digest_size=8).digest())
        return words

    @property
    def dialogues(self) -> int:
        """How many dialogues there are."""
        return self.turns_per_dialogue.total()

    @property
    def turns(self) -> int:
        """How many turns they have."""
        return self.words_per_turn.total()

    @property
    def words(self) -> int:
        """How many words the turns have."""
        return self.words_per_turn.sum

    @property
    def duplicate_dialogues(self) -> int:
        """Dialogues that repeat an earlier one: the same roles say the same in the same order."""
        return _repeats(self._dialogue_hashes)

    @property
    def duplicate_utterances(self) -> int:
        """Turns that repeat what an earlier one says, whoever speaks."""
        return _repeats(self._utterance_hashes)

    def to_json(self) -> dict[str, Any]:
        """Returns all counts as a JSON object; labels by falling count, means of nothing as null."""
        return {
            "dialogues": self.dialogues,
            "turns": self.turns,
            "words": self.words,
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
        """Returns the plain table that `describe` promises."""
        roles = sorted(self.turns_by_role, key=lambda role: (-self.turns_by_role[role], ROLES.index(role)))
        rows = [
            ("dialogues", f"{self.dialogues:,}"),
            ("turns", f"{self.turns:,}"),
            *_means(self.turns_per_dialogue, self.words_per_dialogue, ""),
            ("single-domain dialogues", f"{self.single_domain_turns.total():,}"),
            *_means(self.single_domain_turns, self.single_domain_words, "  "),
            ("speakers", f"{len(roles):,}"),
            *((f"  {role}", f"{self.turns_by_role[role]:,} turns") for role in roles),
            ("labels", f"{len(self.domains):,}"),
            *_label_rows(self.domains, ""),
        ]
        for name, labels in (("dialogue acts", self.dialogue_acts), ("slots", self.slots), ("intents", self.intents)):
            if labels:
                rows += [(name, f"{len(labels):,}"), *_label_rows(labels, " turns")]
        rows += self._duplicate_rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _duplicate_rows(self) -> list[tuple[str, str]]:
        dialogues, utterances = self.duplicate_dialogues, self.duplicate_utterances
        if not dialogues and not utterances:
            return []
        return [
            ("duplicate dialogues", f"{dialogues:,} ({dialogues / self.dialogues:.1%})"),
            ("duplicate utterances", f"{utterances:,} ({utterances / self.turns:.1%})"),
        ]


def describe(dialogues: Iterable[Dialogue]) -> str:
    """Counts what a corpus holds, also as a stream, as a plain table with one count per line.

    Labels are the ten most frequent: domains by dialogues; acts, slots and intents by turns, where there are any. A
    word is what stands between spaces.
    """
    return Statistics.of(dialogues).to_table()


def most_frequent(labels: Counter[str], limit: int) -> list[str]:
    """Returns the most frequent labels."""
    # most_common would leave ties to the order of the corpus.
    return sorted(labels, key=lambda label: (-labels[label], label))[:limit]


def content_hash(dialogue: Dialogue) -> bytes:
    """Hashes who says what.

    Returns 8 bytes, the same for dialogues whose turns differ in case and white space alone.
    """
    whole = blake2b(digest_size=8)
    for turn in dialogue.turns:
        whole.update(turn.role.encode() + b"\t" + _normalised(turn.content) + b"\n")
    return whole.digest()


def _normalised(text: str) -> bytes:
    # JSON can spell half a character, which only surrogatepass encodes.
    return " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")


def _repeats(hashes: "array[int]") -> int:
    """How many of the hashes came before; a sort of the plain array, where a set would take ten times the memory."""
    import numpy as np

    return len(hashes) - len(np.unique(np.array(hashes, dtype=np.uint64)))


def _labels_to_json(labels: Counter[str]) -> dict[str, Any]:
    return {"distinct": len(labels), "counts": {label: labels[label] for label in most_frequent(labels, len(labels))}}


def _means(turns: Histogram, words: Histogram, indent: str) -> list[tuple[str, str]]:
    if not turns:
        return []
    return [(f"{indent}mean turns", f"{turns.mean:.1f}"), (f"{indent}mean words", f"{words.mean:.1f}")]


def _label_rows(labels: Counter[str], unit: str) -> list[tuple[str, str]]:
    return [(f"  {visible(label)}", f"{labels[label]:,}{unit}") for label in most_frequent(labels, 10)]
