"""Encoders for Python: whatever has vectors to give, behind `VectorEncoder`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..dialogue import Dialogue, Turn
from ..errors import InputError
from ..runs.folder import RunFolder
from ..runs.hardware import let_waiting_threads_sleep
from . import specs
from .baselines import BASELINES
from .encoder import EncoderSpec, finite

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, repr=False)
class VectorEncoder:
    """An encoder of dialogues and utterances.

    Examples:
        >>> encoder = hf_dialemb.load_encoder("all-MiniLM-L6-v2")
        >>> encoder.encode([[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]]).shape
        (1, 384)

    Result tables call it by its ``name``; the ``inner`` does the work (see `hf_dialemb.encoders.specs.Encoder`); the
    ``spec`` loads it again, if there is one.
    """

    name: str
    inner: Any
    spec: str = ""

    def encode(self, dialogues: Any) -> NDArray[np.float32]:  # noqa: ANN401 - see load_dialogues
        """Embeds N dialogues, (N, D) float32: lists of messages, `Dialogue` objects, a ``datasets.Dataset``, or a path.

        Raises:
            InputError: There is none, or one is malformed; the sentence says where. Or vectors are not finite.
        """
        return finite(self.inner.encode(load_dialogues(dialogues)), self.name)

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds N utterances, each by itself, (N, D) float32; refuses what is no list of strings."""
        if isinstance(texts, str):
            raise InputError(f'texts: got one string, expected a list of strings; pass ["{texts[:30]}"]')
        texts = list(texts)
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(
                    f"texts[{place}]: got {type(text).__name__}, expected a string; whole dialogues go to encode"
                )
        if not texts:
            raise InputError("texts: got none, expected at least one string; give some")
        if hasattr(self.inner, "encode_utterances"):
            return finite(self.inner.encode_utterances(texts), self.name)
        return finite(self.inner.encode([Dialogue((Turn("user", text),)) for text in texts]), self.name)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what tasks ask of some encoders, such as speakers' vectors
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return f"VectorEncoder({self.name!r})"


def load_encoder(
    model: object, *, tokenizer: PreTrainedTokenizerBase | None = None, batch_size: int = 32, device: str | None = None
) -> VectorEncoder:
    """Loads an encoder.

    Examples:
        >>> hf_dialemb.load_encoder("runs/mine").encode(dialogues)

    Args:
        model: A folder of a training, of one of its checkpoints or of a published model; a Hub id; a spec such as
            ``"all-MiniLM-L6-v2@utterances"`` (see `hf_dialemb.encoders.specs.load_encoder`); a model object of this
            package; a ``SentenceTransformer``; or an encoder that was loaded already.
        tokenizer: Of a model object; by default the one beside the weights that it was loaded from.
        batch_size: How many texts or dialogues go through the model at once.
        device: By default a GPU where there is one.

    Raises:
        InputError: There is no such model, its training is not finished, or the object is no model.
    """
    if isinstance(model, VectorEncoder):
        return model
    if "torch" not in sys.modules:
        let_waiting_threads_sleep()
    if isinstance(model, str | os.PathLike):
        spec = str(os.fspath(model))
        return VectorEncoder(spec, specs.load_encoder(spec, batch_size=batch_size, device=device), spec)
    if hasattr(model, "encode_document"):  # a SentenceTransformer, whose import is not worth two seconds
        return _of_sentence_transformer(model, batch_size)
    if hasattr(model, "config") and hasattr(model, "state_dict"):
        return _of_model(model, tokenizer, batch_size)
    if hasattr(model, "encode") or hasattr(model, "encode_utterances"):
        return VectorEncoder(str(getattr(model, "name", type(model).__name__)), model)
    raise InputError(
        f"model: got {type(model).__name__}, expected a folder, a Hub id, a model of this package or a "
        "SentenceTransformer; give one of these"
    )


@dataclass
class TrainedEncoder:
    """An encoder by its spec and the fingerprint of its weights, which are loaded where it is first needed."""

    name: str
    weights: str

    @cached_property
    def loaded(self) -> VectorEncoder:
        """The encoder; an InputError says that its weights are others here."""
        if (got := specs.fingerprint(self.name)) != self.weights:
            raise InputError(f"model '{self.name}': got weights {got}, expected {self.weights}; put them there")
        return load_encoder(self.name)

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds N utterances, (N, D)."""
        return self.loaded.encode_utterances(texts)


def trained_encoder(model: str) -> EncoderSpec:
    """Looks up an encoder; refuses one that is fitted on what it embeds."""
    found = specs.find_encoder(model)
    if found.kind in BASELINES or found.whitened:
        raise InputError(
            f"--model {model}: got one that is fitted on the dialogues that it embeds, expected a trained encoder; "
            "name a checkpoint or a Hub id"
        )
    return found


class EncoderRun(RunFolder):
    """The folder of a run that made an encoder; goes wherever a model's folder goes, such as into `load_encoder`."""

    def encoder(self, **options: Any) -> VectorEncoder:  # noqa: ANN401 - those of load_encoder
        """Loads what was made; see `load_encoder` for the options."""
        return load_encoder(self, **options)


def _of_model(model: Any, tokenizer: Any, batch_size: int) -> VectorEncoder:  # noqa: ANN401
    from transformers import AutoTokenizer

    from ..checkpoints.pretrained import load_pretrained
    from ..methods import method_of
    from .checkpoints import model_encoder

    if method_of(model) is None:
        raise InputError(
            f"model: got a {type(model).__name__}, expected one of this package's; give its folder or Hub id instead"
        )
    place = Path(str(getattr(model, "name_or_path", "") or "."))
    if tokenizer is None:
        if not (place / "tokenizer.json").is_file():
            raise InputError(f"tokenizer: got none for a {type(model).__name__} in memory; pass tokenizer=...")
        tokenizer = load_pretrained(AutoTokenizer, str(place))
    name = place.name or type(model).__name__
    return VectorEncoder(name, model_encoder(model, tokenizer, name, "dialogue", batch_size))


def _of_sentence_transformer(model: Any, batch_size: int) -> VectorEncoder:  # noqa: ANN401
    from ..methods import method_of
    from .text_models import TextEncoder, sentence_embedder

    inner = getattr(model[0], "auto_model", None)
    if inner is not None and method_of(inner) is not None:
        return _of_model(inner, model.tokenizer, batch_size)
    name = Path(str(getattr(inner, "name_or_path", "") or "SentenceTransformer")).name
    return VectorEncoder(name, TextEncoder(name, sentence_embedder(model, batch_size)))
