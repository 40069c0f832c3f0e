"""Texts read in their surroundings.

Sessions go through a model in blocks, and a text is the mean of its own tokens.

This is late chunking (Günther et al., 2024, arXiv:2409.04701), of turns. Neighbours share a
reading: a block holds as many texts as the model reads at once, and some more on either side, which
only lend their meaning.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .batching import outputs
from .layout import Truncation, framed, special_tokens_around, text_ids

AROUND = 2
"""How many texts on either side of a block are read with it, where they fit."""

READ = 256
"""The most tokens of a block, special ones included. Chosen on LoCoMo (dev).

512 are read faster and find less.
"""


class Block(NamedTuple):
    """Places of texts in a session.

    ``start`` to ``stop`` get vectors, ``first`` to ``last`` are read.
    """

    first: int
    start: int
    stop: int
    last: int


def blocks(lengths: Sequence[int], most: int, around: int = AROUND) -> Iterator[Block]:
    """Divide a session of texts of some lengths into blocks of at most ``most`` tokens.

    A longer text is one itself.

    They depend on the session alone.
    """
    ends = np.cumsum([0, *lengths])
    start = 0
    count = len(lengths)
    while start < count:
        first = max(0, start - around)
        stop = start + 1
        while stop < count and ends[min(count, stop + 1 + around)] - ends[first] <= most:
            stop += 1
        last = min(count, stop + around)
        while ends[last] - ends[first] > most and (first < start or stop < last):
            if start - first > last - stop:
                first += 1
            else:
                last -= 1
        yield Block(first, start, stop, last)
        start = stop


def in_surroundings(
    model: Any,
    tokenizer: Any,
    limit: int,
    sessions: Sequence[Sequence[str]],
    batch_size: int,
    show_progress: bool | None = None,
    prompt: str = "",
) -> np.ndarray:
    """Embed the N texts of all sessions, (N, D) float32; a text over the limit is cut.

    The prompt stands before every block.
    """
    limit = min(limit, READ)
    before, after = special_tokens_around(tokenizer)
    [asked] = text_ids([prompt], tokenizer)
    most = limit - len(before) - len(asked) - len(after)
    ids = [text[:most] for text in text_ids(list(chain.from_iterable(sessions)), tokenizer, most)]
    plan = []
    for begin, end in pairwise(np.cumsum([0, *map(len, sessions)]).tolist()):
        plan += [
            Block(*(begin + place for place in block))
            for block in blocks(list(map(len, ids[begin:end])), most)
        ]

    def lay_out(rows: list[int], count: Truncation) -> dict[str, Tensor]:
        texts = [
            [*asked, *chain.from_iterable(ids[plan[row].first : plan[row].last])] for row in rows
        ]
        return framed(texts, tokenizer, limit, count, "start")

    lengths = [sum(map(len, ids[block.first : block.last])) + limit - most for block in plan]
    vectors = np.zeros((len(ids), model.config.hidden_size), dtype=np.float32)
    for rows, output, batch in outputs(model, lengths, lay_out, batch_size, show_progress):
        owners = torch.full(batch["input_ids"].shape, -1)
        for row, block in enumerate(plan[row] for row in rows):
            counts = [len(ids[place]) for place in range(block.first, block.last)]
            places = torch.repeat_interleave(
                torch.arange(block.first, block.last), torch.tensor(counts)
            )
            own = (places >= block.start) & (places < block.stop)
            start = len(before) + len(asked)
            owners[row, start : start + len(places)] = torch.where(own, places, -1)
        places_read, codes = owners.unique(return_inverse=True)
        codes = codes.to(output.last_hidden_state.device)
        states = output.last_hidden_state.float().flatten(0, 1)
        sums = states.new_zeros(len(places_read), states.shape[1]).index_add_(
            0, codes.flatten(), states
        )
        means = (sums / codes.flatten().bincount().unsqueeze(1)).cpu().numpy()
        wanted = (places_read >= 0).numpy()
        vectors[places_read.numpy()[wanted]] = means[wanted]
    return vectors
