"""Dialogues that a visitor pastes or uploads.

JSON lines or transcripts, within limits, mistakes in one sentence.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from hf_dialemb import Dialogue, InputError
from hf_dialemb.apps.files.findings import Finding, Notes
from hf_dialemb.apps.files.reading import find_own

MAX_BYTES = 1_000_000
MAX_DIALOGUES = 200
MAX_TURNS = 200
MAX_CHARACTERS = 4_000  # of a turn

PASTED = "Pasted text"
_SEPARATOR = re.compile(rb"[ \t]*-{3,}[ \t]*\r?\n?")
# A remedy that the command line has and a page has not.
_OPTION = ", or, where a command has --roles, say who it is (--roles NAME=user)"


def read(pasted: str | None, upload: str | None) -> list[Dialogue]:
    """Reads what a visitor gave; what is pasted comes first.

    Args:
        pasted: JSON lines, or transcripts that are parted by lines of three dashes.
        upload: Path of a ``.jsonl`` or ``.txt`` file of the same.

    Returns:
        The dialogues; those without an id of their own are numbered.

    Raises:
        InputError: There is none, one is malformed, or there is more than the page takes.
    """
    dialogues = (
        _dialogues(pasted.encode("utf-8", "replace"), PASTED) if pasted and pasted.strip() else []
    )
    if upload:
        dialogues += _uploaded(Path(upload))
    if not dialogues:
        raise InputError("There is no dialogue yet; paste one, upload a file or press Example")
    _check(dialogues)
    return [
        Dialogue(dialogue.turns, dialogue.id or f"{row}", dialogue.domains)
        for row, dialogue in enumerate(dialogues, start=1)
    ]


def _uploaded(path: Path) -> list[Dialogue]:
    if path.suffix.lower() not in (".jsonl", ".txt"):
        raise InputError(
            f"{path.name}: expected a .jsonl or .txt file; save the dialogues as one of these"
        )
    if path.stat().st_size > MAX_BYTES:
        raise InputError(
            f"{path.name}: got more than {MAX_BYTES:,} bytes; leave some dialogues out"
        )
    content = path.read_bytes()
    if not content.strip():
        raise InputError(f"{path.name}: got an empty file, expected dialogues; choose another")
    return _dialogues(content, path.name, path.suffix.lower() == ".jsonl")


def _dialogues(content: bytes, name: str, json_lines: bool = False) -> list[Dialogue]:
    if len(content) > MAX_BYTES:
        raise InputError(f"{name}: got more than {MAX_BYTES:,} bytes; leave some dialogues out")
    if json_lines or content.lstrip().startswith((b"{", b"[")):
        return _own(content, name, ".jsonl")
    parts: list[tuple[int, list[bytes]]] = [(0, [])]  # the lines before, and its own
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        if _SEPARATOR.fullmatch(line):
            parts.append((number, []))
        else:
            parts[-1][1].append(line)
    texts = [(before, text) for before, lines in parts if (text := b"".join(lines).rstrip())]
    _check_count(len(texts))
    transcripts = []
    for before, text in texts:  # blank lines, so that errors count lines as the visitor does
        transcripts += [
            Dialogue(dialogue.turns) for dialogue in _own(b"\n" * before + text, name, ".txt")
        ]
    return transcripts


def _own(content: bytes, name: str, ending: str) -> list[Dialogue]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"dialogues{ending}"
        path.write_bytes(content)
        try:
            return [
                finding.dialogue
                for finding in map(_whole, find_own(path, Notes()))
                if finding.dialogue
            ]
        except InputError as error:
            sentence = re.sub(
                rf"{re.escape(str(path))}:(\d+)", rf"{_literal(name)}, line \1", str(error)
            )
            raise InputError(sentence.replace(str(path), name).replace(_OPTION, "")) from None


def _whole(finding: Finding) -> Finding:
    """Refuse what is malformed: a visitor sees no log that names what was left out."""
    for problem in finding.problems:
        if problem.severity == "error":
            raise InputError(str(problem))
    return finding


def _literal(name: str) -> str:
    return name.replace("\\", r"\\")


def _check_count(dialogues: int) -> None:
    if dialogues > MAX_DIALOGUES:
        raise InputError(
            f"Got {dialogues:,} dialogues, expected at most {MAX_DIALOGUES}; leave some out"
        )


def _check(dialogues: list[Dialogue]) -> None:
    _check_count(len(dialogues))
    for row, dialogue in enumerate(dialogues, start=1):
        name = f"Dialogue {dialogue.id or row}"
        if len(dialogue.turns) > MAX_TURNS:
            raise InputError(
                f"{name}: got {len(dialogue.turns):,} turns, expected at most {MAX_TURNS}; cut it"
            )
        longest = max(len(turn.content) for turn in dialogue.turns)
        if longest > MAX_CHARACTERS:
            raise InputError(
                f"{name}: got a turn of {longest:,} characters, expected at most "
                f"{MAX_CHARACTERS:,}; cut it"
            )
