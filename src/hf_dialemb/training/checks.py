"""Combinations of settings that cannot be, or would do nothing: refused before a training reads any data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..ranges import check_range

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from ..methods.method import Method
    from .settings import RunArguments

SELECTIONS = {"contrastive_loss": False, "contrastive_accuracy": True, "uniformity": False, "dev_purity": True}
"""Signals that can choose a checkpoint, and whether a greater value is better."""


def check_together(method: Method, run: RunArguments, chosen: dict[str, Any], training: TrainingArguments) -> None:
    """Refuse settings that do not fit the method or one another, and leave out a last batch that may be too small."""
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
            "compares responses; name one"
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
    """Refuse a signal that cannot be measured, or not at the times asked for."""
    saving, measured = (
        getattr(strategy, "value", strategy) for strategy in (training.save_strategy, training.eval_strategy)
    )
    if measured != "no" and run.dev_split is None and run.dev_candidates is None:
        raise InputError("eval_strategy: got one, but no dev_split to evaluate on; name one, or leave it out")
    if run.checkpoint_selection == "last":
        if run.patience is not None:
            raise InputError(
                f"patience: got {run.patience}, but no signal to wait for, as checkpoint_selection is last; choose one "
                f"of {', '.join(SELECTIONS)} there"
            )
        return
    if saving not in ("steps", "epoch"):
        raise InputError(
            f"checkpoint_selection: got {run.checkpoint_selection}, but save_strategy is {saving}, so "
            "that there is nothing to choose from; save by steps or epochs, or choose last"
        )
    if measured not in ("no", saving) or training.eval_steps not in (None, training.save_steps):
        raise InputError(
            f"eval_strategy, eval_steps: got {measured}, {training.eval_steps}, but checkpoint_selection measures "
            "wherever a checkpoint is saved; leave them out and set save_strategy and save_steps"
        )
