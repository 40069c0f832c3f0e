"""Look encoders up by name, before any weights are read.

A name is one of

- ``dialogue-minilm`` or another encoder that comes with the package, see `hf_dialemb.weights`;
- a folder or Hub id of a model of this package; a ranker reads a dialogue as a context;
- a folder or Hub id of a sentence-transformers model, or of any model that `AutoModel` loads, whose
  tokens are averaged;
- ``tfidf``, or a name that an entry point of the group ``hf_dialemb.encoders`` adds: fitted without
  labels on the very dialogues that it encodes.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..hashing import sha256
from ..hooks import Registry
from ..methods import check_registered, method_of
from ..storage.pretrained import base_of, model_file, read_config, resolve_backbone
from ..storage.remote_code import known_to_transformers
from .word_vectors import TfidfEncoder, is_static

FITTED = Registry("encoders", {"tfidf": TfidfEncoder})
"""Encoders that are fitted on their input, by name: dataclasses with ``encode(dialogues)``."""

DTYPES = ("float32", "bfloat16", "float16")
"""The types of numbers that transformers compute in; the first is the default."""

LEVELS = ("dialogue", "utterances")
"""What a text model reads at once: a whole dialogue (the default), or turns that are averaged."""

_FILES = (
    "*.safetensors",
    "*.bin",
    "*.model",
    "*config*.json",
    "modules.json",
    "*token*.json",
    "vocab*",
    "merges.txt",
    # the parts of a sentence-transformers model, and of its routers
    "[0-9]_*/*",
    "*_[0-9]_*/*",
)
_hub_path = lru_cache(maxsize=64)(resolve_backbone)  # errors are not cached


@dataclass(frozen=True)
class EncoderSpec:
    """A model that was looked up, and the options that decide its vectors.

    Attributes:
        model: The name as it was given.
        kind: ``fitted``, ``static``, ``dialemb``, ``sentence-transformers`` or ``transformers``.
        path: A folder or Hub id; for ``fitted`` the name.
        reads: What the model reads: ``"texts"``, or whole ``"dialogues"``.
        level: One of `LEVELS`.
        dtype: One of `DTYPES`.
        files: The revision, token and cache_dir of the Hub's files, as far as they are given.
    """

    model: str
    kind: str
    path: str
    reads: str = "texts"
    level: str = LEVELS[0]
    dtype: str = DTYPES[0]
    files: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The model's name in tables."""
        return self.model if self.level == LEVELS[0] else f"{self.model} ({self.level})"

    @property
    def fitted_on_input(self) -> bool:
        """Whether a vector depends on the other items of its call."""
        return self.kind == "fitted"

    @property
    def options(self) -> dict[str, str]:
        """The options that decide the vectors, as keywords of `find_encoder`."""
        options = {"level": self.level, "dtype": self.dtype}
        if self.files.get("revision"):
            options["revision"] = self.files["revision"]
        return options

    @property
    def fingerprint(self) -> str:
        """16 hex digits that tell an encoder's vectors from all others under the same name.

        They depend on the level, the type of numbers, and what the model consists of:

        - the contents of a folder, wherever it lies;
        - the commit of a model on the Hub, whatever the revision is called;
        - the settings of an encoder that is fitted on its input.
        """
        kind = self.path if self.kind == "fitted" else self.kind
        parts = [kind, self.level, "False", *_source(self)]
        if self.dtype != DTYPES[0]:
            parts.append(self.dtype)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def find_encoder(
    model: str, level: str = LEVELS[0], dtype: object = None, **files: Any
) -> EncoderSpec:
    """Look a model up without loading weights, so that mistakes show before long work.

    Args:
        model: The name, see the module's docstring.
        level: One of `LEVELS`.
        dtype: One of `DTYPES`, or the dtype of torch.
        **files: ``revision``, ``token`` and ``cache_dir`` of the Hub.

    Raises:
        InputError: The model is unknown or lacks a package or a file, or an option does not suit.
    """
    files = {name: value for name, value in files.items() if value is not None}
    numbers = str(dtype or DTYPES[0]).removeprefix("torch.")
    for option, value, known in (("dtype", numbers, DTYPES), ("level", level, LEVELS)):
        if value not in known:
            raise InputError(f"{option}: got {value!r}, expected one of {', '.join(known)}")
    if _is_fitted(model):
        spec = EncoderSpec(model, "fitted", model, "dialogues")
    else:
        spec = _with_weights(model, files)
    if "revision" in files and (spec.kind == "fitted" or Path(spec.path).is_dir()):
        raise InputError(
            f"model '{model}': got revision {files['revision']!r}, expected a Hub id; leave it out"
        )
    if numbers != DTYPES[0] and spec.kind in ("fitted", "static"):
        raise InputError(
            f"model '{model}': got dtype {numbers}, expected a transformer; leave dtype out"
        )
    if level != LEVELS[0] and spec.reads == "dialogues":
        raise InputError(f"model '{model}': reads whole dialogues; leave the level {level} out")
    return replace(spec, level=level, dtype=numbers, files=files)


def trained_encoder(encoder: Any, **options: Any) -> Any:
    """Look a name up as `find_encoder` does; refuse an encoder that is fitted on its input.

    Returns the `EncoderSpec` of a name, or an encoder as it is.
    """
    if isinstance(encoder, str):
        encoder = find_encoder(encoder, **options)
    if encoder.fitted_on_input:
        raise InputError(
            f"model '{encoder.name}': got an encoder that is fitted on the dialogues that it "
            "embeds, expected a trained encoder; name a checkpoint or a Hub id"
        )
    return encoder


def _is_fitted(model: str) -> bool:
    if model in FITTED.own:
        return True
    return bool(re.fullmatch(r"\w+", model)) and not Path(model).is_dir() and model in FITTED


def _with_weights(model: str, files: dict[str, Any]) -> EncoderSpec:
    path = model if Path(model).is_dir() else _hub_path(model, **files)
    if is_static(path):
        return EncoderSpec(model, "static", path)
    base = None if (Path(path) / "config.json").is_file() else base_of(path, **files)
    whole = path if base is None else resolve_backbone(base)
    # old folders of sentence-transformers have none at their root
    file = model_file(whole, "config.json", **(files if base is None else {}))
    config = {} if file is None else read_config(str(file.parent))
    model_type = str(config.get("model_type") or "")
    method = None
    if not known_to_transformers(model_type):
        check_registered(path, config)
        method = method_of(model_type) if model_type else None
    if method is not None:
        reads = "texts" if method.kind == "utterances" else "dialogues"
        return EncoderSpec(model, "dialemb", path, reads)
    if base is not None:
        raise InputError(
            f"model '{model}': got an adapter over a {model_type} model, expected one over a model "
            "of this package; give a SentenceTransformer that the adapter was added to"
        )
    if model_file(path, "modules.json", **files) is not None:
        return EncoderSpec(model, "sentence-transformers", path)
    if not model_type:
        raise InputError(
            f"model '{model}': got no model in it, expected config.json or modules.json; check the "
            "path, or train until the end"
        )
    return EncoderSpec(model, "transformers", path)


def _source(spec: EncoderSpec) -> Iterator[str]:
    """Yield everything that a model's vectors depend on; a folder's place is not part of it."""
    if spec.kind == "fitted":
        yield json.dumps(asdict(FITTED[spec.path]()))
    elif Path(spec.path).is_dir():
        folder = Path(spec.path)
        files = {path for pattern in _FILES for path in folder.glob(pattern) if path.is_file()}
        for path in sorted(files):
            yield path.relative_to(folder).as_posix()
            yield sha256(path)
    else:
        yield spec.path
        config = model_file(spec.path, "config.json", **spec.files)
        if config is None:
            config = model_file(spec.path, "adapter_config.json", **spec.files)
        # they lie in a folder that is named after the commit
        yield "" if config is None else config.parent.name
    if spec.kind == "dialemb" and (base := base_of(spec.path, **spec.files)) is not None:
        yield from _source(replace(spec, path=resolve_backbone(base), files={}))
