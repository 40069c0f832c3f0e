"""The settings of a sentence-transformers folder, read from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ..checkpoints.pretrained import read_config
from ..errors import InputError

_UNLIMITED = 10**6  # tokenizers without a limit say a number far beyond


class SentenceLayout(NamedTuple):
    """The settings of a sentence-transformers model whose vector is the mean of a transformer's tokens."""

    transformer: Path  # where its weights and tokenizer lie
    max_tokens: int | None = None  # the longest sequence, if files say it
    lower_case: bool = False  # whether texts are lower-cased first
    normalized: bool = False  # whether vectors are brought to unit length


def read_layout(folder: Path) -> SentenceLayout:
    """Read ``modules.json`` and the files that it names; refuse modules beyond pooling and normalising."""
    modules = _json(folder / "modules.json", list)
    names = [str(module["type"]).rpartition(".")[2] for module in modules]
    if names[:2] != ["Transformer", "Pooling"]:
        raise InputError(f"'{folder}': got the modules {', '.join(names)}, expected Transformer and Pooling")
    for name in names[2:]:
        if name != "Normalize":
            raise InputError(
                f"'{folder}': {name}, which maps embeddings to others, follows the pooling, and no checkpoint of this "
                "package has such a module; choose another"
            )
    transformer, pooling = (folder / str(module["path"]) for module in modules[:2])
    _check_pooling(_json(pooling / "config.json", dict), folder)
    prompt = _json(folder / "config_sentence_transformers.json", dict, {}).get("default_prompt_name")
    if prompt is not None:
        raise InputError(f"'{folder}': the prompt '{prompt}' is put before every text; no checkpoint of ours does so")
    settings = _json(transformer / "sentence_bert_config.json", dict, {})
    tokenizer = _json(transformer / "tokenizer_config.json", dict, {})  # holds the limit in files of today
    limit = settings.get("max_seq_length") or tokenizer.get("model_max_length") or _UNLIMITED
    if isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 1:
        raise InputError(
            f"'{folder}': got {limit!r} as the longest sequence, expected 1 or more; fetch the model again"
        )
    longest = int(limit) if limit < _UNLIMITED else None
    return SentenceLayout(transformer, longest, bool(settings.get("do_lower_case")), "Normalize" in names)


def plain_layout(path: str) -> SentenceLayout | None:
    """Read the layout of a folder whose vectors transformers alone can make, in half the time; else return None."""
    folder = Path(path)
    if not (folder / "modules.json").is_file() or not (folder / "config.json").is_file():
        return None
    try:
        layout, settings = read_layout(folder), _json(folder / "sentence_bert_config.json", dict, {})
    except (InputError, LookupError, TypeError, ValueError):
        return None  # what it is, or what is wrong with it, is for sentence-transformers to say
    other_ways = any(value and name.endswith(("_args", "_kwargs")) for name, value in settings.items())
    if layout.transformer != folder or layout.lower_case or other_ways:
        return None
    return None if read_config(path).get("is_encoder_decoder") else layout


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
