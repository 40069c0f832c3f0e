"""Convert PLATO's released checkpoints: read, account for every key, write beside, put in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from ...checkpoints.pretrained import reading
from ...errors import InputError
from ...runs.files import appearing_whole, write_json_atomically
from .plato import build
from .weight_files import read_source

REPORT_FILE = "conversion.json"


def convert(
    source: str | Path,
    output: str | Path,
    *,
    vocabulary: str | Path | None = None,
    partial: bool = False,
    report: Callable[[str], object] = print,
) -> Path:
    """Convert PLATO, or dial2vec's released checkpoint over PLATO, into a dial2vec checkpoint.

    Args:
        source: A file, a folder or a tar archive with the weights.
        output: The folder to write; nothing appears there unless every check holds.
        vocabulary: A WordPiece vocabulary, one token a line; by default the ``vocab.txt`` beside the weights.
        partial: Whether to go on if keys are missing or unexpected.
        report: Receives a line for every key.

    Raises:
        InputError: The output exists, the source cannot be read, or its keys, shapes or vocabulary do not fit.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    with torch.random.fork_rng(devices=[]), reading(str(source)):
        torch.manual_seed(0)  # values that stay untrained are the same every time
        tensors, beside = read_source(Path(source))
        model, tokenizer, account = build(tensors, str(source), _vocabulary(vocabulary, beside, source))
    for line in account.lines():
        report(line)
    if not partial:
        account.check()
    with appearing_whole(output) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_json_atomically(folder / REPORT_FILE, asdict(account))
    return output


def _vocabulary(path: str | Path | None, beside: str | None, source: str | Path) -> str:
    if path is not None:
        if not Path(path).is_file():
            raise InputError(f"--vocab {path}: got no such file, expected a vocabulary, a token a line")
        return Path(path).read_text(encoding="utf-8")
    if beside is None:
        raise InputError(
            f"'{source}' has no vocab.txt beside its weights; say where it is (--vocab vocab.txt); "
            "PLATO's is that of bert-base-uncased"
        )
    return beside
