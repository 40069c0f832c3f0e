"""Closed forms of the losses, and their formulas written out."""

from __future__ import annotations

import math

import contrastive_reference as reference
import pytest
import torch
from contrastive_reference import unit

from hf_dialemb.models.losses import hard_targets, nt_xent, pair_contrastive, soft_targets, target_contrastive


@pytest.mark.parametrize("absent", [False, True])
def test_the_loss_of_speakers_is_that_of_the_formula(absent):
    similarities = torch.rand(3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    present = torch.tensor([[True, not absent]] * 3)
    logs = torch.log_softmax(similarities / 0.3, dim=1)[:, 0]
    assert math.isclose(nt_xent(similarities, present, 0.3).item(), -(logs * present).sum(1).mean(), rel_tol=1e-12)
    alike = nt_xent(torch.zeros(4, 10, 2), present[:1].expand(4, 2), 0.2)
    assert math.isclose(alike.item(), (1 if absent else 2) * math.log(10), rel_tol=1e-6)


def test_the_programs_scale_is_a_division_by_the_number_of_samples():
    similarities = torch.rand(3, 10, 2)
    present = torch.ones(3, 2, dtype=torch.bool)
    ratio = nt_xent(similarities, present, 0.2) / nt_xent(similarities, present, 0.2, divide_by_samples=True)
    assert math.isclose(ratio.item(), 10, rel_tol=1e-5)


def pairs_loss(queries, responses, form, gradient=True):
    rows = torch.cat([queries, responses])
    at = torch.arange(len(rows))
    return pair_contrastive(rows @ rows.T, at, at.roll(len(queries)), 0.5, form, gradient)


@pytest.mark.parametrize("form", ["hard", "printed", "plain"])
def test_pairs_match_the_formula_term_by_term(form):
    queries, responses = unit(6, 5, 0), unit(6, 5, 1)
    expected = reference.dse(queries, responses, 0.5, form)
    assert math.isclose(pairs_loss(queries, responses, form).item(), expected, rel_tol=1e-10)


def test_equal_negatives_have_equal_weights():
    # All rows alike: every weight is 1, and the loss is that of guessing among 2M - 1.
    rows = torch.ones(4, 3, dtype=torch.float64) / math.sqrt(3)
    for form in ("hard", "plain"):
        assert math.isclose(pairs_loss(rows, rows, form).item(), math.log(7), rel_tol=1e-10)


def test_weights_without_gradient_change_the_gradient_but_not_the_loss():
    found = {}
    for gradient in (True, False):
        queries = unit(5, 4, 2).requires_grad_()
        loss = pairs_loss(queries, unit(5, 4, 3), "hard", gradient)
        loss.backward()
        found[gradient] = loss.item(), queries.grad
    assert math.isclose(found[True][0], found[False][0], rel_tol=1e-12)
    assert not torch.allclose(found[True][1], found[False][1])


def test_the_gradient_of_the_weights_is_that_of_finite_differences():
    responses = unit(3, 4, 5)
    assert torch.autograd.gradcheck(
        lambda queries: pairs_loss(queries, responses, "hard"), unit(3, 4, 4).requires_grad_()
    )


def test_a_single_pair_has_no_negative_and_no_loss():
    assert pairs_loss(unit(1, 4, 0), unit(1, 4, 1), "hard").item() == 0


@pytest.mark.parametrize("contrast", ["soft", "hard"])
def test_targets_match_the_formula_term_by_term(contrast):
    anchors, positives, labels = unit(6, 5, 0), unit(6, 5, 1), unit(6, 3, 2)
    if contrast == "soft":
        targets = soft_targets(labels @ labels.T, torch.eye(6, dtype=torch.bool), 0.35)
        expected = reference.dialog2flow_soft(anchors, positives, labels, 0.2, 0.35)
    else:
        names = ["a", "b", "a", "c", "b", "a"]
        targets = hard_targets(torch.tensor([[one == other for other in names] for one in names]), anchors)
        expected = reference.dialog2flow_hard(anchors, positives, names, 0.2)
    found = [target_contrastive(a @ b.T, targets, 0.2) for a, b in ((anchors, positives), (positives, anchors))]
    assert math.isclose(torch.stack(found).mean().item(), expected, rel_tol=1e-10)


def test_soft_targets_become_hard_ones_as_their_temperature_falls():
    labels = unit(6, 4, 0)[[0, 1, 0, 2, 1, 0]]
    shared = (labels @ labels.T) > 1 - 1e-9
    assert torch.allclose(soft_targets(labels @ labels.T, shared, 1e-4), hard_targets(shared, labels))


def test_likeness_of_a_shared_label_is_one():
    shared = torch.tensor([[True, False, True]])
    targets = soft_targets(torch.tensor([[1.0, 1.0, -0.3]]), shared, 0.35)
    assert torch.allclose(targets, torch.full((1, 3), 1 / 3))
