"""The account of a file: where its words are, in turns, in names and metadata, or in a remainder.

Words of long texts count, those of three words or more. What is said again counts as said.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

_LONG = 3  # words of a text that counts
_LOST = 0.1  # of all words, from which on a file has not been read well
_SHOWN = 3  # paths of the remainder that are named

REMEDY = "if that was said, say where with --columns 'messages=PATH,role=PATH,content=PATH'"


class Account:
    """Words of a source by where they are."""

    def __init__(self) -> None:
        self.said: set[int] = set()  # hashes of what is said, or named
        self.noted: set[int] = set()  # hashes of what was left out for a reason that is told
        self.words: Counter[str] = Counter()  # "said" and "noted"
        self.left: Counter[str] = Counter()  # words by path
        self.texts: Counter[str] = Counter()  # texts by path

    def keep(self, value: Any) -> None:
        """Know a text that is said, or a value that is named."""
        if isinstance(value, str):
            self.said.add(hash(value.strip()))

    def note(self, value: Any) -> None:
        """Know the texts of what is left out for a reason."""
        self.noted.update(hash(text.strip()) for _, text in texts_in(value, ""))

    def forget(self) -> None:
        """Forget what was said, when all that holds it was taken."""
        self.said.clear()
        self.noted.clear()

    def take(self, value: Any) -> None:
        """Count the long texts in a record."""
        for place, text in texts_in(value, ""):
            count = text.count(" ") + 1
            if count < _LONG:
                continue
            known = hash(text.strip())
            if known in self.said or known in self.noted:
                self.words["said" if known in self.said else "noted"] += count
            else:
                self.left[place] += count
                self.texts[place] += 1

    @property
    def lost(self) -> float:
        """The share of words that are neither said nor named."""
        rest = self.left.total()
        return rest / max(rest + self.words.total(), 1)

    def join(self, other: "Account") -> None:
        """Add the words of another source."""
        self.words += other.words
        self.left += other.left
        self.texts += other.texts

    def remark(self) -> str:
        """Return a sentence about what is lost, with the remedy; empty if it is little."""
        lost = "; ".join(self._paths())
        share = f"{self.lost:.0%} of all words of long texts"
        sentence = f"{share} are in no turn and no metadata: {lost}; {REMEDY}"
        return sentence if self.lost > _LOST else ""

    def lines(self) -> list[str]:
        """Return the account in at most four lines; none without words."""
        total = self.left.total() + self.words.total()
        if not total:
            return []
        spoken, noted = self.words["said"], self.words["noted"]
        whole = (
            f"Words of long texts: {total:,}; in turns, names and metadata {spoken:,}, left out "
            f"for a reason {noted:,}, lost {self.left.total():,} ({self.lost:.0%})"
        )
        return [whole, *(f"  {line}" for line in self._paths())]

    def _paths(self) -> list[str]:
        total = self.left.total() + self.words.total()
        return [
            f"{path}: {self.texts[path]:,} texts, {count / total:.0%} of all words"
            for path, count in self.left.most_common(_SHOWN)
        ]


def texts_in(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        named = ((name, inner) for name, inner in value.items() if name is not None)
        for name, inner in named:  # under None is what is wrong with a row
            yield from texts_in(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner, f"{path}[]")
