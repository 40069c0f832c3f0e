"""Text encoders built on transformers.

Sentence-transformers models, and any other model that `AutoModel` loads.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

from ..errors import InputError
from ..methods.batching import LayOut, embeddings
from ..methods.layout import CHARACTERS, Truncation, pad_right, shortened
from ..storage.pretrained import (
    check_tokenizer,
    check_weights,
    has_decoder,
    load_pretrained,
    read_config,
    reading,
)
from .specs import LEVELS, EncoderSpec

_MAX_TOKENS = 512  # plain transformers models cut texts here, or at their own limit if it is lower
_PART = 100_000  # texts tokenised at once, to limit memory
# Marks before the assistant's turns, and before all others; TOD-BERT's models have them, in upper
# or lower case.
_MARKS = (("[SYS]", "[USR]"), ("[sys]", "[usr]"))

Pool = Callable[[dict[str, Tensor]], tuple[Tensor, Tensor]]
"""Turns a batch into vectors (B, D) and those of its tokens (B, L, D)."""


class TextModel(nn.Module):
    """A text model and its fast tokenizer, in the form that `methods.batching` runs.

    Texts are cut to ``limit`` tokens, special ones included. ``width`` is the D of ``pool``.
    """

    def __init__(
        self, inner: nn.Module, tokenizer: Any, pool: Pool, limit: int, width: int
    ) -> None:
        super().__init__()
        self.inner = inner
        self.tokenizer = tokenizer
        self.pool = pool
        self.limit = limit
        self.config = SimpleNamespace(hidden_size=width)
        self.device = next(inner.parameters()).device
        self.train(inner.training)

    def forward(self, **batch: Tensor) -> SimpleNamespace:
        """Embed a batch.

        Returns ``pooler_output`` (B, D), and its tokens as ``last_hidden_state`` (B, L, D).
        """
        pooled, states = self.pool(batch)
        return SimpleNamespace(pooler_output=pooled, last_hidden_state=states)

    def embed(
        self, texts: Sequence[str], batch_size: int, show_progress: bool | None
    ) -> np.ndarray:
        """Embed N texts, (N, D) float32.

        Texts over the limit are cut, and a warning counts them.
        """
        side = "end" if self.tokenizer.truncation_side == "left" else "start"
        if max(map(len, texts)) > CHARACTERS * self.limit:
            texts = shortened(texts, self.tokenizer, self.limit, side)
        limits = f"; the model reads {self.limit} tokens"
        parts = []
        for start in range(0, len(texts), _PART):
            lengths, lay_out = self._tokenized(texts[start : start + _PART])
            parts.append(embeddings(self, lengths, lay_out, batch_size, show_progress, limits))  # type: ignore[arg-type]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def embed_together(
        self, sessions: Sequence[Sequence[str]], batch_size: int, show_progress: bool | None = None
    ) -> np.ndarray:
        """Embed the N texts of all sessions in their surroundings, (N, D).

        See `in_surroundings`.
        """
        from ..methods.context_window import in_surroundings

        return in_surroundings(
            self, self.tokenizer, self.limit, sessions, batch_size, show_progress
        )

    def _tokenized(self, texts: Sequence[str]) -> tuple[list[int], LayOut]:
        """Tokenise by the Rust tokenizer itself.

        Transformers' wrapping of its results takes longer than all else.
        """
        backend = self.tokenizer.backend_tokenizer
        backend.no_padding()
        backend.enable_truncation(self.limit, direction=self.tokenizer.truncation_side)
        backend.encode_special_tokens = self.tokenizer.split_special_tokens
        ids, lost = [], []
        for encoding in backend.encode_batch_fast(list(texts)):
            ids.append(encoding.ids)
            lost.append(0)
            if len(encoding.ids) >= self.limit:
                for part in encoding.overflowing:
                    lost[-1] += len(part.ids) - sum(part.special_tokens_mask)

        def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
            count.unit = "texts"
            count.dialogues += len(rows)
            for row in rows:
                count.tokens += len(ids[row]) + lost[row]
                count.dropped_tokens += lost[row]
                count.truncated += lost[row] > 0
            return pad_right(list(map(ids.__getitem__, rows)), self.tokenizer.pad_token_id)

        return list(map(len, ids)), lay_out


class SentenceLayout(NamedTuple):
    """The settings of a sentence-transformers folder of a transformer and mean pooling."""

    max_tokens: int | None  # the longest sequence, if the files give one
    normalized: bool  # whether vectors are scaled to unit length


def sentence_layout(path: str) -> SentenceLayout | None:
    """Read the layout of a folder of a transformer, mean pooling, and perhaps a normalisation.

    transformers alone loads such a folder in half the time. Return None for any other folder:
    sentence-transformers loads it, or says what is wrong with it.
    """
    folder = Path(path)
    try:
        transformer, pooling, *others = _json(folder / "modules.json")
        kinds = [module["type"].rpartition(".")[2] for module in (transformer, pooling, *others)]
        mode = _json(folder / pooling["path"] / "config.json")
        on = {name for name, value in mode.items() if value is True} - {"include_prompt"}
        means = on == {"pooling_mode_mean_tokens"} or (not on and mode["pooling_mode"] == "mean")
        prompt = _json(folder / "config_sentence_transformers.json").get("default_prompt_name")
        settings = _json(folder / "sentence_bert_config.json")
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    plain = means and transformer["path"] == "" and prompt is None
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        plain = False
    for name, value in settings.items():
        if value and (name == "do_lower_case" or name.endswith(("_args", "_kwargs"))):
            plain = False
    return SentenceLayout(settings.get("max_seq_length"), len(kinds) == 3) if plain else None


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def transformers_texts(
    spec: EncoderSpec, device: str, layout: SentenceLayout | None = None, **options: Any
) -> dict[str, Any]:
    """Load any model that `AutoModel` loads, and return what an `Encoder` takes of it.

    A text's vector is the mean of the last layer's tokens. Of an encoder-decoder, only the encoder
    is used. Dialogues get the marks of speakers that the vocabulary has. ``layout`` holds the
    settings of a sentence-transformers folder, ``options`` are those of ``from_pretrained``.
    """
    attention = options.pop("attn_implementation", None)
    tokenizer = load_pretrained(AutoTokenizer, spec.path, **options)
    model = load_pretrained(AutoModel, spec.path, attn_implementation=attention, **options)
    model = model.float().to(device).eval()
    if has_decoder(model):
        model = model.get_encoder()
    compute_in(spec.dtype, model)
    marks = _marks_of(tokenizer) if spec.level == LEVELS[0] and layout is None else None
    positions = getattr(model.config, "max_position_embeddings", None) or _MAX_TOKENS
    longest = _MAX_TOKENS if layout is None else layout.max_tokens or positions
    limit = min(longest, tokenizer.model_max_length, positions)

    def pool(batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        states: Tensor = model(**batch).last_hidden_state
        weights = batch["attention_mask"].unsqueeze(-1).to(states.dtype)
        vectors = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        if layout is not None and layout.normalized:
            vectors = nn.functional.normalize(vectors)
        return vectors, states

    texts = TextModel(model, tokenizer, pool, limit, model.config.hidden_size)
    return {"embed_texts": texts.embed, "embed_together": texts.embed_together, "marks": marks}


def load_sentence_transformer(path: str, dtype: str = "float32", **options: Any) -> Any:
    """Load a folder or Hub id with sentence-transformers, whose ``options`` they are."""
    from sentence_transformers import SentenceTransformer

    for file in Path(path).glob("**/config.json"):
        read_config(str(file.parent))
    with reading(path):
        model = SentenceTransformer(path, **{"trust_remote_code": False, **options}).float()
        inner: Any = getattr(model[0], "auto_model", None)
        missing: set[str] = set()
        place = str(inner.name_or_path) if isinstance(inner, PreTrainedModel) else ""
        if place and (Path(place) / "config.json").is_file():
            # reports missing weights without reading any
            _, report = AutoModel.from_pretrained(
                place,
                device_map="meta",
                output_loading_info=True,
                trust_remote_code=options.get("trust_remote_code", False),
            )
            missing = report["missing_keys"]
        check_weights(model, missing, path)
        # fails if the model's parts do not fit together
        model.encode(["a"], show_progress_bar=False)
    if inner is not None and hasattr(model.tokenizer, "get_vocab"):
        check_tokenizer(model.tokenizer, path)
    if dtype != "float32" and inner is None:
        raise InputError(f"'{path}': got dtype {dtype}, but it has no transformer; leave dtype out")
    if inner is not None:
        compute_in(dtype, inner)
    return model


def sentence_texts(model: Any) -> dict[str, Any]:
    """Return what an `Encoder` takes of a loaded SentenceTransformer.

    One that begins with a transformer and a fast tokenizer, without a prompt, is batched as all
    others here. Any other, such as one of static vectors, encodes by itself.
    """
    is_transformer = hasattr(model[0], "auto_model") and not model._can_flatten_inputs()
    fast = is_transformer and getattr(model.tokenizer, "is_fast", False)
    if not fast or model.tokenizer.pad_token_id is None or model.default_prompt_name:

        def embed(texts: Sequence[str], batch_size: int, show_progress: bool | None) -> np.ndarray:
            shown = bool(show_progress)
            vectors = model.encode(
                list(texts), batch_size=batch_size, show_progress_bar=shown, convert_to_numpy=True
            )
            return np.asarray(vectors, dtype=np.float32)

        return {"embed_texts": embed}

    def pool(batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        output = model(batch)
        return output["sentence_embedding"][:, : model.truncate_dim], output["token_embeddings"]

    width = model.truncate_dim or model.get_embedding_dimension()
    texts = TextModel(model, model.tokenizer, pool, model.max_seq_length, width)
    kinds = [type(module).__name__ for module in model]
    means = kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
    if not means or model[1].pooling_mode != "mean" or model.truncate_dim:
        return {"embed_texts": texts.embed}
    return {"embed_texts": texts.embed, "embed_together": texts.embed_together}


def compute_in(dtype: str, model: Any) -> None:
    """Make a transformer compute in one of `DTYPES`; what it returns, and pooling, are float32."""
    if dtype == "float32":
        return
    forward = model.to(getattr(torch, dtype)).forward

    def forward_in_dtype(*args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        output.last_hidden_state = output.last_hidden_state.float()
        return output

    model.forward = forward_in_dtype


def _marks_of(tokenizer: Any) -> tuple[str, str] | None:
    vocabulary = tokenizer.get_vocab()
    for marks in _MARKS:
        if all(mark in vocabulary for mark in marks):
            # The tokenizer would split them at their brackets if they were ordinary words.
            tokenizer.add_special_tokens(
                {"additional_special_tokens": list(marks)}, replace_extra_special_tokens=False
            )
            return marks
    return None
