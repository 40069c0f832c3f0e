"""The loop of every training here: steps, a score now and then, and in the end the weights of the best score."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def train(
    layers: torch.nn.Module,
    loss: Callable[[], torch.Tensor],
    optimiser: torch.optim.Optimizer,
    score: Callable[[], float],
    scored_at: Sequence[int],
    patience: int,
    *,
    schedule: Any = None,  # noqa: ANN401 - a scheduler of learning rates
    max_grad_norm: float | None = None,
) -> dict[int, float]:
    """Takes a step for each ``loss`` of the next batch, and leaves the layers with the weights of the best score.

    Scores, which it returns by step, are taken after the steps that are named, in ascending order, the last of which
    ends the training; it stops after ``patience`` scores in a row that are not better than the best, the first of equal
    ones.
    """
    from torch.nn.utils import clip_grad_norm_

    scores: dict[int, float] = {}
    best, best_score, waited = layers.state_dict(), float("-inf"), 0
    for step in range(scored_at[-1] + 1):
        if step in scored_at:
            scores[step] = score()
            waited += 1
            if scores[step] > best_score:
                best, best_score, waited = copy.deepcopy(layers.state_dict()), scores[step], 0
            if waited >= patience or step == scored_at[-1]:
                break
        layers.train()
        loss().backward()
        if max_grad_norm is not None:
            clip_grad_norm_(layers.parameters(), max_grad_norm)
        optimiser.step()
        if schedule is not None:
            schedule.step()
        optimiser.zero_grad()
    layers.load_state_dict(best)
    return scores
