"""The folder of a foreign model: how it reads, by the files of sentence-transformers, and its weights by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, isfinite

from ...models.backbones import resolve_backbone
from ...models.errors import InputError
from .torch_files import read_tensors

_FILES = ("model.safetensors", "pytorch_model.bin")
_SMALL = ["*.json", "*.txt", "*.jinja", "*.model"]
_UNLIMITED = 10**6  # tokenizers without a limit say a number far beyond


def local_folder(source: str) -> Path:
    """Finds a model folder, and fetches it where it is a Hub id."""
    if Path(source).is_dir() and (Path(source) / "modules.json").is_file():
        return Path(source)  # the transformer may lie in a folder of its own
    found = resolve_backbone(source)
    if Path(found).is_dir():
        return Path(found)
    from huggingface_hub import snapshot_download

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
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise InputError(f"'{path}' is damaged or cut off ({error}); fetch the model again") from None


class SentenceLayout(NamedTuple):
    """Where weights and tokenizer lie, the longest sequence, if files say it, and whether texts are lower-cased."""

    transformer: Path
    max_tokens: int | None = None
    lower_case: bool = False


def read_layout(folder: Path) -> SentenceLayout:
    """Reads ``modules.json`` and what it names."""
    modules = _json(folder / "modules.json", list)
    names = [str(module["type"]).rpartition(".")[2] for module in modules]
    if names[:2] != ["Transformer", "Pooling"]:
        raise InputError(f"'{folder}': got the modules {', '.join(names)}, expected Transformer and Pooling")
    for name in names[2:]:
        what, remedy = f"{name}, which maps embeddings to others,", "choose another"
        if name == "Normalize":
            what = "Normalize, which makes every embedding of length 1,"
            remedy = "cosines do not need it: take it out of modules.json"
        raise InputError(
            f"'{folder}': {what} follows the pooling, and no checkpoint of this package has such a module; {remedy}"
        )
    transformer, pooling = (folder / str(module["path"]) for module in modules[:2])
    _check_pooling(_json(pooling / "config.json", dict), folder)
    prompt = _json(folder / "config_sentence_transformers.json", dict, {}).get("default_prompt_name")
    if prompt is not None:
        raise InputError(f"'{folder}': the prompt '{prompt}' is put before every text; no checkpoint of ours does so")
    settings = _json(transformer / "sentence_bert_config.json", dict, {})
    tokenizer = _json(transformer / "tokenizer_config.json", dict, {})  # holds the limit in files of today
    limit = settings.get("max_seq_length") or tokenizer.get("model_max_length") or _UNLIMITED
    return SentenceLayout(transformer, int(limit) if limit < _UNLIMITED else None, bool(settings.get("do_lower_case")))


def _check_pooling(pooling: dict[str, Any], folder: Path) -> None:
    modes = [key.removeprefix("pooling_mode_") for key, on in pooling.items() if key.startswith("pooling_mode_") and on]
    if "pooling_mode" in pooling:
        mode = pooling["pooling_mode"]
        modes = list(mode) if isinstance(mode, list | tuple) else [str(mode)]
    if modes not in (["mean_tokens"], ["mean"]):
        raise InputError(
            f"'{folder}': got the pooling {', '.join(modes) or 'none'}, expected the mean of tokens, the only one that "
            "utterance encoders of this package have"
        )


def _json(path: Path, kind: type, default: Any = None) -> Any:  # noqa: ANN401
    if default is not None and not path.is_file():
        return default
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{path}' cannot be read ({error}); fetch the model again") from None
    if not isinstance(found, kind):
        raise InputError(f"'{path}': got {type(found).__name__}, expected {kind.__name__}; fetch the model again")
    return found
