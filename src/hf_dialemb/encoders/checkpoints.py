"""Encoders made of this package's own checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError
from .text_models import TextEncoder, embed_utterances

if TYPE_CHECKING:
    from ..models.encoder import DialogueEncoder
    from ..models.ranking import LoadedRanker
    from .specs import Encoder, EncoderSpec


@dataclass(frozen=True)
class RankerEncoder:
    """One of this package's rankers of responses; its vector of a dialogue is that of a context.

    Attributes:
        name: What result tables call it.
        ranker: The ranker, which scores candidates as well.
    """

    name: str
    ranker: LoadedRanker

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32.

        Raises:
            InputError: The ranker reads a context and a response together.
        """
        from ..models.ranking import encode_contexts

        if not self.ranker.model.embeds:
            raise InputError(
                f"model '{self.name}': got a ranker that has no vectors, expected an encoder; "
                "it can rank candidates alone (dialemb rank, or the benchmark's task next-utterance-retrieval)"
            )
        return encode_contexts(self.ranker, [dialogue.turns for dialogue in dialogues])

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one vector per text, ``(N, D)``: that of a dialogue of one turn."""
        return self.encode(_one_turn(texts))


@dataclass(frozen=True)
class DialogueModelEncoder:
    """One of this package's dialogue encoders, which read speakers and turns by themselves.

    Attributes:
        name: What result tables call it.
        model: The model.
        tokenizer: Its tokenizer.
        batch_size: How many dialogues go through the model at once.
    """

    name: str
    model: DialogueEncoder
    tokenizer: Any
    batch_size: int

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32."""
        from ..models.encoder import encode

        vectors: NDArray[np.float32] = encode(self.model, self.tokenizer, dialogues, batch_size=self.batch_size)
        return vectors

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one vector per text, ``(N, D)``: that of a dialogue of one turn."""
        return self.encode(_one_turn(texts))

    def encode_speakers(self, dialogues: Sequence[Dialogue]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns a vector for each role, ``(N, R, D)``, and how many tokens it is the mean of, ``(N, R)``."""
        from ..models.encoder import encode_speakers

        return encode_speakers(self.model, self.tokenizer, dialogues, batch_size=self.batch_size)


def _one_turn(texts: Sequence[str]) -> list[Dialogue]:
    return [Dialogue((Turn("user", text),)) for text in texts]


def checkpoint_encoder(found: EncoderSpec, batch_size: int, device: str) -> Encoder:
    """Loads a checkpoint.

    Args:
        found: Where it is, and the level.
        batch_size: How many dialogues or utterances go through the model at once.
        device: Where it runs.

    Returns:
        The encoder of dialogues, of utterances, or of contexts that it is.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    from ..models import register
    from ..models.backbones import load_pretrained
    from ..models.config import RankerConfig
    from ..models.ranking import load_ranker

    register()
    if isinstance(load_pretrained(AutoConfig, found.path), RankerConfig):
        ranker = load_ranker(found.path)
        ranker.model.to(device)  # type: ignore[arg-type]
        return RankerEncoder(found.name, ranker)
    model = load_pretrained(AutoModel, found.path).to(device)
    return model_encoder(model, load_pretrained(AutoTokenizer, found.path), found.name, found.level, batch_size)


def model_encoder(model: Any, tokenizer: Any, name: str, level: str, batch_size: int) -> Encoder:  # noqa: ANN401
    """Makes an encoder of a model of this package that is in memory, and its tokenizer."""
    from ..models import method_of
    from ..models.ranking import loaded_ranker

    method = method_of(model)
    assert method is not None, "models of other makers are refused before"
    if method.kind == "responses":
        return RankerEncoder(name, loaded_ranker(model, tokenizer))
    if method.kind == "utterances":
        return TextEncoder(name, embed_utterances(model, tokenizer, batch_size), level)
    return DialogueModelEncoder(name, model, tokenizer, batch_size)


def reads_utterances(path: str) -> bool:
    """Says whether a checkpoint is an encoder of utterances, from its configuration alone."""
    from transformers import AutoConfig

    from ..models import register
    from ..models.backbones import load_pretrained
    from ..models.config import UtteranceConfig

    register()
    return isinstance(load_pretrained(AutoConfig, path), UtteranceConfig)


def saved_steps(model: str) -> list[tuple[int, Path]]:
    """Finds the checkpoints that a training left in a model's folder.

    Args:
        model: A folder, or anything else that names a model, which has none.

    Returns:
        Steps, in ascending order, and their folders.
    """
    folders = [path for path in Path(model).glob("checkpoint-*") if path.name.removeprefix("checkpoint-").isdigit()]
    return sorted((int(path.name.removeprefix("checkpoint-")), path) for path in folders)
