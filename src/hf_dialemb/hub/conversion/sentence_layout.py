"""What the files of sentence-transformers say about a model, as far as a checkpoint of ours can hold it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...models.errors import InputError

_UNLIMITED = 10**6  # tokenizers without a limit say a number far beyond
_LENGTH_ONLY = "Normalize, which makes every embedding of length 1,"


@dataclass(frozen=True)
class SentenceLayout:
    """Where the backbone lies and how it reads.

    Attributes:
        transformer: Folder of weights and tokenizer.
        max_tokens: Longest sequence; None where the files do not say.
        lower_case: Whether texts are lower-cased before the tokenizer sees them.
        notes: What else is to be known.
    """

    transformer: Path
    max_tokens: int | None = None
    lower_case: bool = False
    notes: tuple[str, ...] = ()


def read_layout(folder: Path) -> SentenceLayout:
    """Reads ``modules.json`` and what it names."""
    modules = _json(folder / "modules.json", list)
    names = [str(module["type"]).rpartition(".")[2] for module in modules]
    if names[:2] != ["Transformer", "Pooling"]:
        raise InputError(f"'{folder}': got the modules {', '.join(names)}, expected Transformer and Pooling")
    for name in names[2:]:
        what = _LENGTH_ONLY if name == "Normalize" else f"{name}, which maps embeddings to others,"
        raise InputError(
            f"'{folder}': {what} follows the pooling, and no checkpoint of this package has such a module; "
            + ("cosines do not need it: take it out of modules.json" if name == "Normalize" else "choose another")
        )
    transformer, pooling = (folder / str(module["path"]) for module in modules[:2])
    _check_pooling(_json(pooling / "config.json", dict), folder)
    _check_prompts(folder)
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


def _check_prompts(folder: Path) -> None:
    default = _json(folder / "config_sentence_transformers.json", dict, {}).get("default_prompt_name")
    if default is not None:
        raise InputError(f"'{folder}': the prompt '{default}' is put before every text; no checkpoint of ours does so")


def _json(path: Path, kind: type, default: Any = None) -> Any:  # noqa: ANN401
    if default is not None and not path.is_file():
        return default
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"'{path}' cannot be read ({error}); fetch the model again") from None
    if not isinstance(found, kind):
        raise InputError(f"'{path}': got {type(found).__name__}, expected {kind.__name__}; fetch the model again")
    return found
