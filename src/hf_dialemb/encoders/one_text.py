"""The vector of one text, such as the words of a search, by numpy: to import torch takes longer than a search may."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sentence_layout import SentenceLayout, plain_layout

Floats = NDArray[np.float32]


def embed_one_text(folder: str, text: str) -> Floats | None:
    """Embeds a text as a folder's BERT does, ``(D,)`` float32, equal to what torch computes up to rounding.

    None says that torch has to: the model is another one, damaged, or reads less than the text.
    """
    layout = plain_layout(folder)
    if layout is None:
        return None
    try:
        config = json.loads((layout.transformer / "config.json").read_text(encoding="utf-8"))
        kind = config["model_type"], config["hidden_act"], config.get("position_embedding_type", "absolute")
        if kind != ("bert", "gelu", "absolute") or config.get("is_decoder"):
            return None
        ids = _tokens(layout, text, config["max_position_embeddings"])
        return None if ids is None else _mean_state(layout, config, ids)
    except Exception:  # what is wrong with it is for the library that loads it to say
        return None


def _tokens(layout: SentenceLayout, text: str, positions: int) -> list[int] | None:
    """Tokenises a text; None where it has to be cut, or where transformers would read words in another way."""
    from tokenizers import Tokenizer

    file = layout.transformer / "tokenizer.json"
    settings = json.loads((layout.transformer / "tokenizer_config.json").read_text(encoding="utf-8"))
    said = {"type": "BertNormalizer", "clean_text": True, "strip_accents": settings.get("strip_accents")}
    said |= {"lowercase": settings["do_lower_case"], "handle_chinese_chars": settings["tokenize_chinese_chars"]}
    if json.loads(file.read_text(encoding="utf-8"))["normalizer"] != said:
        return None
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids: list[int] = tokenizer.encode(text).ids
    return ids if len(ids) <= min(layout.max_tokens or positions, positions) else None


def _mean_state(layout: SentenceLayout, config: dict[str, Any], ids: list[int]) -> Floats | None:
    """Computes the mean of the last layer's states, ``(D,)``; None where they are not finite."""
    from safetensors import safe_open
    from scipy.special import erf

    with safe_open(layout.transformer / "model.safetensors", "np") as file:
        word, place, kind = (f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type"))
        rows = np.concatenate([file.get_slice(word)[row : row + 1] for row in ids])

        def linear(name: str, values: Floats) -> Floats:
            found: Floats = values @ file.get_tensor(f"{name}.weight").T + file.get_tensor(f"{name}.bias")
            return found

        def normalised(name: str, values: Floats) -> Floats:
            values = values - values.mean(axis=-1, keepdims=True)
            values = values / np.sqrt(np.square(values).mean(axis=-1, keepdims=True) + config["layer_norm_eps"])
            found: Floats = values * file.get_tensor(f"{name}.weight") + file.get_tensor(f"{name}.bias")
            return found

        def heads(name: str, values: Floats) -> Floats:
            return linear(name, values).reshape(len(ids), config["num_attention_heads"], -1).transpose(1, 0, 2)

        states = rows + file.get_slice(place)[: len(ids)] + file.get_slice(kind)[:1]
        states = normalised("embeddings.LayerNorm", states)
        for number in range(config["num_hidden_layers"]):
            layer = f"encoder.layer.{number}"
            query, key, value = (heads(f"{layer}.attention.self.{name}", states) for name in ("query", "key", "value"))
            scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(query.shape[-1]))
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            shares /= shares.sum(axis=-1, keepdims=True)
            seen = (shares @ value).transpose(1, 0, 2).reshape(len(ids), -1)
            states = states + linear(f"{layer}.attention.output.dense", seen)
            states = normalised(f"{layer}.attention.output.LayerNorm", states)
            inner = linear(f"{layer}.intermediate.dense", states)
            inner = inner * (1 + erf(inner / np.sqrt(np.float32(2)))) / 2
            states = normalised(f"{layer}.output.LayerNorm", states + linear(f"{layer}.output.dense", inner))
    vector: Floats = states.mean(axis=0).astype(np.float32)
    if layout.normalized:
        vector /= np.linalg.norm(vector)
    return vector if np.isfinite(vector).all() else None
