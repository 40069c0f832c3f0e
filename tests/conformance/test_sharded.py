"""Two processes that share a model by FSDP learn what one process learns."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from architectures import save_architecture

pytestmark = pytest.mark.slow

PROGRAM = str(Path(__file__).with_name("sharded_process.py"))
LAUNCHER = [
    "-m",
    "torch.distributed.run",
    "--nproc_per_node",
    "2",
    "--rdzv-backend",
    "c10d",
    "--rdzv-endpoint",
    "localhost:0",
]
METHODS = [
    ("dse", {}),
    ("dialogue_cse", {}),
    ("dialogue_cse", {"chunk_size": 3}),  # of contexts, whose number differs between the processes
    ("dialog2flow", {}),
    ("dial2vec", {}),
    ("transformer_dual_encoder", {}),
]


def losses(launcher: list[str], *words: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, *launcher, PROGRAM, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.habit("FSDP (fully_shard) over two processes, each method", "same losses as one process")
@pytest.mark.parametrize(("method", "settings"), METHODS)
def test_two_processes_that_share_a_model_equal_one(method, settings, tiny_bert, tmp_path):
    given = json.dumps({"label_encoder": tiny_bert} if method == "dialog2flow" else settings)
    one, two = (losses(launcher, method, tiny_bert, given, str(tmp_path)) for launcher in ([], LAUNCHER))
    assert two == pytest.approx(one, rel=1e-5)
    assert one[0] != one[-1]


@pytest.mark.habit("FSDP's default wrapping of BERT, RoBERTa, ModernBERT", "layers are wrapped, embeddings are not")
@pytest.mark.parametrize("architecture", ["roberta", "modernbert"])
def test_other_backbones_are_wrapped_by_layer(architecture, tiny_bert, tmp_path):
    backbone = str(save_architecture(architecture, tmp_path / "backbone", tiny_bert))
    one, two = (losses(launcher, "dse", backbone, "{}", str(tmp_path)) for launcher in ([], LAUNCHER))
    assert two == pytest.approx(one, rel=1e-5)
