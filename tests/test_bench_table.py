"""The table of pairs that make bench renders, what it says of the committed one, and a machine without a GPU."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def beside():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield


@pytest.fixture(scope="module")
def bench():
    return importlib.import_module("bench")


@pytest.fixture(scope="module")
def rows(bench):
    return [
        bench.row("import hf_dialemb", "import torch", [15.0, 17.0, 16.0]),
        bench.row("encode dialogues, dialogue-static (5,231 a second)", "sentence-transformers", [130.0, 131.0, 129.0]),
    ]


def test_equal_rows_have_not_fallen(bench, rows):
    assert bench.fallen(rows, rows) == []
    quicker = bench.row("encode dialogues, dialogue-static (6,000 a second)", "sentence-transformers", [131.0])
    assert bench.fallen([rows[0], quicker], rows) == []


def test_a_ratio_well_below_the_committed_one_is_told(bench, rows):
    slower = bench.row("import hf_dialemb", "import torch", [12.0])
    assert bench.fallen([slower, rows[1]], rows) == ["import hf_dialemb beside import torch: 12.00, was 16.00"]


def test_a_row_shows_its_rounds_and_its_aim(bench, rows):
    assert "| 130.00 (129.00 to 131.00) | 100, and 5,000 a second |" in bench.table(rows)[3]


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_its_program_says_so_and_measures_nothing(tmp_path, monkeypatch, capsys):
    output = tmp_path / "gpu.json"
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--output", str(output)])
    importlib.import_module("gpu").main()
    assert capsys.readouterr().out == "There is no GPU here: nothing is measured\n"
    assert not output.exists()
