"""Digests of files, of JSON values and of dialogues.

What tells them apart from others of the same name.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .dialogue import Dialogue


def sha256(file: Path) -> str:
    """Return the SHA-256 digest of a file, 64 hex digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of_files(folder: Path, files: Iterable[Path]) -> str:
    """Return a digest of files of a folder and of their names in it, wherever the folder lies."""
    digest = hashlib.sha256()
    for file in sorted(files):
        name = file.relative_to(folder).as_posix()
        digest.update(f"{name} {sha256(file)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def json_key(value: Any) -> str:
    """Return the digest of a JSON value, 64 hex digits.

    Mappings count in any order of their keys.
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def dialogue_key(dialogue: Dialogue) -> str:
    """Return the digest of who says what in a dialogue, 64 hex digits.

    Labels make no difference.
    """
    return json_key([[turn.role, turn.content] for turn in dialogue.turns])


def utterance_key(text: str) -> str:
    """Return the digest of an utterance by itself, 64 hex digits.

    It differs from that of any dialogue.
    """
    return json_key(text)


def text_key(dialogue: Dialogue) -> str:
    """Return the digest of what is said in a dialogue, 16 hex digits.

    Who says it makes no difference.
    """
    return json_key([turn.content for turn in dialogue.turns])[:16]


def list_key(keys: Iterable[str]) -> str:
    """Return the digest of a list of keys in their order, 64 hex digits."""
    return hashlib.sha256("".join(keys).encode()).hexdigest()
