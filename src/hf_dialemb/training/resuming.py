"""Resuming a killed run from its last checkpoint that is complete and undamaged."""

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
from ..storage.run_folder import RunFolder, read_object
from .settings import SELECTIONS, Report, RunArguments

COMPLETE = "complete"
"""The file that marks a checkpoint as complete.

A JSON object from the names of its files to their SHA-256.
"""


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
    """Restore a run that was killed after its last step, which Trainer itself would train further.

    Returns whether ``checkpoint`` is of such a run; if not, nothing is restored.
    """
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if not (out_of_patience(state, trainer.run) or 0 < state.max_steps <= state.global_step):
        return False
    chosen = checkpoint
    if trainer.args.load_best_model_at_end and state.best_model_checkpoint:
        # the run's folder may have moved
        chosen = checkpoint.parent / Path(state.best_model_checkpoint).name
        state.best_model_checkpoint = str(chosen)
    trainer._load_from_checkpoint(str(chosen))
    trainer.state, trainer.resumed = state, checkpoint
    return True


def last_complete_checkpoint(output_dir: Path, report: Report = lambda line: None) -> Path | None:
    """Return the last whole checkpoint, or None, and delete those that are not whole.

    A checkpoint is not whole if the run was killed while writing it, if its files have changed
    since, or if the best checkpoint before it, which it refers to, is lost. ``report`` gets a
    sentence for each that was completed once.
    """
    whole: list[Path] = []
    for folder in RunFolder(output_dir).checkpoints():
        damage = _damage(folder, {path.name for path in whole})
        if not damage:
            whole.append(folder)
            continue
        if (folder / COMPLETE).exists():
            report(f"Removed {folder}, which is damaged ({damage})")
        shutil.rmtree(folder)
    return whole[-1] if whole else None


def _damage(checkpoint: Path, earlier: set[str]) -> str:
    """Describe what is wrong with a checkpoint, given the names of earlier whole ones.

    Empty if it is whole.
    """
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
    return "" if best in {checkpoint.name, *earlier} else f"{best}, the best before it, is lost"


@contextmanager
def as_system_error() -> Iterator[None]:
    """Raise a PermissionError, or an OSError with the code of a full disk, where torch cannot write
    a file.
    """
    try:
        yield
    except RuntimeError as error:
        if "PytorchStreamWriter" not in str(error) and "inline_container" not in str(error):
            raise
        if "Permission denied" in str(error):
            raise PermissionError(
                EACCES, "a file cannot be written; fix its permissions and run again"
            ) from error
        raise OSError(
            ENOSPC, "the checkpoint cannot be written; free space and run again"
        ) from error
