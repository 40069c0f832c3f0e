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
from ...storage.run_folder import BASELINE, GRANULARITIES, RunFolder, read_object
from ...training.training_record import trainings_behind, without_places
from ..published_folder import PublishedFolder

SCHEMA = 1  # the version of the record's format

ENSEMBLE = "multi_granularity"

_EXPORT = "write it with dialemb export"


def make_record(
    folder: Path, run: Path, licences: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the record of a published folder and the run that it was exported from.

    ``licences`` is ``TERMS:LICENCE`` of each corpus that the catalogue does not know. An InputError
    says that the folder has other weights than the run, a LookupError that a file lacks a field.
    """
    published = PublishedFolder(folder)
    model = _model(published)
    members = _members(run, model["method"])
    published.check_made_of(run)
    return {
        "schema": SCHEMA,
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


def read_record(path: Path) -> dict[str, Any]:
    """Return a record from its file."""
    remedy = "write it with dialemb model card --record"
    record = read_object(path, remedy)
    if (got := record.get("schema")) != SCHEMA:
        raise InputError(f"{path}: field schema: got {got!r}, expected {SCHEMA}; {remedy}")
    return record


def matches(spec: str, name: str) -> bool:
    """Return whether two names are of one model: equal, or one is the end of the other's path."""
    first, second = (
        tuple(part for part in Path(name).parts if part not in (".", "..", "/"))
        for name in (spec, name)
    )
    shorter = min(len(first), len(second))
    return shorter > 0 and first[-shorter:] == second[-shorter:]


def corpora_of(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the corpora that a model learnt from, with their splits."""
    corpora = []
    for settings in (training["settings"] for training in record["training"]):
        given = settings["corpus"] or ["conversations in memory"]
        for item in [given] if isinstance(given, str) else given:
            name, _, split = str(item).partition("/")
            corpora.append(
                (name, split or str(settings.get("train_split")))
                if name in CORPORA
                else (str(item), "")
            )
    return list(dict.fromkeys(corpora))


def _model(published: PublishedFolder) -> dict[str, Any]:
    folder = published.path
    for name in (published.MODULES, published.CONFIG):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: got no {name}, expected a published model; {_EXPORT}")
    register()
    config = load_pretrained(AutoConfig, str(folder))
    limits: dict[str, Any]
    if (folder / published.SETTINGS).is_file():
        plain = read_object(folder / published.SETTINGS, _EXPORT)
        name, settings = plain["method"].replace("-", "_"), plain["settings"]
        kind = "utterances"
        limits = {"max_tokens": settings.get("encoding_tokens") or settings["max_tokens"]}
    else:
        method = method_of(config)
        if not getattr(config, "auto_map", None) or method is None:
            raise InputError(
                f"{folder}/config.json: field auto_map: got nothing, expected the model's code; "
                f"{_EXPORT}"
            )
        name, kind = method.name, str(method.kind)
        limits = {limit: getattr(config, limit) for limit in config.limits}
    parameters, dtype = published.count_weights()
    model = {"method": name, "kind": kind, "dimensions": config.hidden_size, **limits}
    return {**model, "parameters": parameters, "dtype": dtype}


def _members(run: Path, method: str) -> list[str]:
    """Return the members of an ensemble, none of any other model."""
    if method != ENSEMBLE:
        return []
    if RunFolder(run / GRANULARITIES).members_file.is_file():
        raise InputError(
            f"{run}: got the folder of all runs, expected an ensemble in it; give "
            f"{run / GRANULARITIES}"
        )
    return RunFolder(run).members()


def _runs(run: Path, members: Sequence[str]) -> list[Path]:
    """Return the trainings behind a run.

    Itself, or those of an ensemble's members and of its granularity model.
    """
    if not members or not RunFolder(run).members_file.is_file():
        return [run]
    beside = run.resolve().parent
    names = dict.fromkeys(Path(member).parts[0] for member in members)
    if run.resolve().name == GRANULARITIES and (beside / BASELINE).is_dir():
        names[BASELINE] = None
    return [beside / name for name in names]


def _reference(run: Path, method: str) -> str | None:
    """Return the name of the model to compare with.

    The backbone, or for an ensemble the single ranker.
    """
    if method == ENSEMBLE:
        return _relative(run.parent / BASELINE)
    backbone = without_places(RunFolder(run).settings().get("backbone"))
    return None if get_method(method).from_scratch or backbone is None else str(backbone)


def _licence(name: str, given: str) -> dict[str, str]:
    terms, _, licence = given.partition(":")
    if terms not in TERMS or not licence.strip():
        raise InputError(
            f"--corpus-licence {name}={given}: expected NAME=TERMS:LICENCE with terms "
            f"{', '.join(TERMS)}, as in 'calls.jsonl=permissive:CC BY 4.0'"
        )
    if name in CORPORA:
        raise InputError(
            f"--corpus-licence: the licence of {name} is in the catalogue; leave it out"
        )
    return {"terms": terms, "licence": licence.strip()}


def _relative(path: Path) -> str:
    """Return a folder's name as results files have it.

    Relative to the working directory, never absolute.
    """
    whole = path.resolve()
    return (
        whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else Path(whole.name)
    ).as_posix()


def escaped(text: object) -> str:
    """Return a text as one line of Markdown, in a table or outside."""
    line = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*\[\]|~$#])|(?<!\w)(_)|(_)(?!\w)", lambda match: f"\\{match[0]}", line)
