"""Files of structures that nobody wrote by hand are read right or asked about."""

from collections import Counter

import pytest
from made_structures import judge, structure


@pytest.mark.parametrize(
    "first",
    [*range(0, 200, 50), *(pytest.param(n, marks=pytest.mark.slow) for n in range(200, 500, 50))],
)
def test_no_structure_is_read_wrongly_in_silence(tmp_path, first):
    answers = Counter()
    for seed in range(first, first + 50):
        value, truth, names = structure(seed)
        answer, words = judge(value, truth, tmp_path / "made.json")
        assert answer != "wrong", (seed, names, words)
        answers[answer] += 1
    assert answers["right"] >= 0.95 * answers.total()
