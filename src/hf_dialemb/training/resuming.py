"""Resuming a killed run from its last checkpoint that is complete."""

import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from ..storage.run_folder import RunFolder
from .settings import SELECTIONS, RunArguments

COMPLETE = "complete"
"""The empty file that marks a checkpoint as complete."""


def out_of_patience(state: TrainerState, run: RunArguments) -> bool:
    """Return whether the last ``patience`` evaluations brought no gain.

    Only the log decides, so that a resumed run stops where an uninterrupted one would.
    """
    name = f"eval_{run.checkpoint_selection}"
    values = [entry[name] for entry in state.log_history if name in entry]
    if run.patience is None or not values:
        return False
    best = max(values) if SELECTIONS[run.checkpoint_selection] else min(values)
    return len(values) - 1 - values.index(best) >= run.patience


def restore_finished(trainer: Any, checkpoint: Path) -> bool:
    """Restore a run that was killed after its last step, which Trainer would train further.

    Return False, and restore nothing, if ``checkpoint`` is of another run.
    """
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if not (out_of_patience(state, trainer.run) or 0 < state.max_steps <= state.global_step):
        return False
    chosen = checkpoint
    if trainer.args.load_best_model_at_end and state.best_model_checkpoint:
        chosen = Path(state.best_model_checkpoint)
    trainer._load_from_checkpoint(str(chosen))
    trainer.state = state
    trainer.resumed = checkpoint
    return True


def last_complete_checkpoint(output_dir: Path) -> Path | None:
    """Return the last whole checkpoint, or None, and delete those whose writing was interrupted."""
    whole = None
    for folder in RunFolder(output_dir).checkpoints():
        if (folder / COMPLETE).is_file():
            whole = folder
        else:
            shutil.rmtree(folder)
    return whole
