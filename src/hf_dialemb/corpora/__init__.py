"""Corpora: readers that turn published dialogue corpora, or your own .jsonl files, into `Dialogue` objects.

Each reader is a module with ``SPLITS``, ``FILES`` (what it looks for, per split) and ``read(source, split)``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ..models.dialogue import Dialogue
from ..models.errors import InputError, unknown_name
from .jsonl import read_jsonl, write_jsonl
from .source import ARCHIVE_SUFFIXES, Source, is_archive

__all__ = ["CORPORA", "Source", "describe", "load_dialogues", "read_jsonl", "single_domain", "write_jsonl"]

CORPORA = {
    "doc2dial": f"{__name__}.doc2dial",
    "multiwoz": f"{__name__}.multiwoz",
    "sample": f"{__name__}.sample",
    "self_dialogue": f"{__name__}.self_dialogue",
    "sgd": f"{__name__}.sgd",
}
"""The registered corpora: from a name to the module that reads it."""

DATA_VARIABLE = "HF_DIALEMB_DATA"
"""The environment variable that names the data folder when none is given."""


def load_dialogues(
    corpus: str, data_dir: str | Path | None = None, split: str = "train", *, skip_invalid: bool = False
) -> list[Dialogue]:
    """Loads one split of a corpus.

    Args:
        corpus: A name in `CORPORA`, or the path to a ``.jsonl`` file, for which the other two arguments do not matter.
        data_dir: Where the corpus lies: a folder that holds ``<name>/``, ``<name>/<name>.tar.xz`` or ``<name>.tar.xz``
            (``.tar.gz`` and ``.zip`` do as well), or that folder or archive itself. None means the folder that the
            environment variable ``HF_DIALEMB_DATA`` names. The corpus ``sample`` needs no files.
        split: One of the corpus's splits.
        skip_invalid: Leave malformed records out and log one warning, instead of raising.

    Returns:
        The dialogues, always in the same order.

    Raises:
        InputError: The corpus or split is unknown, files are missing, or a file or a record is malformed.
    """
    if str(corpus).endswith(".jsonl"):
        return list(read_jsonl(corpus, skip_invalid=skip_invalid))
    if corpus not in CORPORA:
        raise InputError(f"{unknown_name('corpus', str(corpus), CORPORA)} A path to a .jsonl file works too.")
    module = import_module(CORPORA[corpus])
    if split not in module.SPLITS:
        raise InputError(f"Unknown split '{split}' of corpus {corpus}. Available: {', '.join(module.SPLITS)}.")
    if not module.FILES:
        return list(module.read(None, split))
    source = Source(_find(corpus, module, data_dir))
    dialogues: list[Dialogue] = list(module.read(source, split, skip_invalid=skip_invalid))
    if not dialogues:
        raise InputError(
            f"{source.path}: split {split} of corpus {corpus} gave no dialogue; "
            f"looked for {', '.join(module.FILES[split])}; add such files or choose another split"
        )
    return dialogues


def single_domain(dialogues: Iterable[Dialogue]) -> list[Dialogue]:
    """Keeps the dialogues that have exactly one domain label.

    This is how the dial2vec paper makes its development and test sets (section 4.2).

    Args:
        dialogues: The dialogues.

    Returns:
        Those with one label, in order.
    """
    return [dialogue for dialogue in dialogues if len(dialogue.domains) == 1]


def describe(dialogues: Sequence[Dialogue]) -> str:
    """Counts what a corpus holds.

    Args:
        dialogues: The dialogues; none at all is allowed.

    Returns:
        A plain table, one count per line: dialogues and turns, the same for the single-domain dialogues, each speaker's
        turns, and in how many dialogues each label stands (the ten most frequent). A word is what stands between
        spaces.
    """
    alone = single_domain(dialogues)
    speakers = Counter(turn.role for dialogue in dialogues for turn in dialogue.turns)
    labels = Counter(label for dialogue in dialogues for label in set(dialogue.domains))
    # Ties in the order of the alphabet: most_common would leave them to the order of the corpus.
    frequent = sorted(labels, key=lambda label: (-labels[label], label))[:10]
    rows = [
        ("dialogues", f"{len(dialogues):,}"),
        ("turns", f"{speakers.total():,}"),
        *_means(dialogues, ""),
        ("single-domain dialogues", f"{len(alone):,}"),
        *_means(alone, "  "),
        ("speakers", f"{len(speakers):,}"),
        *((f"  {role}", f"{count:,} turns") for role, count in speakers.most_common()),
        ("labels", f"{len(labels):,}"),
        *((f"  {label}", f"{labels[label]:,}") for label in frequent),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _means(dialogues: Sequence[Dialogue], indent: str) -> list[tuple[str, str]]:
    if not dialogues:
        return []
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    words = sum(len(turn.content.split()) for dialogue in dialogues for turn in dialogue.turns)
    count = len(dialogues)
    return [(f"{indent}mean turns", f"{turns / count:.1f}"), (f"{indent}mean words", f"{words / count:.1f}")]


def _find(name: str, module: ModuleType, data_dir: str | Path | None) -> Path:
    given = data_dir or os.environ.get(DATA_VARIABLE)
    if not given:
        raise InputError(f"Corpus {name} needs its files: got no data folder; give --data-dir or set {DATA_VARIABLE}")
    base = Path(given).expanduser()
    if is_archive(base):
        return base
    if not base.is_dir():
        raise InputError(f"Corpus {name}: no such folder or archive: {base}; correct --data-dir or {DATA_VARIABLE}")
    folder = base / name
    packed = [where / f"{name}{suffix}" for where in (folder, base) for suffix in ARCHIVE_SUFFIXES]
    candidates = [folder / name, *packed[: len(ARCHIVE_SUFFIXES)], folder, *packed[len(ARCHIVE_SUFFIXES) :]]
    for candidate in candidates:
        if candidate.is_dir() or is_archive(candidate):
            return candidate
    # A folder by another name is taken for the corpus itself only if its files lie right there: searching deeper could
    # find the files of another corpus that are named alike.
    patterns = {pattern for split in module.SPLITS for pattern in module.FILES[split]}
    if base.resolve().name == name or any(any(base.glob(pattern)) for pattern in patterns):
        return base
    raise InputError(
        f"Corpus {name}: {base} holds neither {name}/ nor {name}.tar.xz (.tar.gz, .zip); "
        f"give the folder that does with --data-dir or {DATA_VARIABLE}"
    )
