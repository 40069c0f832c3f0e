"""DialogueCSE: utterance embeddings guided by the turns around them (Liu et al., EMNLP 2021, arXiv:2109.12599).

A response competes with utterances of other dialogues. Every context turn picks, token by token, what it matches in a
candidate. In the true response that is most of it, so the picked vector points the same way as the whole.

The paper multiplies every token u_i of a context turn with every token r_j of a candidate. Only the mean over the
turn's tokens is used, and

    1/n sum_i sum_j (u_i . r_j) r_j  =  sum_j (u . r_j) r_j,    u = 1/n sum_i u_i,

so the mean vector of the turn is enough: time and memory are O(L D) for a candidate, and the result is exact. It is
linear in u, so the mean over turns (equation 7) needs the mean of their vectors only.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase
from transformers import initialization as init

from ..dialogue import Dialogue
from ..errors import InputError
from ..ranges import ABOVE_ZERO, Range, Ranges
from .backbone_model import autocast_off
from .config import UtteranceConfig
from .layout import Truncation, tokenize_utterances
from .losses import nt_xent
from .method import ListedExamples, Method
from .utterance import UtteranceEncoder, UtteranceOutput, mean_of_tokens

_ATTENTION_SIZE = 256  # of the released program's turn attention


@strict
class DialogueCSEConfig(UtteranceConfig):
    """Settings of DialogueCSE, beside those of `UtteranceConfig`.

    Attributes:
        loss_temperature: Divides the cosines (0.1).
        num_negatives: Number of utterances of other dialogues that a response competes with (9).
        context_turns: Most turns before the response that are read (3).
        next_turns: Whether as many turns after it are read too.
        context: How a response meets its context. ``"matching"``: matching-guided embeddings (section 4.2);
            ``"siamese"``: the embedding of one turn, the one before or, at a dialogue's start, the one after;
            ``"siamese_multi_turn"``: that of all turns in one sequence (both section 5.2.2, where an MLP follows the
            encoder: set ``projection_size``).
        turn_aggregation: How the turns' refined embeddings become one. ``"mean"``: I2, equation 7; ``"attention"``: I1,
            equations 5 and 6; ``"official"``: the released program's sum with weights 1 + alpha, alpha from a tanh
            attention over the turns before, and over those after.
        projection_size: Width of the siamese baselines' head; None contrasts the embeddings themselves.
        loss_scale: ``"official"`` divides the loss by the number of candidates.
    """

    model_type = "dialemb-dialogue-cse"
    ranges: ClassVar[Ranges] = {"loss_temperature": ABOVE_ZERO, "num_negatives": Range(1), "context_turns": Range(1)}

    max_tokens: int = 100
    projection_size: int | None = None
    loss_temperature: float = 0.1
    num_negatives: int = 9
    context_turns: int = 3
    next_turns: bool = True
    context: Literal["matching", "siamese", "siamese_multi_turn"] = "matching"
    turn_aggregation: Literal["mean", "attention", "official"] = "mean"
    loss_scale: Literal["sum", "official"] = "sum"

    def __post_init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        super().__post_init__(**kwargs)
        if self.context == "matching" and self.projection_size is not None:
            raise InputError(
                f"projection_size: got {self.projection_size}, but context matching has no head; leave it out, or "
                "choose a siamese context"
            )
        if self.context != "matching" and self.turn_aggregation != "mean":
            raise InputError(
                f"turn_aggregation: got {self.turn_aggregation}, but context {self.context} has no turns to aggregate; "
                "leave it out, or choose matching"
            )

    @property
    def context_rows(self) -> int:
        """Number of an example's rows that are context, C."""
        return self.context_turns * (1 + self.next_turns) if self.context == "matching" else 1


class DialogueCSEModel(UtteranceEncoder):
    """The encoder and its interaction, which has parameters only for ``"attention"`` and ``"official"``."""

    config: DialogueCSEConfig

    def __init__(self, config: DialogueCSEConfig) -> None:
        super().__init__(config)
        if config.turn_aggregation != "mean":
            self.heads["turns"] = _turn_scorer(config)
            self.post_init()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        official = self.config.turn_aggregation == "official" and isinstance(module, nn.Linear)
        if official and any(module is part for part in self.heads.modules()):
            for parameter in module.parameters():
                init.normal_(parameter, std=0.1)

    def contrast(self, input_ids: Tensor, attention_mask: Tensor) -> UtteranceOutput:  # type: ignore[override]
        """Contrast each response with the negatives (equation 8).

        Args:
            input_ids: (B, C + N, L) int64: context rows (`DialogueCSEConfig.context_rows`; for matching, the turns
                before and then those after), the true response, negatives.
            attention_mask: (B, C + N, L) int64; all 0 in the rows of absent turns.

        Raises:
            InputError: A response has no context at all.
        """
        rows, batch = self.config.context_rows, len(input_ids)
        (context_ids, ids), (context_mask, mask) = (
            (tensor[:, :rows], tensor[:, rows:].flatten(0, 1)) for tensor in (input_ids, attention_mask)
        )
        lengths = context_mask.sum(-1)  # (B, C)
        present = lengths > 0
        if not bool(present.any(-1).all()):
            raise InputError(
                "attention_mask: got a response whose context rows are all masked, expected at least one turn of "
                "context; make batches with collate"
            )
        vectors = self.embed(context_ids[present], context_mask[present])
        turns = vectors.new_zeros(*present.shape, vectors.shape[-1])
        turns[present] = vectors  # (B, C, D)
        if self.config.context == "matching":
            guides = mean_of_turns(turns, present) if self.config.turn_aggregation == "mean" else turns
            guides = guides.repeat_interleave(len(ids) // batch, dim=0)
            own, refined = (part.unflatten(0, (batch, -1)) for part in self.in_parts(self._match, ids, mask, guides))
            with autocast_off(refined):
                other = self._aggregate(refined, turns, lengths)
                similarities = nn.functional.cosine_similarity(own, other, dim=-1).unsqueeze(-1)  # (B, N, 1)
        else:
            own = self.embed(ids, mask)
            with autocast_off(own):
                responses, contexts = (self.project(part).unflatten(0, (batch, -1)) for part in (own, turns[:, 0]))
                similarities = torch.bmm(responses, contexts.transpose(1, 2))
            own = own.unflatten(0, (batch, -1))
        temperature, official = self.config.loss_temperature, self.config.loss_scale == "official"
        loss = nt_xent(similarities, present.new_ones(batch, 1), temperature, divide_by_samples=official)
        return UtteranceOutput(loss=loss, pooler_output=own[:, 0], similarities=similarities)

    def _match(self, words: Tensor, mask: Tensor, guides: Tensor) -> tuple[Tensor, Tensor]:
        """Encode candidates (N, L) with their guides (N, C, D): (N, D) and (N, C, D)."""
        hidden = self.states_of(words, mask)
        with autocast_off(hidden):
            hidden = hidden.to(guides.dtype)
            return mean_of_tokens(hidden, mask), matching_guided(hidden, mask, guides)

    def _aggregate(self, refined: Tensor, turns: Tensor, lengths: Tensor) -> Tensor:
        """Combine the refined embeddings of candidates, (B, N, C, D) to (B, N, D), up to a positive factor."""
        if self.config.turn_aggregation == "mean":
            return refined.squeeze(2)
        present = lengths > 0
        if self.config.turn_aggregation == "attention":
            weights = turn_weights(self.heads["turns"](refined).squeeze(-1), present.unsqueeze(1))  # (B, N, C)
            return torch.einsum("bnc,bncd->bnd", weights, refined)
        # The program divides by the longest length that it allows, not by the turn's own.
        scaled = turns * (lengths / self.config.max_tokens).to(turns.dtype).unsqueeze(-1)
        scores = self.heads["turns"](scaled).squeeze(-1)  # (B, C)
        sides = zip(*(tensor.split(self.config.context_turns, dim=1) for tensor in (scores, present)), strict=True)
        weights = 1 + torch.cat([turn_weights(score, side) for score, side in sides], dim=1)
        return torch.einsum("bc,bncd->bnd", weights, refined)


def matching_guided(tokens: Tensor, mask: Tensor, turns: Tensor) -> Tensor:
    """Pool what context turns select from a candidate (equations 3 and 4).

    Takes candidates' tokens (N, L, D), their mask (N, L) and the mean token vectors of their context turns (N, C, D);
    returns refined embeddings, averaged over the turns' tokens, (N, C, D). Zeros give zeros.
    """
    tokens = tokens * mask.unsqueeze(-1).to(tokens.dtype)
    scores = torch.bmm(turns, tokens.transpose(1, 2)) * tokens.shape[-1] ** -0.5  # (N, C, L)
    return torch.bmm(scores, tokens)


def mean_of_turns(turns: Tensor, present: Tensor) -> Tensor:
    """Average the turns that are present (equation 7, before matching), (B, C, D) to (B, 1, D); zeros without any."""
    weights = present.to(turns.dtype).unsqueeze(1)  # (B, 1, C)
    return torch.bmm(weights, turns) / weights.sum(-1, keepdim=True).clamp(min=1)


def turn_weights(scores: Tensor, present: Tensor) -> Tensor:
    """Normalise scores (..., C) to sum to 1 over the turns that are present (equation 6); all equal without any."""
    return torch.softmax(scores.masked_fill(~present, torch.finfo(scores.dtype).min), dim=-1)


def _turn_scorer(config: DialogueCSEConfig) -> nn.Sequential:
    width = config.hidden_size
    if config.turn_aggregation == "attention":
        return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    return nn.Sequential(nn.Linear(width, _ATTENTION_SIZE), nn.Tanh(), nn.Linear(_ATTENTION_SIZE, 1, bias=False))


class ResponseInContext(NamedTuple):
    """A response, the turns before and after it, in order, and utterances of its role from other dialogues."""

    previous: tuple[str, ...]
    following: tuple[str, ...]
    response: str
    negatives: tuple[str, ...]


class _Turn(NamedTuple):
    """A turn: its role, the number of its dialogue, its place there and its text."""

    role: str
    dialogue: int
    place: int
    text: str


class DialogueCSEExamples(ListedExamples):
    """Responses in their context (section 3); example i is a pure function of (seed, epoch, i).

    Consecutive turns of a speaker count as one (section 5.1.1). Every turn with a neighbour is a response once an
    epoch. Dialogues are of two or more turns.

    Raises:
        InputError: No turn has both a context and an utterance to compete with.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: DialogueCSEConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        self.turns: list[list[_Turn]] = []
        self.pools: dict[str, list[_Turn]] = {}
        for number, dialogue in enumerate(dialogues):
            spoken = groupby(dialogue.turns, key=lambda turn: turn.role)
            joined = [(role, " ".join(turn.content for turn in turns)) for role, turns in spoken]
            self.turns.append([_Turn(role, number, place, text) for place, (role, text) in enumerate(joined)])
            for turn in self.turns[-1]:
                self.pools.setdefault(turn.role, []).append(turn)
        self.notes: list[str] = []
        self.items = self._responses()

    def _responses(self) -> list[_Turn]:
        """Return the turns that can be learnt from, and note how many cannot."""
        everything = [turn for turns in self.turns for turn in turns]
        by_dialogue = Counter((turn.role, turn.dialogue) for turn in everything)
        by_text = Counter((turn.role, turn.text) for turn in everything)
        by_both = Counter((turn.role, turn.dialogue, turn.text) for turn in everything)
        responses, alone, unrivalled = [], 0, 0
        for turn in everything:
            role, number, place, text = turn
            unfit = by_dialogue[role, number] + by_text[role, text] - by_both[role, number, text]
            if place == 0 and (not self.config.next_turns or len(self.turns[number]) == 1):
                alone += 1
            elif len(self.pools[role]) == unfit:
                unrivalled += 1
            else:
                responses.append(turn)
        if alone:
            self.notes.append(f"Left out {alone:,} turns without a turn beside them")
        if unrivalled:
            self.notes.append(f"Left out {unrivalled:,} turns whose role says nothing else in any other dialogue")
        if not responses:
            raise InputError(
                f"dialogue_cse: got no turn with context and negatives from {len(self.turns)} dialogues ({alone} turns "
                f"have none beside them, the roles of {unrivalled} say nothing else in other dialogues), expected at "
                "least one; add dialogues of two speakers"
            )
        return responses

    def example(self, epoch: int, index: int) -> ResponseInContext:
        """Return a response with its context and negatives."""
        response = self.items[index]
        turns = [turn.text for turn in self.turns[response.dialogue]]
        place, reach = response.place, self.config.context_turns
        after = turns[place + 1 : place + 1 + reach] if self.config.next_turns else []
        generator = np.random.default_rng([self.seed, epoch, index])
        negatives = (self._negative(response, generator) for _ in range(self.config.num_negatives))
        return ResponseInContext(
            tuple(turns[max(0, place - reach) : place]), tuple(after), response.text, tuple(negatives)
        )

    def _negative(self, response: _Turn, generator: np.random.Generator) -> str:
        pool = self.pools[response.role]
        for _ in range(100):
            other = pool[generator.integers(len(pool))]
            if other.dialogue != response.dialogue and other.text != response.text:
                return other.text
        rest = [turn.text for turn in pool if turn.dialogue != response.dialogue and turn.text != response.text]
        return rest[generator.integers(len(rest))]


def collate(
    examples: list[ResponseInContext], tokenizer: PreTrainedTokenizerBase, config: DialogueCSEConfig, count: Truncation
) -> dict[str, Tensor]:
    """Lay out B responses with context and negatives, (B, C + 1 + num_negatives, L); absent turns are masked."""
    width = config.context_rows + 1 + config.num_negatives
    context, candidates = {}, {}  # row to text
    for start, example in zip(range(0, width * len(examples), width), examples, strict=True):
        context.update({start + place: text for place, text in _context_texts(example, config).items()})
        texts = (example.response, *example.negatives)
        candidates.update({start + config.context_rows + place: text for place, text in enumerate(texts)})
    keep = "end" if config.context == "siamese_multi_turn" else "start"
    parts = [
        (list(rows), tokenize_utterances(list(rows.values()), tokenizer, config.max_tokens, count, side))
        for rows, side in ((context, keep), (candidates, "start"))
    ]
    size = width * len(examples), max(part["input_ids"].shape[1] for _, part in parts)
    fills = {"input_ids": tokenizer.pad_token_id or 0, "attention_mask": 0}
    batch = {name: torch.full(size, fill, dtype=torch.long) for name, fill in fills.items()}
    for name, tensor in batch.items():
        for rows, part in parts:
            tensor[rows, : part[name].shape[1]] = part[name]
    return {name: tensor.unflatten(0, (-1, width)) for name, tensor in batch.items()}


def _context_texts(example: ResponseInContext, config: DialogueCSEConfig) -> dict[int, str]:
    """Return the text of each context row, without absent turns."""
    if config.context == "siamese_multi_turn":
        return {0: " ".join((*example.previous, *example.following))}
    if config.context == "siamese":
        return {0: example.previous[-1] if example.previous else example.following[0]}
    after = enumerate(example.following, config.context_turns)
    return {**dict(enumerate(example.previous)), **dict(after)}


METHOD = Method(
    "dialogue_cse",
    DialogueCSEConfig,
    DialogueCSEModel,
    DialogueCSEExamples,
    collate,
    min_turns=2,
    title="DialogueCSE",
    paper="liu-etal-2021-dialoguecse",
    suite="dialogue_cse",
    what=(
        "A response competes in training with utterances from other dialogues. Every turn of the context picks, token "
        "by token, what it matches in a candidate; in the true response that is most of it. The vector of an utterance "
        "is the mean of its tokens'."
    ),
)
