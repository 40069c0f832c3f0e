"""What a model card needs of a published folder and of the training behind it, as a small file that can be committed.

It is read from the two folders, and says nothing of where they lie on a machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from ...checkpoints.pretrained import load_pretrained
from ...corpora import CORPORA
from ...corpora.corpus import TERMS
from ...encoders.specs import fingerprint
from ...errors import InputError
from ...methods import get_method, method_of, register
from ...methods.config import own_settings
from ...runs.folder import BASELINE, GRANULARITIES, RunFolder, field_of, read_object
from ...training.record import trainings_behind, without_places
from ..published_folder import PublishedFolder

SCHEMA = 1  # the version of the record's format

ENSEMBLE, MERGED = "multi_granularity", "merged"

_EXPORT = "write it with dialemb export"


def make_record(folder: Path, run: Path, licences: Sequence[str] = ()) -> dict[str, Any]:
    """Reads a published folder and its training's."""
    published = PublishedFolder(folder)
    model, settings = _model(published)
    members = _members(run, model["method"])
    training = [each for path in _runs(run, members) for each in trainings_behind(path)]
    if get_method(model["method"]).trained:
        _check_settings(folder, run, {"method": model["method"], **settings}, training[0]["settings"])
    published.check_made_of(run)
    return {
        "schema": SCHEMA,
        "name": folder.resolve().name,
        "model": model,
        "measured_as": [{"name": _given(path), "weights": fingerprint(str(path))} for path in (run, folder)],
        "members": members,
        "reference": _reference(run, model["method"]),
        "training": training,
        "licences": dict(_licence(each) for each in licences),
        "quantisation": _quantisation(published / PublishedFolder.QUANTISATION),
    }


def read_record(path: Path) -> dict[str, Any]:
    """Reads a record that was kept."""
    record = read_object(path, "write it with dialemb model card --record")
    if record.get("schema") != SCHEMA:
        got = record.get("schema")
        raise InputError(
            f"{path}: field schema: got {got!r}, expected {SCHEMA}; write it with dialemb model card --record"
        )
    return record


def matches(spec: str, name: str) -> bool:
    """Says whether two names are of one model: they are equal, or one is the end of the other's path."""
    one, other = (tuple(part for part in Path(each).parts if part not in (".", "..", "/")) for each in (spec, name))
    shorter = min(len(one), len(other))
    return shorter > 0 and one[-shorter:] == other[-shorter:]


def _model(published: PublishedFolder) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = published.path
    if not published.holds(published.MODULES, published.CONFIG):
        raise InputError(f"{folder}: got no modules.json and config.json, expected a published model; {_EXPORT}")
    register()
    config = load_pretrained(AutoConfig, str(folder))
    if published.holds(published.SETTINGS):
        plain = str(published / published.SETTINGS)
        found = read_object(Path(plain), _EXPORT)
        name = str(field_of(found, "method", plain, _EXPORT)).replace("-", "_")
        settings = dict(field_of(found, "settings", plain, _EXPORT))
        longest = settings.get("encoding_tokens") or field_of(settings, "max_tokens", plain, _EXPORT)
        kind, limits = "utterances", {"max_tokens": longest}
    else:
        method = method_of(config)
        if not getattr(config, "auto_map", None) or method is None:
            raise InputError(f"{folder}/config.json: field auto_map: got nothing, expected the model's code; {_EXPORT}")
        settings = {each: getattr(config, each) for each in own_settings(type(config))}
        name, kind, limits = method.name, str(method.kind), {each: settings[each] for each in config.limits}
    parameters, dtype = published.count_weights()
    model = {"method": name, "kind": kind, "dimensions": config.hidden_size, **limits}
    return {**model, "parameters": parameters, "dtype": dtype, "onnx": published.graphs()}, settings


def _members(run: Path, method: str) -> list[str]:
    """Names what an ensemble or a merged encoder was made of; nothing for any other model."""
    if method == MERGED:
        return [f"{Path(part).name} x {weight:g}" for part, weight in RunFolder(run).settings()["parts"].items()]
    if method != ENSEMBLE:
        return []
    if RunFolder(run / GRANULARITIES).members_file.is_file():
        raise InputError(f"{run}: got the folder of all runs, expected an ensemble in it; give {run / GRANULARITIES}")
    return RunFolder(run).members()


def _runs(run: Path, members: Sequence[str]) -> list[Path]:
    """Finds the trainings behind a run: itself, or those of an ensemble's members and what told them similarity."""
    if not members or not RunFolder(run).members_file.is_file():
        return [run]
    beside = run.resolve().parent
    names = dict.fromkeys(Path(member).parts[0] for member in members)
    if run.resolve().name == GRANULARITIES and (beside / BASELINE).is_dir():
        names[BASELINE] = None
    return [beside / name for name in names]


def _check_settings(folder: Path, run: Path, published: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    for name, value in without_places(published).items():
        fitted = name == "encoding_tokens" and settings.get(name) is None  # what nobody sets, the backbone decides
        if name in settings and settings[name] != value and not fitted:
            raise InputError(
                f"{folder}: field {name}: got {value!r}, but {RunFolder(run).settings_file} says {settings[name]!r}; "
                "give the run that the folder was exported from, or export it again"
            )


def _reference(run: Path, method: str) -> str | None:
    """Names what a model is compared with: its backbone, or for an ensemble the single ranker."""
    if method == ENSEMBLE:
        return _given(run.parent / BASELINE)
    backbone = without_places(RunFolder(run).settings().get("backbone"))
    return None if get_method(method).from_scratch or backbone is None else str(backbone)


def _quantisation(file: Path) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    remedy = "export again with dialemb export --int8"
    found = read_object(file, remedy)
    kept = {name: field_of(found, name, str(file), remedy) for name in ("method", "bytes", "cosine", "figures")}
    for name in ("texts", "mean", "min"):
        field_of(kept["cosine"], name, f"{file}: cosine", remedy)
    return kept


def _licence(given: str) -> tuple[str, dict[str, str]]:
    name, _, rest = given.rpartition("=")
    terms, _, licence = rest.partition(":")
    if not name or terms not in TERMS or not licence.strip():
        raise InputError(
            f"--corpus-licence {given}: expected NAME=TERMS:LICENCE with terms {', '.join(TERMS)}, as in "
            "'calls.jsonl=permissive:CC BY 4.0'"
        )
    if name in CORPORA:
        raise InputError(f"--corpus-licence {given}: the licence of {name} is in the catalogue; leave it out")
    return name, {"terms": terms, "licence": licence.strip()}


def _given(path: Path) -> str:
    """Names a folder as results files do: from the folder of work on, never by its place on the machine."""
    whole = path.resolve()
    return (whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else Path(whole.name)).as_posix()


def corpora_of(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Lists the corpora that a model learnt from, each once."""
    found = []
    for settings in (training["settings"] for training in record["training"]):
        given = settings["corpus"]
        for item in [given] if isinstance(given, str) else given:
            name, _, split = str(item).partition("/")
            found.append((name, split or str(settings.get("train_split"))) if name in CORPORA else (str(item), ""))
    return list(dict.fromkeys(found))
