"""Checkpoints that a killed run goes on from: whole ones only."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, ENOSPC
from pathlib import Path
from typing import Any

from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from ..errors import InputError
from ..hashing import sha256
from ..runs.folder import RunFolder, read_object
from .settings import SELECTIONS, Report, RunArguments

COMPLETE = "complete"
"""The file that marks a whole checkpoint, with the digests of its files."""


def out_of_patience(state: TrainerState, run: RunArguments) -> bool:
    """Return whether a run was measured often enough without gain, by its log, so that a resumed run agrees."""
    name = f"eval_{run.checkpoint_selection}"
    values = [entry[name] for entry in state.log_history if name in entry]
    if run.patience is None or not values:
        return False
    best = max(values) if SELECTIONS[run.checkpoint_selection] else min(values)
    return len(values) - 1 - values.index(best) >= run.patience


def restore_finished(trainer: Any, checkpoint: Path) -> bool:  # noqa: ANN401
    """Restore a run that was killed after its last step, by count or patience; Trainer itself would take more."""
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if not (out_of_patience(state, trainer.run) or 0 < state.max_steps <= state.global_step):
        return False
    chosen = checkpoint
    if trainer.args.load_best_model_at_end and state.best_model_checkpoint:
        chosen = checkpoint.parent / Path(state.best_model_checkpoint).name  # the run's folder may have moved
        state.best_model_checkpoint = str(chosen)
    trainer._load_from_checkpoint(str(chosen))
    trainer.state, trainer.resumed = state, checkpoint
    return True


def last_complete_checkpoint(output_dir: Path, report: Report = lambda line: None) -> Path | None:
    """Find the checkpoint to resume from, and remove those that are not whole.

    Such a checkpoint was being written when the run died, was damaged since, or has lost the best one before it.
    """
    whole: list[Path] = []
    for folder in RunFolder(output_dir).checkpoints():
        wrong = _damage(folder, {path.name for path in whole})
        if not wrong:
            whole.append(folder)
            continue
        if (folder / COMPLETE).exists():
            report(f"Left out {folder}, which is damaged ({wrong})")
        shutil.rmtree(folder)
    return whole[-1] if whole else None


def _damage(checkpoint: Path, before: set[str]) -> str:
    """Describe the damage of a checkpoint, given the names of the whole ones before it; empty if it is whole."""
    try:
        digests = read_object(checkpoint / COMPLETE, "")
    except InputError:
        return f"{COMPLETE} cannot be read"
    if TRAINER_STATE_NAME not in digests:
        return f"{COMPLETE} is not as it was written"
    for name, digest in digests.items():
        if not (checkpoint / name).is_file() or sha256(checkpoint / name) != digest:
            return f"{name} is not as it was written"
    best = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME)).best_model_checkpoint
    best = Path(best or checkpoint).name  # the run's folder may have moved
    return "" if best in {checkpoint.name, *before} else f"{best}, the best before it, is lost"


@contextmanager
def as_system_error() -> Iterator[None]:
    """Raise torch's error of a file that cannot be written as the system's own error."""
    try:
        yield
    except RuntimeError as error:
        if "PytorchStreamWriter" not in str(error) and "inline_container" not in str(error):
            raise
        if "Permission denied" in str(error):
            raise PermissionError(EACCES, "a file there cannot be written; change its rights and run again") from error
        raise OSError(ENOSPC, "the checkpoint cannot be written; free space and run again") from error
