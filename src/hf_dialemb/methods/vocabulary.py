"""Words: a word-level tokenizer made from dialogues, and rankers that read it."""

from collections.abc import Sequence
from typing import Any, Self

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ..dialogue import ROLES, Dialogue
from ..errors import InputError
from .ranker import Ranker

PADDING = "[PAD]"
UNKNOWN = "[UNK]"
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
            f"{len(specials)} entries are for padding, unknown words and speakers; raise it"
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
        """Build a model of the dialogues' words; there is no backbone and no dropout."""
        config_class: Any = cls.config_class
        config = config_class(**settings)
        tokenizer = word_tokenizer(dialogues, config.vocabulary_size)
        config.vocab_size = len(tokenizer)
        cls.prepare_tokenizer(tokenizer, config)
        model = cls(config)
        model.train(False)
        return model, tokenizer

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: Any) -> None:
        """Give the tokenizer what the method needs beside its words, and complete the config."""
