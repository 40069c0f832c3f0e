"""Merging trainings of one backbone into one encoder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..encoders.loading import EncoderRun
from ..errors import InputError
from ..evaluation.results.learnt import sets_behind
from ..hub.card.record import trainings_behind
from ..hub.forms.adapter import FOLDER, write_adapter
from ..hub.published_folder import appearing_whole
from ..methods.merged import MergedModel
from ..runs.files import write_json_atomically
from ..runs.folder import RunFolder
from ..runs.sentence_files import write_files_of_our_own

Weights = Mapping[str, float] | Mapping[Path, float] | Mapping[RunFolder, float]


def merge(
    backbone: str | Path,
    parts: Weights,
    rank: int | None = None,
    *,
    output_dir: str | Path = "merged",
    max_tokens: int = 512,
) -> EncoderRun:
    """Adds what several trainings moved to the backbone that they began with: one encoder instead of many.

    Examples:
        >>> run = hf_dialemb.merge("all-MiniLM-L6-v2", {"runs/dse": 1.0, "runs/cse": 1.0}, output_dir="runs/both")
        >>> run.encoder().encode(dialogues)

    Args:
        backbone: Folder or Hub id of what all of them began with.
        parts: The weight of each, by its folder or Hub id; 1 adds all that it moved, 0 nothing.
        rank: Cuts what is added to so many singular values of each linear layer; then a LoRA adapter lies beside the
            merged weights, in the folder ``adapter``, for peft.
        output_dir: The folder to write; must not exist yet.
        max_tokens: Where texts are cut: by default the length that most backbones have positions for, since how far a
            training read does not matter here.

    Returns:
        The run's folder: it evaluates, exports and gets a card like any other.

    Raises:
        InputError: There is no part, a weight is no number, a part has another backbone, other shapes or nothing that
            moved, or the folder exists.
    """
    backbone, output, started = os.fspath(backbone), Path(output_dir), time.time()
    if output.exists():
        raise InputError(f"output_dir: {output} exists already; choose a new folder or remove it")
    named = {os.fspath(path): weight for path, weight in parts.items()}
    model, tokenizer = MergedModel.from_parts(backbone, named, rank, max_tokens=max_tokens)
    with appearing_whole(output) as folder:
        run = RunFolder(folder)
        model.save_pretrained(run.path)
        tokenizer.save_pretrained(run.path)
        write_files_of_our_own(run.path, model.config)
        if model.adapter:
            (run.path / FOLDER).mkdir()
            write_adapter(run.path / FOLDER, model.adapter, backbone)
            tokenizer.save_pretrained(run.path / FOLDER)
        learnt = sorted({"/".join(filter(None, each)) for path in named for each in sets_behind(path)})
        settings: dict[str, Any] = {"method": "merged", "backbone": backbone, "rank": rank, "max_tokens": max_tokens}
        settings |= {"parts": named, "corpus": learnt, "train_split": "all", "checkpoint_selection": "last", "seed": 0}
        write_json_atomically(run.settings_file, settings)
        recorded = [Path(path) for path in named if RunFolder(Path(path)).complete]
        report = {
            "seconds": time.time() - started,
            "trainings": [each for path in recorded for each in trainings_behind(path)],
            "unrecorded": [Path(path).name for path in named if Path(path) not in recorded],
        }
        write_json_atomically(run.report_file, report)
    return EncoderRun(output)
