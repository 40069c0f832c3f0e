"""From dialogues to token ids: order, truncation and padding, decided in this one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES, Dialogue
from ..errors import InputError
from .markers import escape, special_texts, special_tokens_around, wrapping

if TYPE_CHECKING:
    from .config import DialogueConfig

UNLIMITED = 1_000_000
"""Length limit of the tokenizer of a model that cuts by itself."""

_CHARACTERS, _MARGIN = 256, 128
"""More characters than any token has, and tokens beside a cut that may differ from those of the whole text."""

_TEXTS = 2_000  # texts that are tokenised at once


@dataclass
class Truncation:
    """Counts of tokens that did not fit, so that nothing is dropped silently.

    Attributes:
        dialogues: Sequences laid out so far.
        truncated: Sequences that lost a token or a turn.
        empty: Sequences without a token of their own.
        tokens: Tokens before the cut.
        dropped_tokens: Tokens that were cut.
        unit: What reports call the sequences.
    """

    dialogues: int = 0
    truncated: int = 0
    empty: int = 0
    tokens: int = 0
    dropped_tokens: int = 0
    unit: str = "dialogues"

    def add(self, before: int, after: int, empty: bool = False) -> None:
        """Count a sequence by its tokens before and after the cut."""
        self.dialogues += 1
        self.tokens += before
        self.dropped_tokens += before - after
        self.truncated += before > after
        self.empty += empty

    def __str__(self) -> str:
        empty = f"; {self.empty:,} gave no token" if self.empty else ""
        return (
            f"{self.truncated:,} of {self.dialogues:,} {self.unit} were truncated "
            f"({self.dropped_tokens:,} of {self.tokens:,} tokens dropped){empty}"
        )


def tokenize(
    dialogues: Sequence[Dialogue], tokenizer: PreTrainedTokenizerBase, config: DialogueConfig, count: Truncation
) -> dict[str, Tensor]:
    """Lay out B dialogues without markers, with explicit roles and turns, and count what was dropped.

    Returns:
        ``input_ids``, ``attention_mask``, ``role_ids``, ``turn_ids``, each (B, L) int64, padded on the right.

    Raises:
        InputError: The model has no vector for a role.
    """
    texts = list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))
    tokens = dict(zip(texts, token_ids(texts, tokenizer, config.max_tokens, config.keep), strict=True))
    ending = _ids(tokenizer, config.end_of_utterance or "")
    opening, closing = (_ids(tokenizer, text if config.wrapped else "") for text in wrapping(tokenizer))
    rows = []
    for dialogue in dialogues:
        first = 0 if config.max_turns is None else max(0, len(dialogue.turns) - config.max_turns)
        kept = dialogue.turns[first:]
        roles = [_role_id(turn.role, config.num_roles, dialogue.id) for turn in kept]
        pieces = [tokens[turn.content] + ending for turn in kept]
        cut = _truncate(pieces, config.max_tokens - len(opening) - len(closing), config.keep, config.whole_turns)
        total = sum(len(tokens[turn.content]) + len(ending) for turn in dialogue.turns)
        count.add(total, sum(map(len, cut)), not any(tokens[turn.content] for turn in dialogue.turns))
        rows.append(_row(cut, roles, opening, closing))
    tokens_of, roles_of, turns_of = zip(*rows, strict=True)
    batch = pad_right(tokens_of, tokenizer.pad_token_id or 0)
    return {**batch, "role_ids": pad_right(roles_of, 0)["input_ids"], "turn_ids": pad_right(turns_of, 0)["input_ids"]}


def tokenize_utterances(
    utterances: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    count: Truncation,
    keep: str = "start",
) -> dict[str, Tensor]:
    """Lay out N utterances as a padded batch, with the tokenizer's special tokens around each; see `framed`."""
    count.unit = "utterances"
    return framed(token_ids(utterances, tokenizer, max_tokens, keep), tokenizer, max_tokens, count, keep)


def token_ids(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, most: int = UNLIMITED, keep: str = "start"
) -> list[list[int]]:
    """Return the ids of each text without special tokens; control tokens in a text are broken up.

    Of a huge text, only ``most`` tokens and some more are certain, at its ``start`` or ``end``.
    """
    specials = special_texts(tokenizer)
    escaped = [escape(text, specials) for text in shortened(texts, tokenizer, most, keep)]
    # The library below transformers, whose own objects take most of the time.
    backend: Any = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = tokenizer.split_special_tokens
    ids: list[list[int]] = []
    for start in range(0, len(escaped), _TEXTS):
        encodings = backend.encode_batch_fast(escaped[start : start + _TEXTS], add_special_tokens=False)
        ids += [encoding.ids for encoding in encodings]
    return ids


def shortened(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, most: int, keep: str = "start") -> list[str]:
    """Cut huge texts before they are tokenised, which takes 280 bytes a character; ``most`` tokens stay the same."""
    room, cut = _CHARACTERS * (most + _MARGIN), list(texts)
    for place, text in enumerate(texts):
        part = text[:room] if keep == "start" else text[-room:]
        if len(part) < len(text):
            ids = tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
            cut[place] = part if len(ids) >= most + _MARGIN else text  # blanks, words without end
    return cut


def framed(
    rows: Sequence[list[int]],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    count: Truncation,
    keep: str,
    marks: int = 0,
) -> dict[str, Tensor]:
    """Cut N sequences of token ids, count that, and put the tokenizer's special tokens around each.

    Args:
        rows: The sequences.
        tokenizer: Gives special tokens and padding.
        max_tokens: Longest sequence with its special tokens.
        count: Counts what was cut.
        keep: Whether the ``start`` or the ``end`` stays.
        marks: Length of a sequence that has no token of its own.

    Returns:
        ``input_ids`` and ``attention_mask``, each (N, L) int64.
    """
    before, after = special_tokens_around(tokenizer)
    budget = max_tokens - len(before) - len(after)
    padded = []
    for row in rows:
        cut = row[:budget] if keep == "start" else row[max(0, len(row) - budget) :]
        count.add(len(row), len(cut), len(row) <= marks)
        padded.append(before + cut + after)
    return pad_right(padded, tokenizer.pad_token_id or 0)


def pad_right(rows: Sequence[list[int]], pad: int) -> dict[str, Tensor]:
    """Pad N rows of token ids to the longest: ``input_ids``, ``attention_mask``, each (N, L) int64, L at least 1."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    mask = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]  # (N, L)
    ids = np.full(mask.shape, pad, dtype=np.int64)
    ids[mask] = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}


def _ids(tokenizer: PreTrainedTokenizerBase, token: str) -> list[int]:
    return list(tokenizer.convert_tokens_to_ids([token])) if token else []  # type: ignore[arg-type]


def _role_id(role: str, num_roles: int, identifier: str) -> int:
    index = ROLES.index(role)
    if index >= num_roles:
        raise InputError(
            f"dialogue '{identifier}' has the role '{role}', but the model knows {num_roles} "
            f"({', '.join(ROLES[:num_roles])}); train with a larger num_roles or merge speakers"
        )
    return index


def _truncate(pieces: list[list[int]], budget: int, keep: str, whole_turns: bool) -> list[list[int]]:
    """Cut turns to a budget of tokens, at the end that is not kept; dropped turns become empty."""
    backwards = keep == "end"
    result: list[list[int]] = []
    left = budget
    for piece in reversed(pieces) if backwards else pieces:
        fits = len(piece) <= left
        if not fits and (not whole_turns or left == budget):  # a single turn beyond the budget is cut, not lost
            piece = piece[len(piece) - left :] if backwards else piece[:left]
            fits = True
        result.append(piece if fits else [])
        left = left - len(piece) if fits else 0
    return result[::-1] if backwards else result


def _row(
    pieces: list[list[int]], roles: list[int], opening: list[int], closing: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return the tokens of a sequence with their roles and turns; the frame belongs to the speakers beside it."""
    spoken = [(piece, role) for piece, role in zip(pieces, roles, strict=True) if piece] or [([], roles[0])]
    lengths = [len(piece) for piece, _ in spoken]
    lengths[0] += len(opening)
    lengths[-1] += len(closing)
    tokens = [*opening, *chain.from_iterable(piece for piece, _ in spoken), *closing]
    speakers = np.repeat([role for _, role in spoken], lengths)
    return tokens, speakers.tolist(), np.arange(len(spoken)).repeat(lengths).tolist()
