"""A method of one's own in a file.

SimCSE without labels (Gao et al., EMNLP 2021), with [CLS] pooling.

An utterance and itself under another dropout are a positive pair; the other utterances of the batch
are its negatives.

    dialemb train calls.jsonl --method own_method.py --output runs/own
    dialemb embed calls.jsonl --method own_method.py --model runs/own --output vectors.parquet
    dialemb publish runs/own --method own_method.py --repo-id org/own

In Python, `hf_dialemb.train("own_method.py", ...)` trains it, and
`hf_dialemb.register("own_method.py")` lets `load_encoder`, `AutoModel` and all else know it. An
installed package names it by an entry point instead:

    [project.entry-points."hf_dialemb.methods"]
    simcse = "my_package.own_method"

A published model needs neither the file nor this package.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from hf_dialemb.dialogue import Dialogue
from hf_dialemb.methods.config import UtteranceConfig
from hf_dialemb.methods.layout import Truncation, tokenize_utterances
from hf_dialemb.methods.method import Examples, Method
from hf_dialemb.methods.utterance import UtteranceEncoder, UtteranceOutput, positives_first
from hf_dialemb.ranges import ABOVE_ZERO, Ranges


@strict
class SimCSEConfig(UtteranceConfig):
    """Settings of SimCSE, beside those of `UtteranceConfig`.

    The temperature divides the cosines.
    """

    model_type = "simcse"
    ranges: ClassVar[Ranges] = {"loss_temperature": ABOVE_ZERO}

    max_tokens: int = 32
    pooling: Literal["mean", "cls"] = "cls"
    loss_temperature: float = 0.05


class SimCSEModel(UtteranceEncoder):
    """The encoder with one contrastive head."""

    config: SimCSEConfig

    def contrast(self, input_ids: Tensor, attention_mask: Tensor) -> UtteranceOutput:
        """Contrast two views of each utterance, (B, 2, L), with the others (equation 4)."""
        embeddings = self.embed(input_ids.flatten(0, 1), attention_mask.flatten(0, 1))
        ones, others = self.project(embeddings).unflatten(0, (-1, 2)).unbind(1)
        similarities = ones @ others.T
        targets = torch.arange(len(ones), device=ones.device)
        loss = nn.functional.cross_entropy(similarities / self.config.loss_temperature, targets)
        return UtteranceOutput(
            loss, embeddings[::2], similarities=positives_first(similarities.detach())
        )


class SimCSEExamples(Examples):
    """The distinct utterances of dialogues; example i does not depend on seed or epoch."""

    def __init__(self, dialogues: Sequence[Dialogue], config: SimCSEConfig, seed: int) -> None:
        super().__init__(
            list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))
        )


def collate(
    examples: list[str],
    tokenizer: PreTrainedTokenizerBase,
    config: SimCSEConfig,
    truncation: Truncation,
) -> dict[str, Tensor]:
    """Lays out each utterance twice: ``input_ids``, ``attention_mask``, each (B, 2, L) int64."""
    twice = [text for text in examples for _ in range(2)]
    batch = tokenize_utterances(twice, tokenizer, config.max_tokens, truncation)
    return {name: tensor.unflatten(0, (-1, 2)) for name, tensor in batch.items()}


METHOD = Method(
    "simcse",
    SimCSEConfig,
    SimCSEModel,
    SimCSEExamples,
    collate,
    in_batch_negatives=True,
    title="SimCSE",
    what="An utterance under two dropouts is a positive pair in training. The vector of an "
    "utterance is that of [CLS].",
)
