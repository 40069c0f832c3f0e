"""The record of a training that a model card needs; it holds no places on the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..corpora.loading import data_hash
from ..corpora.own.reading import is_own
from ..errors import InputError
from ..evaluation.results.learnt import learnt_sets
from ..runs.folder import RunFolder, field_of

_REPORTED = ("steps", "dialogues", "examples", "processes", "seconds", "truncation", "checkpoint")
_OPTIONAL = ("hardware", "energy", "resumed_from")  # reports of earlier versions lack them


def trainings_behind(run: Path) -> list[dict[str, Any]]:
    """Return the record of a training, or those of the parts of a merged encoder.

    Raises:
        InputError: A part has no record.
    """
    folder = RunFolder(run.parent if run.name.startswith("checkpoint-") else run)
    report = folder.report()
    if "trainings" not in report:
        return [_training(folder, report)]
    if report["unrecorded"]:
        raise InputError(
            f"{run}: got no record of how {', '.join(report['unrecorded'])} was trained, expected its "
            "data and licences; merge the folder of its run"
        )
    return list(report["trainings"])


def _training(folder: RunFolder, report: dict[str, Any]) -> dict[str, Any]:
    run, settings = folder.path, folder.settings()
    for name in ("method", "corpus", "checkpoint_selection", "seed"):
        field_of(settings, name, str(folder.settings_file), folder.REMEDY)
    kept = {name: field_of(report, name, str(folder.report_file), folder.REMEDY) for name in _REPORTED}
    kept |= {name: report.get(name) for name in _OPTIONAL}
    backbone = settings.get("backbone")
    if isinstance(backbone, str) and Path(backbone).is_dir():
        settings["backbone"] = Path(backbone).resolve().name  # no name on the Hub, which has an organisation before it
    record = {"name": run.resolve().name, "settings": without_places(settings), "report": without_places(kept)}
    own = {corpus: Path(corpus).expanduser() for corpus, split in learnt_sets(settings) if not split and is_own(corpus)}
    if own:  # results files name them without their folder, and others may have the same name
        hashes = {without_places(name): data_hash(name) if path.exists() else None for name, path in own.items()}
        record["own_files"] = dict(sorted(hashes.items()))
    return record


def without_places(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """Return a JSON value with the last name of each absolute path in it, however deep."""
    if isinstance(value, dict):
        return {name: without_places(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(inner) for inner in value]
    if isinstance(value, str) and (Path(value).is_absolute() or value.startswith("~")):
        return Path(value).name
    return value
