"""Load encoders: by spec, from a folder or a run, or from a model in memory."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..ranges import check_range
from ..storage.hardware import checked_device
from ..storage.run_folder import RunFolder
from ..storage.sentence_modules import read_prompts
from .encoder import Encoder
from .specs import DTYPES, FITTED, LEVELS, EncoderSpec, find_encoder
from .word_vectors import StaticVectors

# larger batches by this factor in fewer bits on a CPU, where setting up a matrix product is costly
_MORE = 4


def load_encoder(
    model: object,
    *,
    level: str = LEVELS[0],
    dtype: Any = None,
    revision: str | None = None,
    tokenizer: Any = None,
    batch_size: int = 32,
    device: Any = None,
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
    check_range("batch_size", batch_size, 1)
    files = {"revision": revision, "token": token, "cache_dir": cache_dir}
    loading = {
        "device": device,
        "attn_implementation": attn_implementation,
        "trust_remote_code": trust_remote_code or None,
    }
    if not isinstance(model, str | os.PathLike):
        return _given(model, tokenizer, level, batch_size, {**files, **loading, "dtype": dtype})
    source = find_encoder(str(os.fspath(model)), level, dtype, **files)
    encoder = _of_source(source, batch_size, loading)
    encoder.source = source
    encoder.level = level
    return encoder


def _given(
    model: object, tokenizer: Any, level: str, batch_size: int, options: dict[str, Any]
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


def _in_memory(model: object, tokenizer: Any, batch_size: int) -> Encoder:
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
            prompts=getattr(model, "prompts", None) or {},
            default_prompt_name=getattr(model, "default_prompt_name", None),
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

        config = model.config
        # float32, as published; the encoder sets prompts before the texts
        embed = partial(encode_utterances, model, tokenizer, prompt="")
        together = None
        if config.pooling == "mean":
            together = partial(in_surroundings, model, tokenizer, config.longest_text)
        return Encoder(
            name,
            embed_texts=embed,
            batch_size=batch_size,
            embed_together=together,
            prompts=config.prompts or {},
            default_prompt_name=config.default_prompt_name,
            module=model,
        )
    from ..methods.encoding import encode, encode_speakers

    whole = partial(encode, model, tokenizer)
    speakers = partial(encode_speakers, model, tokenizer, batch_size=batch_size)
    return Encoder(
        name, embed_dialogues=whole, batch_size=batch_size, encode_speakers=speakers, module=model
    )


def _of_source(source: EncoderSpec, batch_size: int, loading: dict[str, Any]) -> Encoder:
    loading = {name: value for name, value in loading.items() if value is not None}
    if source.kind in ("fitted", "static"):
        given = next((name for name in loading if str(loading[name]) != "cpu"), None)
        if given:
            raise InputError(
                f"model '{source.model}': got {given}='{loading[given]}', which only models that "
                "transformers loads take; leave it out"
            )
        if source.kind == "static":
            return Encoder(
                source.name,
                embed_texts=StaticVectors(Path(source.path)),
                **read_prompts(source.path)._asdict(),
            )
        return Encoder(
            source.name, embed_dialogues=FITTED[source.path]().encode, fitted_on_input=True
        )
    device = checked_device(loading.pop("device", None))
    if source.dtype != DTYPES[0] and device == "cpu":
        batch_size *= _MORE
    if source.kind == "dialemb":
        return _of_checkpoint(source, device, batch_size, **source.files, **loading)
    from .text_models import loaded_texts

    return Encoder(source.name, **loaded_texts(source, device, **loading), batch_size=batch_size)


def _of_checkpoint(source: EncoderSpec, device: str, batch_size: int, **options: Any) -> Encoder:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from ..methods import register
    from ..storage.pretrained import load_pretrained

    register()
    attention = options.pop("attn_implementation", None)
    model = load_pretrained(AutoModel, source.path, attn_implementation=attention, **options)
    model = model.to(device)
    tokenizer = load_pretrained(AutoTokenizer, source.path, **options)
    if source.reads == "texts":  # pooling is float32
        model.float().encoder.to(getattr(torch, source.dtype))
    elif source.dtype != DTYPES[0]:
        model.to(getattr(torch, source.dtype))
    return model_encoder(model, tokenizer, source.name, batch_size)


def _of_ranker(model: Any, tokenizer: Any, name: str, batch_size: int) -> Encoder:
    from ..methods.ranker import loaded_ranker

    ranker = loaded_ranker(model, tokenizer)
    return Encoder(
        name,
        embed_dialogues=partial(_contexts, ranker),
        batch_size=batch_size,
        ranker=ranker,
        module=model,
    )


def _contexts(ranker: Any, dialogues: Any, batch_size: int, show_progress: bool | None) -> Any:
    from ..methods.ranker import encode_contexts

    turns = [dialogue.turns for dialogue in dialogues]
    return encode_contexts(ranker, turns, 8 * batch_size, show_progress)


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
