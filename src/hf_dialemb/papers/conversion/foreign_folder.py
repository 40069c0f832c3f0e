"""The folder of a foreign model, and its weights by name."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, isfinite

from ...checkpoints.pretrained import resolve_backbone
from ...errors import InputError
from .torch_files import read_tensors

_FILES = ("model.safetensors", "pytorch_model.bin")
_SMALL = ["*.json", "*.txt", "*.jinja", "*.model"]


def local_folder(source: str) -> Path:
    """Finds a model folder, and fetches it where it is a Hub id."""
    if Path(source).is_dir() and (Path(source) / "modules.json").is_file():
        return Path(source)  # the transformer may lie in a folder of its own
    found = resolve_backbone(source)
    if Path(found).is_dir():
        return Path(found)
    try:
        folder = Path(snapshot_download(found, allow_patterns=[*_SMALL, "model*.safetensors"]))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(snapshot_download(found, allow_patterns=[*_SMALL, "pytorch_model*.bin*"]))
    except Exception as error:  # the HTTP library's own errors come through beside the Hub client's
        raise InputError(f"'{source}' cannot be fetched ({type(error).__name__}: {error}); try again") from None
    return folder


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Reads tensors by name: all shards of safetensors, or of ``.bin`` files through torch's reader of tensors."""
    for name in _FILES:
        index = folder / f"{name}.index.json"
        if (folder / name).is_file() or index.is_file():
            shards = [name] if (folder / name).is_file() else _shards(index)
            found = {key: value for shard in shards for key, value in _read(folder / shard).items()}
            lost = next((key for key, value in found.items() if not isfinite(value).all()), None)
            if lost is not None:
                raise InputError(f"'{folder}': {lost} holds numbers that are not finite; fetch the model again")
            return found
    raise InputError(f"'{folder}' has no weights: expected {' or '.join(_FILES)}, whole or in shards")


def _shards(index: Path) -> list[str]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        if any(Path(name).name != name for name in names):
            raise ValueError("a shard lies in another folder")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"'{index}' cannot be read ({error}); fetch the model again") from None
    return names


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(f"'{path}' is missing: expected a shard of the weights; fetch the model again")
    if path.suffix != ".safetensors":
        return read_tensors(path)
    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise InputError(f"'{path}' is damaged or cut off ({error}); fetch the model again") from None
