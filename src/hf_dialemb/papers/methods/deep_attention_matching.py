"""Deep Attention Matching.

Every word of a context beside every word of a response (Zhou et al., ACL 2018).

One of the two base models of Mehri and Eskenazi (EMNLP 2019, section 4.2.3). Sizes, initial weights
and the choice of words are the released program's. Unlike there, padding has no part in the image,
and each layer of a block has a bias for each of its outputs instead of one for all.

Letters of shapes: B contexts, K candidate responses of each, T turns of a context, L tokens of a
turn, M of a response, N texts, D width of the word vectors. Masks are boolean. Masked tokens are
not attended to.
"""

import math
from itertools import pairwise
from typing import ClassVar

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase, initialization

from ...methods.backbone_model import autocast_off
from ...methods.config import RankerConfig
from ...methods.layout import Truncation, pad_right
from ...methods.method import Method
from ...methods.ranker import Ranker, RankingExample, RankingExamples, ids_of, with_candidates
from ...methods.vocabulary import WordRanker
from ...ranges import Range, Ranges

_PAIRS = 256  # contexts times candidates that are scored at once without gradient
_EPSILON = 1e-6  # of layer normalisation in the released program
_CHANNELS = (32, 16)  # of the two convolutions


@strict
class DeepAttentionMatchingConfig(RankerConfig):
    """Settings of Deep Attention Matching, beside those of `RankerConfig`.

    The defaults are the released program's.

    Attributes:
        max_context_tokens, max_response_tokens, max_turn_tokens: Last words that are read of all
        turns together, of a
            response, and of a turn.
        max_turns: Last turns of a context that are read.
        vocabulary_size: Largest number of words, with the entries for padding, unknown words and
            speakers.
        vocab_size: Number of words after the corpus was counted.
        embedding_size: Width D of a word's vector and of all layers.
        num_blocks: Blocks of self-attention; each adds a level to that of the words.
    """

    model_type = "dialemb-deep-attention-matching"
    ranges: ClassVar[Ranges] = {
        "max_turns": Range(1),
        "max_turn_tokens": Range(1),
        "embedding_size": Range(1),
        "num_blocks": Range(0),
    }

    max_context_tokens: int = 450
    max_response_tokens: int = 50
    max_turns: int = 9
    max_turn_tokens: int = 50
    vocabulary_size: int = 434_513
    vocab_size: int | None = None
    embedding_size: int = 200
    num_blocks: int = 5


class DeepAttentionMatchingModel(WordRanker):
    """A ranker that matches a context with a response word by word; neither has an embedding.

    In the image the last turn is the last, the first words are the first, and the rest is zero. So
    neither the other rows of a batch nor padding changes a score.
    """

    config: DeepAttentionMatchingConfig
    embeds: ClassVar[bool] = False
    get_text_features = Ranker.embed  # what sentence-transformers embeds a text by

    def __init__(self, config: DeepAttentionMatchingConfig) -> None:
        super().__init__(config)
        size = config.embedding_size
        levels = config.num_blocks + 1
        self.words = nn.Embedding(config.vocab_size or config.vocabulary_size, size)
        self.self_blocks = nn.ModuleList(AttentiveBlock(size) for _ in range(config.num_blocks))
        self.turn_blocks = nn.ModuleList(AttentiveBlock(size) for _ in range(levels))
        self.response_blocks = nn.ModuleList(AttentiveBlock(size) for _ in range(levels))
        self.reader = SimilarityReader(2 * levels)
        features = number_of_features(
            config.max_turns, config.max_turn_tokens, config.max_response_tokens
        )
        self.output = nn.Linear(features, 1)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draw weights as the released program does."""
        if isinstance(module, nn.Embedding):
            initialization.normal_(module.weight, std=0.1)
        elif isinstance(module, nn.Linear):
            initialization.orthogonal_(module.weight)
        elif isinstance(module, nn.Conv3d):
            initialization.uniform_(module.weight, -0.01, 0.01)
        elif isinstance(module, nn.LayerNorm):
            initialization.ones_(module.weight)
        if isinstance(module, nn.Linear | nn.Conv3d | nn.LayerNorm) and module.bias is not None:
            initialization.zeros_(module.bias)

    def get_input_embeddings(self) -> nn.Module:
        """Return the word table."""
        return self.words

    def score(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        candidate_ids: Tensor,
        candidate_mask: Tensor,
    ) -> tuple[Tensor, None]:
        """Score candidates, (B, K), of contexts (B, T, L), turn by turn.

        Turns without a token count as absent.
        """
        config = self.config
        candidates = candidate_ids.shape[1]
        ids, mask = last_tokens(
            *last_turns(input_ids, attention_mask, config.max_turns), config.max_turn_tokens
        )
        levels = self._levels(ids, mask)
        texts = last_tokens(candidate_ids, candidate_mask, config.max_response_tokens)
        size = candidates if torch.is_grad_enabled() else max(1, _PAIRS // len(ids))
        parts = zip(*(tensor.split(size, dim=1) for tensor in texts), strict=True)
        return torch.cat([self._match(*part, mask, *levels) for part in parts], dim=1), None

    def _levels(self, ids: Tensor, mask: Tensor) -> list[Tensor]:
        """Represent texts (B, N, L) at all levels, each (B, N, L, D)."""
        levels = [self.words(ids.flatten(0, 1))]
        for block in self.self_blocks:
            levels.append(block(levels[-1], self_attend(levels[-1], mask.flatten(0, 1))))
        return [level.unflatten(0, ids.shape[:2]) for level in levels]

    def _match(self, ids: Tensor, mask: Tensor, turn_mask: Tensor, *turn_levels: Tensor) -> Tensor:
        """Score candidates (B, K, M) of contexts with levels (B, T, L, D), to (B, K)."""
        crossed = []
        products = []
        for level, (turns, responses) in enumerate(
            zip(turn_levels, self._levels(ids, mask), strict=True)
        ):
            from_responses, from_turns, product = cross_attend(turns, responses, turn_mask, mask)
            left = self.turn_blocks[level](turns.unsqueeze(1), from_responses)  # (B, K, T, L, D)
            # (B, K, T, M, D)
            right = self.response_blocks[level](responses.unsqueeze(2), from_turns)
            crossed.append(similarity(left, right, "bktld,bktmd->bktlm"))
            products.append(product)
        # (B, K, 1, T, L, M)
        real = turn_mask[:, None, None, :, :, None] & mask[:, :, None, None, None, :]
        # (B * K, C, T, L, M)
        image = (torch.stack([*crossed, *products], dim=2) * real).flatten(0, 1)
        features = self.reader(self._frame(image))
        with autocast_off(features):  # scores in half precision would tie
            scores: Tensor = self.output(features.to(self.output.weight.dtype))
        return scores.view(ids.shape[:2])

    def _frame(self, image: Tensor) -> Tensor:
        """Pad images to the size that the last layer needs.

        Earlier turns and later tokens are zero.
        """
        sizes = self.config.max_turns, self.config.max_turn_tokens, self.config.max_response_tokens
        turns, turn_tokens, tokens = (
            most - size for most, size in zip(sizes, image.shape[-3:], strict=True)
        )
        return nn.functional.pad(image, (0, tokens, 0, turn_tokens, turns, 0))


class AttentiveBlock(nn.Module):
    """The layers behind attention: residual and normalisation, a layer of ReLUs, both again.

    ``size`` is D.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(size, eps=_EPSILON)
        self.inner = nn.Linear(size, size)
        self.outer = nn.Linear(size, size)
        self.output_norm = nn.LayerNorm(size, eps=_EPSILON)

    def forward(self, queries: Tensor, attended: Tensor) -> Tensor:
        """Join queries and attended vectors, both (..., D), to (..., D)."""
        hidden = self.attention_norm(queries + attended)
        output: Tensor = self.output_norm(hidden + self.outer(torch.relu(self.inner(hidden))))
        return output


class SimilarityReader(nn.Module):
    """Two 3-D convolutions over turns, their tokens and a response's, each with ELU and pooling."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        widths = pairwise((channels, *_CHANNELS))
        self.convolutions = nn.ModuleList(
            nn.Conv3d(*pair, kernel_size=3, padding=1) for pair in widths
        )

    def forward(self, image: Tensor) -> Tensor:
        """Read images (N, C, T, L, M) to features (N, `number_of_features`)."""
        for convolution in self.convolutions:
            # ELU rises: after the maximum it costs a 27th
            image = nn.functional.elu(pool(convolution(image)))
        return image.flatten(1)


def number_of_features(turns: int, turn_tokens: int, response_tokens: int) -> int:
    """Return the number of features of an image of T x L x M; 576 for 9 x 50 x 50."""
    return _CHANNELS[-1] * math.prod(
        math.ceil(size / 9) for size in (turns, turn_tokens, response_tokens)
    )


def pool(image: Tensor) -> Tensor:
    """Pool maxima of 3 x 3 x 3 cells.

    (N, C, T, L, M) to (N, C, ceil(T / 3), ceil(L / 3), ceil(M / 3)).

    The padding is TensorFlow's ``SAME``: an odd place goes to the end.
    """
    # two places more: one goes to the start
    padding = tuple(int(size % 3 == 1) for size in image.shape[-3:])
    return nn.functional.max_pool3d(image, 3, padding=padding, ceil_mode=True)


def self_attend(hidden: Tensor, mask: Tensor) -> Tensor:
    """Let each token of a text (N, L, D) attend to all of its tokens, with a mask (N, L)."""
    scores = similarity(hidden, hidden, "nld,nmd->nlm")
    return torch.einsum("nlm,nmd->nld", attention_weights(scores, mask.unsqueeze(1)), hidden)


def cross_attend(
    turns: Tensor, responses: Tensor, turn_mask: Tensor, response_mask: Tensor
) -> tuple[Tensor, ...]:
    """Let the tokens of turns (B, T, L, D) and of candidates (B, K, M, D) attend to one another.

    Returns the turns' tokens made of the candidates' (B, K, T, L, D), the candidates' made of the
    turns' (B, K, T, M, D), and the scores (B, K, T, L, M), which both directions share and the
    image has too.
    """
    scores = similarity(turns, responses, "btld,bkmd->bktlm")
    to_response = attention_weights(scores, response_mask[:, :, None, None, :])
    to_turn = attention_weights(scores.transpose(-1, -2), turn_mask[:, None, :, None, :])
    from_responses = torch.einsum("bktlm,bkmd->bktld", to_response, responses)
    from_turns = torch.einsum("bktml,btld->bktmd", to_turn, turns)
    return from_responses, from_turns, scores


def attention_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Normalise scores (..., C) to sum to 1 over the tokens of a mask.

    All are equal without any.
    """
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)


def similarity(left: Tensor, right: Tensor, equation: str) -> Tensor:
    """Multiply vectors by an equation of `torch.einsum`, and divide by the root of their width."""
    return torch.einsum(equation, left, right) / math.sqrt(left.shape[-1])


def last_tokens(ids: Tensor, mask: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Keep the last real tokens of each text, moved to its start.

    (..., L) to (..., min(L, size)).
    """
    real = mask.bool()
    count = real.sum(-1, keepdim=True)
    # real tokens first, in their order
    order = real.int().argsort(dim=-1, descending=True, stable=True)
    place = torch.arange(min(ids.shape[-1], size), device=ids.device) + (count - size).clamp(min=0)
    return ids.gather(-1, order.gather(-1, place)), place < count


def last_turns(ids: Tensor, mask: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Keep the last turns that have a token, moved to the end.

    (B, T, L) to (B, min(T, size), L).
    """
    present = mask.bool().any(-1)
    order = present.int().argsort(dim=1, stable=True)[:, -size:, None].expand(-1, -1, ids.shape[-1])
    return ids.gather(1, order), mask.bool().gather(1, order)


def collate(
    examples: list[RankingExample],
    tokenizer: PreTrainedTokenizerBase,
    config: DeepAttentionMatchingConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out the turns of B contexts (B, T, L), and K candidates of each (B, K, M).

    Absent turns come first and are masked.
    """
    count.unit = "contexts and responses"
    texts = [text for example in examples for text in example.candidates]
    spoken = [turn.content for example in examples for turn in example.context]
    tokens = ids_of([*spoken, *texts], tokenizer)
    contexts = [[tokens[turn.content] for turn in example.context] for example in examples]
    kept = [_last_words(turns, config) for turns in contexts]
    responses = [tokens[text][-config.max_response_tokens :] for text in texts]
    for before, after in zip(contexts, kept, strict=True):
        count.add(sum(map(len, before)), sum(map(len, after)))
    for text, response in zip(texts, responses, strict=True):
        count.add(len(tokens[text]), len(response))
    width = max([1, *map(len, kept)])
    absent: list[list[int]] = [[]]
    turns = [turn for context in kept for turn in (*absent * (width - len(context)), *context)]
    batch, candidates = (
        pad_right(rows, tokenizer.pad_token_id or 0) for rows in (turns, responses)
    )
    return with_candidates(
        {name: tensor.unflatten(0, (-1, width)) for name, tensor in batch.items()}, candidates
    )


def _last_words(turns: list[list[int]], config: DeepAttentionMatchingConfig) -> list[list[int]]:
    """Keep the last turns that have a word, and the last words of each."""
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
        "Every word of a response is matched with every word of a context, layer by layer, and "
        "what fits is the score; "
        "neither has a vector of its own. In training the true response is to be found among "
        "others."
    ),
)
