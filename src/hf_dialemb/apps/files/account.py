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
        self._known: dict[int, str] = {}  # by the hash of a text, whether it is said or noted
        self.words: Counter[str] = Counter()  # "said" or named, and "noted": left out, told why
        self.left: Counter[str] = Counter()  # words by path
        self.texts: Counter[str] = Counter()  # texts by path

    def keep(self, value: Any) -> None:
        """Know a text that is said, or a value that is named."""
        if isinstance(value, str):
            self._known[hash(value.strip())] = "said"

    def note(self, value: Any) -> None:
        """Know the texts of what is left out for a reason."""
        for _, text in texts_in(value, ""):
            self._known.setdefault(hash(text.strip()), "noted")

    def forget(self) -> None:
        """Forget what was said, when all that holds it was taken."""
        self._known.clear()

    def take(self, value: Any) -> None:
        """Count the long texts in a record."""
        for place, text in texts_in(value, ""):
            count = text.count(" ") + 1
            known = self._known.get(hash(text.strip())) if count >= _LONG else ""
            if known:
                self.words[known] += count
            elif known is None:
                self.left[place] += count
                self.texts[place] += 1

    @property
    def lost(self) -> float:
        """The share of words that are neither said nor named."""
        rest = self.left.total()
        return rest / max(rest + self.words.total(), 1)

    def remark(self) -> str:
        """Return a sentence about what is lost, with the remedy; empty if it is little."""
        share = f"{self.lost:.0%} of all words of long texts"
        lost = "; ".join(self._paths())
        sentence = f"{share} are in no turn and no metadata: {lost}; {REMEDY}"
        return sentence if self.lost > _LOST else ""

    def lines(self) -> list[str]:
        """Return the account in at most four lines; none without words."""
        total = self.left.total() + self.words.total()
        whole = (
            f"Words of long texts: {total:,}; in turns, names and metadata "
            f"{self.words['said']:,}, left out for a reason {self.words['noted']:,}, lost "
            f"{self.left.total():,} ({self.lost:.0%})"
        )
        return [whole, *(f"  {line}" for line in self._paths())] if total else []

    def _paths(self) -> list[str]:
        total = self.left.total() + self.words.total()
        return [
            f"{path}: {self.texts[path]:,} texts, {count / total:.0%} of all words"
            for path, count in self.left.most_common(_SHOWN)
        ]


def texts_in(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value with their paths."""
    waiting = [(path, value)]
    while waiting:
        place, inner = waiting.pop()
        if isinstance(inner, str):
            yield place, inner
        elif isinstance(inner, list):
            waiting += [(f"{place}[]", item) for item in reversed(inner)]
        elif isinstance(inner, Mapping):  # under None is what is wrong with a row
            before = f"{place}." if place else ""
            named = [(f"{before}{name}", at) for name, at in inner.items() if name is not None]
            waiting += reversed(named)
