"""Dialogue encoders: their tokenizer and chat template, and the vectors of many dialogues."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..dialogue import Dialogue
from ..errors import InputError
from ..modeling import modeling_dial2vec as published
from .backbone_model import BackboneModel
from .batching import LayOut, embeddings, outputs
from .config import DialogueConfig
from .layout import UNLIMITED, Truncation, add_markers, chat_template, tokenize, wrapping


@dataclass
class DialogueOutput(published.Dial2VecOutput):
    """Output for training batches of B dialogues with N samples of each and R speakers."""

    loss: Tensor | None = None  # a scalar
    similarities: Tensor | None = (
        None  # cosines that enter the loss, (B, N, R), the intact dialogue first
    )


class DialogueEncoder(BackboneModel, published.Dial2VecModel):
    """The published model of dialogues, built around a backbone."""

    config: DialogueConfig

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: DialogueConfig) -> None:
        """Add markers and chat template, and note the markers' ids.

        Refuse an unknown ``end_of_utterance``.
        """
        config.marker_ids = add_markers(tokenizer, config.num_roles)
        token = config.end_of_utterance
        if token is not None:
            if token not in tokenizer.get_vocab():
                raise InputError(
                    f"end_of_utterance: '{token}' is not in the tokenizer's vocabulary; expected "
                    "one of its tokens"
                )
            tokenizer.add_special_tokens(
                {"extra_special_tokens": [token]}, replace_extra_special_tokens=False
            )
        frame = [int(config.wrapped and bool(token)) for token in wrapping(tokenizer)]
        config.opening_tokens, config.closing_tokens = frame
        set_template(tokenizer, config)


def set_template(tokenizer: PreTrainedTokenizerBase, config: DialogueConfig) -> None:
    """Give the tokenizer the chat template of a config, and no length limit.

    The model cuts by itself.
    """
    tokenizer.chat_template = chat_template(tokenizer, config)
    tokenizer.model_max_length = UNLIMITED
    side = "right" if config.keep == "start" else "left"  # for programs that cut earlier
    tokenizer.truncation_side = side
    tokenizer.init_kwargs["truncation_side"] = side  # the file holds both


def encode(
    model: DialogueEncoder,
    tokenizer: PreTrainedTokenizerBase,
    dialogues: Sequence[Dialogue],
    batch_size: int = 32,
    show_progress: bool | None = None,
) -> np.ndarray:
    """Embed N dialogues, (N, D) float32; log a warning if some are cut."""
    return embeddings(
        model, *_inputs(model, tokenizer, dialogues), batch_size, show_progress, _limits(model)
    )


def encode_speakers(
    model: DialogueEncoder,
    tokenizer: PreTrainedTokenizerBase,
    dialogues: Sequence[Dialogue],
    batch_size: int = 32,
) -> np.ndarray:
    """Embed each speaker of N dialogues (section 5.3.1), cut as in `encode`.

    Return vectors in the order of the roles, (N, R, D) float32, zeros for absent speakers.
    """
    inputs = _inputs(model, tokenizer, dialogues)
    shape = len(dialogues), model.config.num_roles, model.config.hidden_size
    vectors = np.zeros(shape, dtype=np.float32)
    for rows, output, _ in outputs(model, *inputs, batch_size, None, _limits(model)):
        vectors[rows] = output.role_embeddings.float().cpu().numpy()
    return vectors


def _inputs(model: Any, tokenizer: Any, dialogues: Sequence[Dialogue]) -> tuple[list[int], LayOut]:
    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        return tokenize([dialogues[row] for row in rows], tokenizer, model.config, count)

    texts = (sum(len(turn.content) for turn in dialogue.turns) for dialogue in dialogues)
    # about as many tokens
    return [min(1 + characters // 4, model.config.max_tokens) for characters in texts], lay_out


def _limits(model: DialogueEncoder) -> str:
    return f"; max_tokens is {model.config.max_tokens}, keep is '{model.config.keep}'"
