"""Corpus: the facts about a published corpus, and how it is read."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest
from ..hooks import Registry
from .source import Source as Source

SPLITS = ("train", "dev", "test")
"""The names of the parts of a corpus, whatever its files call them."""

ALL = "all"
"""The name for all splits of a corpus, one after the other, or for all corpora at hand."""

TERMS = ("permissive", "share-alike", "research")
"""What licences allow with a copy, from most to least.

Pass it on under other terms (MIT, Apache, BSD, CC BY, CC0, CDLA-Permissive), pass it on under the
same terms (CC BY-SA, GPL), use it for research (NC licences, own terms, none stated).
"""

KINDS = ("dialogues", "utterances", "sentence-pairs", "retrieval")
"""What the records of a corpus are.

Dialogues and utterances, which have a single turn, are read as `Dialogue`.
"""

Files = Mapping[str, tuple[str, ...]]
"""From each split to patterns for the end of the paths of its files."""

Records = Iterator[tuple[str, Any]]
"""Pairs of a place, such as ``"train.json: record 3"``, and the raw record found there."""

Reading = Callable[[Source, str], Records]
"""Yields the records of a split, and reads a file only as far as the next record needs."""


@dataclass(frozen=True)
class Corpus:
    """A published corpus."""

    name: str  # what users call it, as in the registry
    files: Files
    records: Reading
    # From a raw record, or what a tuple of several holds, to a `Dialogue` or the like; raises
    # `InputError`.
    convert: Callable[..., Any]
    source: str  # where the original lies (a URL)
    licence: str  # as stated there, or "none stated"
    terms: str  # one of `TERMS`
    language: str = "en"  # as the Hub names it
    kind: str = KINDS[0]  # one of `KINDS`
    folder: str = ""  # or archive, where several corpora share one; otherwise the name
    real: bool = (
        True  # whether the reader was run on the real files, and not only on records made by hand
    )
    extract: str = ""  # what the files that it was run on hold of the corpus, if not all of it

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that can be read."""
        return tuple(self.files)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of all splits, each once; none for a corpus that needs no files."""
        return tuple(
            dict.fromkeys(pattern for patterns in self.files.values() for pattern in patterns)
        )

    def chosen(self, split: str) -> tuple[str, ...]:
        """Return the splits that a name means: a split, or `ALL`.

        Raise `InputError` if it is unknown.
        """
        if split == ALL:
            return self.splits
        if split not in self.splits:
            known = ", ".join((*self.splits, ALL))
            raise InputError(f"Unknown split '{split}' of corpus {self.name}. Available: {known}.")
        return (split,)


def read_catalogue(file: Path) -> dict[str, dict[str, Any]]:
    """Read what corpora state of themselves.

    By name the module that reads each, and fields of `Corpus`.
    """
    return json.loads(file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


CATALOGUE = read_catalogue(Path(__file__).with_name("catalogue.json"))


def catalogued(
    readings: Mapping[str, tuple[Files, Reading, Callable[..., Any]]],
    catalogue: Mapping[str, Mapping[str, Any]] = CATALOGUE,
) -> tuple[Corpus, ...]:
    """Make corpora of how they are read, by name, and of what the catalogue states."""

    def stated(name: str) -> dict[str, Any]:
        return {field: value for field, value in catalogue[name].items() if field != "module"}

    return tuple(Corpus(name, *reading, **stated(name)) for name, reading in readings.items())


CORPORA = Registry(
    "corpora",
    {name: f"{__package__}.readers.{stated['module']}" for name, stated in CATALOGUE.items()},
)
"""From the name of a corpus to the module that reads it; entry points add to it."""


def get_corpus(name: str) -> Corpus:
    """Look up a corpus in `CORPORA`; raise `InputError` if it is unknown."""
    if name not in CORPORA:
        raise unknown_corpus(name)
    corpora: tuple[Corpus, ...] = import_module(CORPORA[name]).CORPORA
    return next(corpus for corpus in corpora if corpus.name == name)


def unknown_corpus(name: str) -> InputError:
    """Make the error for a name that is not in `CORPORA`."""
    near = nearest(name, CORPORA)
    return InputError(
        f"corpus: got '{name}', which is neither a file nor a corpus.{near} See 'dialemb corpus "
        "list'"
    )
