"""Encoders of dialogues behind one small protocol, and the specs that name them.

A spec is ``MODEL``, or ``MODEL@WORD,WORD`` with words in any order:

- ``dialogue`` (where no level is given) or ``utterances``: what a model of texts reads at once;
- ``cls``: the first token in place of the mean of tokens, of plain transformers models;
- ``bfloat16`` or ``int8``: an encoder of texts over a transformer computes in fewer bits, which is quicker, see
  `hf_dialemb.encoders.fewer_bits`;
- ``whitened``: vectors whitened by what is encoded, see `hf_dialemb.encoders.whitening`.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..checkpoints.pretrained import read_config, reading, resolve_backbone
from ..errors import InputError
from ..hashing import sha256
from ..methods import method_of
from ..runs.folder import RunFolder
from .baselines import BASELINES
from .checkpoints import checkpoint_encoder
from .encoder import Encoder as Encoder
from .encoder import EncoderSpec, Kind, Numbers
from .encoder import fitted_on_input as fitted_on_input
from .endpoint import Endpoint, check_endpoint, endpoint_url
from .fewer_bits import check_int8
from .one_text import embed_one_text
from .sentence_layout import plain_layout
from .text_models import TextEmbedder, TextEncoder, load_sentence_transformer, sentence_embedder, transformers_encoder
from .whitening import InputWhitenedEncoder
from .word_vectors import StaticVectors, WordVectors, is_static

_LEVELS = ("dialogue", "utterances")
_BITS = ("bfloat16", "int8")
_WORDS = (*_LEVELS, "cls", *_BITS, "whitened")

_FILES = ("*.safetensors", "*.bin", "*.model", "*config*.json", "modules.json", "*token*.json", "vocab*", "merges.txt")
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin", "modules.json")
RESPONSE_VECTORS = "response_vectors-"  # how files begin that lie beside a ranker, and change nothing of it
_MODULES = ("[0-9]_*/*", "*_[0-9]_*/*")  # where sentence-transformers keeps a model's parts, and those of a router
_MORE = 4  # times as many texts at once in fewer bits on a processor: to set up a product is dearer than the product
_WEIGHTLESS = (*BASELINES, "words", "api", "static")

# Remembered because finding out that the Hub is out of reach takes half a minute of retries.
_hub_path = lru_cache(maxsize=64)(resolve_backbone)


def has_weights(spec: str) -> bool:
    """Says whether a spec names a model with weights, which can be fine-tuned; looks nothing up."""
    return _without_weights(_parted(spec)[0]) is None


def find_encoder(spec: str) -> EncoderSpec:
    """Looks up what a spec stands for without loading weights, so that a wrong one is found before long work.

    Raises:
        InputError: The model is not found or lacks a package, a file or a key; or it does not go with the words.
    """
    model, words = _parted(spec)
    level = next((word for word in words if word in _LEVELS), "dialogue")
    baseline = _without_weights(model)
    kind, path = baseline or _kind_and_path(model)
    if "cls" in words and kind != "transformers":
        got = "a baseline" if baseline else f"a {kind} model, which chooses its tokens itself"
        raise InputError(f"model '{spec}': got cls for {got}, expected a plain transformers model; leave 'cls' out")
    if level == "utterances" and _reads_whole(kind, path):
        raise InputError(f"model '{spec}': this model reads whole dialogues; leave '@utterances' out")
    numbers: Numbers = "bfloat16" if "bfloat16" in words else "int8" if "int8" in words else "float32"
    if numbers != "float32" and (baseline or kind == "static" or _reads_whole(kind, path)):
        raise InputError(
            f"model '{spec}': got {numbers} for {'a baseline' if baseline else 'this model'}, expected a transformer "
            f"that reads texts; leave '{numbers}' out"
        )
    if numbers == "int8":
        check_int8()
    if kind == "api":
        check_endpoint(spec)
    if kind == "doc2vec" and find_spec("gensim") is None:
        raise InputError(f"model '{spec}': the package gensim is missing; pip install \"hf-dialemb[baselines]\"")
    if kind == "words" and not Path(path).is_file():
        raise InputError(f"model '{spec}': got no file '{path}', expected a text file of word vectors; check the path")
    return EncoderSpec(spec, kind, path, level, "cls" in words, "whitened" in words, numbers)


def load_encoder(spec: str, *, batch_size: int = 32, device: str | None = None) -> Encoder:
    """Loads an encoder by its spec; its vectors are float32 and not normalised beyond what the model does itself.

    Models are

    - ``tfidf``, ``lda``, ``doc2vec``: fitted without labels on the very dialogues that they encode, see
      `hf_dialemb.encoders.baselines`;
    - ``words:PATH``: the mean of word vectors from a file, see `hf_dialemb.encoders.word_vectors`;
    - ``api:MODEL``: a model of an endpoint, see `hf_dialemb.encoders.endpoint`;
    - ``dialogue-minilm`` or another encoder that comes with the package, see `hf_dialemb.weights`;
    - a folder or Hub id of one of this package's dialogue encoders, or of its rankers of responses, to which a dialogue
      is a context;
    - a folder or Hub id of an encoder of texts: one of this package's utterance encoders, a sentence-transformers
      model, or any other that ``AutoModel`` loads.

    Encoders of texts, ``words:`` and ``api:`` have levels: ``dialogue`` embeds all turns joined by spaces and cut at
    the model's limit, with a warning that counts what was cut; ``utterances`` gives the mean of the vectors of a
    dialogue's turns. ``whitened`` goes with every model. So many texts, or dialogues, go through a model at once, by
    default on a GPU where there is one.

    Raises:
        InputError: The model is not found, or does not have what the words ask for.
    """
    found = find_encoder(spec)
    if device is None and found.kind not in _WEIGHTLESS:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder = _loaded(found, batch_size, device or "cpu")
    return InputWhitenedEncoder(encoder, spec) if found.whitened else encoder


def text_vector(spec: str, text: str) -> NDArray[np.float32] | None:
    """Embeds one text, ``(D,)``, without torch and so at once; None where an encoder has to be loaded for that."""
    found = find_encoder(spec)
    plain = found.kind == "sentence-transformers" and found.numbers == "float32" and not found.whitened
    return embed_one_text(found.path, text) if plain else None


def _loaded(found: EncoderSpec, batch_size: int, device: str) -> Encoder:
    if found.numbers != "float32" and device == "cpu":
        batch_size *= _MORE
    if found.kind in BASELINES:
        return BASELINES[found.kind](found.name)
    if found.kind == "dialemb":
        return checkpoint_encoder(found, batch_size, device)
    if found.kind == "transformers":
        return transformers_encoder(found, batch_size, device)
    embed: TextEmbedder
    if found.kind == "words":
        embed = WordVectors(found.path)
    elif found.kind == "api":
        embed = Endpoint(found.path, batch_size)
    elif found.kind == "static":
        embed = StaticVectors(Path(found.path))
    else:
        if layout := plain_layout(found.path):
            return transformers_encoder(found, batch_size, device, layout)
        embed = sentence_embedder(load_sentence_transformer(found.path, device, found.numbers), batch_size)
    return TextEncoder(found.name, embed, found.level)


def fingerprint(spec: str) -> str:
    """Tells what decides an encoder's vectors from anything else under the same name, in 16 digits.

    They depend on the spec's words but ``whitened``, which comes after a model; on the contents of a model's folder or
    of a file of word vectors, wherever it lies; on the commit of a model on the Hub; on the model and the address of an
    endpoint; on the settings of the other baselines.
    """
    found = find_encoder(spec)
    parts = [found.kind, found.level, str(found.cls), *_source(found)]
    parts += [] if found.numbers == "float32" else [found.numbers]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _parted(spec: str) -> tuple[str, list[str]]:
    """Parts a spec into the model and its words; a path that holds an ``@`` itself is left whole."""
    path = Path(spec.removeprefix("words:"))
    if "@" not in spec or path.is_dir() or (spec.startswith("words:") and path.is_file()):
        return spec, []
    model, _, after = spec.rpartition("@")
    words = [word.strip() for word in after.split(",")]
    for word in words:
        if word not in _WORDS:
            raise InputError(
                f"model '{spec}': got '{word}' after the '@', expected {', '.join(_WORDS[:-1])} or {_WORDS[-1]}, "
                "parted by commas; correct it"
            )
    several = any(len(set(words).intersection(group)) > 1 for group in (_LEVELS, _BITS))
    if several or len(set(words)) < len(words):
        raise InputError(
            f"model '{spec}': got '{after}' after the '@', expected each word once, one level, dialogue or "
            "utterances, and one of bfloat16 and int8; leave the others out"
        )
    return model, words


def _without_weights(model: str) -> tuple[Kind, str] | None:
    """Finds what has no weights to fine-tune, and its path."""
    if model in BASELINES:
        return cast("Kind", model), ""
    name, colon, path = model.partition(":")
    if not colon or name not in ("words", "api"):
        return None
    if not path:
        raise InputError(f"model '{model}': got nothing after the colon, expected words:PATH or api:MODEL; name it")
    return cast("Kind", name), path


def _kind_and_path(model: str) -> tuple[Kind, str]:
    path = model if Path(model).is_dir() else _hub_path(model)
    if is_static(path):
        return "static", path
    _check_finished(model)
    if Path(path).is_dir():  # old folders of sentence-transformers have no config at their root
        config = read_config(path) if (Path(path) / "config.json").is_file() else {}
    else:
        from transformers import PretrainedConfig

        with reading(path):
            config, _ = PretrainedConfig.get_config_dict(path)
    model_type = str(config.get("model_type") or "")
    if model_type and method_of(model_type) is not None:
        return "dialemb", path
    with reading(path):
        if _of_sentence_transformers(path):
            return "sentence-transformers", path
    if not model_type:
        raise InputError(f"model '{model}': got no model in it, expected config.json or modules.json; check the path")
    return "transformers", path


def _of_sentence_transformers(path: str) -> bool:
    if (Path(path) / "modules.json").is_file():
        return True
    from sentence_transformers.util import is_sentence_transformer_model

    return bool(is_sentence_transformer_model(path))


def _check_finished(model: str) -> None:
    run = RunFolder(Path(model))
    if not run.settings_file.is_file() or run.complete or any(map(any, (run.path.glob(each) for each in _WEIGHTS))):
        return
    saved = [path.name for path in run.checkpoints()]
    remedy = f", or give one of its checkpoints ({', '.join(saved)})" if saved else ""
    raise InputError(
        f"model '{model}': got a folder of an unfinished training, expected a model; run it again to go on{remedy}"
    )


def _reads_whole(kind: Kind, path: str) -> bool:
    """Says whether a model reads whole dialogues by itself, and so has no levels."""
    if kind != "dialemb":
        return kind in BASELINES
    from transformers import PretrainedConfig

    with reading(path):
        method = method_of(PretrainedConfig.get_config_dict(path)[0]["model_type"])
    return method is not None and method.kind != "utterances"


def _source(found: EncoderSpec) -> Iterator[str]:
    """Lists what a model's vectors come from, without where it lies."""
    if found.kind in BASELINES:
        yield json.dumps(asdict(BASELINES[found.kind]()))
    elif found.kind == "api":
        yield from (found.path, endpoint_url())
    elif found.kind == "words":
        yield sha256(Path(found.path))
    elif Path(found.path).is_dir():
        folder = Path(found.path)
        files = {path for pattern in (*_FILES, *_MODULES) for path in folder.glob(pattern) if path.is_file()}
        for path in sorted(path for path in files if not path.name.startswith(RESPONSE_VECTORS)):
            yield from (path.relative_to(folder).as_posix(), sha256(path))
    else:
        from huggingface_hub import try_to_load_from_cache

        yield found.path
        config = try_to_load_from_cache(found.path, "config.json")  # in a folder named for the commit
        yield Path(config).parent.name if isinstance(config, str) else ""
