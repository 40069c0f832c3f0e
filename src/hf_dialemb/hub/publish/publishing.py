"""To the Hub in one commit: models, metrics as Spaces, corpora as datasets.

The repository then shows the folder and nothing else; earlier commits keep what was there. A commit appears whole or
not at all. Nothing has to be remembered for going on: large files that arrived are not sent again, and what is there
already makes no commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id

from ...errors import InputError, unknown_name
from ...metrics.space import as_space
from .checks import KINDS, PublishedFile, card_of, check, files_of
from .errors import GivenUpError, explained, patient_client, pause_after

BRANCH = "main"  # where a publication goes that names no revision

_PAUSES = (1.0, 2.0, 4.0)  # seconds before what failed in passing is tried again
_KEPT = {".gitattributes"}  # the Hub's own file

Result = TypeVar("Result")


class Target(NamedTuple):
    """Where a folder goes: the repository, as ``org/name``, one of `KINDS`, the branch, and who may see it."""

    name: str
    kind: str = "model"
    branch: str = BRANCH
    private: bool = False


def publish(
    folder: Path,
    repo_id: str,
    *,
    repo_type: str = "model",
    private: bool = False,
    revision: str | None = None,
    dry_run: bool = False,
    verify: bool = False,
) -> Iterator[str]:
    """Brings a folder to the Hub in one commit."""
    _check_name(repo_id, repo_type)
    target = Target(repo_id, repo_type, revision or BRANCH, private)
    with as_space(folder) as written:
        yield from _published(folder, written, target, dry_run, verify)


def _published(given: Path, folder: Path, target: Target, dry_run: bool, verify: bool) -> Iterator[str]:
    """Publishes ``folder``, which is what was given, or the Space that was written of it."""
    repo_id, files = target.name, files_of(folder)
    problems = check(folder, target.kind, repo_id.split("/")[1])
    size = sum(file.size for file in files)
    if dry_run:
        for file in files:
            yield f"{'LFS' if file.large else '   '} {file.size:>14,} {file.path}"
        yield f"{len(files):,} files, {size:,} bytes, {sum(file.large for file in files)} of them large (LFS)"
    for problem in problems:
        yield f"Refused: {problem}"
    if problems:
        more = f" ({len(problems) - 1} more are listed above)" if len(problems) > 1 else ""
        raise InputError(f"{given} cannot be published: {problems[0]}{more}")
    if dry_run:
        yield f"Nothing stands in the way of {target.kind} {repo_id}, branch {target.branch}; nothing was sent"
        return
    with explained(repo_id), patient_client():
        before, commit, removed = _send(folder, files, target)
        for path in removed:
            yield f"Removed: {path}, which is not in the folder"
        if commit == before:
            yield f"Nothing has changed: {repo_id} has all of it already in commit {commit}"
        else:
            yield f"Published {len(files):,} files ({size:,} bytes) as {target.kind} {repo_id}, commit {commit}"
        if verify:
            from .verification import verify_publication

            yield from verify_publication(folder, files, repo_id, target.kind, commit)


def _check_name(repo_id: str, kind: str) -> None:
    if kind not in KINDS:
        raise unknown_name("repository type", kind, KINDS)
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"--repo-id: {error}") from None
    if "/" not in repo_id:
        raise InputError(f"--repo-id: got '{repo_id}', expected an organisation or user and a name: org/{repo_id}")


def _send(folder: Path, files: list[PublishedFile], target: Target) -> tuple[str, str, list[str]]:
    """Makes what is absent, then the commit unless it would be empty; returns the old and the new, and what went."""
    if not get_token():
        raise InputError(
            "There is no login for the Hub; run 'hf auth login' with a token that may write, or set HF_TOKEN"
        )
    api = HfApi()
    _patiently(lambda: _prepare(api, folder, target))
    before = _patiently(lambda: _head(api, target))
    return before, *_patiently(lambda: _commit(api, files, target))


def _prepare(api: HfApi, folder: Path, target: Target) -> None:
    kind = target.kind
    sdk = str((card_of(folder)[0] or {})["sdk"]) if kind == "space" else None
    api.create_repo(target.name, repo_type=kind, private=target.private or None, exist_ok=True, space_sdk=sdk)
    if target.private and not api.repo_info(target.name, repo_type=kind).private:
        raise InputError(
            f"{target.name} exists and everybody can see it; make it private in its settings, or leave out --private"
        )
    if target.branch != BRANCH and not target.branch.startswith("refs/"):
        api.create_branch(target.name, branch=target.branch, repo_type=kind, exist_ok=True)


def _head(api: HfApi, target: Target) -> str:
    return str(api.repo_info(target.name, repo_type=target.kind, revision=target.branch).sha)


def _commit(api: HfApi, files: list[PublishedFile], target: Target) -> tuple[str, list[str]]:
    """Sends what the Hub has not, then the commit, which fails if another one has come in between."""
    kind, head = target.kind, _head(api, target)
    present = set(api.list_repo_files(target.name, repo_type=kind, revision=head))
    additions = [CommitOperationAdd(file.path, file.file) for file in files]
    removed = sorted(present - _KEPT - {file.path for file in files})
    try:
        # An empty gitignore: one in the repository would keep files back without a word.
        api.preupload_lfs_files(
            target.name, additions, repo_type=kind, revision=target.branch, free_memory=False, gitignore_content=""
        )
    except Exception as error:  # it has tried often enough itself
        raise GivenUpError from error
    commit = api.create_commit(
        target.name, [*additions, *(CommitOperationDelete(path, is_folder=False) for path in removed)], repo_type=kind,
        commit_message="Publish with hf_dialemb", revision=target.branch, parent_commit=head,
    )  # fmt: skip
    return commit.oid, removed


def _patiently(action: Callable[[], Result]) -> Result:
    """Tries again what failed in passing; the whole of it, for an answer that was lost may have been a success."""
    for pause in _PAUSES:
        try:
            return action()
        except Exception as error:
            asked = pause_after(error, pause)
            if asked is None:
                raise
            time.sleep(asked)
    return action()
