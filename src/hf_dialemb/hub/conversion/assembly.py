"""What all kinds share: the request, tokenizers, vocabularies that grow, and what a kind hands back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import BertTokenizer, PreTrainedTokenizerBase

from ...models.backbone_model import BackboneModel
from ...models.errors import InputError
from .placing import Report

_HEAD_SIZE = 64  # of an attention head in BERT, PLATO and their kin; weights alone do not tell it


@dataclass(frozen=True)
class Request:
    """What is to be converted: a file, folder or Hub id of a kind, a key of `convert.KINDS`.

    Without a WordPiece vocabulary, a token a line, the one beside the weights is taken; without a method, the kind's.
    """

    kind: str
    source: str
    vocabulary: Path | None = None
    method: str | None = None

    def only_method(self, method: str) -> None:
        """Raises InputError if another method was asked for than the one that the kind can become."""
        if self.method not in (None, method):
            raise InputError(f"--method: got {self.method}, expected {method}, the only one for --from {self.kind}")


@dataclass(frozen=True)
class Conversion:
    """One of this package's models with a foreign checkpoint's values, and its tokenizer, with chat template."""

    model: BackboneModel
    tokenizer: PreTrainedTokenizerBase
    report: Report


def vocabulary_in(folder: Path) -> str | None:
    """Reads the vocabulary beside weights, if there is one."""
    file = folder / "vocab.txt"
    return file.read_text(encoding="utf-8") if file.is_file() else None


def wordpiece(request: Request, beside: str | None, rows: int) -> PreTrainedTokenizerBase:
    """Makes BERT's uncased tokenizer of a vocabulary."""
    if request.vocabulary is not None:
        if not request.vocabulary.is_file():
            raise InputError(f"--vocab {request.vocabulary}: got no such file, expected a vocabulary, a token a line")
        beside = request.vocabulary.read_text(encoding="utf-8")
    if beside is None:
        raise InputError(
            f"'{request.source}' has no vocab.txt beside its weights; say where it is (--vocab vocab.txt); "
            "PLATO's is that of bert-base-uncased"
        )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text(beside, encoding="utf-8")
        tokenizer: PreTrainedTokenizerBase = BertTokenizer(vocab=str(path), do_lower_case=True)
    tokenizer.name_or_path = ""
    if len(tokenizer) != rows:
        raise InputError(
            f"vocabulary: got {len(tokenizer)} tokens, expected {rows}, the rows of the token table; "
            "take the vocab.txt that belongs to the checkpoint (--vocab)"
        )
    return tokenizer


def heads_of(width: int) -> int:
    """Returns how many attention heads a width means."""
    if width % _HEAD_SIZE:
        raise InputError(f"width: got {width}, expected a multiple of {_HEAD_SIZE}, the size of an attention head")
    return width // _HEAD_SIZE


def fit_vocabulary(model: Any, tokenizer: Any, report: Report) -> None:  # noqa: ANN401
    """Gives the token table rows for tokens that the tokenizer was given beyond the vocabulary."""
    table, backbone = model.get_input_embeddings(), model.config.encoder_config
    rows, count = table.num_embeddings, len(tokenizer)
    if count <= rows:
        return
    model.encoder.resize_token_embeddings(count, mean_resizing=False)
    backbone.vocab_size = count
    with torch.no_grad():
        model.get_input_embeddings().weight[rows:] = 0
    report.notes.append(f"Rows {rows} to {count - 1} of the token table are new, zeros, for speakers' markers.")
