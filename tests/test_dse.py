"""DSE: pairs of consecutive utterances, and the contrastive losses in closed form and against their formula."""

import math

import contrastive_reference as reference
import pytest
import torch
from contrastive_reference import unit
from talks import dialogue

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.models.dse import DSEConfig, DSEExamples, DSEModel, collate
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation
from hf_dialemb.models.losses import hard_targets, pair_contrastive, soft_targets

TALK = [
    dialogue("I need a cheap hotel", "For how many nights then", "Yes", "In which part of town"),
    dialogue("My card was stolen yesterday", "Please tell me its number"),
]


def pairs(dialogues, **settings):
    examples = DSEExamples(dialogues, DSEConfig(encoder_config=None, **settings), seed=0)
    return [examples.example(0, index) for index in range(len(examples))], examples.notes


def test_pairs_are_consecutive_utterances_of_one_dialogue_and_of_more_than_three_words():
    found, notes = pairs(TALK)
    assert found == [
        ("I need a cheap hotel", "For how many nights then"),
        ("My card was stolen yesterday", "Please tell me its number"),
    ]
    assert notes == ["Left out 2 pairs with a side of fewer than 4 words"]
    found, _ = pairs(TALK, min_words=1)
    assert len(found) == 4
    assert ("In which part of town", "My card was stolen yesterday") not in found
    with pytest.raises(InputError, match=r"no pair of utterances from 1 dialogues \(1 are shorter than min_words 9"):
        pairs(TALK[1:], min_words=9)


@pytest.mark.parametrize(("turns", "count"), [("1", 3), ("2", 2), ("3", 1), ("123", 6)])
def test_queries_of_several_utterances(turns, count):
    found, _ = pairs(TALK[:1], query_turns=turns, min_words=1)
    assert len(found) == count
    spans = int(max(turns))
    query = " ".join(turn.content for turn in TALK[0].turns[3 - spans : 3])
    assert found[-1] == (query, "In which part of town")


def test_the_words_of_a_query_count_together_and_dropout_pairs_are_an_utterance_and_itself():
    assert pairs(TALK[:1], query_turns="2")[0] == [("For how many nights then Yes", "In which part of town")]
    found, _ = pairs(TALK, positives="dropout")
    assert len(found) == 5
    assert all(first == second for first, second in found)


@pytest.mark.parametrize("form", ["hard", "printed", "plain"])
def test_the_loss_of_a_batch_is_that_of_the_formula(tiny_bert, form):
    torch.manual_seed(0)
    model, tokenizer = DSEModel.from_backbone(tiny_bert, dropout=0.0, negative_weights=form, loss_temperature=0.5)
    ids, mask = collate(pairs(TALK, min_words=1)[0], tokenizer, model.double().config, Truncation()).values()
    with torch.no_grad():
        output = model(ids, mask)
        sides = [model.project(model(ids[:, side], mask[:, side]).pooler_output) for side in (0, 1)]
    assert abs(output.loss.item() - reference.dse(*sides, 0.5, form)) < 1e-10
    assert torch.allclose(output.similarities[:, 0, 0], (sides[0] * sides[1]).sum(-1))


@pytest.mark.parametrize(("turns", "kept"), [("1", "1 2 3 4 5 6"), ("2", "4 5 6 7 8 9")])
def test_of_a_text_too_long_the_start_stays_and_of_several_turns_the_end(tiny_bert, turns, kept):
    model, tokenizer = DSEModel.from_backbone(tiny_bert, query_turns=turns, max_tokens=8)
    batch = collate([("1 2 3 4 5 6 7 8 9", "1 2 3")], tokenizer, model.config, Truncation())
    assert tokenizer.decode(batch["input_ids"][0, 0]) == f"[CLS] {kept} [SEP]"


@pytest.mark.slow
def test_pairs_of_a_real_corpus(data_dir):
    dialogues = load_dialogues("kvret", data_dir, "train")
    texts = {(a.content, b.content) for d in dialogues for a, b in zip(d.turns, d.turns[1:], strict=False)}
    assert set(pairs(dialogues)[0]) == {pair for pair in texts if all(len(text.split()) > 3 for text in pair)}


def pairs_loss(queries, responses, gradient=True):
    rows = torch.cat([queries, responses])
    at = torch.arange(len(rows))
    return pair_contrastive(rows @ rows.T, at, at.roll(len(queries)), 0.5, "hard", gradient)


def test_gradients_of_weights_are_those_of_finite_differences_or_none_and_change_no_loss():
    responses, found = unit(3, 4, 5), {}
    for gradient in (True, False):
        queries = unit(3, 4, 4).requires_grad_()
        loss = pairs_loss(queries, responses, gradient)
        loss.backward()
        found[gradient] = loss.item(), queries.grad
    assert math.isclose(found[True][0], found[False][0], rel_tol=1e-12)
    assert not torch.allclose(found[True][1], found[False][1])
    queries = unit(3, 4, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda queries: pairs_loss(queries, responses), queries)


def test_rows_that_are_all_alike_cost_what_guessing_does_and_a_single_pair_nothing():
    rows = torch.ones(4, 3, dtype=torch.float64) / math.sqrt(3)
    assert math.isclose(pairs_loss(rows, rows).item(), math.log(7), rel_tol=1e-10)
    assert pairs_loss(unit(1, 4, 0), unit(1, 4, 1)).item() == 0


def test_soft_targets_become_hard_ones_as_their_temperature_falls_and_likeness_of_a_shared_label_is_one():
    labels = unit(6, 4, 0)[[0, 1, 0, 2, 1, 0]]
    shared = (labels @ labels.T) > 1 - 1e-9
    assert torch.allclose(soft_targets(labels @ labels.T, shared, 1e-4), hard_targets(shared, labels))
    targets = soft_targets(torch.tensor([[1.0, 1.0, -0.3]]), torch.tensor([[True, False, True]]), 0.35)
    assert torch.allclose(targets, torch.full((1, 3), 1 / 3))
