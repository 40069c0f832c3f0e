"""The record of a published folder and its training.

A small file without places on the machine, for a model card.
"""

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from ...data import CORPORA
from ...data.corpus import TERMS
from ...encoders.specs import find_encoder
from ...errors import InputError
from ...methods import get_method, method_of, register
from ...storage.pretrained import load_pretrained
from ...storage.run_folder import BASELINE, RunFolder
from ...training.training_record import trainings_behind, without_places
from ..published_folder import PublishedFolder

ENSEMBLE = "multi_granularity"


def make_record(
    folder: Path, run: Path, licences: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the record of a published folder and the run that it was exported from.

    Args:
        folder: The published folder.
        run: What it was exported from.
        licences: ``TERMS:LICENCE`` of each corpus that the catalogue does not know.

    Raises:
        InputError: The folder has other weights than the run, or a licence is malformed.
        LookupError: A file lacks a field.
    """
    published = PublishedFolder(folder)
    model = _model(published)
    if not published.is_made_of(run):
        raise InputError(
            f"{folder}: got other weights than {run} has, expected those of one training; give the "
            "run that it was exported from, or export it again"
        )
    members = RunFolder(run).members() if model["method"] == ENSEMBLE else []
    return {
        "name": folder.resolve().name,
        "model": model,
        "measured_as": [
            {"name": _relative(path), "weights": find_encoder(str(path)).fingerprint}
            for path in (run, folder)
        ],
        "members": members,
        "reference": _reference(run, model["method"]),
        "training": [
            training for path in _runs(run, members) for training in trainings_behind(path)
        ],
        "licences": {name: _licence(name, terms) for name, terms in (licences or {}).items()},
    }


def matches(first: str, second: str) -> bool:
    """Return whether two names are of one model: equal, or one is the end of the other's path."""
    shorter, longer = sorted((Path(first).parts, Path(second).parts), key=len)
    return bool(shorter) and longer[-len(shorter) :] == shorter


def corpora_of(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the corpora that a model learnt from, with their splits."""
    corpora: dict[tuple[str, str], None] = {}
    for training in record["training"]:
        settings = training["settings"]
        given = settings["corpus"] or "conversations in memory"
        for item in [given] if isinstance(given, str) else given:
            name, _, split = item.partition("/")
            if name in CORPORA:
                corpora[name, split or settings["train_split"]] = None
            else:
                corpora[item, ""] = None
    return list(corpora)


def _model(published: PublishedFolder) -> dict[str, Any]:
    register()
    config = load_pretrained(AutoConfig, str(published.path))
    plain = published.record(published.SETTINGS)
    method = method_of(config)
    limits: dict[str, Any]
    if plain:
        name = plain["method"].replace("-", "_")
        settings = plain["settings"]
        kind = "utterances"
        limits = {"max_tokens": settings.get("encoding_tokens") or settings["max_tokens"]}
    elif method is not None and hasattr(config, "auto_map"):
        name = method.name
        kind = str(method.kind)
        limits = {limit: getattr(config, limit) for limit in config.limits}
    else:
        raise InputError(
            f"{published.path}: got no published model, expected one; write it with dialemb export"
        )
    model = {"method": name, "kind": kind, "dimensions": config.hidden_size, **limits}
    dtype = str(config.dtype).removeprefix("torch.")
    return {**model, "parameters": published.count_weights(), "dtype": dtype}


def _runs(run: Path, members: Sequence[str]) -> list[Path]:
    """Return the trainings behind a run: itself, or those of an ensemble's members and baseline."""
    if not members:
        return [run]
    names = dict.fromkeys(Path(member).parts[0] for member in members)
    if (run.parent / BASELINE).is_dir():
        names[BASELINE] = None
    return [run.parent / name for name in names]


def _reference(run: Path, method: str) -> str | None:
    """Return the model to compare with: the backbone, or an ensemble's single ranker."""
    if method == ENSEMBLE:
        return _relative(run.parent / BASELINE)
    if get_method(method).from_scratch:
        return None
    return without_places(RunFolder(run).settings().get("backbone"))  # type: ignore[no-any-return]


def _licence(name: str, given: str) -> dict[str, str]:
    terms, _, licence = given.partition(":")
    if terms not in TERMS or not licence.strip():
        raise InputError(
            f"--corpus-licence {name}={given}: expected NAME=TERMS:LICENCE with terms "
            f"{', '.join(TERMS)}, as in 'calls.jsonl=permissive:CC BY 4.0'"
        )
    return {"terms": terms, "licence": licence.strip()}


def _relative(path: Path) -> str:
    """Return a folder's name as results files have it: never absolute."""
    whole = path.resolve()
    if whole.is_relative_to(Path.cwd()):
        return whole.relative_to(Path.cwd()).as_posix()
    return whole.name


def escaped(text: object) -> str:
    """Return a text as one line of Markdown, in a table or outside."""
    line = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*\[\]|~$#])|(?<!\w)(_)|(_)(?!\w)", lambda match: f"\\{match[0]}", line)
