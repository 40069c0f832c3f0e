"""Closed forms of the loss."""

from __future__ import annotations

import math

import torch

from hf_dialemb.models.losses import nt_xent


def test_equal_similarities_give_log_n_per_speaker():
    loss = nt_xent(torch.zeros(4, 10, 2), torch.ones(4, 2, dtype=torch.bool), 0.2)
    assert math.isclose(loss.item(), 2 * math.log(10), rel_tol=1e-6)


def test_absent_speakers_do_not_count():
    present = torch.tensor([[True, False]])
    assert math.isclose(nt_xent(torch.zeros(1, 7, 2), present, 0.2).item(), math.log(7), rel_tol=1e-6)


def test_matches_the_formula_term_by_term():
    similarities = torch.rand(3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = 0.0
    for b in range(3):
        for r in range(2):
            e = [math.exp(similarities[b, n, r].item() / 0.3) for n in range(5)]
            expected -= math.log(e[0] / sum(e)) / 3
    loss = nt_xent(similarities, torch.ones(3, 2, dtype=torch.bool), 0.3)
    assert math.isclose(loss.item(), expected, rel_tol=1e-12)


def test_the_programs_scale_is_a_division_by_the_number_of_samples():
    similarities = torch.rand(3, 10, 2)
    present = torch.ones(3, 2, dtype=torch.bool)
    ratio = nt_xent(similarities, present, 0.2) / nt_xent(similarities, present, 0.2, divide_by_samples=True)
    assert math.isclose(ratio.item(), 10, rel_tol=1e-5)
