"""DSE.

Utterance embeddings from consecutive utterances (Zhou et al., NAACL 2022, arXiv:2205.13568).

An utterance and the next one are a positive pair. The other utterances of the batch are its
negatives; near ones weigh more.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..dialogue import WORD, Dialogue
from ..errors import InputError
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import autocast_off
from .config import UtteranceConfig
from .layout import Truncation, tokenize_utterances
from .losses import gather_rows, pair_contrastive
from .method import ABOUT, Examples, Method
from .utterance import UtteranceEncoder, UtteranceOutput, nested, positives_first


@strict
class DSEConfig(UtteranceConfig):
    """Settings of DSE, beside those of `UtteranceConfig`.

    Attributes:
        matryoshka_dims: Widths that embeddings can be cut to; the loss is the mean over these and
            the whole.
        loss_temperature: Divides the cosines (0.05).
        negative_weights: Weights of negatives: ``"hard"`` as the released program computes them,
            ``"printed"`` as in equation 1, ``"plain"`` all equal (see `losses.pair_contrastive`).
        min_words: Pairs with a side of fewer words are left out (the paper keeps more than three
            words). A Chinese or Japanese character counts as a word.
    """

    model_type = "dialemb-dse"
    ranges: ClassVar[Ranges] = {"loss_temperature": ABOVE_ZERO, "min_words": Range(1)}

    max_tokens: int = 32
    matryoshka_dims: list[int] | None = None
    loss_temperature: float = 0.05
    negative_weights: Literal["hard", "printed", "plain"] = "hard"
    min_words: int = 4


class DSEModel(UtteranceEncoder):
    """The encoder with one contrastive head."""

    config: DSEConfig

    def contrast(self, input_ids: Tensor, attention_mask: Tensor) -> UtteranceOutput:  # type: ignore[override]
        """Contrast pairs with all others of the batch, on all processes (equations 1 to 3).

        The ids (B, 2, L) are of queries and responses; both sides of a pair are anchors.
        """
        embeddings = self.embed(input_ids.flatten(0, 1), attention_mask.flatten(0, 1))  # (2B, D)
        with autocast_off(embeddings):
            # (B, 2, P)
            sizes = [
                self.project(part).unflatten(0, (-1, 2))
                for part in nested(embeddings, self.config.matryoshka_dims)
            ]
            loss = torch.stack([self._loss(pairs) for pairs in sizes]).mean()
            own = positives_first((sizes[0][:, 0] @ sizes[0][:, 1].T).detach())
        return UtteranceOutput(
            loss=loss, pooler_output=embeddings.unflatten(0, (-1, 2))[:, 0], similarities=own
        )

    def _loss(self, pairs: Tensor) -> Tensor:
        """Contrast pairs (B, 2, P) with those of all processes."""
        everyone, first = gather_rows(pairs, self.training)  # (C / 2, 2, P)
        at = first + torch.arange(len(pairs), device=pairs.device)
        mirrored = at + len(everyone)
        return pair_contrastive(
            torch.cat(pairs.unbind(1)) @ torch.cat(everyone.unbind(1)).T,
            own=torch.cat([at, mirrored]),
            positive=torch.cat([mirrored, at]),
            temperature=self.config.loss_temperature,
            weights=self.config.negative_weights,
        )


class DSEExamples(Examples):
    """An utterance and the next of its dialogue (section 3.1)."""

    def __init__(self, dialogues: Sequence[Dialogue], config: DSEConfig, seed: int) -> None:
        pairs = [
            pair
            for dialogue in dialogues
            for pair in pairwise(turn.content for turn in dialogue.turns)
        ]
        items = [
            pair
            for pair in pairs
            if min(len(WORD.findall(text)) for text in pair) >= config.min_words
        ]
        short = len(pairs) - len(items)
        note = f"Left out {short:,} pairs with a side of fewer than {config.min_words} words"
        super().__init__(items, [note] if short else [])
        if not items:
            raise InputError(
                f"dse: got no pair of utterances from {len(dialogues)} dialogues ({short} are "
                f"shorter than min_words {config.min_words}), expected at least one; add dialogues "
                "or lower min_words"
            )


def collate(
    examples: list[tuple[str, str]],
    tokenizer: PreTrainedTokenizerBase,
    config: DSEConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out B pairs, (B, 2, L); a long text keeps its start."""
    texts = [text for pair in examples for text in pair]
    batch = tokenize_utterances(texts, tokenizer, config.max_tokens, count, config.prompt)
    return {name: tensor.unflatten(0, (-1, 2)) for name, tensor in batch.items()}


METHOD = Method(
    "dse",
    DSEConfig,
    DSEModel,
    DSEExamples,
    collate,
    min_turns=2,
    in_batch_negatives=True,
    **ABOUT["dse"],
)
