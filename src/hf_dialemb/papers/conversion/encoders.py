"""A backbone and the mean of its tokens, from transformers or sentence-transformers, as a checkpoint of a method.

Such are DSE (``aws-ai/dse-*``), Dialog2Flow (``sergioburdisso/dialog2flow-*``) and TOD-BERT (``TODBERT/*``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from ...checkpoints.pretrained import load_pretrained
from ...encoders.sentence_layout import SentenceLayout, read_layout
from ...errors import InputError, unknown_name
from ...methods import get_method, method_of
from ...methods.backbone_model import BackboneModel, position_offset
from ...runs.folder import read_object
from .convert import Conversion, Request, fit_vocabulary
from .foreign_folder import local_folder, read_weights
from .placing import Reasons, Report, Rule, place

METHODS = ("dse", "dialog2flow", "dialogue_cse", "dial2vec")  # methods whose checkpoint such an encoder can become

_HEAD = ("contrast_head.0.weight", "contrast_head.2.weight")
_REASONS: Reasons = (
    (r"(?:.*\.)?pooler\..*", "the embedding is the mean of tokens, not a pooled first token"),
    (r"(?:.*\.)?embeddings\.(?:position_ids|token_type_ids)", "a constant, not a weight"),
    (r"cls\..*|lm_head\..*|vocab_(?:transform|layer_norm|projector)\..*", "the head of masked language modelling"),
    (r"classifier\..*|qa_outputs\..*|pre_classifier\..*", "the head of another task"),
    (r"contrast_head\..*", "DSE's contrastive head; it serves training alone, and --method dse keeps it"),
)


def read_transformers(request: Request) -> Conversion:
    """Reads a folder or Hub repository in transformers' layout, with or without sentence-transformers' files."""
    folder = local_folder(request.source)
    layout = read_layout(folder) if (folder / "modules.json").is_file() else SentenceLayout(folder)
    return _read(request, layout)


def read_sentence_transformers(request: Request) -> Conversion:
    """Reads a folder or Hub repository in sentence-transformers' layout."""
    folder = local_folder(request.source)
    if not (folder / "modules.json").is_file():
        raise InputError(f"'{request.source}' has no modules.json, expected one; choose --from transformers")
    return _read(request, read_layout(folder))


def _read(request: Request, layout: SentenceLayout) -> Conversion:
    if request.vocabulary is not None:
        raise InputError(f"--vocab: --from {request.kind} takes the tokenizer beside the weights; leave it out")
    if layout.normalized:
        raise InputError(
            f"'{layout.transformer}': Normalize, which makes every embedding of length 1, follows the pooling, and no "
            "checkpoint of this package has such a module; cosines do not need it: take it out of modules.json"
        )
    name = request.method or "dse"
    if name not in METHODS:
        raise unknown_name("method of an encoder", name, METHODS)
    backbone, tokenizer = _backbone_config(layout.transformer), _tokenizer(layout)
    tensors = read_weights(layout.transformer)
    head = name == "dse" and set(_HEAD) <= tensors.keys()
    method = get_method(name)
    settings: dict[str, Any] = {}
    if method.kind == "utterances":
        settings["projection_size"] = len(tensors[_HEAD[1]]) if head else None
    if layout.max_tokens is not None:
        settings["max_tokens"] = layout.max_tokens
    config_class: Any = method.config_class
    config = config_class(encoder_config=backbone, **settings)
    limit = getattr(backbone, "max_position_embeddings", None)
    if limit is not None:  # a configuration's default may be more than the backbone has positions for
        limit -= position_offset(backbone)
        config.max_tokens = min(config.max_tokens, limit)
    if layout.max_tokens is None:
        config.fit(limit, name)
    model_class: Any = method.model_class
    model_class.prepare_tokenizer(tokenizer, config)
    model: BackboneModel = model_class(config)
    report = Report(request.kind, request.source, config.model_type)
    state = model.state_dict()
    report.made = {key: "zeros, as before any training" for key in state if not key.startswith(("encoder.", "heads."))}
    rules = [*_encoder_rules(tensors, state, model)]
    rules += [Rule(key, (key.replace("contrast_head", "heads.pairs"),)) for key in _HEAD if head]
    place(tensors, rules, state, _REASONS, report)
    fit_vocabulary(model, tokenizer, report)
    if {"[sys]", "[usr]"} <= {token.lower() for token in tokenizer.get_vocab()}:
        report.notes.append(
            "TOD-BERT's tokens [sys] and [usr] stay in the vocabulary; nothing writes them into a text. Its own tasks "
            "read the first token's vector instead of the mean: dialemb evaluate --model "
            f"{request.source}@cls measures that."
        )
    return Conversion(model, tokenizer, report)


def _backbone_config(folder: Path) -> Any:  # noqa: ANN401 - of any family
    if "auto_map" in read_object(folder / "config.json", "get the model again"):
        raise InputError(f"'{folder}' needs code of its own (auto_map in config.json), which is not run here")
    config = load_pretrained(AutoConfig, str(folder))
    if method_of(config) is not None:
        raise InputError(f"'{folder}' is a checkpoint of this package already ({config.model_type}); use it as it is")
    if getattr(config, "is_encoder_decoder", False):
        raise InputError(f"'{folder}': got {config.model_type}, an encoder with a decoder; expected an encoder alone")
    config._name_or_path, config.dtype = "", "float32"
    return config


def _tokenizer(layout: SentenceLayout) -> PreTrainedTokenizerBase:
    tokenizer: PreTrainedTokenizerBase = load_pretrained(AutoTokenizer, str(layout.transformer))
    if not tokenizer.is_fast:
        raise InputError(f"The tokenizer of '{layout.transformer}' is not a fast one; expected tokenizer.json")
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):  # transformers makes up an empty one
        raise InputError(f"'{layout.transformer}' has no tokenizer files: expected tokenizer.json beside the weights")
    if layout.lower_case and tokenizer.tokenize("Ab") != tokenizer.tokenize("ab"):
        raise InputError(
            f"'{layout.transformer}': do_lower_case is set beside a tokenizer that keeps case, which no checkpoint of "
            "this package does; lower-case your text yourself and set it to false"
        )
    tokenizer.name_or_path = ""
    return tokenizer


def _encoder_rules(tensors: Mapping[str, Any], state: Mapping[str, Any], model: Any) -> Iterator[Rule]:  # noqa: ANN401
    prefix = f"{model.encoder.base_model_prefix}."
    prefixed = any(key.startswith(prefix) for key in tensors)
    for key in tensors:
        if prefixed and not key.startswith(prefix):
            continue
        name = key.removeprefix(prefix) if prefixed else key
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))
        if f"encoder.{name}" in state:
            yield Rule(key, (f"encoder.{name}",))
