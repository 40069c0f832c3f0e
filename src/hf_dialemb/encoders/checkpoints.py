"""Encoders made of this package's own checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError
from .encoder import DialogueReader, EncoderSpec
from .fewer_bits import read_in
from .text_models import TextEncoder

if TYPE_CHECKING:
    from ..methods.encoder import DialogueEncoder
    from ..methods.ranking import LoadedRanker


@dataclass(frozen=True)
class RankerEncoder(DialogueReader):
    """A ranker of responses, which scores candidates as well; its vector of a dialogue is that of a context."""

    name: str
    ranker: LoadedRanker

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32; refuses where the ranker reads both sides together."""
        from ..methods.ranking import encode_contexts

        if not self.ranker.model.embeds:
            raise InputError(
                f"model '{self.name}': got a ranker that has no vectors, expected an encoder; "
                "it can rank candidates alone (dialemb rank, or the benchmark's task next-utterance-retrieval)"
            )
        return encode_contexts(self.ranker, [dialogue.turns for dialogue in dialogues])


@dataclass(frozen=True)
class DialogueModelEncoder(DialogueReader):
    """One of this package's dialogue encoders, which read speakers and turns by themselves."""

    name: str
    model: DialogueEncoder
    tokenizer: Any
    batch_size: int

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32."""
        from ..methods.encoder import encode

        return encode(self.model, self.tokenizer, dialogues, batch_size=self.batch_size)

    def encode_speakers(self, dialogues: Sequence[Dialogue]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns a vector for each role, ``(N, R, D)``, and how many tokens it is the mean of, ``(N, R)``."""
        from ..methods.encoder import encode_speakers

        return encode_speakers(self.model, self.tokenizer, dialogues, batch_size=self.batch_size)


CheckpointEncoder = RankerEncoder | DialogueModelEncoder | TextEncoder


def checkpoint_encoder(found: EncoderSpec, batch_size: int, device: str) -> CheckpointEncoder:
    """Loads a checkpoint of any method."""
    from transformers import AutoModel, AutoTokenizer

    from ..checkpoints.pretrained import load_pretrained
    from ..methods import register

    register()
    model = load_pretrained(AutoModel, found.path).to(device)
    tokenizer = load_pretrained(AutoTokenizer, found.path)
    if found.numbers != "float32":
        read_in(found.numbers, model.float().encoder, tokenizer)
    return model_encoder(model, tokenizer, found.name, found.level, batch_size)


def model_encoder(model: Any, tokenizer: Any, name: str, level: str, batch_size: int) -> CheckpointEncoder:  # noqa: ANN401
    """Makes an encoder of a model of this package that is in memory, and its tokenizer."""
    from ..methods import method_of
    from ..methods.ranking import loaded_ranker
    from ..methods.utterance import encode_utterances

    method = method_of(model)
    assert method is not None, "models of other makers are refused before"
    if method.kind == "responses":
        return RankerEncoder(name, loaded_ranker(model, tokenizer))
    if method.kind == "utterances":
        model = model.float()  # as in its published form
        return TextEncoder(name, partial(encode_utterances, model, tokenizer, batch_size=batch_size), level)
    return DialogueModelEncoder(name, model, tokenizer, batch_size)
