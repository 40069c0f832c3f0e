"""Digests of files, of JSON values and of dialogues.

What tells them apart from others of the same name.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from .dialogue import Dialogue


def sha256(file: Path) -> str:
    """Return the SHA-256 digest of a file, 64 hex digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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


def text_key(dialogue: Dialogue) -> str:
    """Return the digest of what is said in a dialogue, 16 hex digits.

    Who says it makes no difference.
    """
    return json_key([turn.content for turn in dialogue.turns])[:16]
