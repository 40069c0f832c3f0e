"""Merging trainings of one backbone into one encoder, and the record of the trainings behind an
encoder.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from ..data.corpus_names import data_hash, is_own
from ..encoders.load_encoder import EncoderRun
from ..errors import InputError
from ..evaluation.results.contamination import learnt_sets, sets_behind
from ..methods.merged import Factors, MergedModel
from ..storage.files import appearing_whole, write_json_atomically
from ..storage.pretrained import MINILM
from ..storage.run_folder import RunFolder, field_of, write_files_of_our_own, write_record

ADAPTER = "adapter"
"""The folder of the adapter in that of a merged encoder."""

_REPORTED = ("steps", "dialogues", "examples", "processes", "seconds", "truncation", "checkpoint")
# reports of earlier versions lack them
_OPTIONAL = ("hardware", "energy", "resumed_from", "held_out")

Weights = Mapping[str, float] | Mapping[Path, float] | Mapping[RunFolder, float]


def merge(
    backbone: str | Path,
    parts: Weights,
    rank: int | None = None,
    *,
    output_dir: str | Path = "merged",
    max_tokens: int = 512,
) -> EncoderRun:
    """Add the changes that several trainings made to one backbone: one encoder instead of many.

    Examples:
        >>> run = hf_dialemb.merge("all-MiniLM-L6-v2", {"runs/dse": 1.0, "runs/cse": 1.0}, output_dir="runs/both")
        >>> run.encoder().encode(dialogues)

    Args:
        backbone: Folder or Hub id of the model that all of them started from.
        parts: The weight of each training, by its folder or Hub id; 1 adds its whole change, 0
            nothing.
        rank: Cuts the change of each linear layer to this many singular values. The folder
            ``adapter`` then holds the change as a LoRA adapter for peft.
        output_dir: The folder to write; must not exist yet.
        max_tokens: Where texts are cut; by default the length that most backbones have positions
            for.

    Returns:
        The run's folder: it evaluates, exports and gets a card like any other.

    Raises:
        InputError: There is no part, a weight is no number, a part has another backbone, other
            shapes or no change, or the folder exists.
    """
    backbone, output, started = os.fspath(backbone), Path(output_dir), time.time()
    if output.exists():
        raise InputError(f"output_dir: {output} exists already; choose a new folder or remove it")
    named = {os.fspath(path): weight for path, weight in parts.items()}
    model, tokenizer = MergedModel.from_parts(backbone, named, rank, max_tokens=max_tokens)
    with appearing_whole(output) as folder:
        run = RunFolder(folder)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_files_of_our_own(folder, model.config)
        if model.adapter:
            _write_adapter(folder / ADAPTER, model.adapter, backbone)
            tokenizer.save_pretrained(folder / ADAPTER)
        learnt = sorted(
            {"/".join(filter(None, names)) for path in named for names in sets_behind(path)}
        )
        settings: dict[str, Any] = {
            "method": "merged",
            "backbone": backbone,
            "rank": rank,
            "max_tokens": max_tokens,
        }
        settings |= {
            "parts": named,
            "corpus": learnt,
            "train_split": "all",
            "checkpoint_selection": "last",
            "seed": 0,
        }
        write_json_atomically(run.settings_file, settings)
        recorded = [Path(path) for path in named if RunFolder(Path(path)).complete]
        report = {
            "seconds": time.time() - started,
            "trainings": [record for path in recorded for record in trainings_behind(path)],
            "unrecorded": [Path(path).name for path in named if Path(path) not in recorded],
        }
        write_json_atomically(run.report_file, report)
    return EncoderRun(output)


def _write_adapter(folder: Path, adapter: Mapping[str, Factors], backbone: str) -> None:
    """Write peft's files in bfloat16, by the names of `AutoModel`'s classes, where ``load_adapter``
    looks for them.
    """
    folder.mkdir()
    tensors = {
        f"base_model.model.{name}.lora_{letter}.weight": matrix.bfloat16().contiguous()
        for name, factors in adapter.items()
        for letter, matrix in zip("AB", factors, strict=True)
    }
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    rank = max(len(factors.down) for factors in adapter.values())
    record = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "base_model_name_or_path": MINILM
        if backbone == MINILM.split("/")[1]
        else backbone,  # peft asks the Hub
        "r": rank,
        "lora_alpha": rank,  # a factor of one
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(adapter),  # whole names: "dense" would match the pooler too
        "inference_mode": True,
    }
    write_record(folder / "adapter_config.json", record)


def trainings_behind(run: Path) -> list[dict[str, Any]]:
    """Return the record of a training, or those of the parts of a merged encoder.

    Refuse a part without one.
    """
    folder = RunFolder(run.parent if run.name.startswith("checkpoint-") else run)
    report = folder.report()
    if "trainings" not in report:
        return [_training(folder, report)]
    if report["unrecorded"]:
        raise InputError(
            f"{run}: got no record of how {', '.join(report['unrecorded'])} was trained, expected "
            "its "
            "data and licences; merge the folder of its run"
        )
    return list(report["trainings"])


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
