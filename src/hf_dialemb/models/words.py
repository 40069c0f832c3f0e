"""Words: a word-level tokenizer made from dialogues, and word vectors read from a text file."""

import gzip
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast

from .dialogue import ROLES, Dialogue
from .errors import InputError
from .ranker import RESPONSE

PADDING, UNKNOWN = "[PAD]", "[UNK]"
MARKS = tuple(f"<|{name}|>" for name in (*ROLES, RESPONSE))
"""What stands before a turn and says who speaks, and before a response."""


def word_tokenizer(dialogues: Sequence[Dialogue], vocabulary_size: int) -> PreTrainedTokenizerFast:
    """Makes a tokenizer of the most frequent words.

    Words are lower-cased and parted at blanks and punctuation.

    Args:
        dialogues: Whose words are counted; of equally frequent ones those earlier in the alphabet come first.
        vocabulary_size: How many entries there are at most, with those for padding, unknown words and speakers.

    Returns:
        A fast tokenizer, whose files any tool reads.

    Raises:
        InputError: The vocabulary has no room for a word.
    """
    specials = (PADDING, UNKNOWN, *MARKS)
    if vocabulary_size <= len(specials):
        raise InputError(
            f"vocabulary_size: got {vocabulary_size}, expected at least {len(specials) + 1}, as {len(specials)} "
            "entries are for padding, unknown words and speakers; raise it"
        )
    backend = Tokenizer(models.WordLevel({}, unk_token=UNKNOWN))
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for dialogue in dialogues:
        for turn in dialogue.turns:
            text = backend.normalizer.normalize_str(turn.content)
            counts.update(word for word, _ in backend.pre_tokenizer.pre_tokenize_str(text))
    ranked = sorted((word for word in counts if word not in specials), key=lambda word: (-counts[word], word))
    words = (*specials, *ranked[: vocabulary_size - len(specials)])
    backend.model = models.WordLevel({word: place for place, word in enumerate(words)}, unk_token=UNKNOWN)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PADDING,
        unk_token=UNKNOWN,
        additional_special_tokens=list(MARKS),
        clean_up_tokenization_spaces=False,
        truncation_side="left",  # what was said last matters most
    )


def read_word_vectors(path: str | Path, words: Sequence[str], size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Reads the vectors of some words from a text file: a word and its numbers on each line, as GloVe's are.

    Args:
        path: The file, packed when its name ends in ``.gz``; a first line of two numbers, as word2vec's, is passed
            over, and so are words with blanks in them.
        words: V words.
        size: How long vectors must be; None for the length of the file's first.

    Returns:
        Vectors (V, size) float32, zero for words that the file lacks, and which words it has (V,), booleans.

    Raises:
        InputError: The file cannot be read, or a vector has another length or is not made of finite numbers.
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
                if len(values) > size and _are_words(values[:-size]):
                    continue
                if len(values) != size or not values:
                    raise InputError(
                        f"{path}: line {number}: got {len(values)} numbers, expected {size or 'a word and numbers'}; "
                        f"{remedy}"
                    )
                if word in places:
                    rows[places[word]] = np.array(_numbers(values, f"{path}: line {number}"), dtype=np.float32)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {reason}; expected a text file of word vectors") from None
    if not size:
        raise InputError(f"{path}: got no vector, expected a text file of word vectors; fetch it again")
    vectors, found = np.zeros((len(words), size), dtype=np.float32), np.zeros(len(words), dtype=bool)
    for place, row in rows.items():
        vectors[place], found[place] = row, True
    return vectors, found


def begin_tables(backbone: str | None, tokenizer: PreTrainedTokenizerFast, *tables: nn.Embedding) -> None:
    """Lets word tables of a tokenizer's words begin with the vectors that a file has of them; None changes nothing."""
    if backbone is not None:
        words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        vectors, found = read_word_vectors(backbone, words, tables[0].embedding_dim)
        for table in tables:
            table.weight.data[found] = torch.from_numpy(vectors[np.flatnonzero(found)])


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")


def _are_words(parts: Sequence[str]) -> bool:
    """Says whether something is no number, as in the line of a word with blanks in it."""
    try:
        [float(part) for part in parts]
    except ValueError:
        return True
    return False


def _numbers(values: Sequence[str], place: str) -> list[float]:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise InputError(f"{place}: got something that is no finite number; fetch the file again")
    return numbers
