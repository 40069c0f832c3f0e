"""DSE, the losses against their formula, and what every utterance encoder shares."""

import math

import pytest
import reference_models as reference
import torch
from reference_models import unit
from talks import dialogue

from hf_dialemb.errors import InputError
from hf_dialemb.methods.dse import DSEConfig, DSEExamples, DSEModel, collate
from hf_dialemb.methods.layout import Truncation, tokenize_utterances
from hf_dialemb.methods.losses import hard_targets, pair_contrastive, soft_targets

TALK = [
    dialogue("I need a cheap hotel", "For how many nights then", "Yes", "In which part of town"),
    dialogue("My card was stolen yesterday", "Please tell me its number"),
]


def pairs(dialogues, **settings):
    examples = DSEExamples(dialogues, DSEConfig(encoder_config=None, **settings), seed=0)
    return [examples.example(0, index) for index in range(len(examples))], examples.notes


def test_pairs_are_consecutive_utterances_of_a_dialogue():
    actual, notes = pairs(TALK)
    assert actual == [
        ("I need a cheap hotel", "For how many nights then"),
        ("My card was stolen yesterday", "Please tell me its number"),
    ]
    assert notes == ["Left out 2 pairs with a side of fewer than 4 words"]
    actual, _ = pairs(TALK, min_words=1)
    assert len(actual) == 4
    assert ("In which part of town", "My card was stolen yesterday") not in actual
    chinese = ("我要住酒店", "ホテルはどこ")  # characters are words
    assert pairs([dialogue(*chinese)]) == ([chinese], [])
    with pytest.raises(
        InputError, match=r"no pair of utterances from 1 dialogues \(1 are shorter than min_words 9"
    ):
        pairs(TALK[1:], min_words=9)


@pytest.mark.parametrize(
    ("form", "dims"), [("hard", []), ("hard", [8, 3]), ("printed", []), ("plain", [])]
)
def test_the_loss_of_a_batch_is_that_of_the_formula(tiny_bert, form, dims):
    torch.manual_seed(0)
    options = {"negative_weights": form, "loss_temperature": 0.5, "matryoshka_dims": dims}
    model, tokenizer = DSEModel.from_backbone(tiny_bert, dropout=0.0, **options)
    ids, mask = collate(
        pairs(TALK, min_words=1)[0], tokenizer, model.double().config, Truncation()
    ).values()
    with torch.no_grad():
        output = model(ids, mask)
        pooled = [model(ids[:, side], mask[:, side]).pooler_output for side in (0, 1)]
        expected = []
        for size in (16, *dims):  # the others count as zeros
            cut = [torch.nn.functional.pad(vectors[:, :size], (0, 16 - size)) for vectors in pooled]
            expected.append(reference.dse(*map(model.project, cut), 0.5, form))
        sides = [model.project(vectors) for vectors in pooled]
    assert abs(output.loss.item() - sum(expected) / len(expected)) < 1e-10
    assert torch.allclose(output.similarities[:, 0, 0], (sides[0] * sides[1]).sum(-1))


def test_no_width_is_beyond_the_embedding(tiny_bert):
    with pytest.raises(InputError, match=r"matryoshka_dims: got 17, expected .* 16"):
        DSEModel.from_backbone(tiny_bert, matryoshka_dims=[8, 17])


def test_cut_and_empty_utterances_are_counted(tiny_bert):
    (model, tokenizer), count = DSEModel.from_backbone(tiny_bert), Truncation()
    batch = tokenize_utterances(["\u200b", "[SEP]", "1 2 3 4 5 6 7 8 9"], tokenizer, 8, count)
    assert str(count) == "1 of 3 utterances were truncated (3 of 10 tokens dropped)"
    assert batch["input_ids"][1].tolist().count(tokenizer.sep_token_id) == 2
    assert tokenizer.decode(batch["input_ids"][2]) == "[CLS] 1 2 3 4 5 6 [SEP]"
    with torch.no_grad():
        assert not model(torch.tensor([[7, 8]]), torch.tensor([[0, 0]])).pooler_output.any()


def pairs_loss(queries, responses):
    rows = torch.cat([queries, responses])
    at = torch.arange(len(rows))
    return pair_contrastive(rows @ rows.T, at, at.roll(len(queries)), 0.5, "hard")


def test_the_loss_of_pairs_has_its_gradient_and_that_of_guessing():
    queries, responses = unit(3, 4, 4).requires_grad_(), unit(3, 4, 5)
    assert torch.autograd.gradcheck(lambda queries: pairs_loss(queries, responses), queries)
    rows = torch.ones(4, 3, dtype=torch.float64) / math.sqrt(3)
    assert math.isclose(pairs_loss(rows, rows).item(), math.log(7), rel_tol=1e-10)
    assert pairs_loss(unit(1, 4, 0), unit(1, 4, 1)).item() == 0


def test_soft_targets_become_hard_ones_as_their_temperature_falls():
    labels = unit(6, 4, 0)[[0, 1, 0, 2, 1, 0]]
    shared = (labels @ labels.T) > 1 - 1e-9
    assert torch.allclose(
        soft_targets(labels @ labels.T, shared, 1e-4), hard_targets(shared, labels)
    )
    targets = soft_targets(
        torch.tensor([[1.0, 1.0, -0.3]]), torch.tensor([[True, False, True]]), 0.35
    )
    assert torch.allclose(targets, torch.full((1, 3), 1 / 3))
