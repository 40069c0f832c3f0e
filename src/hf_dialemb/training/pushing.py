"""What a trainer sends to the Hub: the exported form with the project's card, checked."""

import inspect
import logging
import shutil
import tempfile
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from transformers import TrainingArguments

from ..errors import InputError, hub_errors
from .training_record import write_record

logger = logging.getLogger(__name__)

_NOT_OF_A_MODEL = shutil.ignore_patterns("*.bin", "*.pt", "*.pth", "optimizer*", "complete")


def repository_name(args: TrainingArguments) -> str:
    """Return the repository's name as the arguments have it, or that of the run's folder."""
    return args.hub_model_id or Path(str(args.output_dir)).absolute().name


def create_repository(
    args: TrainingArguments, token: str | None = None, private: bool | None = None
) -> str:
    """Create the repository before the training, so that a missing right shows early, and return
    its whole name.

    An InputError says that the Hub refuses it, a ConnectionError that it cannot be reached or
    fails.
    """
    name, private = repository_name(args), args.hub_private_repo if private is None else private
    with hub_errors(name):
        made = HfApi(token=token or args.hub_token).create_repo(
            name, private=private, exist_ok=True
        )
    return str(made.repo_id)


def push_run(
    args: TrainingArguments,
    folder: Path,
    repo_id: str,
    commit_message: str | None,
    *,
    private: bool | None = None,
    revision: str | None = None,
    token: str | None = None,
    **options: Any,
) -> str | None:
    """Publish a finished run as the arguments say, and return the commit's id.

    See `hf_dialemb.push`.
    """
    from .. import push

    for name in options.keys() - inspect.signature(push).parameters.keys():
        raise InputError(
            f"{name}: got a setting of the card, which states its facts by itself; leave it out"
        )
    private = args.hub_private_repo if private is None else private
    return push(
        folder,
        repo_id,
        private=bool(private),
        revision=revision or args.hub_revision,
        token=token or args.hub_token,
        commit_message=commit_message,
        **options,
    )


def push_checkpoint(trainer: Any, checkpoint: Path) -> None:
    """Publish a checkpoint with the record so far.

    A failure is a warning, as the training goes on.
    """
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as place:
        run = Path(place) / repository_name(trainer.args).rpartition("/")[2]
        if trainer.is_world_process_zero():
            shutil.copytree(checkpoint, run, ignore=_NOT_OF_A_MODEL)
        write_record(trainer, run, {})
        if trainer.is_world_process_zero():
            try:
                message = f"Training in progress, step {trainer.state.global_step}"
                push_run(trainer.args, run, trainer.hub_model_id, message)
            except (InputError, ConnectionError) as error:
                logger.warning("Not pushed: %s", error)
