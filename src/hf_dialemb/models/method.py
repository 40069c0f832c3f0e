"""The contract of a method: a config, a model, examples, and how they become batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from .config import DialogueConfig
from .dialogue import Dialogue
from .encoder import DialogueEncoder
from .layout import Truncation


class Examples(Protocol):
    """The training examples of a method: a pure function of (seed, epoch, index)."""

    def __init__(self, dialogues: Sequence[Dialogue], config: Any, seed: int) -> None: ...  # noqa: ANN401
    def __len__(self) -> int: ...
    def example(self, epoch: int, index: int) -> Any:  # noqa: ANN401
        """Makes one example; the same arguments always give the same one."""

    def length(self, index: int) -> int:
        """Estimates an example's size, to batch alike ones together."""


@dataclass(frozen=True)
class Method:
    """The contract of a method.

    Attributes:
        name: Its key in `METHODS`.
        config_class: Its config.
        model_class: Its model; ``forward`` returns a `DialogueOutput` with ``loss`` for training batches.
        examples: Decides positives, negatives and windows.
        collate: Turns examples into ``forward``'s arguments: ``collate(examples, tokenizer, config, truncation)``.
    """

    name: str
    config_class: type[DialogueConfig]
    model_class: type[DialogueEncoder]
    examples: type[Examples]
    collate: Callable[[list[Any], PreTrainedTokenizerBase, Any, Truncation], dict[str, Tensor]]
