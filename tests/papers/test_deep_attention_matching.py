"""Deep Attention Matching.

It equals its formulas one pair after the other, and nothing but words decides a score.
"""

import math
from itertools import product

import pytest
import torch
from talks import dialogue
from torch.nn.functional import conv3d, elu, layer_norm

from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.ranker import RankingExample
from hf_dialemb.papers.methods import deep_attention_matching as matching

WORDS = 30
SMALL = {
    "vocab_size": WORDS,
    "embedding_size": 7,
    "num_blocks": 2,
    "max_turns": 4,
    "max_turn_tokens": 5,
    "max_response_tokens": 10,
}
# Contexts and candidates as token ids: of all lengths, some of them beyond the limits.
CONTEXTS = [
    [[3, 4, 5], [6], [7, 8, 9, 10, 11, 12, 13]],
    [[14, 3]],
    [[1, 2], [3, 4, 5, 6], [7, 8], [9], [10, 11, 12, 13, 14], [15, 16, 17]],
]
CANDIDATES = [
    [[5, 6, 7], [8], [3, 4, 5, 9, 10, 11, 12]],
    [[20, 21, 22, 23], [24, 3], [14]],
    [[17] * 12 + [18, 19], [25, 26], [10, 2, 4, 27]],
]


def make(**settings: object) -> matching.DeepAttentionMatchingModel:
    """A tiny model in double precision whose parameters all say something."""
    torch.manual_seed(0)
    model = matching.DeepAttentionMatchingModel(
        matching.DeepAttentionMatchingConfig(**{**SMALL, **settings})
    ).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


def padded(rows: list[list[list[int]]], first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask (B, N, L).

    Missing texts come first or last, and what is masked is no pad token but any word.
    """
    count, length = max(map(len, rows)), max(len(text) for row in rows for text in row)
    ids, mask = (
        torch.randint(1, WORDS, (len(rows), count, length)),
        torch.zeros(len(rows), count, length).long(),
    )
    for b, row in enumerate(rows):
        for n, text in enumerate(row, count - len(row) if first else 0):
            ids[b, n, : len(text)], mask[b, n, : len(text)] = (
                torch.tensor(text, dtype=torch.long),
                1,
            )
    return ids, mask


def scores_of(model, contexts=CONTEXTS, candidates=CANDIDATES):
    return model(*padded(contexts, first=True), *padded(candidates, first=False)).logits


def normalised(layer, values):
    return layer_norm(values, values.shape[-1:], layer.weight, layer.bias, eps=1e-6)


def reference_block(block, queries, keys):
    attended = torch.softmax(queries @ keys.T / math.sqrt(queries.shape[-1]), dim=-1) @ keys
    hidden = normalised(block.attention_norm, queries + attended)
    return normalised(block.output_norm, hidden + block.outer(block.inner(hidden).clamp(min=0)))


def reference_levels(model, tokens):
    levels = [model.words.weight[torch.tensor(tokens)]]
    for block in model.self_blocks:
        levels.append(reference_block(block, levels[-1], levels[-1]))
    return levels


def reference_pool(image):
    """Maxima of 3 x 3 x 3, cell after cell, with TensorFlow's rule for the padding SAME."""
    starts = []
    for size in image.shape[1:]:
        count = math.ceil(size / 3)
        starts.append([3 * cell - (3 * count - size) // 2 for cell in range(count)])
    cells = [
        image[:, max(0, a) : a + 3, max(0, b) : b + 3, max(0, c) : c + 3]
        for a, b, c in product(*starts)
    ]
    return torch.stack([cell.amax((1, 2, 3)) for cell in cells], dim=1).view(
        len(image), *map(len, starts)
    )


def reference_score(model, turns, response):
    """The formulas: one turn, one level and one direction after the other."""
    config, levels = model.config, model.config.num_blocks + 1
    turns = [turn[-config.max_turn_tokens :] for turn in turns[-config.max_turns :]]
    response = response[-config.max_response_tokens :]
    size = config.max_turns, config.max_turn_tokens, config.max_response_tokens
    image = torch.zeros(2 * levels, *size, dtype=torch.float64)
    ours = reference_levels(model, response)
    for place, turn in enumerate(turns, config.max_turns - len(turns)):
        theirs = reference_levels(model, turn)
        for level, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            crossed = reference_block(model.turn_blocks[level], left, right)
            answer = reference_block(model.response_blocks[level], right, left)
            for channel, (a, b) in ((level, (crossed, answer)), (levels + level, (left, right))):
                image[channel, place, : len(turn), : len(response)] = (
                    a @ b.T / math.sqrt(config.embedding_size)
                )
    for convolution in model.reader.convolutions:
        image = reference_pool(
            elu(conv3d(image[None], convolution.weight, convolution.bias, padding=1)[0])
        )
    return model.output(image.flatten())[0]


def same(scores, expected):
    return torch.allclose(scores, expected, atol=1e-10, rtol=0)


def test_it_equals_the_formulas_whatever_stands_beside_them():
    model = make()
    rows = [
        torch.stack([reference_score(model, context, entry) for entry in responses])
        for context, responses in zip(CONTEXTS, CANDIDATES, strict=True)
    ]
    expected, scores = torch.stack(rows), scores_of(model)
    assert same(scores, expected)
    assert expected.std() > 0.1
    # A turn without a word changes no score.
    first, second, third = CONTEXTS[0]
    assert same(scores_of(model, [[first, [], second, [], third]], CANDIDATES[:1]), scores[:1])
    # The last words and turns are read.
    long = [[[9]] * 3 + [[1, *turn] if len(turn) >= 5 else turn for turn in CONTEXTS[2][-4:]]]
    responses = [
        [[28, *response] if len(response) >= 10 else response for response in CANDIDATES[2]]
    ]
    assert same(scores_of(model, long, responses), scores[2:])


def test_nothing_at_all_has_a_finite_score_and_bfloat16_a_float32_one():
    model = make()
    scores = scores_of(model, [[[]], [[3, 4]]], [[[], [5]], [[6], []]])
    assert scores.isfinite().all()
    assert abs(scores[0, 0] - scores[1, 1]) < 1e-12  # an image of zeros, whatever is missing
    scores.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    with pytest.raises(NotImplementedError, match="embeds neither"):
        model(torch.ones(1, 3, dtype=torch.long))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert scores_of(make().float()).dtype == torch.float32


def test_its_size_and_its_beginning_are_those_of_the_program():
    model = matching.DeepAttentionMatchingModel(matching.DeepAttentionMatchingConfig(vocab_size=20))
    assert model.output.in_features == matching.number_of_features(9, 50, 50) == 576
    block = 2 * (200 * 200 + 200) + 4 * 200
    convolutions = (27 * 12 * 32 + 32) + (27 * 32 * 16 + 16)
    assert model.num_parameters() == 20 * 200 + 17 * block + convolutions + 577
    assert matching.DeepAttentionMatchingConfig().vocabulary_size == 434_512 + 1
    torch.manual_seed(0)
    model = matching.DeepAttentionMatchingModel(
        matching.DeepAttentionMatchingConfig(vocab_size=2_000, num_blocks=1)
    )
    assert abs(model.words.weight.std().item() - 0.1) < 0.001
    inner = model.turn_blocks[1].inner.weight
    assert torch.allclose(inner @ inner.T, torch.eye(200), atol=1e-5)
    largest = [convolution.weight.abs().max().item() for convolution in model.reader.convolutions]
    assert all(0.0099 < entry <= 0.01 for entry in largest)
    assert all(
        parameter.abs().max() == 0
        for name, parameter in model.named_parameters()
        if name.endswith("bias")
    )


@pytest.mark.parametrize("size", range(1, 12))
def test_pooling_is_that_of_tensorflow(size):
    image = torch.randn(2, size, 2 * size, 14, generator=torch.Generator().manual_seed(size))
    assert torch.equal(matching.pool(image[None])[0], reference_pool(image))


def test_layout():
    limits = {"max_turns": 2, "max_turn_tokens": 3, "max_context_tokens": 8}
    words = [dialogue("a red door please on the white wall", "so which one")]
    model, tokenizer = matching.DeepAttentionMatchingModel.build(
        None, words, **limits, max_response_tokens=8, embedding_size=8, num_blocks=1
    )
    assert model.config.vocab_size == len(tokenizer)
    context = dialogue("which wall", "the red one please", "so red").turns
    examples = [
        RankingExample(context, ("so red on red", "a")),
        RankingExample(context[:1], ("a red door please on the white wall one", "the unheard one")),
    ]
    count = Truncation()
    batch = matching.collate(examples, tokenizer, model.config, count)

    def texts(name):
        ids, mask = (
            batch[f"{name}_ids"],
            batch["attention_mask" if name == "input" else f"{name}_mask"],
        )
        return [
            [
                " ".join(tokenizer.convert_ids_to_tokens(text[real.bool()]))
                for text, real in zip(*rows, strict=True)
            ]
            for rows in zip(ids, mask, strict=True)
        ]

    assert texts("input") == [["red one please", "so red"], ["", "which wall"]]
    assert texts("candidate") == [
        ["so red on red", "a"],
        ["red door please on the white wall one", "the [UNK] one"],
    ]
    assert str(count) == "2 of 6 contexts and responses were truncated (4 of 27 tokens dropped)"
    model.config.max_context_tokens = 3
    batch = matching.collate(examples, tokenizer, model.config, Truncation())
    assert texts("input") == [["please", "so red"], ["", "which wall"]]
