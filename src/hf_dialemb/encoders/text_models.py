"""Text encoders built on transformers.

Sentence-transformers models, and any other model that `AutoModel` loads.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from .quantization import compute_in
from .specs import EncoderSpec, Loading

_MAX_TOKENS = 512  # plain transformers models cut texts here, or at their own limit if it is lower
# Marks before the assistant's turns, and before all others; TOD-BERT's models have them, in upper
# or lower case.
_MARKS = (("[SYS]", "[USR]"), ("[sys]", "[usr]"))
_PART = 100_000  # texts tokenised at once, to limit memory
_SAME = 0.999  # the cosine of equal vectors, whatever the number of bits
_UNLIMITED = 10**6  # a tokenizer without a limit reports a far larger number


class TextModel(nn.Module):
    """A text model and its tokenizer, in the form that `methods.batching` runs.

    ``prepare`` tokenises texts, pads them and cuts them to ``limit`` tokens, special ones included;
    ``pool`` turns these features into vectors (B, D) and those of tokens (B, L, D).
    """

    def __init__(
        self,
        inner: nn.Module,
        tokenizer: Any,
        prepare: Callable[[list[str]], Mapping[str, Any]],
        pool: Callable[[Any], tuple[Tensor, Tensor]],
        limit: int,
    ) -> None:
        super().__init__()
        self.inner, self.tokenizer, self.prepare, self.pool = inner, tokenizer, prepare, pool
        self.limit = limit
        self.others: dict[str, Any] = {}  # features that are not tensors, the same for every batch
        self.device = next(inner.parameters()).device
        self._has_tokens = False  # whether a vector is the mean of its tokens, which are known
        training = inner.training
        self.tokens_of = self._by_ids if self._prove_quick() else self._by_texts
        self.train(training)

    def forward(self, **batch: Any) -> SimpleNamespace:
        """Embed a batch, as ``pooler_output`` (B, D), and its tokens, as ``last_hidden_state`` (B,
        L, D).
        """
        pooled, states = self.pool({**self.others, **batch})
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
            lengths, lay_out = self.tokens_of(texts[start : start + _PART])
            parts.append(embeddings(self, lengths, lay_out, batch_size, show_progress, limits))  # type: ignore[arg-type]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    @property
    def embeds(self) -> dict[str, Any]:
        """The embedding functions, as `Encoder` names them."""
        together = {"embed_together": self.embed_together} if self._has_tokens else {}
        return {"embed_texts": self.embed, **together}

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

    def _by_ids(self, texts: Sequence[str]) -> tuple[list[int], LayOut]:
        """Tokenise by the Rust tokenizer itself.

        Transformers' wrapping of its results takes longer than all else.
        """
        backend, ids, lost = self.tokenizer.backend_tokenizer, [], []
        backend.no_padding()
        backend.enable_truncation(self.limit, direction=self.tokenizer.truncation_side)
        backend.encode_special_tokens = self.tokenizer.split_special_tokens
        for encoding in backend.encode_batch_fast(list(texts)):
            ids.append(encoding.ids)
            lost.append(0)
            for part in encoding.overflowing if len(encoding.ids) >= self.limit else ():
                lost[-1] += len(part.ids) - sum(part.special_tokens_mask)

        def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
            count.unit = "texts"
            kept = list(map(ids.__getitem__, rows))
            count.dialogues += len(rows)
            count.tokens += sum(map(len, kept))
            for row in filter(lost.__getitem__, rows):
                count.truncated += 1
                count.tokens += lost[row]
                count.dropped_tokens += lost[row]
            return pad_right(kept, self.tokenizer.pad_token_id)

        return list(map(len, ids)), lay_out

    def _by_texts(self, texts: Sequence[str]) -> tuple[list[int], LayOut]:
        """Tokenise batch by batch with ``prepare``, the way of the model's own library."""

        def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
            count.unit = "texts"
            features = self.prepare([texts[row] for row in rows])
            kept = features["attention_mask"].sum(1).tolist()
            for row, length in zip(rows, kept, strict=True):
                full = length >= self.limit
                whole = (
                    self.tokenizer(texts[row], truncation=False, verbose=False)["input_ids"]
                    if full
                    else ()
                )
                count.add(max(len(whole), length), length)
            return {name: value for name, value in features.items() if isinstance(value, Tensor)}

        return [min(1 + len(text) // 4, self.limit) for text in texts], lay_out

    def _prove_quick(self) -> bool:
        """Return whether `_by_ids` and ``prepare`` give the same features for some texts.

        All-zero token types aside.

        Also set ``others``, the width of a vector in ``config``, and whether it is the mean of
        tokens.
        """
        some = [
            "book a room",
            "",
            "  Two  words\n",
            "[SEP]</s>",
            " ".join(map(str, range(self.limit))),
        ]
        expected, short = dict(self.prepare(some)), {}
        for name, value in list(expected.items()):
            if isinstance(value, Tensor):
                short[name] = value[:1, :8].to(self.device)
            else:
                self.others[name] = expected.pop(name)
        with torch.inference_mode():
            tried = self.eval()(**short)
        self.config = SimpleNamespace(hidden_size=tried.pooler_output.shape[1])
        quick = (
            hasattr(self.tokenizer, "backend_tokenizer") and self.tokenizer.pad_token_id is not None
        )
        states = tried.last_hidden_state
        if quick and states is not None and states.shape[::2] == (1, self.config.hidden_size):
            mean = states[0, short["attention_mask"][0].bool()].mean(0)
            self._has_tokens = bool(
                torch.cosine_similarity(mean, tried.pooler_output[0], 0) > _SAME
            )
        if not quick:
            return False
        types = expected.pop("token_type_ids", None)
        got = self._by_ids(some)[1](list(range(len(some))), Truncation())
        for name, value in expected.items():
            if name not in got or not torch.equal(got[name], value.cpu()):
                return False
        return got.keys() == expected.keys() and (types is None or not types.any())


class SentenceLayout(NamedTuple):
    """The settings of a sentence-transformers folder whose vector is the mean of a transformer's
    tokens.
    """

    max_tokens: int | None  # the longest sequence, if the files give one
    normalized: bool  # whether vectors are scaled to unit length


def plain_layout(path: str) -> SentenceLayout | None:
    """Read the layout of a folder that holds a transformer, mean pooling, perhaps a normalisation,
    and nothing else.

    transformers alone loads such a folder in half the time. Return None for any other folder:
    sentence-transformers loads it, or says what is wrong with it.
    """
    folder = Path(path)
    try:
        modules = _json(folder / "modules.json")
        kinds, places = [], []
        for module in modules:
            kinds.append(str(module["type"]).rpartition(".")[2])
            places.append(folder / str(module["path"]))
        if (
            kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
            or places[0] != folder
        ):
            return None
        pooling = dict(_json(places[1] / "config.json"))
        mode = pooling.pop(
            "pooling_mode", "mean" if pooling.pop("pooling_mode_mean_tokens", False) else ""
        )
        dimension = pooling.pop("word_embedding_dimension", None) or pooling.pop(
            "embedding_dimension", None
        )
        pooling.pop("include_prompt", None)
        if mode not in ("mean", ["mean"]) or not dimension or any(pooling.values()):
            return None
        if (
            _json(folder / "config_sentence_transformers.json", {}).get("default_prompt_name")
            is not None
        ):
            return None
        settings = _json(folder / "sentence_bert_config.json", {})
        limit = settings.pop("max_seq_length", None)
        limit = (
            limit
            or _json(folder / "tokenizer_config.json", {}).get("model_max_length")
            or _UNLIMITED
        )
        for name, value in settings.items():
            if value and (name == "do_lower_case" or name.endswith(("_args", "_kwargs"))):
                return None
        if not limit >= 1 or read_config(path).get("is_encoder_decoder"):
            return None
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    return SentenceLayout(int(limit) if limit < _UNLIMITED else None, len(kinds) == 3)


def _json(file: Path, default: Any = None) -> Any:
    return (
        default
        if default is not None and not file.is_file()
        else json.loads(file.read_text(encoding="utf-8"))
    )


def transformers_texts(
    spec: EncoderSpec, loading: Loading, device: str, layout: SentenceLayout | None = None
) -> tuple[TextModel, tuple[str, str] | None]:
    """Load any model that `AutoModel` loads, and the marks of speakers if its vocabulary has them.

    A text's vector is the mean of the last layer's tokens, or the first token with ``cls``. Of an
    encoder-decoder, only the encoder is used. ``layout`` holds the settings of a
    sentence-transformers folder.
    """
    options = {**spec.files, "trust_remote_code": loading.trust_remote_code}
    tokenizer = load_pretrained(AutoTokenizer, spec.path, **options)
    options["attn_implementation"] = loading.attn_implementation
    dtype = torch.float32 if spec.numbers == "int8" else getattr(torch, spec.numbers)
    model = load_pretrained(AutoModel, spec.path, dtype=dtype, **options).to(device).eval()
    if has_decoder(model):
        model = model.get_encoder()
    if spec.numbers != "float32":
        compute_in(spec.numbers, model, tokenizer)
    marks = _marks_of(tokenizer) if spec.level == "dialogue" and layout is None else None
    positions = getattr(model.config, "max_position_embeddings", None) or _MAX_TOKENS
    longest = _MAX_TOKENS if layout is None else layout.max_tokens or positions
    limit = min(longest, tokenizer.model_max_length, positions)
    normalized = layout is not None and layout.normalized

    def pool(batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        states: Tensor = model(**batch).last_hidden_state
        mask = batch["attention_mask"]
        if spec.cls:
            # not token 0 if padding is on the left
            return states[torch.arange(len(states)), mask.argmax(dim=1)], states
        weights = mask.unsqueeze(-1).to(states.dtype)
        vectors = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        return nn.functional.normalize(vectors) if normalized else vectors, states

    prepare = partial(
        tokenizer, truncation=True, max_length=limit, padding=True, return_tensors="pt"
    )
    return TextModel(model, tokenizer, prepare, pool, limit), marks


def load_sentence_transformer(path: str, numbers: str = "float32", **options: Any) -> Any:
    """Load a folder or Hub id with sentence-transformers, whose options they are, as
    `load_pretrained` does.
    """
    from sentence_transformers import SentenceTransformer

    for file in Path(path).glob("**/config.json"):
        read_config(str(file.parent))
    with reading(path):
        model = SentenceTransformer(path, **{"trust_remote_code": False, **options}).float()
        inner: Any = getattr(model[0], "auto_model", None)
        missing: set[str] = set()
        place = str(inner.name_or_path) if isinstance(inner, PreTrainedModel) else ""
        if place and (Path(place) / "config.json").is_file():
            trusted = options.get("trust_remote_code", False)
            reporting = {
                "device_map": "meta",
                "output_loading_info": True,
                "trust_remote_code": trusted,
            }
            # reports missing weights without reading any
            _, report = AutoModel.from_pretrained(place, **reporting)
            missing = report["missing_keys"]
        check_weights(model, missing, path)
        # fails if the model's parts do not fit together
        model.encode(["a"], show_progress_bar=False)
    if inner is not None and hasattr(model.tokenizer, "get_vocab"):
        check_tokenizer(model.tokenizer, path)
    if numbers != "float32":
        if inner is None:
            raise InputError(
                f"'{path}': got {numbers}, but there is no transformer in it; leave '{numbers}' out"
            )
        compute_in(numbers, inner, model.tokenizer)
    return model


def sentence_texts(model: Any) -> dict[str, Any]:
    """Return the embedding functions of a loaded SentenceTransformer, as `Encoder` names them."""
    # Models of static vectors or of words have tokenizers that cannot be called, and cut nothing.
    plain = model.max_seq_length and callable(model.tokenizer) and hasattr(model[0], "auto_model")
    if not plain or model._can_flatten_inputs():

        def embed(texts: Sequence[str], batch_size: int, show_progress: bool | None) -> np.ndarray:
            shown = bool(show_progress)
            vectors = model.encode(
                list(texts), batch_size=batch_size, show_progress_bar=shown, convert_to_numpy=True
            )
            return np.asarray(vectors, dtype=np.float32)

        return {"embed_texts": embed}

    def pool(batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        output = model(batch)
        return output["sentence_embedding"][:, : model.truncate_dim], output.get("token_embeddings")

    prepare = partial(model.preprocess, prompt=model._resolve_prompt(None, None))
    return TextModel(model, model.tokenizer, prepare, pool, model.max_seq_length).embeds


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
