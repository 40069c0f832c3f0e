"""The settings of a sentence-transformers folder whose vectors transformers alone can make, read from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ..checkpoints.pretrained import read_config

_UNLIMITED = 10**6  # tokenizers without a limit give a number far beyond


class SentenceLayout(NamedTuple):
    """The settings of a transformer whose vector is the mean of its tokens."""

    max_tokens: int | None = None  # the longest sequence, if files give it
    normalized: bool = False  # whether vectors are brought to unit length


def plain_layout(path: str) -> SentenceLayout | None:
    """Read the layout of a folder with a transformer, mean pooling and perhaps normalising, and nothing else.

    Loading it by transformers takes half the time. Return None for any other folder: what it is, or what is wrong with
    it, is for sentence-transformers to say.
    """
    folder = Path(path)
    try:
        kinds, places = [], []
        for module in _json(folder / "modules.json"):
            kinds.append(str(module["type"]).rpartition(".")[2])
            places.append(folder / str(module["path"]))
        normalized = kinds[2:] == ["Normalize"]
        if kinds[:2] != ["Transformer", "Pooling"] or not (normalized or kinds[2:] == []) or places[0] != folder:
            return None
        pooling = dict(_json(places[1] / "config.json"))
        mode = pooling.pop("pooling_mode", "mean" if pooling.pop("pooling_mode_mean_tokens", False) else "")
        dimension = pooling.pop("word_embedding_dimension", None) or pooling.pop("embedding_dimension", None)
        pooling.pop("include_prompt", None)
        if mode not in ("mean", ["mean"]) or not dimension or any(pooling.values()):
            return None
        if _json(folder / "config_sentence_transformers.json", {}).get("default_prompt_name") is not None:
            return None
        settings = _json(folder / "sentence_bert_config.json", {})
        limit = settings.pop("max_seq_length", None)
        limit = limit or _json(folder / "tokenizer_config.json", {}).get("model_max_length") or _UNLIMITED
        for name, value in settings.items():
            if value and (name == "do_lower_case" or name.endswith(("_args", "_kwargs"))):
                return None
        if not limit >= 1 or read_config(path).get("is_encoder_decoder"):
            return None
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    return SentenceLayout(int(limit) if limit < _UNLIMITED else None, normalized)


def _json(file: Path, default: Any = None) -> Any:  # noqa: ANN401
    return default if default is not None and not file.is_file() else json.loads(file.read_text(encoding="utf-8"))
