"""Learning rates beside Trainer's: those of contrastive heads, and a released program's schedule."""

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ..errors import InputError


def separate_heads(optimizer: Optimizer, model: nn.Module, rate: float) -> None:
    """Give the parameters of contrastive heads groups with a learning rate of their own."""
    heads = {parameter for name, parameter in model.named_parameters() if "heads." in name}
    if not heads:
        raise InputError(f"head_learning_rate: got {rate}, but with these settings there is no head; leave it out")
    for group in list(optimizer.param_groups):
        own = [parameter for parameter in group["params"] if parameter in heads]
        group["params"] = [parameter for parameter in group["params"] if parameter not in heads]
        if own:
            optimizer.add_param_group({**group, "params": own, "lr": rate})


def released_schedule(optimizer: Optimizer, total: int) -> LambdaLR:
    """Return the schedule of dial2vec's released program: warm up over a tenth of the examples, then fall to zero."""

    def factor(step: int) -> float:
        progress = step / total
        return progress / 0.1 if progress < 0.1 else max(0.0, 1 - progress)

    return LambdaLR(optimizer, factor)
