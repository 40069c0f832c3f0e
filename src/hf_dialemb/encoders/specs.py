"""Specs: the names by which encoders are loaded, parsed once.

A spec is ``MODEL``, or ``MODEL@WORD,WORD`` with words in any order:

- ``dialogue`` (the default) or ``utterances``: what a text model reads at once;
- ``cls``: the vector is the first token, not the mean of all; for plain transformers models;
- ``bfloat16``, ``float16`` or ``int8``: a transformer computes in fewer bits, which is quicker
  where the hardware multiplies such numbers; ``int8`` is for models of texts on a CPU;
- ``whitened``: the vectors of a call are whitened by themselves, see
  `hf_dialemb.encoders.whitening`;
- after a Hub id, any other word: a revision of that model, such as a tag or the id of a commit.

MODEL is one of

- ``tfidf``, or a name that an entry point of the group ``hf_dialemb.encoders`` adds: fitted without
  labels on the very dialogues that it encodes;
- ``words:PATH``: the mean of word vectors from a file, see `hf_dialemb.encoders.word_vectors`;
- ``api:MODEL``: a model of an endpoint, see `hf_dialemb.encoders.endpoint`;
- ``dialogue-minilm`` or another encoder that comes with the package, see `hf_dialemb.weights`;
- a folder or Hub id of a model of this package; a ranker reads a dialogue as a context;
- a folder or Hub id of a sentence-transformers model, or of any other that ``AutoModel`` loads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..hashing import sha256
from ..hooks import Registry
from ..methods import check_registered, method_of
from ..storage.pretrained import base_of, model_file, read_config, resolve_backbone, shipped
from ..storage.remote_code import known_to_transformers
from ..storage.run_folder import RunFolder
from .endpoint import check_endpoint, endpoint_url
from .word_vectors import TfidfEncoder, is_static

FITTED = Registry("encoders", {"tfidf": TfidfEncoder})
"""Encoders that are fitted on their input, by name: dataclasses with ``encode(dialogues)``.

They may name a ``package`` that they need.
"""

RESPONSE_VECTORS = (
    "response_vectors-"  # prefix of files that cache a ranker's vectors; not part of a fingerprint
)

DTYPES = ("float32", "bfloat16", "float16")
"""The types of numbers that transformers compute in.

The first is the default, and no word of a spec.
"""

_LEVELS, _BITS = {"dialogue", "utterances"}, {*DTYPES[1:], "int8"}
_WORDS = ("dialogue", "utterances", "cls", "bfloat16", "float16", "int8", "whitened")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_FILES = (
    "*.safetensors",
    "*.bin",
    "*.model",
    "*config*.json",
    "modules.json",
    "*token*.json",
    "vocab*",
    "merges.txt",
)
# the parts of a sentence-transformers model, and of its routers
_MODULES = ("[0-9]_*/*", "*_[0-9]_*/*")
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin", "modules.json")
_BASELINES = ("fitted", "words", "api")

_hub_path = lru_cache(maxsize=64)(resolve_backbone)  # errors are not cached


@dataclass(frozen=True)
class Loading:
    """The options of `load_encoder` beside the spec.

    They say how a model is loaded, and decide no vector.
    """

    batch_size: int = 32
    device: str | None = None
    token: str | bool | None = field(default=None, repr=False)
    cache_dir: str | Path | None = None
    trust_remote_code: bool = False
    attn_implementation: str | None = None


PLAIN = Loading()


@dataclass(frozen=True)
class EncoderSpec:
    """A parsed spec."""

    name: str  # the spec as it was written
    model: str  # the spec without its words
    # ``"dialogue"`` embeds the whole text at once, ``"utterances"`` averages over turns
    level: str = "dialogue"
    cls: bool = False  # whether the first token is the vector, not the mean of all
    whitened: bool = False  # whether vectors are whitened by themselves
    numbers: str = "float32"  # one of `DTYPES`, or ``"int8"``
    revision: str | None = None  # the revision of a model on the Hub, if one is named
    kind: str = ""  # fitted, words, api, static, dialemb, sentence-transformers or transformers
    # a folder or Hub id; for ``words`` the file, for ``api`` the model, for ``fitted`` the name
    path: str = ""
    reads: str = "texts"  # what the model reads: ``"texts"``, or whole ``"dialogues"``
    # The revision, token and cache_dir of the Hub's files, as far as they are given.
    files: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> EncoderSpec:
        """Parse a spec without looking the model up.

        An ``@`` within an existing path is left alone.
        """
        path = Path(text.removeprefix("words:"))
        if "@" not in text or path.is_dir() or (text.startswith("words:") and path.is_file()):
            return cls(text, text)
        model, _, after = text.rpartition("@")
        words = re.split(r"\s*,\s*", after.strip())
        unknown = [word for word in words if word not in _WORDS]
        if unknown and (len(unknown) > 1 or not unknown[0] or not _on_hub(model)):
            raise InputError(
                f"model '{text}': got '{unknown[0]}' after the '@', expected "
                f"{', '.join(_WORDS[:-1])} or {_WORDS[-1]}, "
                "separated by commas, or a revision after a Hub id; correct it"
            )
        if len(set(words)) < len(words) or set(words) >= _LEVELS or len(_BITS & set(words)) > 1:
            raise InputError(
                f"model '{text}': got '{after}' after the '@', expected each word once, one level, "
                "dialogue or "
                "utterances, and at most one of bfloat16, float16 and int8; leave the others out"
            )
        level = "utterances" if "utterances" in words else "dialogue"
        numbers = next((word for word in words if word in _BITS), "float32")
        return cls(
            text,
            model,
            level,
            "cls" in words,
            "whitened" in words,
            numbers,
            unknown[0] if unknown else None,
        )

    @classmethod
    def written(cls, text: str, revision: str | None, dtype: object) -> str:
        """Return a spec with a revision and a type of numbers, by its torch object or its name, as
        further words.
        """
        parsed, numbers = cls.parse(text), str(dtype or DTYPES[0]).removeprefix("torch.")
        if numbers not in DTYPES:
            raise InputError(
                f"dtype: got {numbers!r}, expected {', '.join(DTYPES[:-1])} or {DTYPES[-1]}; "
                "correct it"
            )
        words = []
        for name, given, known, default in (
            ("revision", revision, parsed.revision, None),
            ("dtype", dtype and numbers, parsed.numbers, DTYPES[0]),
        ):
            if given is not None and known not in (default, given):
                raise InputError(
                    f"{name}: got {given!r} for '{text}', expected one of both; leave one out"
                )
            words += [str(given)] if given not in (None, known) else []
        return f"{text}{'@' if parsed.model == text else ','}{','.join(words)}" if words else text

    @property
    def fitted_on_input(self) -> bool:
        """Whether vectors depend on the other items of a call."""
        return self.kind == "fitted" or self.whitened


def has_weights(spec: str) -> bool:
    """Return whether a spec names a model with weights, which can be fine-tuned.

    Look nothing up.
    """
    return _without_weights(EncoderSpec.parse(spec).model) is None


def find_encoder(spec: str, loading: Loading = PLAIN) -> EncoderSpec:
    """Parse a spec and look its model up without loading weights, so that mistakes show before long
    work.

    An InputError says that the model is unknown or lacks a package, a file or a key, or that the
    words do not suit it.
    """
    parsed = EncoderSpec.parse(spec)
    for name, value in (
        ("revision", parsed.revision),
        ("token", loading.token),
        ("cache_dir", loading.cache_dir),
    ):
        if value is not None:
            parsed.files[name] = value
    kind, path = _without_weights(parsed.model) or ("", "")
    reads = "dialogues" if kind == "fitted" else "texts"
    if not kind:
        kind, path, reads = _with_weights(parsed.model, parsed.files)
    parsed = replace(parsed, kind=kind, path=path, reads=reads)
    if problem := _misfit(parsed, loading):
        raise InputError(f"model '{spec}': {problem}")
    if parsed.numbers == "int8":
        from .quantization import check_int8

        check_int8()
    if kind == "api":
        check_endpoint(spec)
    return parsed


def _misfit(spec: EncoderSpec, loading: Loading) -> str:
    """Say which word or option of a spec does not suit its model; return nothing if all do."""
    kind, numbers, baseline = spec.kind, spec.numbers, spec.kind in _BASELINES
    package = getattr(FITTED[spec.path], "package", "") if kind == "fitted" else ""
    if spec.cls and kind != "transformers":
        got = "a baseline" if baseline else f"a {kind} model, which chooses its tokens itself"
        return f"got cls for {got}, expected a plain transformers model; leave 'cls' out"
    if spec.level == "utterances" and spec.reads == "dialogues":
        return "this model reads whole dialogues; leave '@utterances' out"
    if numbers != "float32" and (
        baseline or kind == "static" or (numbers == "int8" and spec.reads == "dialogues")
    ):
        got = f"{numbers} for {'a baseline' if baseline else 'this model'}"
        return f"got {got}, expected a transformer that reads texts; leave '{numbers}' out"
    if baseline or kind == "static":
        for name, given in (
            ("device", loading.device != "cpu" and loading.device),
            ("attn_implementation", loading.attn_implementation),
            ("trust_remote_code", loading.trust_remote_code),
        ):
            if given:
                return (
                    f"got {name}={given!r}, which only models that transformers loads take; "
                    "leave it out"
                )
    if package and find_spec(package) is None:
        return f'the package {package} is missing; pip install "hf-dialemb[baselines]"'
    if kind == "words" and not Path(spec.path).is_file():
        return f"got no file '{spec.path}', expected a text file of word vectors; check the path"
    return ""


def trained_encoder(encoder: Any) -> None:
    """Look a spec up as `find_encoder` does; refuse an encoder that is fitted on its input."""
    known = find_encoder(encoder) if isinstance(encoder, str) else encoder
    if known.fitted_on_input:
        raise InputError(
            f"model '{known.name}': got an encoder that is fitted on the dialogues that it embeds, "
            "expected a trained "
            "encoder; name a checkpoint or a Hub id"
        )


def fingerprint(spec: str, loading: Loading = PLAIN) -> str:
    """Return 16 hex digits that tell an encoder's vectors from all others under the same name.

    They depend on the spec's words except ``whitened``, which is applied after the model, and on
    what it names:

    - the contents of a folder or a file of word vectors, wherever it lies;
    - the commit of a model on the Hub, whatever the revision is called;
    - the model and the address of an endpoint;
    - the settings of an encoder that is fitted on its input.
    """
    parsed = find_encoder(spec, loading)
    kind = parsed.path if parsed.kind == "fitted" else parsed.kind
    parts = [kind, parsed.level, str(parsed.cls), *_source(parsed)]
    parts += [] if parsed.numbers == "float32" else [parsed.numbers]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _on_hub(model: str) -> bool:
    """Return whether a name can be a Hub id.

    It is neither that of a folder nor of anything in the package.
    """
    known = Path(model).is_dir() or model in shipped() or _without_weights(model) is not None
    return not known and _HUB_ID.fullmatch(model) is not None


def _without_weights(model: str) -> tuple[str, str] | None:
    if model in FITTED.own or (
        re.fullmatch(r"\w+", model) and not Path(model).is_dir() and model in FITTED
    ):
        return "fitted", model
    name, colon, path = model.partition(":")
    if not colon or name not in ("words", "api"):
        return None
    if not path:
        raise InputError(
            f"model '{model}': got nothing after the colon, expected words:PATH or api:MODEL; name "
            "it"
        )
    return name, path


def _with_weights(model: str, files: dict[str, Any]) -> tuple[str, str, str]:
    """Return the kind of a model, the folder or Hub id of its weights, and what it reads."""
    path = model if Path(model).is_dir() else _hub_path(model, **files)
    if is_static(path):
        return "static", path, "texts"
    if path == model:
        _check_finished(model)
    base = None if (Path(path) / "config.json").is_file() else base_of(path, **files)
    whole, of_whole = (path, files) if base is None else (resolve_backbone(base), {})
    # old folders of sentence-transformers have none at their root
    file = model_file(whole, "config.json", **of_whole)
    config = {} if file is None else read_config(str(file.parent))
    model_type = str(config.get("model_type") or "")
    method = None
    if not known_to_transformers(model_type):
        check_registered(path, config)
        method = method_of(model_type) if model_type else None
    if method is not None:
        return "dialemb", path, "texts" if method.kind == "utterances" else "dialogues"
    if base is not None:
        raise InputError(
            f"model '{model}': got an adapter over a {model_type} model, expected one over a model "
            "of this package; "
            "give a SentenceTransformer that the adapter was added to"
        )
    if model_file(path, "modules.json", **files) is not None:
        return "sentence-transformers", path, "texts"
    if not model_type:
        raise InputError(
            f"model '{model}': got no model in it, expected config.json or modules.json; check the "
            "path"
        )
    return "transformers", path, "texts"


def _check_finished(model: str) -> None:
    run = RunFolder(Path(model))
    if not run.settings_file.is_file() or run.complete:
        return
    if any(next(run.path.glob(pattern), None) for pattern in _WEIGHTS):
        return
    saved = [path.name for path in run.checkpoints()]
    remedy = f", or give one of its checkpoints ({', '.join(saved)})" if saved else ""
    raise InputError(
        f"model '{model}': got a folder of an unfinished training, expected a model; run it again "
        f"to go on{remedy}"
    )


def _source(parsed: EncoderSpec) -> Iterator[str]:
    """Yield everything that a model's vectors depend on; a folder's place is not part of it."""
    if parsed.kind == "fitted":
        yield json.dumps(asdict(FITTED[parsed.path]()))
    elif parsed.kind == "api":
        yield from (parsed.path, endpoint_url())
    elif parsed.kind == "words":
        yield sha256(Path(parsed.path))
    elif Path(parsed.path).is_dir():
        folder = Path(parsed.path)
        files = {
            path
            for pattern in (*_FILES, *_MODULES)
            for path in folder.glob(pattern)
            if path.is_file()
        }
        for path in sorted(path for path in files if not path.name.startswith(RESPONSE_VECTORS)):
            yield from (path.relative_to(folder).as_posix(), sha256(path))
    else:
        yield parsed.path
        # lie in a folder that is named after the commit
        names = ("config.json", "adapter_config.json")
        config = next(
            filter(None, (model_file(parsed.path, name, **parsed.files) for name in names)), None
        )
        yield "" if config is None else config.parent.name
    if parsed.kind == "dialemb" and (base := base_of(parsed.path, **parsed.files)) is not None:
        yield from _source(replace(parsed, path=resolve_backbone(base), files={}))
