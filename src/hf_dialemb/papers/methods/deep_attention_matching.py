"""Deep Attention Matching: every word of a context beside every word of a response (Zhou et al., ACL 2018).

One of the two base models of Multi-Granularity Representations of Dialog (Mehri and Eskenazi, EMNLP 2019,
arXiv:1908.09890, section 4.2.3). Word vectors pass through blocks of self-attention; at each level turns and responses
attend to one another; the products of their vectors make an image, one channel for each kind, that convolutions read.

Sizes, initial weights and which words are kept are the released program's. Unlike there, padding has no part in the
image, and each layer of a block has a bias for each of its outputs, not one for all.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedTokenizerBase
from transformers import initialization as init

from ...methods.backbone_model import autocast_off
from ...methods.config import RankerConfig
from ...methods.layout import Truncation, pad_right
from ...methods.method import Method
from ...methods.ranker import Ranker, RankingExample, RankingExamples, candidates_of, remembered_ids, with_candidates
from ...methods.words import WordRanker
from ...ranges import Range, Ranges
from .attention_matching import (
    AttentiveBlock,
    SimilarityReader,
    cross_attend,
    last_tokens,
    last_turns,
    number_of_features,
    positions,
    self_attend,
    similarity,
)

_LARGEST_LOSS = 10.0  # of a pair in the released program; beyond it nothing is learnt
_PAIRS = 256  # contexts times candidates that are scored at once where no gradient is wanted


@strict
class DeepAttentionMatchingConfig(RankerConfig):
    """Settings of Deep Attention Matching, beside those of `RankerConfig`; the defaults are the released program's.

    Attributes:
        max_context_tokens: Of all turns together the last so many words are read.
        max_response_tokens: Of a response the last so many words are read.
        max_turns: Of a context the last so many turns are read.
        max_turn_tokens: Of a turn the last so many words are read.
        vocabulary_size: How many words it knows at most, with those for padding, unknown words and speakers.
        vocab_size: How many it knows after the corpus was counted.
        embedding_size: D, width of a word's vector, and of all that follows.
        num_blocks: Blocks of self-attention; each adds a level to those of the words themselves.
        positional: Whether words carry their position, as in the paper; the released program leaves it out.
        objective: ``"candidates"``: the true response among K (equation 6 of Multi-Granularity Representations);
            ``"pairs"``: each pair of context and response for itself, with the loss of a pair cut at 10, as in the
            released program (which draws as many false responses as true ones: ``num_candidates: 2``).
        chunk_size: Candidates of each context whose activations are in memory at once; they are computed again in the
            backward pass, and the gradients are the same. None keeps all.
    """

    model_type = "dialemb-deep-attention-matching"
    ranges: ClassVar[Ranges] = {
        "max_turns": Range(1), "max_turn_tokens": Range(1), "embedding_size": Range(1), "num_blocks": Range(0),
        "chunk_size": Range(1),
    }  # fmt: skip

    max_context_tokens: int = 450
    max_response_tokens: int = 50
    max_turns: int = 9
    max_turn_tokens: int = 50
    vocabulary_size: int = 434_513
    vocab_size: int | None = None
    embedding_size: int = 200
    num_blocks: int = 5
    positional: bool = False
    objective: Literal["candidates", "pairs"] = "candidates"
    chunk_size: int | None = None


class DeepAttentionMatchingModel(WordRanker):
    """Matches a context with a response word by word; neither has an embedding of its own.

    The last turn is always the last in the image, and the first words of turns and response are the first; what is left
    over is zero. So neither the company in a batch nor padding changes a score.
    """

    config: DeepAttentionMatchingConfig
    embeds: ClassVar[bool] = False
    get_text_features = Ranker.embed  # what sentence-transformers embeds a text by

    def __init__(self, config: DeepAttentionMatchingConfig) -> None:
        super().__init__(config)
        size, levels = config.embedding_size, config.num_blocks + 1
        self.words = nn.Embedding(config.vocab_size or config.vocabulary_size, size)
        self.self_blocks = nn.ModuleList(AttentiveBlock(size) for _ in range(config.num_blocks))
        self.turn_blocks = nn.ModuleList(AttentiveBlock(size) for _ in range(levels))
        self.response_blocks = nn.ModuleList(AttentiveBlock(size) for _ in range(levels))
        self.reader = SimilarityReader(2 * levels)
        features = number_of_features(config.max_turns, config.max_turn_tokens, config.max_response_tokens)
        self.output = nn.Linear(features, 1)
        self.post_init()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draws as the released program does."""
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=0.1)
        elif isinstance(module, nn.Linear):
            init.orthogonal_(module.weight)
        elif isinstance(module, nn.Conv3d):
            init.uniform_(module.weight, -0.01, 0.01)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
        if isinstance(module, nn.Linear | nn.Conv3d | nn.LayerNorm) and module.bias is not None:
            init.zeros_(module.bias)

    def get_input_embeddings(self) -> nn.Module:
        """Returns the word table."""
        return self.words

    def score(
        self, input_ids: Tensor, attention_mask: Tensor, candidate_ids: Tensor, candidate_mask: Tensor
    ) -> tuple[Tensor, None]:
        """See `Ranker`; contexts are (B, T, L), turn by turn, and turns without a token count as absent."""
        config, candidates = self.config, candidate_ids.shape[1]
        ids, mask = last_tokens(*last_turns(input_ids, attention_mask, config.max_turns), config.max_turn_tokens)
        levels = self._levels(ids, mask)
        texts = last_tokens(candidate_ids, candidate_mask, config.max_response_tokens)
        learning = torch.is_grad_enabled()
        size = config.chunk_size or (candidates if learning else max(1, _PAIRS // len(ids)))
        match: Callable[..., Tensor] = self._match
        if config.chunk_size is not None and learning:
            match = partial(checkpoint, self._match, use_reentrant=False)
        parts = zip(*(tensor.split(size, dim=1) for tensor in texts), strict=True)
        return torch.cat([match(*part, mask, *levels) for part in parts], dim=1), None

    def _levels(self, ids: Tensor, mask: Tensor) -> list[Tensor]:
        """Represents texts at all levels, (B, N, L) to as many of (B, N, L, D)."""
        hidden = self.words(ids.flatten(0, 1))
        if self.config.positional:
            hidden = hidden + positions(ids.shape[-1], hidden)
        levels = [hidden]
        for block in self.self_blocks:
            levels.append(block(levels[-1], self_attend(levels[-1], mask.flatten(0, 1))))
        return [level.unflatten(0, ids.shape[:2]) for level in levels]

    def _match(self, ids: Tensor, mask: Tensor, turn_mask: Tensor, *turn_levels: Tensor) -> Tensor:
        """Scores candidates (B, K, M) of contexts with levels (B, T, L, D), to (B, K)."""
        crossed, products = [], []
        for level, (turns, responses) in enumerate(zip(turn_levels, self._levels(ids, mask), strict=True)):
            from_responses, from_turns, product = cross_attend(turns, responses, turn_mask, mask)
            left = self.turn_blocks[level](turns.unsqueeze(1), from_responses)  # (B, K, T, L, D)
            right = self.response_blocks[level](responses.unsqueeze(2), from_turns)  # (B, K, T, M, D)
            crossed.append(similarity(left, right, "bktld,bktmd->bktlm"))
            products.append(product)
        real = turn_mask[:, None, None, :, :, None] & mask[:, :, None, None, None, :]  # (B, K, 1, T, L, M)
        image = (torch.stack([*crossed, *products], dim=2) * real).flatten(0, 1)  # (B * K, C, T, L, M)
        features = self.reader(self._frame(image))
        with autocast_off(features):  # scores in half precision would tie
            scores: Tensor = self.output(features.to(self.output.weight.dtype))
        return scores.view(ids.shape[:2])

    def _frame(self, image: Tensor) -> Tensor:
        """Fills images up to the size that the last layer was made for: earlier turns and later tokens are zero."""
        turns, turn_tokens, response_tokens = image.shape[-3:]
        after = self.config.max_response_tokens - response_tokens, self.config.max_turn_tokens - turn_tokens
        return nn.functional.pad(image, (0, after[0], 0, after[1], self.config.max_turns - turns, 0))

    def ranking_loss(self, logits: Tensor) -> Tensor:
        """Computes the loss of scores (B, K), the true response first; see ``objective``."""
        if self.config.objective == "candidates":
            return super().ranking_loss(logits)
        true = torch.zeros_like(logits)
        true[:, 0] = 1
        losses = nn.functional.binary_cross_entropy_with_logits(logits, true, reduction="none")
        return losses.clamp(max=_LARGEST_LOSS).mean()


def collate(
    examples: list[RankingExample],
    tokenizer: PreTrainedTokenizerBase,
    config: DeepAttentionMatchingConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lays out the turns of B contexts (B, T, L), absent ones first and masked, and K candidates of each (B, K, M)."""
    count.unit = "contexts and responses"
    texts = candidates_of(examples)
    said = [turn.content for example in examples for turn in example.context]
    tokens = remembered_ids([*said, *texts], tokenizer)
    contexts = [[tokens[turn.content] for turn in example.context] for example in examples]
    kept = [_last_words(turns, config) for turns in contexts]
    responses = [tokens[text][-config.max_response_tokens :] for text in texts]
    for before, after in zip(contexts, kept, strict=True):
        count.add(sum(map(len, before)), sum(map(len, after)), not any(before))
    for text, response in zip(texts, responses, strict=True):
        count.add(len(tokens[text]), len(response), not tokens[text])
    width = max([1, *map(len, kept)])
    turns: list[list[int]] = []
    for context in kept:
        turns += [[]] * (width - len(context)) + context
    batch, found = (pad_right(rows, tokenizer.pad_token_id or 0) for rows in (turns, responses))
    return with_candidates({name: tensor.unflatten(0, (-1, width)) for name, tensor in batch.items()}, found)


def _last_words(turns: list[list[int]], config: DeepAttentionMatchingConfig) -> list[list[int]]:
    """Keeps the last turns that have a word, and the last words of each."""
    kept: list[list[int]] = []
    left = config.max_context_tokens
    for turn in reversed([turn for turn in turns if turn][-config.max_turns :]):
        words = turn[max(0, len(turn) - min(left, config.max_turn_tokens)) :]
        left -= len(words)
        if words:
            kept.insert(0, words)
    return kept


METHOD = Method(
    "deep_attention_matching",
    DeepAttentionMatchingConfig,
    DeepAttentionMatchingModel,
    RankingExamples,
    collate,
    min_turns=2,
    from_scratch=True,
    title="Deep attention matching",
    paper="mehri-eskenazi-2019-multi",
    suite="mgt",
    what=(
        "Every word of a response is matched with every word of a context, layer by layer, and what fits is the score; "
        "neither has a vector of its own. In training the true response is to be found among others."
    ),
)
