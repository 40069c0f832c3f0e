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
from .report import Report

HEAD_SIZE = 64
"""Width of an attention head in BERT, PLATO and their kin; weights alone do not tell it."""


@dataclass(frozen=True)
class Request:
    """What is to be converted.

    Attributes:
        kind: A key of `convert.KINDS`.
        source: File, folder or Hub id.
        vocabulary: WordPiece vocabulary, a token a line; None takes the one beside the weights.
        method: The method whose checkpoint it shall become; None leaves it to the kind.
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
    """A model that holds a foreign checkpoint's values.

    Attributes:
        model: One of this package's models.
        tokenizer: Its tokenizer, with chat template.
        report: What became of every key.
    """

    model: BackboneModel
    tokenizer: PreTrainedTokenizerBase
    report: Report


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
    if width % HEAD_SIZE:
        raise InputError(f"width: got {width}, expected a multiple of {HEAD_SIZE}, the size of an attention head")
    return width // HEAD_SIZE


def fit_vocabulary(model: BackboneModel, tokenizer: Any, report: Report) -> None:  # noqa: ANN401
    """Gives the token table rows for tokens that the tokenizer was given beyond the vocabulary."""
    table: Any = model.get_input_embeddings()
    rows = table.num_embeddings
    if len(tokenizer) <= rows:
        return
    model.encoder.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    backbone: Any = model.config.encoder_config
    backbone.vocab_size = len(tokenizer)
    table = model.get_input_embeddings()
    with torch.no_grad():
        table.weight[rows:] = 0
    report.notes.append(
        f"Rows {rows} to {len(tokenizer) - 1} of the token table are new, zeros, for speakers' markers."
    )
