"""The record of a training in its folder: settings, digests of its data, and what it did."""

import dataclasses
import math
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import gather_object

from ..dialogue import Dialogue
from ..encoders.specs import find_encoder
from ..errors import InputError
from ..hashing import json_key, sha256, text_key
from ..methods import get_method, origin
from ..methods.config import own_settings
from ..methods.layout import Truncation
from ..storage.files import write_json_atomically
from ..storage.hardware import describe_hardware
from ..storage.run_folder import RunFolder, check_same, read_object
from .resuming import last_complete_checkpoint
from .settings import RunArguments, Settings, facts_of


def write_record(trainer: Any, output: Path) -> None:
    """Write the record of a finished training beside its weights.

    Every process must call it.
    """
    report = _facts(trainer)
    if not trainer.is_world_process_zero() or trainer.train_dataset is None:
        return
    folder = RunFolder(output)
    write_json_atomically(folder.settings_file, trainer.recorded or _settings_by_hand(trainer))
    _write_texts(folder, trainer.train_dataset.dialogues)
    write_json_atomically(folder.report_file, report)


def _settings_by_hand(trainer: Any) -> dict[str, Any]:
    """Return the settings of a training by the model and Trainer's arguments."""
    config: Any = trainer.collator.config
    inner = getattr(config, "encoder_config", None)
    backbone = config.name_or_path or getattr(inner, "name_or_path", None) or None
    corpus = [trainer.source] if trainer.source else []
    run = RunArguments(**{**vars(trainer.run), "backbone": backbone, "corpus": corpus})
    chosen = {name: getattr(config, name) for name in own_settings(type(config))}
    return facts_of(run, chosen, trainer.args) | _method_from(run)


def _facts(trainer: Any) -> dict[str, Any]:
    state = trainer.state
    dataset = trainer.train_dataset
    return {
        "steps": state.global_step,
        "dialogues": 0 if dataset is None else len(dataset.dialogues),
        "examples": 0 if dataset is None else len(dataset),
        "processes": trainer.args.world_size,
        "hardware": describe_hardware(trainer.args.device.type == "cuda"),
        "resumed_from": None if trainer.resumed is None else trainer.resumed.name,
        "seconds": time.time() - (trainer.started or time.time()),
        "truncation": _truncation(trainer),
        "checkpoint": Path(state.best_model_checkpoint or "last").name,
        "log": [
            {name: _number(value) for name, value in entry.items()} for entry in state.log_history
        ],
    }


def _truncation(trainer: Any) -> str:
    """Say how much was cut, where this process counted it."""
    counted = _of_all_processes(trainer.collator.truncation)
    if not counted.dialogues:
        return "truncation was not counted, as others had made the batches"
    since = " since the run was resumed" if trainer.resumed else ""
    return f"{counted}, counted on every pass{since}"


def _of_all_processes(count: Truncation) -> Truncation:
    counts: list[Truncation] = gather_object([count])
    names = (field.name for field in dataclasses.fields(Truncation) if field.name != "unit")
    return dataclasses.replace(
        counts[0], **{name: sum(getattr(part, name) for part in counts) for name in names}
    )


def _number(value: Any) -> Any:
    """Return None for the infinite gradient of a step that mixed precision skips."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def recorded_settings(settings: Settings) -> dict[str, Any]:
    """Return what a run's folder says of its settings."""
    training = settings.training
    strategy = getattr(training.save_strategy, "value", training.save_strategy)
    saving = {"save_strategy": strategy, "save_steps": training.save_steps}
    return settings.fingerprint() | saving | _method_from(settings.run)


def _method_from(run: RunArguments) -> dict[str, str]:
    """Return the file or the package of a method from outside."""
    file = origin(get_method(run.method))
    return {} if file is None else {"method_from": file}


def starting_point(
    settings: Settings, output: Path, dialogues: Sequence[Dialogue], dev: Sequence[Dialogue]
) -> Path | None:
    """Return the checkpoint to resume from, and refuse that of another run.

    Only the main process writes.
    """
    folder = RunFolder(output)
    state = PartialState()
    fingerprint = settings.fingerprint()
    data = _decisive_data(settings.run, dialogues, dev)
    with state.main_process_first():
        others = folder.checkpoints() + [
            output / name for name in ("config.json", "modules.json") if (output / name).is_file()
        ]
        if others and not folder.settings_file.is_file():
            raise InputError(
                f"{output} holds {others[0].name} without {folder.settings_file.name}, which "
                "another program wrote; choose another --output_dir"
            )
        if not settings.run.resume and state.is_main_process:
            for begun in folder.checkpoints():
                shutil.rmtree(begun)
        checkpoint = last_complete_checkpoint(output)
        finished = settings.run.resume and folder.complete
        if finished and checkpoint is None:  # it saved none
            known = folder.settings() | read_object(folder.data_file, folder.REMEDY)
            finished = (fingerprint | data).items() <= known.items()
        if checkpoint is not None:
            check_same(folder.settings_file, fingerprint, "a run")
            check_same(folder.data_file, data, "a run")
        elif state.is_main_process and not finished:
            folder.report_file.unlink(missing_ok=True)  # of the run before
            write_json_atomically(folder.data_file, data)
            write_json_atomically(folder.settings_file, recorded_settings(settings))
        if state.is_main_process:
            _write_texts(folder, dialogues)
    return checkpoint


def _write_texts(folder: RunFolder, dialogues: Sequence[Dialogue]) -> None:
    texts = sorted({text_key(dialogue) for dialogue in dialogues})
    write_json_atomically(folder.texts_file, {"texts": texts})


def _decisive_data(
    run: RunArguments, dialogues: Sequence[Dialogue], dev: Sequence[Dialogue]
) -> dict[str, Any]:
    """Describe the inputs that decide the last weights, beside the settings."""
    # processes share the batches of a step
    data = {"num_processes": PartialState().num_processes, **described(dialogues)}
    if run.dev_candidates is not None and Path(run.dev_candidates).is_file():
        data["dev_sha256"] = sha256(Path(run.dev_candidates))
    elif dev:
        data["dev_sha256"] = described(dev)["sha256"]
    if run.granularity_model is not None:
        data["granularity_model_sha256"] = find_encoder(run.granularity_model).fingerprint
    return data


def described(dialogues: Sequence[Dialogue]) -> dict[str, Any]:
    """Return the number and the digest of dialogues, which a resumed run must share."""
    digest = json_key([dialogue.to_json() for dialogue in dialogues])
    return {"dialogues": len(dialogues), "sha256": digest}


def trainings_behind(run: Path) -> list[dict[str, Any]]:
    """Return the record of a training, or those behind an encoder that is made of trained ones."""
    folder = RunFolder(run.parent if run.name.startswith("checkpoint-") else run)
    report = folder.report()
    return list(report["trainings"]) if "trainings" in report else [_training(folder, report)]


def _training(folder: RunFolder, report: dict[str, Any]) -> dict[str, Any]:
    run = folder.path
    settings = folder.settings()
    kept = {name: value for name, value in report.items() if name != "log"}
    backbone = settings.get("backbone")
    if isinstance(backbone, str) and Path(backbone).is_dir():
        # no name on the Hub, which has an organisation before it
        settings["backbone"] = Path(backbone).resolve().name
    return {
        "name": run.resolve().name,
        "settings": without_places(settings),
        "report": without_places(kept),
    }


def without_places(value: Any) -> Any:
    """Return a JSON value with the last name of each absolute path in it, however deep."""
    if isinstance(value, dict):
        return {name: without_places(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(inner) for inner in value]
    if isinstance(value, str) and (Path(value).is_absolute() or value.startswith("~")):
        return Path(value).name
    return value
