"""What of a model learns and how fast: adapters, rates of heads, a released program's schedule."""

from peft import LoraConfig
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ..errors import InputError
from ..methods.backbone_model import MethodModel


def limit_rank(model: MethodModel, rank: int) -> None:
    """Give the encoder's linear layers LoRA adapters (arXiv:2106.09685), and freeze the rest of it.

    Parts outside of the encoder, such as contrastive heads, learn whole.
    """
    layers = [
        name
        for name, part in model.named_modules()
        if isinstance(part, nn.Linear) and name.startswith("encoder.") and part.weight.requires_grad
    ]
    outside = {
        name.rpartition(".")[0]
        for name, _ in model.named_parameters()
        if not name.startswith("encoder.")
    }
    model.add_adapter(
        LoraConfig(
            r=rank, lora_alpha=rank, target_modules=layers, modules_to_save=sorted(outside) or None
        )
    )


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

    It warms up over a tenth of the examples, then falls to zero.
    """

    def factor(step: int) -> float:
        progress = step / total
        return progress / 0.1 if progress < 0.1 else max(0.0, 1 - progress)

    return LambdaLR(optimizer, factor)
