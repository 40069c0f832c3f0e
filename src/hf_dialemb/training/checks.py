"""What is refused before a training reads any data: settings that cannot be, or that would do nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..ranges import ABOVE_ZERO, Range, check_range, check_ranges

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from ..methods.method import Method
    from .settings import RunArguments

SELECTIONS = {"contrastive_loss": False, "contrastive_accuracy": True, "uniformity": False, "dev_purity": True}
"""Signals that can choose a checkpoint, and whether a greater value is better."""

RANGES = {
    "learning_rate": ABOVE_ZERO, "per_device_train_batch_size": Range(1), "num_train_epochs": ABOVE_ZERO,
    "gradient_accumulation_steps": Range(1), "weight_decay": Range(0), "dataloader_num_workers": Range(0),
    "seed": Range(0, 2**32 - 1), "data_seed": Range(0, 2**32 - 1),
}  # fmt: skip


def check_training(training: TrainingArguments) -> None:
    """Refuses what cannot be trained with, before any data is read."""
    check_ranges(training, RANGES)
    if training.max_steps == 0:
        raise InputError("max_steps: got 0, expected at least 1, or -1 for as many as the epochs have; change it")
    if training.train_sampling_strategy != "random":  # a step is drawn by training.data.EpochSampler
        raise InputError(
            f"train_sampling_strategy: got {training.train_sampling_strategy}, but batches are always made of examples "
            "of similar length, in an order drawn by the seed; leave it out"
        )
    if not str(training.output_dir).strip():
        raise InputError("output_dir: got nothing, expected a folder; name one")
    if training.resume_from_checkpoint is not None:
        raise InputError(
            f"resume_from_checkpoint: got {training.resume_from_checkpoint}, but a run goes on from its own "
            "last checkpoint; leave it out"
        )
    if training.load_best_model_at_end:
        raise InputError(
            "load_best_model_at_end: got true, but checkpoint_selection says which checkpoint a run ends with; choose "
            f"one of {', '.join(SELECTIONS)} there, and leave it out"
        )
    _check_parts(training)
    if training.n_gpu > 1:  # Trainer would split batches over threads, and each part would have negatives of its own
        raise InputError(
            f"got {training.n_gpu} GPUs for one process, expected one; start with accelerate launch, or set "
            "CUDA_VISIBLE_DEVICES=0"
        )


def _check_parts(training: TrainingArguments) -> None:
    """Makes the optimiser, its schedule and the loggers once, for one number, so that they tell what they lack."""
    import torch
    from transformers import Trainer, get_scheduler
    from transformers.integrations.integration_utils import get_reporting_integration_callbacks

    name = "optim"
    try:
        optimizer_class, options = Trainer.get_optimizer_cls_and_kwargs(training)
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
        if not {"model", "params", "optimizer_dict"} & options.keys():
            optimizer = optimizer_class([torch.nn.Parameter(torch.zeros(1))], **options)
        name = "lr_scheduler_type"
        given: Any = training.lr_scheduler_kwargs
        get_scheduler(training.lr_scheduler_type, optimizer, 1, 2, given)
        name = "report_to"
        for callback in get_reporting_integration_callbacks(training.report_to):
            callback()
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        raise InputError(f"{name}: {' '.join(str(error).split())}; choose another, or give it what it lacks") from None


def check_method(method: Method, run: RunArguments, chosen: dict[str, Any], training: TrainingArguments) -> None:
    """Refuses what the method cannot do, and leaves out a last batch that may be too small for it."""
    dialogues, utterances, rankers = (method.kind == kind for kind in ("dialogues", "utterances", "responses"))
    granularity, adapted = chosen.get("granularity"), run.language_model_steps or run.language_model_epochs
    refused = (
        ("center", run.center and not dialogues, "is no dialogue encoder"),
        ("checkpoint_selection", run.checkpoint_selection == "dev_purity" and not dialogues, "is no dialogue encoder"),
        ("head_learning_rate", run.head_learning_rate is not None and not utterances, "has no contrastive head"),
        ("dev_candidates", run.dev_candidates is not None and not rankers, "is no ranker of responses"),
        ("granularity_model", run.granularity_model is not None and granularity is None, "draws from all responses"),
        ("dropout", run.dropout is not None and method.from_scratch, "has no dropout"),
        ("average_with_backbone", run.average_with_backbone > 0 and method.from_scratch, "has no backbone"),
        ("language_model_steps", bool(adapted) and method.from_scratch, "has no backbone"),
    )
    for name, asked, reason in refused:
        if asked:
            raise InputError(f"{name}: got a setting that is not for {method.name}, which {reason}; leave it out")
    if granularity is not None and run.granularity_model is None:
        raise InputError(
            f"granularity: got {granularity}, but no granularity_model, expected the folder of a trained ranker that "
            "tells how similar responses are; name one"
        )
    _check_signal(run, training)
    if training.dataloader_num_workers and os.environ.get("TOKENIZERS_PARALLELISM", "").lower() in ("true", "on", "1"):
        raise InputError(
            f"dataloader_num_workers: got {training.dataloader_num_workers} with TOKENIZERS_PARALLELISM in the "
            "environment, under which tokenizers in other processes wait for ever; unset it"
        )
    if method.in_batch_negatives:
        check_range("per_device_train_batch_size", training.per_device_train_batch_size, 2)
        training.dataloader_drop_last = True
    if method.prepare is not None:
        method.prepare(chosen, training)


def _check_signal(run: RunArguments, training: TrainingArguments) -> None:
    """Refuses what cannot be measured, or would not be measured when it was asked for."""
    without_dev = run.dev_split is None and run.dev_candidates is None
    if run.patience is not None and run.checkpoint_selection == "last":
        raise InputError(
            f"patience: got {run.patience}, but no signal to wait for, as checkpoint_selection is last; choose one of "
            f"{', '.join(SELECTIONS)} there"
        )
    saving = getattr(training.save_strategy, "value", training.save_strategy)
    if run.checkpoint_selection != "last" and saving not in ("steps", "epoch"):
        raise InputError(
            f"checkpoint_selection: got {run.checkpoint_selection}, but save_strategy is {saving}, so "
            "that there is nothing to choose from; save by steps or epochs, or choose last"
        )
    measured = getattr(training.eval_strategy, "value", training.eval_strategy)
    if run.checkpoint_selection != "last" and (
        measured not in ("no", saving) or training.eval_steps not in (None, training.save_steps)
    ):
        raise InputError(
            f"eval_strategy, eval_steps: got {measured}, {training.eval_steps}, but checkpoint_selection measures "
            "wherever a checkpoint is saved; leave them out and say it by save_strategy and save_steps"
        )
    if training.eval_strategy != "no" and without_dev:
        raise InputError("eval_strategy: got one, but no dev_split to evaluate on; name one, or leave it out")
