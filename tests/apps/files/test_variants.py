"""Files made by a program that knows what they hold are read right or asked about."""

import pytest
from variant_files import judge, variant


@pytest.mark.parametrize(
    "first",
    [*range(0, 160, 40), *(pytest.param(n, marks=pytest.mark.slow) for n in range(160, 400, 40))],
)
def test_no_file_is_read_wrongly_without_a_word(tmp_path, first):
    for seed in range(first, first + 40):
        written = variant(seed)
        answer, words = judge(written, tmp_path)
        assert answer != "wrong", (seed, written.choices, words)
        if answer == "asked" and "--dates" in words:
            order = "month-first" if written.dates.startswith("American") else "day-first"
            assert judge(written, tmp_path, dates=order)[0] in ("right", "asked")
