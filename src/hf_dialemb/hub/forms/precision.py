"""How the weights of a published folder are written: their precision and the size of their files."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from ...errors import InputError

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_TOLERANCES = {torch.bfloat16: 1e-1, torch.float16: 2e-2}
"""Largest difference of embeddings that half precision may make, relative to their largest value.

Some tens of times the rounding of one number (2^-8 and 2^-11), as each layer adds to it: six of a transformer come to
about 0.01 and 0.002, an LSTM over 160 words to ten times as much.
"""

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class WeightForm:
    """The type that weights are rounded to, and their largest file, such as ``"1GB"``; None changes nothing."""

    dtype: torch.dtype | None = None
    max_shard_size: str | None = None

    def __post_init__(self) -> None:
        size = self.max_shard_size
        if size is not None and not re.fullmatch(r"\d+(\.\d+)?(KB|MB|GB|TB)", size, re.IGNORECASE):
            raise InputError(f"--max-shard-size: got '{size}', expected a size; write it as 500MB or 1GB")

    def applied(self, model: Model) -> Model:
        """Round a model's weights; half precision goes into a copy, so that the model can be compared with it."""
        if self.dtype is None or self.dtype == next(model.parameters()).dtype:
            return model
        return model.float() if self.dtype == torch.float32 else copy.deepcopy(model).to(self.dtype)

    def save_options(self) -> dict[str, Any]:
        """Return the options for ``save_pretrained``."""
        return {} if self.max_shard_size is None else {"max_shard_size": self.max_shard_size}

    def tolerance(self, model: nn.Module, full: float) -> float:
        """Return the largest difference of embeddings that passes; ``full`` is that of full precision."""
        return max(full, _TOLERANCES.get(self.dtype or next(model.parameters()).dtype, 0.0))


AS_TRAINED = WeightForm()
