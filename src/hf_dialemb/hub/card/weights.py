"""Whether a published folder has the weights of a training's, and how many they are."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from ...models.errors import InputError


def count_weights(folder: Path) -> tuple[int, str]:
    """Counts a folder's weights.

    Returns their number, and the type of most of them, such as ``"float32"``.
    """
    counts: dict[str, int] = {}
    for _, part in _tensors(folder):
        counts[part.get_dtype()] = counts.get(part.get_dtype(), 0) + prod(part.get_shape())
    names = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
    most = max(counts, key=lambda name: counts[name])
    return sum(counts.values()), names.get(most, most)


def check_same_weights(folder: Path, run: Path) -> None:
    """Makes sure that a folder was published from a run."""
    trained = dict(_tensors(run))
    shared = 0
    for name, part in _tensors(folder):
        other = trained.get(name, trained.get(f"encoder.{name}"))
        if other is None:
            continue
        shared += 1
        here, there = part[:], other[:]
        if here.shape != there.shape or not here.equal(there.to(here.dtype)):
            raise InputError(
                f"{folder}: got other weights than {run} has ({name}), expected those of one training; give the run "
                "that the folder was exported from, or export it again"
            )
    if not shared:
        raise InputError(f"{folder}: got no weights that {run} has too; give the run that it was exported from")


def _tensors(folder: Path) -> Iterator[tuple[str, Any]]:
    from safetensors import safe_open

    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise InputError(f"{folder}: got no model.safetensors, expected a model; write it with dialemb export")
    for file in files:
        with safe_open(str(file), framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - a file is no dictionary
                yield name, tensors.get_slice(name)
