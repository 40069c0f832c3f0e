"""Words: a word-level tokenizer made from dialogues, and word vectors read from a text file."""

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, TextIO

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import nn
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ..dialogue import ROLES, Dialogue
from ..errors import InputError
from .ranker import RESPONSE, Ranker

PADDING, UNKNOWN = "[PAD]", "[UNK]"
MARKS = tuple(f"<|{name}|>" for name in (*ROLES, RESPONSE))
"""What stands before a turn and says who speaks, and before a response."""


def word_tokenizer(dialogues: Sequence[Dialogue], vocabulary_size: int) -> PreTrainedTokenizerFast:
    """Makes a fast tokenizer of the most frequent words, lower-cased and parted at blanks and punctuation.

    Of equally frequent words those earlier in the alphabet come first. The size counts the entries for padding, unknown
    words and speakers too; one without room for a word is refused.
    """
    specials = (PADDING, UNKNOWN, *MARKS)
    if vocabulary_size <= len(specials):
        raise InputError(
            f"vocabulary_size: got {vocabulary_size}, expected at least {len(specials) + 1}, as {len(specials)} "
            "entries are for padding, unknown words and speakers; raise it"
        )
    backend = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(vocab_size=vocabulary_size, special_tokens=[*specials], show_progress=False)
    backend.train_from_iterator((turn.content for dialogue in dialogues for turn in dialogue.turns), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PADDING,
        unk_token=UNKNOWN,
        additional_special_tokens=list(MARKS),
        clean_up_tokenization_spaces=False,
        truncation_side="left",  # what was said last matters most
    )


def read_word_vectors(path: str | Path, words: Sequence[str], size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Reads the vectors of V words from a text file: a word and its numbers on each line, as GloVe's are.

    The file is packed when its name ends in ``.gz``. A first line of two numbers, as word2vec's, is passed over, and so
    are words with blanks in them. Vectors must be of the ``size``, or as long as the file's first, and of finite
    numbers; an InputError says what is not. Returns vectors (V, size) float32, zero for words that the file lacks, and
    which words it has (V,), booleans.
    """
    places, rows = {word: place for place, word in enumerate(words)}, {}
    remedy = f"fetch a file whose vectors have {size} numbers, or set embedding_size" if size else "fetch it again"
    try:
        with _opened(Path(path)) as lines:
            for number, line in enumerate(lines, 1):
                word, *values = line.rstrip().split(" ")
                if number == 1 and len(values) == 1:
                    continue
                size = size or len(values)
                if len(values) > size and _numbers(values[:-size]) is None:  # a word with blanks in it
                    continue
                if len(values) != size or not values:
                    raise InputError(
                        f"{path}: line {number}: got {len(values)} numbers, expected {size or 'a word and numbers'}; "
                        f"{remedy}"
                    )
                if word in places:
                    numbers = _numbers(values)
                    if numbers is None or not all(map(math.isfinite, numbers)):
                        raise InputError(
                            f"{path}: line {number}: got something that is no finite number; fetch the file again"
                        )
                    rows[places[word]] = np.array(numbers, dtype=np.float32)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {reason}; expected a text file of word vectors") from None
    if not size:
        raise InputError(f"{path}: got no vector, expected a text file of word vectors; fetch it again")
    vectors, found = np.zeros((len(words), size), dtype=np.float32), np.zeros(len(words), dtype=bool)
    for place, row in rows.items():
        vectors[place], found[place] = row, True
    return vectors, found


class WordRanker(Ranker):
    """A ranker that knows the words of the dialogues that it learns from."""

    @classmethod
    def build(
        cls, backbone: str | None, dialogues: Sequence[Dialogue], dropout: float | None = None, **settings: object
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """See `MethodModel`; the words are the dialogues' own, the backbone a text file of word vectors or nothing."""
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
            vectors, found = read_word_vectors(backbone, words, tables[0].embedding_dim)
            for table in tables:
                table.weight.data[found] = torch.from_numpy(vectors[found])
        model.train(False)
        return model, tokenizer

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: Any) -> None:  # noqa: ANN401
        """Gives the tokenizer what the method needs beside its words, and completes the config."""


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")


def _numbers(values: Sequence[str]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None
