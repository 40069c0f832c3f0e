"""Load encoders: by spec, from a folder or a run, or from a model in memory."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..storage.hardware import let_waiting_threads_sleep
from ..storage.run_folder import RunFolder
from .encoder import Encoder
from .specs import DTYPES, FITTED, LEVELS, EncoderSpec, find_encoder
from .word_vectors import StaticVectors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# larger batches by this factor in fewer bits on a CPU, where setting up a matrix product is costly
_MORE = 4


def load_encoder(
    model: object,
    *,
    level: str = LEVELS[0],
    dtype: Any = None,
    revision: str | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    batch_size: int = 32,
    device: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    trust_remote_code: bool = False,
    attn_implementation: str | None = None,
) -> Encoder:
    """Load an encoder.

    Its vectors are float32, and normalised only if the model does so itself.

    Examples:
        >>> hf_dialemb.load_encoder("org/name", revision="v1", dtype="bfloat16", device="cuda")

    Args:
        model: A name, such as ``"dialogue-minilm"``; the folder of a training, a checkpoint or a
            published model; a run; a model of this package; a ``SentenceTransformer``; or an object
            with ``encode(dialogues)`` or ``encode_utterances(texts)``, such as an encoder.
        level: Of models of texts: ``dialogue`` reads all turns at once, ``utterances`` averages.
        dtype: What a transformer computes in: ``float32``, ``bfloat16`` or ``float16``.
        revision: A branch, a tag or the id of a commit of a model on the Hub.
        tokenizer: The tokenizer of a model object; by default the one saved beside its weights.
        batch_size: The number of texts or dialogues that go through the model at once.
        device: Such as ``cpu``, ``cuda:1`` or ``mps``; by default the accelerator, if any.
        token: A token of the Hub; by default that of the login.
        cache_dir: The folder of downloaded models; by default that of Hugging Face.
        trust_remote_code: Whether Python code that comes with the model may run.
        attn_implementation: Such as ``eager`` or ``sdpa``, as in ``from_pretrained``.

    Raises:
        InputError: There is no such model, it is unfinished, or an option does not go with it.
    """
    if batch_size < 1:
        raise InputError(f"batch_size: got {batch_size}, expected at least 1; correct it")
    files = {"revision": revision, "token": token, "cache_dir": cache_dir}
    loading: dict[str, Any] = {"device": device, "attn_implementation": attn_implementation}
    if trust_remote_code:
        loading["trust_remote_code"] = True
    if "torch" not in sys.modules:
        let_waiting_threads_sleep()
    if not isinstance(model, str | os.PathLike):
        options = {**files, **loading, "dtype": dtype}
        return _given(model, tokenizer, level, batch_size, options)
    source = find_encoder(str(os.fspath(model)), level, dtype, **files)
    encoder = _of_source(source, batch_size, loading)
    encoder.source = source
    encoder.level = level
    return encoder


def _given(
    model: object,
    tokenizer: PreTrainedTokenizerBase | None,
    level: str,
    batch_size: int,
    options: dict[str, Any],
) -> Encoder:
    """Make an encoder of an object, which takes no options of loading; return an encoder itself."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(
            f"model: got a {type(model).__name__} in memory with the option {given[0]} of loading, "
            "expected tokenizer, level and batch_size alone; leave it out, or give its folder or "
            "Hub id"
        )
    if isinstance(model, Encoder):
        return model
    encoder = _in_memory(model, tokenizer, batch_size)
    if level != LEVELS[0] and (level not in LEVELS or encoder.embed_dialogues is not None):
        raise InputError(
            f"level: got {level!r} for {encoder.name}, expected {' or '.join(LEVELS)}, of a model "
            "that reads texts; leave it out"
        )
    encoder.level = level
    return encoder


def _in_memory(
    model: object, tokenizer: PreTrainedTokenizerBase | None, batch_size: int
) -> Encoder:
    # a SentenceTransformer; importing its class to ask takes two seconds
    if hasattr(model, "encode_document"):
        return _of_sentence_transformer(model, batch_size)
    if hasattr(model, "config") and hasattr(model, "state_dict"):
        return _of_model_in_memory(model, tokenizer, batch_size)
    if hasattr(model, "encode") or hasattr(model, "encode_utterances"):
        return Encoder(
            str(getattr(model, "name", type(model).__name__)),
            embed_dialogues=getattr(model, "encode", None),
            embed_texts=getattr(model, "encode_utterances", None),
            fitted_on_input=bool(getattr(model, "fitted_on_input", False)),
        )
    raise InputError(
        f"model: got {type(model).__name__}, expected a folder, a Hub id, a model of this package "
        "or a SentenceTransformer; give one of these"
    )


class EncoderRun(RunFolder):
    """The folder of a run that made an encoder.

    It can stand wherever a model's folder can, as in `load_encoder`.
    """

    def encoder(self, **options: Any) -> Encoder:
        """Load the encoder; see `load_encoder` for the options."""
        return load_encoder(self, **options)


def model_encoder(model: Any, tokenizer: Any, name: str, batch_size: int = 32) -> Encoder:
    """Make an encoder from a model of this package that is in memory, and its tokenizer."""
    from ..methods import method_of

    method = method_of(model)
    if method is None:
        raise InputError(
            f"model: got a {type(model).__name__}, expected one of this package's; give its folder "
            "or Hub id instead"
        )
    if method.kind == "responses":
        return _of_ranker(model, tokenizer, name, batch_size)
    if method.kind == "utterances":
        from ..methods.context_window import in_surroundings
        from ..methods.utterance import encode_utterances

        embed = partial(encode_utterances, model.float(), tokenizer)  # float32, as published
        together = None
        if model.config.pooling == "mean":
            together = partial(in_surroundings, model, tokenizer, model.config.longest_text)
        return Encoder(name, embed_texts=embed, batch_size=batch_size, embed_together=together)
    from ..methods.encoding import encode, encode_speakers

    whole = partial(encode, model, tokenizer)
    speakers = partial(encode_speakers, model, tokenizer, batch_size=batch_size)
    return Encoder(name, embed_dialogues=whole, batch_size=batch_size, encode_speakers=speakers)


def _of_source(source: EncoderSpec, batch_size: int, loading: dict[str, Any]) -> Encoder:
    loading = {name: value for name, value in loading.items() if value is not None}
    if source.kind in ("fitted", "static"):
        given = next((name for name in loading if loading[name] != "cpu"), None)
        if given:
            raise InputError(
                f"model '{source.model}': got {given}={loading[given]!r}, which only models that "
                "transformers loads take; leave it out"
            )
        if source.kind == "static":
            return Encoder(source.name, embed_texts=StaticVectors(Path(source.path)))
        embed = FITTED[source.path]().encode
        return Encoder(source.name, embed_dialogues=embed, fitted_on_input=True)
    device = checked_device(loading.pop("device", None))
    if source.dtype != DTYPES[0] and device == "cpu":
        batch_size *= _MORE
    if source.kind == "dialemb":
        return _of_checkpoint(source, device, batch_size, **source.files, **loading)
    from .text_models import (
        load_sentence_transformer,
        sentence_layout,
        sentence_texts,
        transformers_texts,
    )

    layout = sentence_layout(source.path) if source.kind == "sentence-transformers" else None
    if layout or source.kind == "transformers":
        texts = transformers_texts(source, device, layout, **source.files, **loading)
        return Encoder(source.name, **texts, batch_size=batch_size)
    model_kwargs = {"attn_implementation": loading.pop("attn_implementation", None)}
    files = dict(source.files)
    files["cache_folder"] = files.pop("cache_dir", None)
    model = load_sentence_transformer(
        source.path, source.dtype, device=device, model_kwargs=model_kwargs, **files, **loading
    )
    return Encoder(source.name, **sentence_texts(model), batch_size=batch_size)


def checked_device(given: str | None) -> str:
    """Return the device, or the accelerator of this machine where none is given.

    Refuse one that is not there.
    """
    import torch

    there = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    known = ["cpu"] if there is None else ["cpu", there.type]
    if given is None:
        return known[-1]
    if given.partition(":")[0] not in known:
        raise InputError(
            f"device: got '{given}', but this machine has {' and '.join(known)}; leave it out"
        )
    return given


def _of_checkpoint(source: EncoderSpec, device: str, batch_size: int, **options: Any) -> Encoder:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from ..methods import register
    from ..storage.pretrained import load_pretrained
    from .text_models import compute_in

    register()
    attention = options.pop("attn_implementation", None)
    model = load_pretrained(AutoModel, source.path, attn_implementation=attention, **options)
    model = model.to(device)
    tokenizer = load_pretrained(AutoTokenizer, source.path, **options)
    if source.reads == "texts":
        compute_in(source.dtype, model.float().encoder)
    elif source.dtype != DTYPES[0]:
        model.to(getattr(torch, source.dtype))
    return model_encoder(model, tokenizer, source.name, batch_size)


def _of_ranker(model: Any, tokenizer: Any, name: str, batch_size: int) -> Encoder:
    from ..methods.ranker import encode_contexts, loaded_ranker

    ranker = loaded_ranker(model, tokenizer)

    def embed(dialogues: Any, size: int, show_progress: bool | None) -> Any:
        if not ranker.model.embeds:
            raise InputError(
                f"model '{name}': got a ranker that has no vectors, expected an encoder; it can "
                "only rank candidates (dialemb rank, or the task next-utterance-retrieval)"
            )
        return encode_contexts(
            ranker, [dialogue.turns for dialogue in dialogues], 8 * size, show_progress
        )

    return Encoder(name, embed_dialogues=embed, batch_size=batch_size, ranker=ranker)


def _of_model_in_memory(model: Any, tokenizer: Any, batch_size: int) -> Encoder:
    from transformers import AutoTokenizer

    from ..storage.pretrained import load_pretrained

    place = Path(str(getattr(model, "name_or_path", "") or "."))
    if tokenizer is None and (place / "tokenizer.json").is_file():
        tokenizer = load_pretrained(AutoTokenizer, str(place))
    encoder = model_encoder(model, tokenizer, place.name or type(model).__name__, batch_size)
    if tokenizer is None:
        raise InputError(
            f"tokenizer: got none for a {type(model).__name__} in memory; pass tokenizer=..."
        )
    return encoder


def _of_sentence_transformer(model: Any, batch_size: int) -> Encoder:
    from ..methods import method_of
    from .text_models import sentence_texts

    inner = getattr(model[0], "auto_model", None)
    if inner is not None and method_of(inner) is not None:
        return _of_model_in_memory(inner, model.tokenizer, batch_size)
    name = Path(str(getattr(inner, "name_or_path", "") or "SentenceTransformer")).name
    return Encoder(name, **sentence_texts(model), batch_size=batch_size)
