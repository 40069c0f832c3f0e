"""The record of a training in its folder: settings, digests of its data, and what it did."""

import dataclasses
import hashlib
import json
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from huggingface_hub import try_to_load_from_cache

from ..data.corpus import SPLITS
from ..data.corpus_names import data_hash, files_behind, is_own
from ..dialogue import Dialogue
from ..errors import InputError
from ..evaluation.results.contamination import learnt_sets
from ..hashing import sha256, text_key
from ..methods import get_method, origin
from ..methods.config import own_settings
from ..methods.layout import Truncation
from ..storage.files import write_json_atomically
from ..storage.hardware import describe_hardware, peak_memory
from ..storage.run_folder import RunFolder, check_same, field_of, read_object
from .data import weights_digest
from .resuming import last_complete_checkpoint
from .settings import Report, RunArguments, Settings, facts_of

_REPORTED = ("steps", "dialogues", "examples", "processes", "seconds", "truncation", "checkpoint")
# reports of earlier versions lack them
_OPTIONAL = ("hardware", "energy", "resumed_from", "held_out")


def write_record(trainer: Any, output: Path, facts: Mapping[str, Any]) -> None:
    """Write the record of a finished training, and further facts, beside its weights.

    Every process must call it.
    """
    report = {**_facts(trainer), **facts}
    if not trainer.is_world_process_zero() or trainer.train_dataset is None:
        return
    folder = RunFolder(output)
    write_json_atomically(folder.settings_file, trainer.recorded or _settings_by_hand(trainer))
    _write_texts(folder, trainer.train_dataset.dialogues)
    write_json_atomically(folder.report_file, report)


def _settings_by_hand(trainer: Any) -> dict[str, Any]:
    """Return the settings of a training without `Settings`.

    By the model, and by Trainer's arguments.
    """
    config: Any = trainer.collator.config
    backbone = (
        config.name_or_path
        or getattr(getattr(config, "encoder_config", None), "name_or_path", None)
        or None
    )
    corpus = [trainer.source] if trainer.source else []
    run = RunArguments(**{**vars(trainer.run), "backbone": backbone, "corpus": corpus})
    chosen = {name: getattr(config, name) for name in own_settings(type(config))}
    return facts_of(run, chosen, trainer.args) | _method_from(run)


def _facts(trainer: Any) -> dict[str, Any]:
    state, dataset = trainer.state, trainer.train_dataset
    counted = _of_all_processes(trainer.collator.truncation)
    truncation = (
        f"{counted}, counted on every pass{' since the run was resumed' if trainer.resumed else ''}"
    )
    if trainer.args.dataloader_num_workers:
        truncation = "truncation was not counted, as other processes made the batches"
    elif not counted.dialogues:
        truncation = "truncation was not counted, as an earlier run had made all batches"
    return {
        "steps": state.global_step,
        "dialogues": 0 if dataset is None else len(dataset.dialogues),
        "examples": 0 if dataset is None else len(dataset),
        "processes": trainer.args.world_size,
        "hardware": describe_hardware(trainer.args.device.type == "cuda"),
        "peak_memory": max(
            filter(None, gather_object([peak_memory()])), default=None
        ),  # bytes of a process
        "peak_gpu_memory": max(gather_object([torch.cuda.max_memory_allocated()])) or None,
        "energy": _energy(trainer),
        "resumed_from": None if trainer.resumed is None else trainer.resumed.name,
        "seconds": time.time() - (trainer.started or time.time()),
        "truncation": truncation,
        "checkpoint": Path(state.best_model_checkpoint or "last").name,
        "log": [
            {name: _number(value) for name, value in entry.items()} for entry in state.log_history
        ],
    }


def _of_all_processes(count: Truncation) -> Truncation:
    counts: list[Truncation] = gather_object([count])
    names = (field.name for field in dataclasses.fields(Truncation) if field.name != "unit")
    return dataclasses.replace(
        counts[0], **{name: sum(getattr(part, name) for part in counts) for name in names}
    )


def _number(value: Any) -> Any:
    """Return None for what JSON does not have.

    The infinite gradient of a step that mixed precision skips.
    """
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _energy(trainer: Any) -> dict[str, Any] | None:
    """Return what codecarbon measured; None unless ``report_to`` names it."""
    trackers = (
        getattr(callback, "tracker", None) for callback in trainer.callback_handler.callbacks
    )
    measured: Any = next(
        filter(None, (getattr(tracker, "final_emissions_data", None) for tracker in trackers)), None
    )
    return measured and {
        "kwh": measured.energy_consumed,
        "co2eq_kg": measured.emissions,
        "country": measured.country_name,
        "tool": f"codecarbon {metadata.version('codecarbon')}",
    }


def recorded_settings(settings: Settings) -> dict[str, Any]:
    """Return what a run's folder says of its settings."""
    return settings.fingerprint() | _saving(settings) | _method_from(settings.run)


def _method_from(run: RunArguments) -> dict[str, str]:
    """Return the file or the package of a method from outside."""
    file = origin(get_method(run.method))
    return {} if file is None else {"method_from": file}


def _saving(settings: Settings) -> dict[str, Any]:
    strategy = settings.training.save_strategy
    return {
        "save_strategy": str(getattr(strategy, "value", strategy)),
        "save_steps": settings.training.save_steps,
    }


def is_finished(settings: Settings, backbone: str | None, output: Path) -> bool:
    """Return whether a run with these settings went to its end, and no file of its corpora has
    changed since.

    The files are known by their sizes and times and are not read. Those that are gone are not
    missed.
    """
    folder = RunFolder(output)
    if not (folder.complete and settings.run.resume):
        return False
    data = {"num_processes": PartialState().num_processes, **_chosen_by(settings, backbone, ())}
    kept = read_object(folder.data_file, RunFolder.REMEDY)
    compared = ((folder.settings(), settings.fingerprint()), (kept, data))
    same = all(before.get(name) == value for before, now in compared for name, value in now.items())
    return same and "files" in kept and _files(settings.run).items() <= kept["files"].items()


def _files(run: RunArguments) -> dict[str, str]:
    """Return by corpus a digest of the names, sizes and times of its files.

    Nothing of a corpus without files.
    """
    sets = [
        *run.corpus,
        *(run.exclude or ()),
        *([run.dev_split] if run.dev_split not in (None, *SPLITS) else ()),
    ]
    digests = {}
    for name in map(str, sets):
        if paths := [] if name == "none" else files_behind(name, run.data_dir):
            facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
            digests[name] = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return digests


def starting_point(
    settings: Settings,
    backbone: str | None,
    output: Path,
    dialogues: Sequence[Dialogue],
    dev: Sequence[Dialogue],
    report: Report,
) -> Path | None:
    """Find the checkpoint to resume from, and refuse that of another run.

    Only the main process writes.
    """
    folder, state, fingerprint = RunFolder(output), PartialState(), settings.fingerprint()
    # Processes share the batches of a step.
    data = {
        "num_processes": state.num_processes,
        **_described(dialogues),
        **_chosen_by(settings, backbone, dev),
    }
    files = {"files": _files(settings.run)}
    with state.main_process_first():
        others = [
            output / name for name in ("config.json", "modules.json") if (output / name).is_file()
        ]
        if not folder.settings_file.is_file() and (folder.checkpoints() or others):
            raise InputError(
                f"{output} holds {'a model' if others else 'checkpoints'} without "
                f"{folder.settings_file.name}, which "
                "another program wrote; choose another --output_dir"
            )
        if not settings.run.resume and state.is_main_process:
            for begun in folder.checkpoints():
                shutil.rmtree(begun)
        checkpoint = last_complete_checkpoint(output, report)
        if checkpoint is not None:
            again = "start over with --resume false"
            for path, now, name in (
                (folder.settings_file, fingerprint, "method"),
                (folder.data_file, data, "sha256"),
            ):
                check_same(path, now, "a run")
                field_of(read_object(path, again), name, str(path), again)
            if state.is_main_process:
                write_json_atomically(
                    folder.data_file, read_object(folder.data_file, again) | files
                )
        elif state.is_main_process:
            folder.report_file.unlink(missing_ok=True)  # of the run before
            write_json_atomically(folder.data_file, data | files)
            write_json_atomically(folder.settings_file, recorded_settings(settings))
        if state.is_main_process:
            _write_texts(folder, dialogues)
    return checkpoint


def record_backbone(backbone: str | None, output: Path) -> None:
    """Add the digest of a backbone that was fetched only after the settings were written."""
    file = RunFolder(output).data_file
    facts, digest = read_object(file, RunFolder.REMEDY), _backbone_digest(backbone)
    if digest is not None and "backbone_sha256" not in facts:
        write_json_atomically(file, {**facts, "backbone_sha256": digest})


def _write_texts(folder: RunFolder, dialogues: Sequence[Dialogue]) -> None:
    write_json_atomically(
        folder.texts_file, {"texts": sorted({text_key(dialogue) for dialogue in dialogues})}
    )


def check_same_data(output: Path, dialogues: Sequence[Dialogue]) -> None:
    """Raise InputError unless a run was trained on these dialogues."""
    check_same(RunFolder(output).data_file, _described(dialogues), "a run")


def _described(dialogues: Sequence[Dialogue]) -> dict[str, Any]:
    digest = hashlib.sha256()
    for dialogue in dialogues:
        digest.update(json.dumps(dialogue.to_json(), sort_keys=True).encode() + b"\n")
    return {"dialogues": len(dialogues), "sha256": digest.hexdigest()}


def _chosen_by(settings: Settings, backbone: str | None, dev: Sequence[Dialogue]) -> dict[str, Any]:
    """Describe further inputs that decide the last weights.

    The backbone, the data of the signal, another ranker.
    """
    run, facts = settings.run, dict[str, Any]()
    if (digest := _backbone_digest(backbone)) is not None:
        facts["backbone_sha256"] = digest
    if run.dev_candidates is not None and Path(run.dev_candidates).is_file():
        facts["dev_sha256"] = sha256(Path(run.dev_candidates))
    elif dev:
        facts["dev_sha256"] = _described(dev)["sha256"]
    if run.checkpoint_selection != "last":
        # Some losses are of batches. When checkpoints are written decides nothing where the last
        # one is kept.
        facts |= {
            "per_device_eval_batch_size": settings.training.per_device_eval_batch_size,
            **_saving(settings),
        }
    if run.granularity_model is not None:
        facts["granularity_model_sha256"] = weights_digest(Path(run.granularity_model))
    return facts


def _backbone_digest(backbone: str | None) -> str | None:
    """Return the digest of a backbone's weights or word vectors.

    None before a model of the Hub was fetched.
    """
    place = Path(backbone or "")
    if backbone is None or place.is_file():
        return sha256(place) if backbone else None
    if not place.is_dir():
        cached = try_to_load_from_cache(backbone, "config.json")
        if not isinstance(cached, str):
            return None
        place = Path(cached).parent
    weights = sorted(place.glob("*.safetensors")) or sorted(place.glob("pytorch_model*.bin"))
    return hashlib.sha256("".join(map(sha256, weights)).encode()).hexdigest()


def trainings_behind(run: Path) -> list[dict[str, Any]]:
    """Return the record of a training, or those behind an encoder that is made of trained ones."""
    folder = RunFolder(run.parent if run.name.startswith("checkpoint-") else run)
    report = folder.report()
    return list(report["trainings"]) if "trainings" in report else [_training(folder, report)]


def _training(folder: RunFolder, report: dict[str, Any]) -> dict[str, Any]:
    run, settings = folder.path, folder.settings()
    for name in ("method", "corpus", "checkpoint_selection", "seed"):
        field_of(settings, name, str(folder.settings_file), folder.REMEDY)
    kept = {
        name: field_of(report, name, str(folder.report_file), folder.REMEDY) for name in _REPORTED
    }
    kept |= {name: report.get(name) for name in _OPTIONAL}
    backbone = settings.get("backbone")
    if isinstance(backbone, str) and Path(backbone).is_dir():
        # no name on the Hub, which has an organisation before it
        settings["backbone"] = Path(backbone).resolve().name
    record = {
        "name": run.resolve().name,
        "settings": without_places(settings),
        "report": without_places(kept),
    }
    own = {
        corpus: Path(corpus).expanduser()
        for corpus, split in learnt_sets(settings)
        if not split and is_own(corpus)
    }
    if own:  # results files name them without their folder, and others may have the same name
        hashes = {
            without_places(name): data_hash(name) if path.exists() else None
            for name, path in own.items()
        }
        record["own_files"] = dict(sorted(hashes.items()))
    return record


def without_places(value: Any) -> Any:
    """Return a JSON value with the last name of each absolute path in it, however deep."""
    if isinstance(value, dict):
        return {name: without_places(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(inner) for inner in value]
    if isinstance(value, str) and (Path(value).is_absolute() or value.startswith("~")):
        return Path(value).name
    return value
