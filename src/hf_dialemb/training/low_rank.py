"""Trainings of low rank: of each linear layer a product of two thin matrices is learnt (LoRA, arXiv:2106.09685).

Everything else of the encoder stays the backbone's, so that `hf_dialemb.merge` with the same rank cuts nothing. Folders
that are written hold whole weights, and the factors beside them, for a run that goes on.
"""

import math
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..methods.backbone_model import MethodModel

FACTORS = "low_rank.safetensors"

_PART = ".parametrizations.weight."


class LowRank(nn.Module):
    """Adds ``up @ down``, (out, rank) and (rank, in), to a weight that does not learn; begins with nothing added."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(weight.new_empty(rank, weight.shape[1]))
        self.up = nn.Parameter(weight.new_zeros(weight.shape[0], rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, weight: Tensor) -> Tensor:
        """Returns the whole weight, (out, in)."""
        return weight + self.up @ self.down


def limit_rank(model: MethodModel, rank: int) -> None:
    """Lets the encoder's linear layers learn products of ``rank`` alone, and nothing else of it; heads learn whole."""
    encoder: Any = model.encoder
    linear = [each for each in encoder.modules() if isinstance(each, nn.Linear) and each.weight.requires_grad]
    encoder.requires_grad_(False)
    for module in linear:
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, rank))


def is_limited(model: nn.Module) -> bool:
    """Says whether `limit_rank` was done, and `merge_factors` was not."""
    return any(map(parametrize.is_parametrized, model.modules()))


def merge_factors(model: nn.Module) -> None:
    """Ends it: the products are added to their weights."""
    for module in [module for module in model.modules() if parametrize.is_parametrized(module)]:
        parametrize.remove_parametrizations(module, "weight")


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Returns the model's weights by their usual names, with the products added."""
    modules = {name: module for name, module in model.named_modules() if parametrize.is_parametrized(module)}
    plain = {name: value for name, value in model.state_dict().items() if _PART not in name}
    return plain | {f"{name}.weight": module.weight.detach() for name, module in modules.items()}


def save_factors(model: nn.Module, folder: Path) -> None:
    """Writes the products of a checkpoint."""
    save_file({name: value for name, value in model.state_dict().items() if f"{_PART}0" in name}, folder / FACTORS)


def load_factors(model: nn.Module, folder: Path) -> None:
    """Reads them into the model."""
    model.load_state_dict(load_file(folder / FACTORS), strict=False)
