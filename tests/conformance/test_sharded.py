"""Two processes that share a model by FSDP learn what one process learns."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from architectures import save_architecture

pytestmark = pytest.mark.slow

PROGRAM = str(Path(__file__).with_name("sharded_process.py"))
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
SETTINGS = {  # in chunks: of contexts, whose number differs between the processes
    "dse": {}, "dse printed": {"negative_weights": "printed"}, "dse plain": {"negative_weights": "plain"},
    "dse in chunks": {"chunk_size": 3}, "dialogue_cse": {}, "dialogue_cse in chunks": {"chunk_size": 3},
    "dialog2flow": {}, "dialog2flow hard": {"contrast": "hard"}, "dialog2flow joint": {"target": "joint"},
    "dialog2flow joint hard": {"target": "joint", "contrast": "hard"}, "dial2vec": {}, "transformer_dual_encoder": {},
}  # fmt: skip
ARCHITECTURES = ["roberta", "modernbert"]


@pytest.fixture(scope="module")
def losses(tiny_bert, tmp_path_factory) -> dict[str, tuple[list[float], list[float]]]:
    """The losses of every job by one process and by two; all jobs share their processes, which take long to start."""
    place = tmp_path_factory.mktemp("sharded")
    jobs = []
    for name, settings in SETTINGS.items():
        more = {"label_encoder": tiny_bert} if name.startswith("dialog2flow") else {}
        jobs.append((name.split()[0], tiny_bert, settings | more))
    for name in ARCHITECTURES:
        jobs.append(("dse", str(save_architecture(name, place / name, tiny_bert)), {}))
    results = []
    for launcher in ([], TWO):
        command = [sys.executable, *launcher, PROGRAM, json.dumps(jobs), str(place)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return dict(zip((*SETTINGS, *ARCHITECTURES), zip(*results, strict=True), strict=True))


@pytest.mark.habit("FSDP (fully_shard) over two processes, each method", "same losses as one process")
@pytest.mark.parametrize("name", SETTINGS)
def test_two_processes_that_share_a_model_equal_one(losses, name):
    one, two = losses[name]
    assert two == pytest.approx(one, rel=1e-5)
    assert one[0] != one[-1]


@pytest.mark.habit("FSDP's default wrapping of BERT, RoBERTa, ModernBERT", "layers are wrapped, embeddings are not")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_other_backbones_are_wrapped_by_layer(losses, architecture):
    one, two = losses[architecture]
    assert two == pytest.approx(one, rel=1e-5)
