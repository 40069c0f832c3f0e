"""The one door for dialogues: corpora by name, files, datasets on the Hub, and objects in memory."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue
from ..errors import InputError
from .corpus import ALL, KINDS
from .objects import EXPECTED, from_objects
from .own import hub_dataset, reading
from .published import read_split
from .registry import CORPORA, get_corpus, unknown_corpus

REGISTERED, OWN, HUB = "registered", "own", "hub"  # a corpus by name, a path, a dataset on the Hub

_HUB_DATASET = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")


def load_dialogues(
    source: Any,  # noqa: ANN401 - see Args
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    columns: str | None = None,
    roles: str | None = None,
    skip_invalid: bool = False,
) -> list[Dialogue]:
    """Load dialogues from files, from a published corpus, from the Hub or from objects in memory.

    Examples:
        >>> load_dialogues([[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]])
        >>> load_dialogues("sgd/test", data_dir="data")

    Args:
        source: The name of a corpus, such as ``sgd`` or ``sgd/test``; the path of a file or folder (see
            `own.read_own`); the id of a dataset on the Hub, such as ``org/name`` or ``org/name:config``; a list of
            `Dialogue` objects, of lists of chat messages, or of mappings with ``messages``; a ``datasets.Dataset``; or
            a DataFrame, with a turn or with ``messages`` a row.
        data_dir: The folder that holds ``<name>/``, ``<name>/<name>.tar.xz`` or ``<name>.tar.xz`` (also ``.tar.gz``,
            ``.zip``), that folder or archive itself, or ``hf://datasets/org/name``. The default is the folder in the
            environment variable ``HF_DIALEMB_DATA``. The corpus ``sample`` needs no files.
        split: A split of a corpus or of a dataset on the Hub, or ``"all"``; by default ``"train"``.
        columns: The meaning of a table's columns, such as ``"id=call,role=speaker,content=text"``.
        roles: The speakers' roles, such as ``"Agent=assistant,Customer=user"``; guessed roles are logged.
        skip_invalid: Leave malformed dialogues out and log one warning that lists them, instead of raising.

    Returns:
        At least one dialogue, always in the same order.

    Raises:
        MissingFilesError: The corpus or the split is not there.
        InputError: The source is unknown, empty or malformed.
    """
    options: dict[str, Any] = {"columns": columns, "roles": roles, "skip_invalid": skip_invalid}
    if not isinstance(source, str | os.PathLike):
        check_no_split("what is in memory", split)
        return from_objects(source, **options)
    name = str(source)
    if (" " in name.strip() or "\n" in name) and not Path(name).expanduser().exists():
        raise InputError(f"dialogues: got the text {name[:40]!r}, expected {EXPECTED}")
    return list(iterate_dialogues(name, data_dir, split, **options))


def iterate_dialogues(
    corpus: str,
    data_dir: str | Path | None = None,
    split: str | None = None,
    *,
    skip_invalid: bool = False,
    columns: str | None = None,
    roles: str | None = None,
) -> Iterator[Dialogue]:
    """Read a corpus, a path or a dataset on the Hub as `load_dialogues` does, a dialogue at a time.

    An unknown corpus or split raises an `InputError` at once, a malformed record when it is reached.
    """
    corpus, split = with_split(str(corpus), split)
    form = form_of(corpus, columns, roles)
    if form == REGISTERED:
        known = get_corpus(corpus)
        if known.kind not in KINDS[:2]:
            raise InputError(
                f"Corpus {corpus} holds {known.kind}, expected dialogues; choose another corpus, or read it in Python "
                "with load_examples"
            )
        return read_split(known, data_dir, split or "train", skip_invalid)
    if form == OWN:
        check_no_split(corpus, split)
        return reading.read_own(corpus, columns=columns, roles=roles, skip_invalid=skip_invalid)
    return hub_dataset.load_hub_dataset(corpus, split or "train", roles=roles, skip_invalid=skip_invalid)


def with_split(corpus: str, split: str | None = None) -> tuple[str, str | None]:
    """Split ``sgd/test`` into a corpus's name and its split; leave all other names as they are."""
    name, slash, part = corpus.partition("/")
    if not slash or name not in CORPORA or reading.is_own(corpus):
        return corpus, split
    get_corpus(name).chosen(part)  # refuses an unknown split
    if split not in (None, "", part):
        raise InputError(f"split: got '{split}' for {corpus}, expected one split; leave one of the two out")
    return name, part


def check_no_split(source: str, split: str | None) -> None:
    """Refuse a split of a source that has none: figures would be reported for a part that was never taken."""
    if split not in (None, "", ALL):
        raise InputError(f"split: got '{split}', but {source} has no splits and is read whole; leave it out")


def form_of(corpus: str, columns: str | None = None, roles: str | None = None) -> str:
    """Return whether a corpus is `REGISTERED`, `OWN` or `HUB`; refuse settings that this form does not take."""
    if with_split(corpus)[0] in CORPORA:
        if columns or roles:
            raise InputError(
                f"corpus {corpus}: got columns or roles, which only files of your own take; leave them out"
            )
        return REGISTERED
    if reading.is_own(corpus):
        return OWN
    if not _HUB_DATASET.fullmatch(corpus):
        if "/" in corpus or Path(corpus).suffix:
            raise InputError(f"corpus {corpus}: no such file or folder; give one that exists, or a corpus by name")
        raise unknown_corpus(corpus)
    if columns:
        raise InputError(f"corpus {corpus}: got columns, which only tables of your own take; leave them out")
    return HUB
