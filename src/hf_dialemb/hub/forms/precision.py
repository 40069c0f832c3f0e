"""How the weights of a published folder are written: in which precision, and in how many files."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from ...errors import InputError

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}  # by the names of the command line
TOLERANCES = {torch.bfloat16: 1e-1, torch.float16: 2e-2}
"""Largest difference of embeddings that half precision may make, relative to their largest value.

Some tens of times the rounding of one number (2^-8 and 2^-11), as each layer adds to it: six of a transformer come to
about 0.01 and 0.002, an LSTM over 160 words to ten times as much.
"""

_SIZE = re.compile(r"\d+(\.\d+)?(KB|MB|GB|TB)", re.IGNORECASE)

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class WeightForm:
    """What weights are rounded to, and their largest file, such as ``"1GB"``; None leaves either as it would be."""

    dtype: torch.dtype | None = None
    max_shard_size: str | None = None

    @classmethod
    def named(cls, dtype: str | None, max_shard_size: str | None) -> WeightForm:
        """Reads the words of the command line."""
        if max_shard_size is not None and not _SIZE.fullmatch(max_shard_size):
            raise InputError(f"--max-shard-size: got '{max_shard_size}', expected a size; write it as 500MB or 1GB")
        return cls(None if dtype is None else DTYPES[dtype], max_shard_size)

    def applied(self, model: Model) -> Model:
        """Rounds a model's weights; to half precision in a copy, so that it can be compared with what it was."""
        if self.dtype is None or self.dtype == next(model.parameters()).dtype:
            return model
        return model.float() if self.dtype == torch.float32 else copy.deepcopy(model).to(self.dtype)

    def save_options(self) -> dict[str, Any]:
        """Returns what ``save_pretrained`` is told."""
        return {} if self.max_shard_size is None else {"max_shard_size": self.max_shard_size}

    def tolerance(self, model: nn.Module, full: float) -> float:
        """Says how far embeddings of the written weights may be from those of the model that they were made from."""
        return max(full, TOLERANCES.get(self.dtype or next(model.parameters()).dtype, 0.0))


AS_TRAINED = WeightForm()  # weights as the published form has them where nobody says otherwise
