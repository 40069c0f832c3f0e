"""Words: a word-level tokenizer made from dialogues, and word vectors read from a text file."""

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import nn
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ..dialogue import ROLES, Dialogue
from ..errors import InputError
from .ranker import Ranker

PADDING, UNKNOWN = "[PAD]", "[UNK]"
MARKS = tuple(f"<|{name}|>" for name in (*ROLES, "response"))
"""Markers that stand before a turn, for its speaker, and before a response."""


def word_tokenizer(dialogues: Sequence[Dialogue], vocabulary_size: int) -> PreTrainedTokenizerFast:
    """Make a fast tokenizer of the most frequent words, in lower case.

    Equally frequent words come in the order of the alphabet. The size includes the entries for
    padding, unknown words and speakers; raise InputError if it leaves no room for a word.
    """
    specials = (PADDING, UNKNOWN, *MARKS)
    if vocabulary_size <= len(specials):
        raise InputError(
            f"vocabulary_size: got {vocabulary_size}, expected at least {len(specials) + 1}, as "
            f"{len(specials)} "
            "entries are for padding, unknown words and speakers; raise it"
        )
    backend = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocabulary_size, special_tokens=[*specials], show_progress=False
    )
    backend.train_from_iterator(
        (turn.content for dialogue in dialogues for turn in dialogue.turns), trainer
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PADDING,
        unk_token=UNKNOWN,
        additional_special_tokens=list(MARKS),
        clean_up_tokenization_spaces=False,
        truncation_side="left",  # the last words matter most
    )


def read_word_vectors(
    path: str | Path, words: Sequence[str], size: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read the vectors of V words from a text file.

    A word and its numbers on each line, as in GloVe's.

    A first line of two numbers, as in word2vec's files, and words that contain blanks are skipped.
    A file whose name ends in ``.gz`` is unpacked. The size is the vectors' length; None takes that
    of the file's first.

    Returns vectors (V, size) float32, zero for words that the file lacks, and which words it has,
    (V,) bool. An InputError says that the file cannot be read, or a vector is of another length or
    not finite.
    """
    places = {word: place for place, word in enumerate(words)}
    rows: dict[int, np.ndarray] = {}
    remedy = (
        f"fetch a file whose vectors have {size} numbers, or set embedding_size"
        if size
        else "fetch it again"
    )
    open_text = gzip.open if Path(path).suffix == ".gz" else open
    try:
        with open_text(path, "rt", encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                word, *values = line.rstrip().split(" ")
                if number == 1 and len(values) == 1:
                    continue
                size = size or len(values)
                if (
                    len(values) > size and _numbers(values[:-size]) is None
                ):  # a word with blanks in it
                    continue
                if len(values) != size or not values:
                    expected = size or "a word and numbers"
                    raise InputError(
                        f"{path}: line {number}: got {len(values)} numbers, expected {expected}; "
                        f"{remedy}"
                    )
                if word in places:
                    row = _numbers(values)
                    if row is None or not np.isfinite(row).all():
                        raise InputError(
                            f"{path}: line {number}: got something that is no finite number; fetch "
                            "the file again"
                        )
                    rows[places[word]] = row
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {reason}; expected a text file of word vectors") from None
    if not size:
        raise InputError(
            f"{path}: got no vector, expected a text file of word vectors; fetch it again"
        )
    vectors, known = (
        np.zeros((len(words), size), dtype=np.float32),
        np.zeros(len(words), dtype=bool),
    )
    for place, row in rows.items():
        vectors[place], known[place] = row, True
    return vectors, known


def _numbers(values: Sequence[str]) -> np.ndarray | None:
    try:
        return np.array([float(value) for value in values], dtype=np.float32)
    except ValueError:
        return None


class WordRanker(Ranker):
    """A ranker whose vocabulary is the words of its training dialogues."""

    @classmethod
    def build(
        cls,
        backbone: str | None,
        dialogues: Sequence[Dialogue],
        dropout: float | None = None,
        **settings: object,
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Build a model of the dialogues' words.

        The backbone is a text file of word vectors, or None.
        """
        config_class: Any = cls.config_class
        if dropout:
            name = config_class.model_type.removeprefix("dialemb-").replace("-", "_")
            raise InputError(f"dropout: got {dropout}, but {name} has none; leave it out")
        config = config_class(**settings)
        tokenizer = word_tokenizer(dialogues, config.vocabulary_size)
        config.vocab_size = len(tokenizer)
        cls.prepare_tokenizer(tokenizer, config)
        model = cls(config)
        if backbone is not None:
            tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
            words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
            vectors, known = read_word_vectors(backbone, words, tables[0].embedding_dim)
            for table in tables:
                table.weight.data[known] = torch.from_numpy(vectors[known])
        model.train(False)
        return model, tokenizer

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: Any) -> None:
        """Give the tokenizer what the method needs beside its words, and complete the config."""
