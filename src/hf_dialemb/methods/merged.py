"""Merging: the weight changes of several trainings, added to their common backbone.

``theta = theta_0 + sum_i w_i (theta_i - theta_0)``: task arithmetic (Ilharco et al., ICLR 2023,
arXiv:2212.04089). With a rank, the sum of each linear layer is cut to its first singular values, a
LoRA adapter (arXiv:2106.09685), and all other weights stay the backbone's.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ..errors import InputError
from ..ranges import Range, Ranges
from .backbone_model import load_backbone
from .config import UtteranceConfig
from .dse import DSEExamples, collate
from .method import ABOUT, Method
from .utterance import UtteranceEncoder

# of the backbone's length in weight space; trainings move a few hundredths, another backbone more
# than one
_FAR = 0.5


@strict
class MergedConfig(UtteranceConfig):
    """Settings of a merged encoder, beside those of `UtteranceConfig`.

    Attributes:
        parts: The weight w_i of each training, by its name.
        rank: Rank of the differences of linear layers; None if they are whole.
    """

    model_type = "dialemb-merged"
    ranges: ClassVar[Ranges] = {"rank": Range(1)}

    max_tokens: int = 512
    projection_size: int | None = None
    parts: dict[str, float] | None = None
    rank: int | None = None


class Factors(NamedTuple):
    """A linear layer's difference (out, in) as a product.

    LoRA's A, (rank, in), and B, (out, rank).
    """

    down: Tensor
    up: Tensor


class MergedModel(UtteranceEncoder):
    """An encoder of texts made of trained ones.

    ``adapter`` holds the `Factors` of linear layers that were cut.
    """

    config: MergedConfig
    adapter: Mapping[str, Factors] = MappingProxyType({})

    @classmethod
    def from_parts(
        cls,
        backbone: str,
        parts: Mapping[str, float],
        rank: int | None = None,
        max_tokens: int = 512,
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Merge trainings of one backbone to an encoder in evaluation mode, float32, that cuts
        texts at ``max_tokens``.

        ``parts`` gives each model of this package, or plain encoder, its weight. With a rank, the
        differences of linear layers are cut to it, and all other weights stay the backbone's. Raise
        InputError if there is no part, a weight is no number, or a part has another backbone, other
        shapes, or nothing that moved.
        """
        if not parts:
            raise InputError(
                "parts: got none, expected trained models and their weights; name at least one"
            )
        for path, weight in parts.items():
            if (
                isinstance(weight, bool)
                or not isinstance(weight, int | float)
                or not math.isfinite(weight)
            ):
                raise InputError(
                    f"parts: got the weight {weight!r} for '{path}', expected a number; give one"
                )
        named = {Path(name).name: float(weight) for name, weight in parts.items()}
        model, tokenizer = cls.from_backbone(
            backbone, parts=named, rank=rank, max_tokens=max_tokens, encoding_tokens=max_tokens
        )
        start = {
            name: value
            for name, value in model.encoder.state_dict().items()
            if value.is_floating_point()
        }
        total = {name: torch.zeros_like(value) for name, value in start.items()}
        for path, weight in parts.items():
            for name, moved in _moved(start, path, backbone).items():
                total[name] += weight * moved
        if rank is not None:
            linear = [
                name for name, part in model.encoder.named_modules() if isinstance(part, nn.Linear)
            ]
            # frozen layers would be stored as zeros
            changed = [name for name in linear if total[f"{name}.weight"].any()]
            model.adapter = {name: factors(total[f"{name}.weight"], rank) for name in changed}
            total = {f"{name}.weight": up @ down for name, (down, up) in model.adapter.items()}
        model.encoder.load_state_dict(
            {name: start[name] + change for name, change in total.items()}, strict=False
        )
        return model, tokenizer


def factors(difference: Tensor, rank: int) -> Factors:
    """Cut a matrix (out, in) to its first singular values, rounded to bfloat16, as it is stored."""
    left, values, right = torch.linalg.svd(difference, full_matrices=False)
    root = values[:rank].sqrt()
    down, up = root[:, None] * right[:rank], left[:, :rank] * root
    return Factors(down.bfloat16().float(), up.bfloat16().float())


def _moved(start: Mapping[str, Tensor], path: str, backbone: str) -> dict[str, Tensor]:
    """Return the change of each weight of a backbone by a training, without rows that were added to
    a table.
    """
    end = load_backbone(path, None).encoder.state_dict()
    moved = {}
    for name, before in start.items():
        after = end.get(name)
        if after is not None and "word_embeddings" in name:
            after = after[: len(before)]  # a method's own markers stand behind the backbone's words
        if after is None or after.shape != before.shape:
            got = "no" if after is None else f"{tuple(after.shape)} for"
            raise InputError(
                f"parts: '{path}' has {got} {name}, expected the {tuple(before.shape)} of "
                f"'{backbone}'; merge "
                "trainings of one backbone"
            )
        moved[name] = after.float() - before
    distance, length = (
        math.hypot(*(float(value.norm()) for value in part.values())) for part in (moved, start)
    )
    if distance == 0:
        raise InputError(
            f"parts: '{path}' moved nothing of '{backbone}' (its heads alone, if any); leave it out"
        )
    if not distance < _FAR * length:
        raise InputError(
            f"parts: '{path}' is {distance / length:.0%} of its length away from '{backbone}', "
            "expected a training "
            "that began with it; merge trainings of one backbone"
        )
    return moved


METHOD = Method(
    "merged", MergedConfig, MergedModel, DSEExamples, collate, trained=False, **ABOUT["merged"]
)
