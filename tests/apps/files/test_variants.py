"""Files of many forms, made by a program that knows what they hold, are read right or asked about."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def program(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("own_files")


@pytest.mark.parametrize("part", range(10))
def test_no_file_is_read_wrongly_without_a_word(program, tmp_path, part):
    """The 200 files that the documents count, and as many that they do not."""
    for seed in (
        *range(20 * part, 20 * (part + 1)),
        *range(10_000 + 20 * part, 10_000 + 20 * (part + 1)),
    ):
        written = program.variant(seed)
        answer, words = program.judge(written, tmp_path)
        assert answer != "wrong", (seed, written.choices, words)
        if answer == "asked" and "--dates" in words:
            order = "month-first" if written.dates.startswith("American") else "day-first"
            assert program.judge(written, tmp_path, dates=order)[0] in ("right", "asked")
