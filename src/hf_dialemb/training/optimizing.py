"""What of a model learns and how fast.

Factors of low rank, rates of contrastive heads, a released program's schedule.

With a rank, each linear layer of the encoder learns a product of two thin matrices (LoRA,
arXiv:2106.09685). The rest stays the backbone's, so that `hf_dialemb.merge` with the same rank cuts
nothing. Saved folders hold whole weights, and beside them the factors, for resuming.
"""

import math
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ..errors import InputError
from ..methods.backbone_model import MethodModel

FACTORS = "low_rank.safetensors"

_PART = ".parametrizations.weight."


class LowRank(nn.Module):
    """Add ``up @ down``, (out, rank) and (rank, in), to a frozen weight.

    The product starts at zero.
    """

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(weight.new_empty(rank, weight.shape[1]))
        self.up = nn.Parameter(weight.new_zeros(weight.shape[0], rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the whole weight, (out, in)."""
        return weight + self.up @ self.down


def limit_rank(model: MethodModel, rank: int) -> None:
    """Let the encoder's linear layers learn products of ``rank``, and freeze the rest.

    Heads learn whole.
    """
    encoder: Any = model.encoder
    linear = [
        part
        for part in encoder.modules()
        if isinstance(part, nn.Linear) and part.weight.requires_grad
    ]
    encoder.requires_grad_(False)
    for module in linear:
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, rank))


def is_limited(model: nn.Module) -> bool:
    """Return whether the model has factors, of `limit_rank`, that were not merged."""
    return any(map(parametrize.is_parametrized, model.modules()))


def merge_factors(model: nn.Module) -> None:
    """Add the products to their weights."""
    for module in [module for module in model.modules() if parametrize.is_parametrized(module)]:
        parametrize.remove_parametrizations(module, "weight")


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's weights by their usual names, with the products added."""
    modules = {
        name: module
        for name, module in model.named_modules()
        if parametrize.is_parametrized(module)
    }
    plain = {name: value for name, value in model.state_dict().items() if _PART not in name}
    return plain | {f"{name}.weight": module.weight.detach() for name, module in modules.items()}


def save_factors(model: nn.Module, folder: Path) -> None:
    """Write the factors of a checkpoint."""
    save_file(
        {name: value for name, value in model.state_dict().items() if f"{_PART}0" in name},
        folder / FACTORS,
    )


def load_factors(model: nn.Module, folder: Path) -> None:
    """Read the factors of a checkpoint into the model."""
    model.load_state_dict(load_file(folder / FACTORS), strict=False)


def separate_heads(optimizer: Optimizer, model: nn.Module, rate: float) -> None:
    """Give the parameters of contrastive heads groups with a learning rate of their own."""
    heads = {parameter for name, parameter in model.named_parameters() if "heads." in name}
    if not heads:
        raise InputError(
            f"head_learning_rate: got {rate}, but with these settings there is no head; leave it "
            "out"
        )
    for group in list(optimizer.param_groups):
        own = [parameter for parameter in group["params"] if parameter in heads]
        group["params"] = [parameter for parameter in group["params"] if parameter not in heads]
        if own:
            optimizer.add_param_group({**group, "params": own, "lr": rate})


def released_schedule(optimizer: Optimizer, total: int) -> LambdaLR:
    """Return the schedule of dial2vec's released program.

    Warm up over a tenth of the examples, then fall to zero.
    """

    def factor(step: int) -> float:
        progress = step / total
        return progress / 0.1 if progress < 0.1 else max(0.0, 1 - progress)

    return LambdaLR(optimizer, factor)
