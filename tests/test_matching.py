"""The linear-time interaction equals the matrices of the paper: values and gradients, in every situation."""

from __future__ import annotations

import pytest
import torch
from matching_reference import reference_representations

from hf_dialemb.models.matching import speaker_representations


def random_batch(num_roles: int, one_sided: bool = False, seed: int = 0, length: int = 40):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(3, length, 7, generator=generator, dtype=torch.float64)
    turn_ids = torch.randint(0, 2, (3, length), generator=generator).cumsum(1)
    speaker = torch.randint(0, num_roles, (3, int(turn_ids.max()) + 1), generator=generator)
    if one_sided:
        speaker[:] = 0
    role_ids = speaker.gather(1, turn_ids)
    mask = torch.ones(3, length, dtype=torch.long)
    mask[1, length // 2 :] = 0
    mask[2, 3:] = 0
    return hidden, mask, role_ids, turn_ids


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max().clamp(min=1))


@pytest.mark.parametrize("num_roles", [2, 3, 4, 5])
@pytest.mark.parametrize("window", [0, 1, 2, 5, 10, 1000])
def test_equals_the_matrices_in_value_and_gradient(num_roles, window):
    hidden, mask, role_ids, turn_ids = random_batch(num_roles)
    weights = torch.randn(2, 3, num_roles, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    gradients, results = [], []
    for function in (speaker_representations, reference_representations):
        leaf = hidden.clone().requires_grad_()
        own, cross = function(leaf, mask, role_ids, turn_ids, num_roles, window)[:2]
        (own * weights[0] + cross * weights[1]).sum().backward()
        results.append((own.detach(), cross.detach()))
        gradients.append(leaf.grad)
    assert relative(results[0][0], results[1][0]) < 1e-10
    assert relative(results[0][1], results[1][1]) < 1e-10
    assert relative(gradients[0], gradients[1]) < 1e-10
    assert gradients[1].abs().max() > 0.1  # the comparison is not one of zeros


@pytest.mark.parametrize("num_roles", [2, 5])
def test_one_sided_dialogues_have_exactly_zero_cross_representations(num_roles):
    batch = random_batch(num_roles, one_sided=True)
    own, cross, present = speaker_representations(*batch, num_roles, 10)
    assert torch.equal(cross, torch.zeros_like(cross))
    assert present.tolist() == [[True] + [False] * (num_roles - 1)] * 3
    assert own[:, 0].abs().min() > 0
    assert torch.equal(own[:, 1:], torch.zeros_like(own[:, 1:]))


def test_padding_and_numbering_backwards_change_nothing_and_swapped_speakers_swap():
    hidden, mask, role_ids, turn_ids = random_batch(2)
    whole = speaker_representations(hidden, mask, role_ids, turn_ids, 2, 3)
    short = speaker_representations(*(each[1:2, :20] for each in (hidden, mask, role_ids, turn_ids)), 2, 3)
    backwards = speaker_representations(hidden, mask, role_ids, turn_ids.max() - turn_ids, 2, 3)
    swapped = speaker_representations(hidden, mask, 1 - role_ids, turn_ids, 2, 3)
    for kind in (0, 1):
        assert relative(short[kind], whole[kind][1:2]) < 1e-12
        assert relative(backwards[kind], whole[kind]) < 1e-10
        assert torch.allclose(whole[kind], swapped[kind].flip(1), atol=1e-12)


def test_memory_and_time_do_not_hold_n_by_n_matrices():
    length = 200_000  # n x n in float32 would be 160 GB
    hidden = torch.ones(1, length, 2)
    turn_ids = (torch.arange(length) // 20).unsqueeze(0)
    own, _, _ = speaker_representations(hidden, torch.ones(1, length), turn_ids % 2, turn_ids, 2, 10)
    assert torch.allclose(own, torch.ones(1, 2, 2))
