"""Two processes that share a model by FSDP learn what one process learns."""

import json
from pathlib import Path

import pytest
from afresh import of_ranks, printed_afresh
from architectures import save_architecture

pytestmark = pytest.mark.slow

SETTINGS = {  # in chunks: of contexts, whose number differs between the processes
    "dse": {},
    "dse printed": {"negative_weights": "printed"},
    "dse plain": {"negative_weights": "plain"},
    "dse in chunks": {"mini_batch_size": 3},
    "dialogue_cse": {},
    "dialogue_cse in chunks": {"mini_batch_size": 3},
    "dialog2flow": {},
    "dialog2flow hard": {"contrast": "hard"},
    "dialog2flow joint": {"target": "joint"},
    "dialog2flow joint hard": {"target": "joint", "contrast": "hard"},
    "dial2vec": {},
    "transformer_dual_encoder": {},
}
ARCHITECTURES = ["roberta", "modernbert"]


@pytest.fixture(scope="module")
def losses(tiny_bert, tmp_path_factory) -> dict[str, tuple[list[float], list[float]]]:
    """The losses of every job by one process and by two.

    All jobs share their processes, which take long to start.
    """
    place = tmp_path_factory.mktemp("sharded")
    jobs = []
    for name, settings in SETTINGS.items():
        more = {"label_encoder": tiny_bert} if name.startswith("dialog2flow") else {}
        jobs.append((name.split()[0], tiny_bert, settings | more))
    for name in ARCHITECTURES:
        jobs.append(("dse", str(save_architecture(name, place / name, tiny_bert)), {}))
    program = Path(__file__).with_name("sharded_process.py").read_text(encoding="utf-8")
    printed = [
        printed_afresh(text, json.dumps(jobs), place) for text in (program, of_ranks(program))
    ]
    results = [json.loads(text.splitlines()[-1]) for text in printed]
    return dict(zip((*SETTINGS, *ARCHITECTURES), zip(*results, strict=True), strict=True))


@pytest.mark.habit(
    "FSDP (fully_shard) over two processes, each method", "same losses as one process"
)
@pytest.mark.parametrize("name", SETTINGS)
def test_two_processes_that_share_a_model_equal_one(losses, name):
    one, two = losses[name]
    assert two == pytest.approx(one, rel=1e-5)
    assert one[0] != one[-1]


@pytest.mark.habit(
    "FSDP's default wrapping of BERT, RoBERTa, ModernBERT", "layers are wrapped, embeddings are not"
)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_other_backbones_are_wrapped_by_layer(losses, architecture):
    one, two = losses[architecture]
    assert two == pytest.approx(one, rel=1e-5)
