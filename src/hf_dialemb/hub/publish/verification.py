"""Downloading what was published, and seeing that it is what was sent and embeds as the folder does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download

from ...errors import InputError
from ...hashing import sha256
from ..forms import verification
from ..forms.verification import messages
from ..published_folder import PublishedFolder
from .checks import PublishedFile

TOLERANCE = 1e-5  # largest difference of embeddings of folder and download, relative to their largest value

_TEXTS = ["I need a cheap hotel in the north.", "My card was stolen!", "Good morning."]
_DIALOGUES = [
    messages(("user", _TEXTS[0]), ("assistant", "For how many nights?")),
    messages(("assistant", "Hello, how can I help?"), ("user", _TEXTS[1])),
    messages(("user", _TEXTS[2])),
]


def verify_publication(folder: Path, files: list[PublishedFile], repo_id: str, kind: str, commit: str) -> Iterator[str]:
    """Downloads a commit into a fresh cache and compares it with the folder that it was made from."""
    with tempfile.TemporaryDirectory(prefix="published-") as cache:
        downloaded = Path(snapshot_download(repo_id, repo_type=kind, revision=commit, cache_dir=cache))
        for file in files:
            copy = downloaded / file.path
            if not copy.is_file() or sha256(copy) != sha256(file.file):
                raise InputError(
                    f"{repo_id}: {file.path} of commit {commit} is not what was sent; publish and verify again"
                )
        yield f"Verified: {len(files):,} files of commit {commit} are those of {folder}"
        if kind == "model":
            yield from _compare_embeddings(folder, downloaded)


def _compare_embeddings(folder: Path, downloaded: Path) -> Iterator[str]:
    programs, probes = _ways(folder)
    expected = verification.run_afresh("the folder", next(iter(programs.values())), folder, probes)
    for way, program in programs.items():
        found = verification.run_afresh(way, program, downloaded, probes)
        for name, vectors in found.items():
            yield verification.compare(f"{name}, {way}, downloaded", vectors, expected[name], TOLERANCE)


def _ways(folder: Path) -> tuple[dict[str, str], Any]:
    from ...methods import method_of
    from ..export import FORMS
    from ..forms import plain_encoder

    method = method_of(str(PublishedFolder(folder).record(PublishedFolder.CONFIG).get("model_type")))
    if method is None:  # a plain backbone, of whatever kind
        inputs = (("strings", _TEXTS), ("messages", _DIALOGUES))
        libraries = ("AutoModel", "SentenceTransformer")
        return plain_encoder.WAYS, {f"{library}, {name}": texts for library in libraries for name, texts in inputs}
    ranking = {"contexts": _DIALOGUES, "responses": _TEXTS}
    return FORMS[method.form].WAYS, ranking if method.kind == "responses" else _DIALOGUES
