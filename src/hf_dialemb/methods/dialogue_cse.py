"""DialogueCSE.

Utterance embeddings guided by the turns around them (Liu et al., EMNLP 2021, arXiv:2109.12599).

A response competes with utterances of other dialogues. Every context turn picks, token by token,
what it matches in a candidate. In the true response that is most of it, so the picked vector points
the same way as the whole.

The paper multiplies every token u_i of a context turn with every token r_j of a candidate. Only the
mean over the turn's tokens is used, and

    1/n sum_i sum_j (u_i . r_j) r_j  =  sum_j (u . r_j) r_j,    u = 1/n sum_i u_i,

so the mean vector of the turn is enough: time and memory are O(L D) for a candidate, and the result
is exact. It is linear in u, so the mean over turns (equation 7) needs the mean of their vectors
only.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ..dialogue import Dialogue
from ..errors import InputError
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import autocast_off
from .config import UtteranceConfig
from .layout import Truncation, spread, tokenize_utterances
from .losses import nt_xent
from .method import ABOUT, Examples, Method
from .utterance import UtteranceEncoder, UtteranceOutput


@strict
class DialogueCSEConfig(UtteranceConfig):
    """Settings of DialogueCSE, beside those of `UtteranceConfig`.

    Attributes:
        projection_size: None, as the embeddings themselves are contrasted.
        loss_temperature: Divides the cosines (0.1).
        num_negatives: Number of utterances of other dialogues that a response competes with (9).
        context_turns: Most turns that are read before the response, and after it (3).
    """

    model_type = "dialemb-dialogue-cse"
    ranges: ClassVar[Ranges] = {
        "loss_temperature": ABOVE_ZERO,
        "num_negatives": Range(1),
        "context_turns": Range(1),
    }

    max_tokens: int = 100
    projection_size: int | None = None
    loss_temperature: float = 0.1
    num_negatives: int = 9
    context_turns: int = 3

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        if self.projection_size is not None:
            raise InputError(
                f"projection_size: got {self.projection_size}, but DialogueCSE has no head; leave "
                "it out"
            )


class DialogueCSEModel(UtteranceEncoder):
    """The encoder and its interaction, which has no parameters.

    Turns count alike (the paper's I2, equation 7).
    """

    config: DialogueCSEConfig

    def contrast(self, input_ids: Tensor, attention_mask: Tensor) -> UtteranceOutput:  # type: ignore[override]
        """Contrast each response with the negatives (equation 8).

        Args:
            input_ids: (B, 2 C + 1 + N, L) int64: C turns before and C after, the true response, N
                negatives.
            attention_mask: (B, 2 C + 1 + N, L) int64; all 0 in the rows of absent turns.
        """
        split = [2 * self.config.context_turns, input_ids.shape[1] - 2 * self.config.context_turns]
        context_ids, ids = input_ids.split(split, dim=1)
        context_mask, mask = attention_mask.split(split, dim=1)
        present = context_mask.any(-1)  # (B, 2 C)
        vectors = self.embed(context_ids[present], context_mask[present])
        turns = vectors.new_zeros(*present.shape, vectors.shape[-1])
        turns[present] = vectors  # (B, 2 C, D)
        guides = turns.sum(1) / present.sum(1, keepdim=True).clamp(min=1)
        parts = self.in_parts(
            self._match,
            ids.flatten(0, 1),
            mask.flatten(0, 1),
            guides.repeat_interleave(ids.shape[1], dim=0),
        )
        own, refined = (part.unflatten(0, ids.shape[:2]) for part in parts)  # (B, 1 + N, D)
        with autocast_off(refined):
            similarities = nn.functional.cosine_similarity(own, refined, dim=-1).unsqueeze(-1)
        loss = nt_xent(similarities, present.new_ones(len(ids), 1), self.config.loss_temperature)
        return UtteranceOutput(loss=loss, pooler_output=own[:, 0], similarities=similarities)

    def _match(self, words: Tensor, mask: Tensor, guides: Tensor) -> tuple[Tensor, Tensor]:
        """Encode candidates (N, L) alone and by their guides (N, D) (equations 3 and 4).

        Both (N, D).
        """
        hidden = self.states_of(words, mask)
        with autocast_off(hidden):
            hidden = hidden.to(guides.dtype)
            tokens = hidden * mask.unsqueeze(-1).to(hidden.dtype)
            scores = tokens @ guides.unsqueeze(-1) * tokens.shape[-1] ** -0.5  # (N, L, 1)
            return self.pool(hidden, mask), (scores * tokens).sum(1)


class ResponseInContext(NamedTuple):
    """A response, its context in order, and utterances of its role from other dialogues."""

    previous: tuple[str, ...]
    following: tuple[str, ...]
    response: str
    negatives: tuple[str, ...]


class _Turn(NamedTuple):
    role: str
    dialogue: int
    place: int  # in its dialogue
    text: str


class DialogueCSEExamples(Examples):
    """Responses in their context (section 3).

    Consecutive turns of a speaker count as one (section 5.1.1). Every turn with a neighbour is a
    response once an epoch. Raise InputError if no turn has both a context and an utterance to
    compete with.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: DialogueCSEConfig, seed: int) -> None:
        self.turns: list[list[_Turn]] = []
        self.pools: dict[str, list[_Turn]] = {}
        for number, dialogue in enumerate(dialogues):
            spoken = groupby(dialogue.turns, key=lambda turn: turn.role)
            joined = [(role, " ".join(turn.content for turn in turns)) for role, turns in spoken]
            self.turns.append(
                [_Turn(role, number, place, text) for place, (role, text) in enumerate(joined)]
            )
            for turn in self.turns[-1]:
                self.pools.setdefault(turn.role, []).append(turn)
        everything = [turn for turns in self.turns for turn in turns]
        by_dialogue = Counter((turn.role, turn.dialogue) for turn in everything)
        by_text = Counter((turn.role, turn.text) for turn in everything)
        by_both = Counter((turn.role, turn.dialogue, turn.text) for turn in everything)
        beside = [turn for turn in everything if len(self.turns[turn.dialogue]) > 1]
        responses = []
        for turn in beside:
            role, number, _, text = turn
            unfit = by_dialogue[role, number] + by_text[role, text] - by_both[role, number, text]
            if len(self.pools[role]) > unfit:
                responses.append(turn)
        left_out = {
            "without a turn beside them": len(everything) - len(beside),
            "whose role says nothing else in any other dialogue": len(beside) - len(responses),
        }
        notes = [
            f"Left out {count:,} turns {reason}" for reason, count in left_out.items() if count
        ]
        super().__init__(responses, notes, config, seed)
        if not responses:
            raise InputError(
                f"dialogue_cse: got no turn with context and negatives from {len(self.turns)} "
                "dialogues "
                f"({'; '.join(notes)}), expected at least one; add dialogues of two speakers"
            )

    def example(self, epoch: int, index: int) -> ResponseInContext:
        """Return a response with its context and negatives."""
        response = self.items[index]
        turns = [turn.text for turn in self.turns[response.dialogue]]
        place = response.place
        reach = self.config.context_turns
        before = turns[max(0, place - reach) : place]
        after = turns[place + 1 : place + 1 + reach]
        generator = np.random.default_rng([self.seed, epoch, index])
        negatives = [self._negative(response, generator) for _ in range(self.config.num_negatives)]
        return ResponseInContext(tuple(before), tuple(after), response.text, tuple(negatives))

    def _negative(self, response: _Turn, generator: np.random.Generator) -> str:
        pool = self.pools[response.role]
        for _ in range(100):
            other = pool[generator.integers(len(pool))]
            if other.dialogue != response.dialogue and other.text != response.text:
                return other.text
        rest = [
            turn.text
            for turn in pool
            if turn.dialogue != response.dialogue and turn.text != response.text
        ]
        return rest[generator.integers(len(rest))]


def collate(
    examples: list[ResponseInContext],
    tokenizer: PreTrainedTokenizerBase,
    config: DialogueCSEConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out B responses as `DialogueCSEModel.contrast` takes them.

    The rows of absent turns are masked.
    """
    reach = config.context_turns
    width = 2 * reach + 1 + config.num_negatives
    texts: dict[int, str] = {}  # by row
    for start, example in zip(range(0, width * len(examples), width), examples, strict=True):
        texts.update(enumerate(example.previous, start))
        texts.update(enumerate(example.following, start + reach))
        texts.update(enumerate((example.response, *example.negatives), start + 2 * reach))
    batch = tokenize_utterances(
        list(texts.values()), tokenizer, config.max_tokens, count, config.prompt
    )
    return spread(batch, list(texts), len(examples), width, tokenizer)


METHOD = Method(
    "dialogue_cse",
    DialogueCSEConfig,
    DialogueCSEModel,
    DialogueCSEExamples,
    collate,
    min_turns=2,
    **ABOUT["dialogue_cse"],
)
