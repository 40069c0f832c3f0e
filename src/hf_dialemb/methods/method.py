"""The contract of a method: a config, a model, examples, and how they become batches."""

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..dialogue import Dialogue
from .backbone_model import MethodModel
from .config import Kind, MethodConfig
from .layout import Truncation

ABOUT: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("about.toml").read_text(encoding="utf-8")
)
"""What cards say of the package's own methods, by name: the last four fields of `Method`."""


class Examples:
    """The training examples of a method, by default the items themselves.

    Those with ``label_texts`` are given ``label_vectors`` (K, E) float32 of another encoder before
    the first is requested; those with ``response_texts`` are given ``response_vectors`` (N, D). An
    empty list wants none.

    Attributes:
        items: What each example is made of.
        notes: What was left out of the dialogues and why, a sentence each.
        config: The settings of the method, for those who draw by them.
        seed: What they draw by.
    """

    def __init__(
        self, items: Sequence[Any], notes: Iterable[str] = (), config: Any = None, seed: int = 0
    ) -> None:
        self.items = items
        self.notes = list(notes)
        self.config = config
        self.seed = seed

    def __len__(self) -> int:
        return len(self.items)

    def example(self, epoch: int, index: int) -> Any:
        """Make an example, a pure function of (seed, epoch, index)."""
        return self.items[index]

    def length(self, index: int) -> int:
        """Return an example's estimated size or the number of its kind.

        A batch holds similar ones.
        """
        return 1


@dataclass(frozen=True)
class Method:
    """The contract of a method.

    Attributes:
        name: Its key in `METHODS`.
        config_class: Its config.
        model_class: Its model; ``forward`` returns a `DialogueOutput`, `UtteranceOutput` or
            `RankingOutput` with ``loss`` for training batches.
        examples: Makes `Examples` of dialogues, a config and a seed: decides positives, negatives
            and windows.
        collate: Turns ``examples`` into ``forward``'s arguments, ``collate(examples, tokenizer,
            config, truncation)``, and adds what was dropped to ``truncation``.
        min_turns: Shorter dialogues are not used.
        min_speakers: Dialogues of fewer speakers are not used.
        labelled: Whether it learns from dialogue acts and slots, whose names are unified.
        from_scratch: Whether its model begins with the words of the dialogues instead of a
            pretrained backbone.
        in_batch_negatives: Whether the other examples of a batch are its negatives, so that a batch
            needs two.
        trained: Whether a run trains it, or it is made of trained models.
        title: Its name for people.
        paper: Key of its paper in the package's bibliography, or a BibTeX entry of its own.
        suite: The benchmark suite of its paper.
        what: How it learns and what its vectors are, in a few sentences for a model's card.
    """

    name: str
    config_class: type[MethodConfig]
    model_class: type[MethodModel]
    examples: Callable[[Sequence[Dialogue], Any, int], Examples]
    collate: Callable[[list[Any], PreTrainedTokenizerBase, Any, Truncation], dict[str, Tensor]]
    min_turns: int = 1
    min_speakers: int = 1
    labelled: bool = False
    from_scratch: bool = False
    in_batch_negatives: bool = False
    trained: bool = True
    title: str = ""
    paper: str | None = None
    suite: str | None = None
    what: str = ""

    @property
    def kind(self) -> Kind:
        """What its models read."""
        return self.config_class.kind
