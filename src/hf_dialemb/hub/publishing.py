"""Publish on the Hub in one commit.

A run or an encoder, exported and with its card, or the folder of an export.

Afterwards the repository shows the folder and nothing else; earlier commits keep what was there. A
run that stopped is simply repeated: large files that arrived are not sent again, and an unchanged
folder makes no commit.
"""

import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, get_token

from ..errors import InputError, hub_errors
from .card.card import write_card
from .checks import check, files_of, is_checkpoint
from .export import export
from .published_folder import PublishedFolder, check_repo_id

logger = logging.getLogger(__name__)

Report = Callable[[str], object]


def push(
    model: object,
    repo_id: str,
    *,
    results: Sequence[str | Path] = (),
    licences: Mapping[str, str] | None = None,
    report: Report = logger.info,
    **options: Any,
) -> str | None:
    """Export a model, write its card, check both, and publish them.

    Return the commit's id, None after a dry run.

    Examples:
        >>> hf_dialemb.push("runs/calls", "org/calls", private=True)

    Args:
        model: A run, one of its checkpoints, a folder that `export` wrote with its card, or an
            encoder of one of these.
        repo_id: The repository, as ``org/name``; it is created if absent.
        results: Results files with figures of the model, for the card.
        licences: ``TERMS:LICENCE`` of each corpus that the catalogue does not know; the card says
            which state none.
        report: Receives each line of the report.
        **options: ``private``, ``revision``, ``token``, ``commit_message``, ``dry_run`` and
            ``include``, as in `publish`.

    Raises:
        InputError: The model was in memory alone, cannot be exported, may not be published, or the
            Hub refuses it.
        ConnectionError: The Hub cannot be reached or fails; the same call completes the publication
            later.
    """
    check_repo_id(repo_id)
    source = model if isinstance(model, str | os.PathLike) else getattr(model, "spec", "")
    if not source:
        raise InputError(
            f"model: got {model!r}, which was never saved, expected a run, a folder or its encoder"
        )
    folder = Path(source)
    if folder.is_dir() and not is_checkpoint(folder):
        return publish(folder, repo_id, report=report, **options)
    with tempfile.TemporaryDirectory(prefix="push-") as place:
        published = Path(place) / repo_id.rpartition("/")[2]
        export(folder, published, report=report)
        # an encoder that comes with the package has one
        if not (published / PublishedFolder.CARD).is_file():
            write_card(published, folder, results, repo_id=repo_id, licences=licences)
        return publish(published, repo_id, report=report, **options)


def _refuse(problems: Sequence[str], folder: str | Path, report: Report) -> None:
    """Report what stands in the way of a publication, and raise an InputError if anything does."""
    for problem in problems:
        report(f"Refused: {problem}")
    if problems:
        more = f" ({len(problems) - 1} more are listed above)" if problems[1:] else ""
        raise InputError(f"{folder} cannot be published: {problems[0]}{more}")


def publish(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
    commit_message: str | None = None,
    dry_run: bool = False,
    include: Sequence[str] = (),
    report: Report = print,
) -> str | None:
    """Publish a folder in one commit, and return the commit's id; None after a dry run.

    Args:
        folder: A model that `export` wrote, with its card.
        repo_id: The repository, as ``org/name``; it is created if absent.
        private: Whether the repository must be private; else the model needs a licence and figures.
        revision: The branch, created if absent; ``main`` by default.
        token: A token of the Hub; by default that of the login.
        commit_message: What the commit says.
        dry_run: Only list the files and whatever stands in the way; nothing is sent.
        include: Patterns of files to send beside those that an export consists of.
        report: Receives each line of the report.

    Raises:
        InputError: The folder may not be published, or the Hub refuses it.
        ConnectionError: The Hub cannot be reached or fails; the same call goes on later.
    """
    check_repo_id(repo_id)
    folder = Path(folder)
    sizes = {path: file.stat().st_size for path, file in files_of(folder).items()}
    total = f"{len(sizes):,} files, {sum(sizes.values()):,} bytes"
    if dry_run:
        for path, size in sizes.items():
            report(f"{size:>14,} {path}")
        report(total)
    _refuse(check(folder, include, private=private), folder, report)
    if dry_run:
        seen = "private" if private else "public"
        report(f"Nothing stands in the way of the {seen} model {repo_id}; nothing was sent")
        return None
    if not (token := token or get_token()):
        raise InputError(
            "no login for the Hub; run 'hf auth login' with a token that may write, or set HF_TOKEN"
        )
    with hub_errors(repo_id):
        commit = _send(
            HfApi(token=token),
            folder,
            [*sizes],
            repo_id,
            revision or "main",
            private,
            commit_message,
        )
    report(f"model {repo_id} holds {total}, commit {commit}")
    return commit


def _send(
    api: HfApi,
    folder: Path,
    paths: list[str],
    repo_id: str,
    branch: str,
    private: bool,
    message: str | None,
) -> str:
    """Send what the Hub lacks, and return the commit that holds these paths and nothing else."""
    _create(api, repo_id, branch, private)
    return api.upload_folder(
        repo_id=repo_id,
        folder_path=folder,
        revision=branch,
        commit_message=message or "Publish with hf_dialemb",
        parent_commit=api.repo_info(repo_id, revision=branch).sha,
        allow_patterns=paths,
        delete_patterns="*",
    ).oid


def _create(api: HfApi, repo_id: str, branch: str, private: bool) -> None:
    """Create the repository and the branch if they are absent."""
    api.create_repo(repo_id, private=private or None, exist_ok=True)
    if private and not api.repo_info(repo_id).private:
        raise InputError(
            f"{repo_id} exists and everybody can see it; make it private in its settings, or leave "
            "out --private"
        )
    if branch != "main" and not branch.startswith("refs/"):
        api.create_branch(repo_id, branch=branch, exist_ok=True)
