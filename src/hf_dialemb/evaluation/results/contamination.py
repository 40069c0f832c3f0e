"""What a model learnt from.

Its figures on the same dialogues say nothing of unseen ones, and are marked.

A set may be in training though it is called a test set: by ``star/all``, or where a corpus has no
splits of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...data import CORPORA, get_corpus
from ...data.corpus import ALL
from ...data.corpus_names import is_own
from ...dialogue import Dialogue
from ...hashing import text_key
from ...storage.pretrained import shipped, shipped_record
from ...storage.run_folder import RunFolder, read_object
from .rows import Row

LEARNT = "†"  # what stands behind a figure of dialogues that the model learnt from

NOTE = (
    f"{LEARNT} The model learnt from these dialogues or examples, so it is left out of the "
    "comparison."
)

EXAMPLES = {"intent-classification": "train"}
"""Tasks whose labelled examples are of a split of their own.

Who learnt from these learnt from what is measured.
"""

Set = tuple[str, str]  # a corpus or Hub dataset, and its split; or the path of a file, and nothing


def learnt_sets(settings: Mapping[str, Any]) -> frozenset[Set]:
    """Return what a training read, by ``corpus``, ``train_split`` and ``exclude`` in its settings.

    What ``exclude`` names was left out by its texts, and does not count, whichever corpus held it.
    """
    given = settings.get("corpus") or []
    read = {
        element
        for item in ([given] if isinstance(given, str) else given)
        for element in _sets_of(str(item), str(settings.get("train_split", "train")))
    }
    left_out = {
        element for item in settings.get("exclude") or () for element in _sets_of(str(item), ALL)
    }
    return frozenset(read - left_out)


def sets_behind(model: str) -> frozenset[Set]:
    """Return what a trained model learnt from.

    Nothing is known of what is no folder, such as a model of the Hub.

    The folder is that of a training, of one of its checkpoints or of an ensemble (then the sets are
    those of all its members), and perhaps followed by its level in brackets.
    What comes with the package says it.
    """
    folder = _folder_of(model)
    if not folder.is_dir() and str(folder) in shipped():
        return learnt_sets({"corpus": shipped_record(str(folder))["corpora"]})
    results: frozenset[Set] = frozenset()
    for run in _runs_of(folder):
        if run.settings_file.is_file():
            results |= learnt_sets(run.settings())
    return results


def has_read(model: str, dialogues: Sequence[Dialogue]) -> bool:
    """Return whether a model learnt from the texts of at least half of the dialogues.

    The texts may have come from any file.
    """
    if not dialogues:
        return False
    read: set[str] = set()
    for run in _runs_of(_folder_of(model)):
        if run.texts_file.is_file():
            read.update(read_object(run.texts_file, RunFolder.REMEDY)["texts"])
    return 2 * sum(text_key(dialogue) in read for dialogue in dialogues) >= len(dialogues)


def _folder_of(model: str) -> Path:
    return Path(model.removesuffix(" (utterances)"))


def _runs_of(folder: Path) -> list[RunFolder]:
    """Find the runs that a model is of.

    A member of an ensemble may be a checkpoint, whose settings lie beside it.
    """
    if members := RunFolder(folder).members():
        return [RunFolder(folder.parent / Path(member).parts[0]) for member in members]
    return [RunFolder(folder.parent if folder.name.startswith("checkpoint-") else folder)]


def is_learnt(corpus: str, split: str, sets: frozenset[Set]) -> bool:
    """Return whether one of the sets that a model learnt from is a part of what is measured.

    ``corpus`` is what was measured, as it was named.
    """
    if corpus in CORPORA:
        return bool(set(_sets_of(f"{corpus}/{split}", split)) & sets)
    if is_own(corpus):
        return any(not of and Path(name).resolve() == Path(corpus).resolve() for name, of in sets)
    return any(name == corpus and (of == split or ALL in (of, split)) for name, of in sets)


def marked(
    rows: Iterable[Row],
    corpus: str | None = None,
    sets: frozenset[Set] | None = None,
    dialogues: Sequence[Dialogue] = (),
) -> list[Row]:
    """Mark figures of what a model learnt from; times are none, and what is marked stays so.

    ``corpus`` is what was measured, where the rows call it by another name, and ``dialogues`` are
    those of it; without ``sets`` models' folders are asked.
    """
    rows = list(rows)
    models = {row.model for row in rows}
    behind = {model: sets_behind(model) if sets is None else sets for model in models}
    read = {model for model in models if has_read(model, dialogues)}

    def learnt(row: Row) -> bool:
        if row.learnt or row.metric == "seconds":
            return row.learnt
        splits = {row.split, EXAMPLES.get(row.task, row.split)}
        return row.model in read or any(
            is_learnt(corpus or row.corpus, split, behind[row.model]) for split in splits
        )

    return [replace(row, learnt=learnt(row)) for row in rows]


def _sets_of(item: str, split: str) -> list[Set]:
    name, _, given = item.partition("/")
    if item in CORPORA or (name in CORPORA and not is_own(item)):
        split = given or split
        return [
            (name, element) for element in (get_corpus(name).splits if split == ALL else (split,))
        ]
    return [(item, "" if is_own(item) else split)]
