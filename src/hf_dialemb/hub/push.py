"""From a run or an encoder to a repository of the Hub in one call."""

import logging
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from .card.card import write_card
from .checks import is_checkpoint
from .export import export
from .published_folder import PublishedFolder, check_repo_id
from .publishing import Report, publish

logger = logging.getLogger(__name__)


def push(
    model: object,
    repo_id: str,
    *,
    results: Sequence[str | Path] = (),
    licences: Mapping[str, str] | None = None,
    dtype: str | None = None,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
    commit_message: str | None = None,
    dry_run: bool = False,
    verify: bool = False,
    card: str | Path | None = None,
    report: Report = logger.info,
) -> str | None:
    """Export a model, write its card, check both, and publish them; return the commit's id, None after a dry run.

    Examples:
        >>> hf_dialemb.push("runs/calls", "org/calls", private=True)

    Args:
        model: A run, one of its checkpoints, a folder that `export` wrote with its card, or an encoder of one of these.
        repo_id: The repository, as ``org/name``; it is created if absent.
        results: Results files with figures of the model, for the card.
        licences: ``TERMS:LICENCE`` of each corpus that the catalogue does not know; the card says which state none.
        dtype: The type of the weights: ``bf16``, ``fp16`` or ``fp32``.
        private: Whether the repository must be private.
        revision: The branch, created if absent; ``main`` by default.
        token: A token of the Hub; by default that of the login.
        commit_message: What the commit says.
        dry_run: Only list the files and whatever stands in the way; nothing is sent.
        verify: Download the commit afterwards, and compare its files with what was sent.
        card: Where to write the card as well.
        report: Receives each line of the report.

    Raises:
        InputError: The model was in memory alone, cannot be exported, may not be published, or the Hub refuses it.
        ConnectionError: The Hub cannot be reached or fails; the same call completes the publication later.
    """
    check_repo_id(repo_id)
    source = model if isinstance(model, str | os.PathLike) else getattr(model, "spec", "")
    if not source:
        raise InputError(f"model: got {model!r}, which was never saved, expected a run, a folder or its encoder")
    folder = Path(source)
    options: dict[str, Any] = {
        "private": private, "revision": revision, "token": token, "commit_message": commit_message
    }  # fmt: skip
    if folder.is_dir() and not is_checkpoint(folder):
        return publish(folder, repo_id, dry_run=dry_run, verify=verify, report=report, **options)
    with tempfile.TemporaryDirectory(prefix="push-") as place:
        published = Path(place) / repo_id.rpartition("/")[2]
        export(folder, published, dtype=dtype, report=report)
        if not (published / PublishedFolder.CARD).is_file():  # an encoder that comes with the package has one
            write_card(published, folder, results, repo_id=repo_id, licences=licences)
        if card:
            shutil.copyfile(published / PublishedFolder.CARD, card)
        return publish(published, repo_id, dry_run=dry_run, verify=verify, report=report, **options)
