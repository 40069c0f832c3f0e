"""Reads users' files from Python and from the command line."""

import logging
from pathlib import Path

from hf_dialemb import Dialogue, load_dialogues
from hf_dialemb.apps.cli import main

FILES = Path(__file__).with_name("files")


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


def with_remarks(path: Path, **options: str | bool) -> tuple[list[Dialogue], str]:
    """Return the dialogues of a file and what was remarked."""
    kept, logger = _Kept(), logging.getLogger("hf_dialemb")
    logger.addHandler(kept)
    try:
        return load_dialogues(path, **options), "\n".join(kept.sentences)
    finally:
        logger.removeHandler(kept)


def read(path: Path, folder: Path, **options: str | bool) -> tuple[list[Dialogue], str]:
    """Return the same; ``dialemb corpus convert`` reads alike."""
    dialogues, remarks = with_remarks(path, **options)
    output = folder / "converted.jsonl"
    words = []
    for name, value in options.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    assert main(["corpus", "convert", str(path), *words, "--output", str(output)]) == 0
    converted = load_dialogues(output)
    assert [item.to_json() for item in converted] == [item.to_json() for item in dialogues]
    return dialogues, remarks
