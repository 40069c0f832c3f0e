"""Downloading what was published, and seeing that it is what was sent and embeds as the folder does."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path
from typing import Any

from ...models.errors import InputError
from .checks import PublishedFile

TOLERANCE = 1e-5
"""Largest difference between the embeddings of the folder and of the download, relative to their largest value."""

_TEXTS = ["I need a cheap hotel in the north.", "My card was stolen!", "Good morning."]
_DIALOGUES = [
    [{"role": "user", "content": _TEXTS[0]}, {"role": "assistant", "content": "For how many nights?"}],
    [{"role": "assistant", "content": "Hello, how can I help?"}, {"role": "user", "content": _TEXTS[1]}],
    [{"role": "user", "content": _TEXTS[2]}],
]


def verify_publication(folder: Path, files: list[PublishedFile], repo_id: str, kind: str, commit: str) -> Iterator[str]:
    """Downloads a commit into a fresh cache and compares it with the folder that it was made from."""
    from huggingface_hub import snapshot_download

    with tempfile.TemporaryDirectory(prefix="published-") as cache:
        downloaded = Path(snapshot_download(repo_id, repo_type=kind, revision=commit, cache_dir=cache))
        for file in files:
            copy = downloaded / file.path
            if not copy.is_file() or _digest(copy) != _digest(file.file):
                raise InputError(
                    f"{repo_id}: {file.path} of commit {commit} is not what was sent; publish and verify again"
                )
        yield f"Verified: {len(files):,} files of commit {commit} are those of {folder}"
        if kind == "model":
            yield from _compare_embeddings(folder, downloaded)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _compare_embeddings(folder: Path, downloaded: Path) -> Iterator[str]:
    from ..forms.verification import compare, run_afresh

    programs, probes = _ways(folder)
    expected = run_afresh("the folder", next(iter(programs.values())), folder, probes)
    for way, program in programs.items():
        found = run_afresh(way, program, downloaded, probes)
        for name, vectors in found.items():
            yield compare(f"{name}, {way}, downloaded", vectors, expected[name], TOLERANCE)


def _ways(folder: Path) -> tuple[dict[str, str], Any]:
    """The programs that load the form of a folder, and what they shall read."""
    from ...models import method_of
    from ..export import FORMS
    from ..forms import plain_encoder

    method = method_of(str(json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")))
    if method is None:  # a plain backbone, of whatever kind
        inputs: dict[str, list[Any]] = {"strings": _TEXTS, "messages": _DIALOGUES}
        libraries = ("AutoModel", "SentenceTransformer")
        probes = {f"{library}, {name}": texts for library in libraries for name, texts in inputs.items()}
        return plain_encoder.WAYS, probes
    probes_of: Any = {"contexts": _DIALOGUES, "responses": _TEXTS} if method.kind == "responses" else _DIALOGUES
    return FORMS[method.form].WAYS, probes_of
