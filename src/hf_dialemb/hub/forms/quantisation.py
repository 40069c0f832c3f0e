"""The 8-bit form of an ONNX graph, a quarter as large, and what it costs: measured, and written down beside it.

Weights become integers once, one scale per column; what meets them does so as it comes, so no texts are needed for
calibration. Weights take 7 of the 8 bits: on processors without instructions for it, sums of more would overflow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...corpora import load_dialogues
from ...encoders.remembering import RememberingEncoder
from ...errors import InputError
from ...evaluation.run import measure
from ...evaluation.tasks.registry import default_tasks, get_task, load_problem
from ...evaluation.tasks.task import CorpusPart, Problem
from ...evaluation.tasks.texts import row_cosines
from ...runs.sentence_files import write_record
from ..published_folder import PublishedFolder
from .onnx_encoder import OnnxEncoder
from .onnx_form import quietly

LOWEST_COSINE = 0.8  # to float32, on average over probe texts; a graph below that is broken

_PROBES = 60


@dataclass(frozen=True)
class TaskChoice:
    """Tasks to measure the loss by, on a part of a corpus; none named stand for those that suit it."""

    corpus: str
    data_dir: str | Path | None = None
    split: str = "test"
    tasks: Sequence[str] = ()
    limit: int | None = None
    seeds: Sequence[int] = range(10)
    columns: str | None = None
    roles: str | None = None


def load_problems(choice: TaskChoice | None) -> dict[str, Problem]:
    """Loads the tasks of a choice, so that a wrong one is found before long work."""
    if choice is None:
        return {}
    names = list(dict.fromkeys(choice.tasks or default_tasks(choice.corpus)))
    for name in names:
        if get_task(name).fine_tunes:
            raise InputError(f"task {name}: it fine-tunes, which an ONNX graph cannot; choose another task")
    part = CorpusPart(choice.corpus, choice.data_dir, choice.split, choice.limit, choice.columns, choice.roles)
    return {name: load_problem(name, part) for name in names}


def write_int8(
    folder: Path, utterances: bool, choice: TaskChoice | None = None, problems: Mapping[str, Problem] | None = None
) -> Iterator[str]:
    """Quantises the graph of a published folder, and measures what that costs, also by the problems of a choice."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graphs = {"float32": PublishedFolder.ONNX, "int8": PublishedFolder.INT8}
    large, small = (folder / file for file in graphs.values())
    with quietly():
        quantize_dynamic(large, small, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    encoders = {name: OnnxEncoder(folder, Path(file).name) for name, file in graphs.items()}
    cosines = _cosines(encoders, utterances)
    if not cosines.mean() >= LOWEST_COSINE:
        raise InputError(
            f"The 8-bit graph gives other embeddings: their cosine to those in float32 is {cosines.mean():.3f} on "
            f"average, expected at least {LOWEST_COSINE}; publish without it"
        )
    sizes = {file: (folder / file).stat().st_size for file in graphs.values()}
    figures = _figures(encoders, problems, choice.seeds) if choice and problems else []
    record = {
        "method": f"onnxruntime {version('onnxruntime')}, quantize_dynamic: 7-bit weights, per channel",
        "bytes": sizes,
        "cosine": {"texts": len(cosines), "mean": float(cosines.mean()), "min": float(cosines.min())},
        "config": {name: problem.config for name, problem in (problems or {}).items()},
        "figures": figures,
    }
    write_record(folder / PublishedFolder.QUANTISATION, json.loads(json.dumps(record, default=str)))
    whole, cut = (size / 1e6 for size in sizes.values())
    yield (
        f"Quantised: {cut:.1f} MB of {whole:.1f} MB; cosine to float32 {cosines.mean():.4f} on average, "
        f"{cosines.min():.4f} at least, on {len(cosines)} texts"
    )
    for row in figures:
        yield f"Quantised: {row['task']} {row['metric']} {row['setting']}: {row['float32']:.2f}, int8 {row['int8']:.2f}"


def _cosines(encoders: Mapping[str, OnnxEncoder], utterances: bool) -> np.ndarray:
    conversations = [dialogue.to_messages() for dialogue in load_dialogues("sample", None, "dev")]
    if utterances:
        texts = dict.fromkeys(message["content"] for messages in conversations for message in messages)
        conversations = [[{"role": "user", "content": text}] for text in texts]
    one, other = (encoder.encode_messages(conversations[:_PROBES]) for encoder in encoders.values())
    return row_cosines(one, other)


def _figures(
    encoders: Mapping[str, OnnxEncoder], problems: Mapping[str, Problem], seeds: Sequence[int]
) -> list[dict[str, Any]]:
    found, part = {}, next(iter(problems.values())).config  # all are of one part
    for name, encoder in encoders.items():
        remembering = RememberingEncoder(encoder)
        rows = [row for problem in problems.values() for row in measure(remembering, problem, seeds)]
        found[name] = {(row.task, row.metric, row.setting): row for row in rows}
    figures = []
    for place, row in found["float32"].items():
        what = {"corpus": part["corpus"], "split": part["split"], "task": row.task, "metric": row.metric}
        measured = {"n": row.n, "float32": row.mean, "int8": found["int8"][place].mean}
        figures.append({**what, "setting": row.setting, **measured})
    return figures
