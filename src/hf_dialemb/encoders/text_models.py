"""Text encoders built on transformers.

Sentence-transformers models, and any other model that `AutoModel` loads.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

from ..errors import InputError
from ..methods.context_window import in_surroundings
from ..methods.layout import utterance_template
from ..methods.utterance import encode_utterances
from ..modeling.modeling_dual_encoder import mean_of_tokens
from ..storage.pretrained import (
    check_tokenizer,
    check_weights,
    has_decoder,
    load_pretrained,
    reading,
)
from ..storage.sentence_modules import SentenceModules, read_sentence_modules
from .specs import EncoderSpec

_MAX_TOKENS = 512  # plain transformers models cut texts here, or at their own limit if it is lower


class TextModel(nn.Module):
    """A transformer, in the form that `encode_utterances` runs.

    A text's vector is the mean of the last layer's tokens, perhaps ``normalized``. Texts are cut to
    ``limit`` tokens, special ones included.
    """

    def __init__(self, inner: Any, limit: int, normalized: bool = False) -> None:
        super().__init__()
        self.inner = inner
        self.normalized = normalized
        self.config = SimpleNamespace(hidden_size=inner.config.hidden_size, longest_text=limit)
        self.eval()

    @property
    def device(self) -> Any:
        """Where the model computes, a ``torch.device``."""
        return next(self.inner.parameters()).device

    def forward(self, **batch: Tensor) -> SimpleNamespace:
        """Embed a batch.

        Returns ``pooler_output`` (B, D), and its tokens as ``last_hidden_state`` (B, L, D).
        """
        states = self.inner(**batch).last_hidden_state.float()
        vectors = mean_of_tokens(states, batch["attention_mask"])
        if self.normalized:
            vectors = nn.functional.normalize(vectors)
        return SimpleNamespace(pooler_output=vectors, last_hidden_state=states)


def loaded_texts(source: EncoderSpec, device: str, **options: Any) -> dict[str, Any]:
    """Load a model of texts, and return what an `Encoder` takes of it.

    transformers alone loads a sentence-transformers folder of a transformer and mean pooling, in
    half the time; sentence-transformers loads any other, or says what is wrong with it. ``options``
    are those of ``from_pretrained``.
    """
    modules = SentenceModules()
    if source.kind == "sentence-transformers":
        with suppress(InputError):
            modules = read_sentence_modules(source.path, **source.files)
        if not modules.plain or modules.pooling != "mean":
            return _by_sentence_transformers(source, device, options)
    attention = options.pop("attn_implementation", None)
    options |= source.files
    tokenizer = load_pretrained(AutoTokenizer, source.path, **options)
    if modules.renders and not _renders_as_text(tokenizer, modules):
        return _by_sentence_transformers(source, device, {"attn_implementation": attention})
    model = load_pretrained(AutoModel, source.path, attn_implementation=attention, **options)
    model = model.to(device=device, dtype=getattr(torch, source.dtype)).eval()
    if has_decoder(model):  # a text needs the encoder alone
        model = model.get_encoder()
    positions = getattr(model.config, "max_position_embeddings", None) or _MAX_TOKENS
    longest = modules.max_tokens or positions
    if source.kind == "transformers":
        longest = _MAX_TOKENS
    limit = min(longest, tokenizer.model_max_length, positions)
    return _mean_texts(TextModel(model, limit, modules.normalized), tokenizer, modules)


def _mean_texts(model: TextModel, tokenizer: Any, modules: Any) -> dict[str, Any]:
    """Return what an `Encoder` takes of a model, and of the prompts of its modules."""
    return {
        "embed_texts": partial(encode_utterances, model, tokenizer, prompt=""),
        "embed_together": partial(in_surroundings, model, tokenizer, model.config.longest_text),
        "module": model,
        "prompts": modules.prompts or {},
        "default_prompt_name": modules.default_prompt_name,
    }


def _renders_as_text(tokenizer: Any, modules: Any) -> bool:
    """Return whether a text is the same to a tokenizer and to its chat template, which is ours."""
    prompts: Mapping[str, str] = modules.prompts or {}
    default = prompts.get(modules.default_prompt_name or "", "")
    written = utterance_template(tokenizer, [text for text in prompts.values() if text], default)
    return bool(tokenizer.chat_template == written)


def _by_sentence_transformers(
    source: EncoderSpec, device: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Load a folder or Hub id with sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    path = source.path
    files = dict(source.files)
    trusted = options.pop("trust_remote_code", False)
    with reading(path):
        model: Any = SentenceTransformer(
            path,
            device=device,
            trust_remote_code=trusted,
            model_kwargs={"attn_implementation": options.pop("attn_implementation", None)},
            cache_folder=files.pop("cache_dir", None),
            **files,
        ).to(getattr(torch, source.dtype))
        inner = getattr(model[0], "auto_model", None)
        missing: set[str] = set()
        place = str(inner.name_or_path) if isinstance(inner, PreTrainedModel) else ""
        if place and (Path(place) / "config.json").is_file():
            # reports missing weights without reading any
            _, report = AutoModel.from_pretrained(
                place, device_map="meta", output_loading_info=True, trust_remote_code=trusted
            )
            missing = report["missing_keys"]
        check_weights(model, missing, path)
        # fails if the model's parts do not fit together
        model.encode(["a"], show_progress_bar=False)
    if inner is not None and hasattr(model.tokenizer, "get_vocab"):
        check_tokenizer(model.tokenizer, path)
    return sentence_texts(model)


def sentence_texts(model: Any) -> dict[str, Any]:
    """Return what an `Encoder` takes of a SentenceTransformer.

    A transformer with mean pooling is batched as all others here. Any other model encodes by
    itself.
    """
    kinds = [type(module).__name__ for module in model]
    if (
        kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
        and (model[1].pooling_mode, model[1].include_prompt) == ("mean", True)
        and not (model.truncate_dim or getattr(model[0], "do_lower_case", False))
        and getattr(model.tokenizer, "is_fast", False)
        and model.tokenizer.pad_token_id is not None
        and ("message" not in model[0].modalities or _renders_as_text(model.tokenizer, model))
    ):
        inner = TextModel(model[0].auto_model, model.max_seq_length, len(kinds) == 3)
        return _mean_texts(inner, model.tokenizer, model)
    return {
        "embed_texts": partial(_encode, model),
        "reads_prompts": True,
        "module": model,
        "prompts": model.prompts,
        "default_prompt_name": model.default_prompt_name,
    }


def _encode(
    model: Any, texts: Sequence[str], batch_size: int, show_progress: bool | None, prompt: str
) -> np.ndarray:
    vectors = model.encode(
        list(texts),
        prompt=prompt,
        batch_size=batch_size,
        show_progress_bar=bool(show_progress),
        convert_to_tensor=True,
    )
    return np.asarray(vectors.float().cpu())
