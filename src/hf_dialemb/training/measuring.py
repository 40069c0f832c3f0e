"""What an evaluation measures: the method's own task, without labels, and the vectors."""

from collections.abc import Sequence
from copy import copy
from typing import Any, cast

import numpy as np
import torch
from transformers.trainer_utils import default_compute_objective

from ..dialogue import Dialogue
from ..encoders.loading import model_encoder
from ..metrics.alignment_uniformity import uniformity
from ..metrics.purity import cluster_purity
from .data import ExampleDataset

MEASURES = ("contrastive_loss", "contrastive_accuracy", "uniformity", "dev_purity")
"""The metrics of every evaluation, beside its loss and its duration."""

_UNIFORMITY_SAMPLE = 2_000  # embeddings, of which all pairs are compared


@torch.no_grad()
def measure(trainer: Any, dataset: ExampleDataset) -> dict[str, float]:  # noqa: ANN401
    """Return the loss of examples, and those of `MEASURES` that apply; see `DialogueTrainer.evaluate`."""
    losses: list[torch.Tensor] = []
    correct: list[torch.Tensor] = []
    embeddings: list[torch.Tensor] = []
    model = cast("torch.nn.Module", trainer.model)
    training, counted = model.training, copy(trainer.collator.truncation)
    model.eval()
    for batch in trainer.get_eval_dataloader(dataset):
        with trainer.compute_loss_context_manager():
            output = model(**trainer._prepare_inputs(batch))
        first = ranked_first(output.similarities)  # (B,)
        row = [output.loss.expand(len(first)), first]
        row += [] if output.pooler_output is None else [output.pooler_output.float()]
        gathered = trainer.accelerator.gather_for_metrics(row)
        for store, value in zip((losses, correct, embeddings), gathered, strict=False):
            store.append(value.cpu())
    loss, accuracy = (torch.cat(store).mean().item() for store in (losses, correct))
    metrics = {"loss": loss, "contrastive_loss": loss, "contrastive_accuracy": accuracy}
    if sum(map(len, embeddings)) > 1:
        metrics["uniformity"] = uniformity(torch.cat(embeddings)[:_UNIFORMITY_SAMPLE].numpy())
    if trainer.run.checkpoint_selection == "dev_purity":
        labelled = [dialogue for dialogue in dataset.dialogues if len(dialogue.domains) == 1]
        labels = [dialogue.domains[0] for dialogue in labelled]
        purity = cluster_purity(vectors_of(trainer, labelled), labels, seeds=range(3))["purity"]
        metrics["dev_purity"] = float(np.mean(purity))
    model.train(training)
    trainer.collator.truncation = counted  # of what is learnt from alone
    return metrics


def vectors_of(trainer: Any, dialogues: Sequence[Dialogue]) -> np.ndarray:  # noqa: ANN401
    """Embed N dialogues as the trained encoder would, (N, D) float32; every process embeds all."""
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    return model_encoder(model, trainer.processing_class, "the model").encode(dialogues)


def objective(metrics: dict[str, float]) -> float:
    """Return what a search makes small by default: the loss, or the sum of what a user's function measured."""
    own = {name: value for name, value in metrics.items() if not name.endswith(MEASURES)}
    return float(default_compute_objective(own))


def labels_of(dialogues: Sequence[Dialogue]) -> np.ndarray:
    """Return the first domain of each of N dialogues, None where there is none, (N,) of objects."""
    labels = np.empty(len(dialogues), dtype=object)
    labels[:] = [dialogue.domains[0] if dialogue.domains else None for dialogue in dialogues]
    return labels


def ranked_first(similarities: torch.Tensor) -> torch.Tensor:
    """Return the share of roles whose first candidate is the most similar, (B,) in [0, 1]; a tie is no success."""
    first = (similarities[:, :1] > similarities[:, 1:]).all(1).float()  # (B, R)
    present = (similarities != 0).any(1).float()
    return (first * present).sum(1) / present.sum(1).clamp(min=1)
