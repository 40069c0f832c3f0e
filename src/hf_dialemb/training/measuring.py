"""What an evaluation measures: the method's own task, which needs no labels, and the vectors."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object

from ..dialogue import Dialogue
from ..encoders.load_encoder import model_encoder
from ..metrics.purity import cluster_purity

BLOCK = 64
"""The most examples that are each other's negatives, whatever the batch and the processes."""


@torch.no_grad()
def measure(trainer: Any, dataset: Any) -> dict[str, float]:
    """Return the loss of examples and their accuracy; see `DialogueTrainer.evaluate`.

    Examples that are each other's negatives are measured in the same blocks by any number of
    processes with any batch, so that the figures are the same.
    """
    model = trainer.model
    collator = trainer.collator
    training = model.training
    counted = copy(collator.truncation)
    model.eval()
    size = BLOCK if collator.method.in_batch_negatives else trainer.args.per_device_eval_batch_size
    order = np.random.default_rng(0).permutation(len(dataset))
    blocks = np.array_split(order, -(-len(order) // size)) if len(order) else []
    processes = trainer.args.world_size
    scores: list[tuple[int, float, float]] = []
    for start in range(0, len(blocks), processes):
        place = start + trainer.args.process_index
        # beyond the last block too, since processes that share weights run in step
        examples = [dataset[int(row)] for row in blocks[place % len(blocks)]]
        with trainer.compute_loss_context_manager():
            output = model(**trainer._prepare_inputs(collator(examples)))
        first = ranked_first(output.similarities)  # (B,)
        if place < len(blocks):
            scores.append((len(first), output.loss.item(), first.mean().item()))
    metrics: dict[str, float] = {}
    if blocks:
        sizes, losses, accuracies = zip(*gather_object(scores), strict=True)
        loss = float(np.average(losses, weights=sizes))
        accuracy = float(np.average(accuracies, weights=sizes))
        metrics = {"loss": loss, "contrastive_loss": loss, "contrastive_accuracy": accuracy}
    if trainer.run.checkpoint_selection == "dev_purity":
        labelled = [talk for talk in dataset.dialogues if len(talk.domains) == 1]
        labels = [dialogue.domains[0] for dialogue in labelled]
        purity = cluster_purity(vectors_of(trainer, labelled), labels, seeds=range(3))["purity"]
        metrics["dev_purity"] = float(np.mean(purity))
    model.train(training)
    collator.truncation = counted  # of what is learnt from alone
    return metrics


def vectors_of(trainer: Any, dialogues: Sequence[Dialogue]) -> np.ndarray:
    """Embed N dialogues as the trained encoder would, (N, D) float32; every process embeds all."""
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    return model_encoder(model, trainer.processing_class, "the model").encode(dialogues)


def labels_of(dialogues: Sequence[Dialogue]) -> np.ndarray:
    """Return the first domain of each of N dialogues, None where there is none, (N,) of objects."""
    labels = np.empty(len(dialogues), dtype=object)
    labels[:] = [dialogue.domains[0] if dialogue.domains else None for dialogue in dialogues]
    return labels


def ranked_first(similarities: torch.Tensor) -> torch.Tensor:
    """Return the share of roles whose first candidate is the most similar, (B,) in [0, 1].

    A tie is no success.
    """
    first = (similarities[:, :1] > similarities[:, 1:]).all(1).float()  # (B, R)
    present = (similarities != 0).any(1).float()
    return (first * present).sum(1) / present.sum(1).clamp(min=1)
