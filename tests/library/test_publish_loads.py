"""From a checkpoint over export and the Hub into a fresh process, with the same vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from afresh import printed_afresh
from checkpoints import assembled, dual_encoder, save_dse
from checkpoints import save as save_ranker
from publish_folders import CARD, dataset_folder, hub_of_this_process, metric_folder

from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.hub.published_folder import WITHOUT_PACKAGE
from hf_dialemb.hub.publishing import publish
from hf_dialemb.methods.encoding import encode
from hf_dialemb.methods.ranker import encode_contexts, load_ranker
from hf_dialemb.methods.utterance import encode_utterances

pytestmark = pytest.mark.slow

DIALOGUES = [
    Dialogue(
        (
            Turn("user", "i need a cheap hotel"),
            Turn("assistant", "for how many nights?"),
            Turn("user", "two"),
        )
    ),
    Dialogue((Turn("assistant", "hello, how can i help?"), Turn("user", "a taxi please"))),
    Dialogue((Turn("user", "good morning"),)),
]
TEXTS = ["my card was stolen!", "a room", "which area do you want to stay in?"]
MESSAGES = [dialogue.to_messages() for dialogue in DIALOGUES]
UTTERANCES = [[{"role": "user", "content": text}] for text in TEXTS]
KINDS = {"dial2vec": "custom", "dse": "plain", "mgt": "custom"}
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def checkpoints(tiny_bert, tiny_checkpoint, sample_dialogues, tmp_path_factory) -> dict[str, Path]:
    """Return a checkpoint of each method, as training writes it."""
    place = tmp_path_factory.mktemp("training")
    torch.manual_seed(5)
    members = [
        save_ranker(dual_encoder(sample_dialogues, seed), place / f"member{seed}")
        for seed in (1, 2)
    ]
    return {
        "dial2vec": tiny_checkpoint,
        "dse": save_dse(tiny_bert, place / "dse"),
        "mgt": Path(save_ranker(assembled(members), place / "mgt")),
    }


@pytest.fixture(scope="module")
def folders(checkpoints, tmp_path_factory) -> dict[str, Path]:
    """Return their published forms, with the least of a card."""
    place, made = tmp_path_factory.mktemp("exports"), {}
    for name, checkpoint in checkpoints.items():
        made[name] = place / f"{name}-tiny"
        write_checkpoint(*load_checkpoint(str(checkpoint)), made[name])
        (made[name] / "README.md").write_text(CARD, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def hub(folders, tmp_path_factory):
    """Run a Hub that holds them all, a metric and a dataset."""
    place = tmp_path_factory.mktemp("hub")
    with hub_of_this_process() as hub:
        for name, folder in folders.items():
            publish(folder, f"org/{name}-tiny")
        publish(metric_folder(place), "org/ndcg", repo_type="space")
        publish(dataset_folder(place / "calls"), "org/calls", repo_type="dataset")
        yield hub


@pytest.fixture(scope="module")
def expected(checkpoints) -> dict[str, np.ndarray]:
    """Return the vectors of the checkpoints."""
    contexts = [dialogue.turns for dialogue in DIALOGUES]
    return {
        "dial2vec": encode(*load_checkpoint(str(checkpoints["dial2vec"])), DIALOGUES),
        "dse": encode_utterances(*load_checkpoint(str(checkpoints["dse"])), TEXTS),
        "mgt": encode_contexts(load_ranker(str(checkpoints["mgt"])), contexts),
    }


@pytest.mark.parametrize("package", ["absent", "imported"])
def test_published_models_give_the_vectors_of_the_training(hub, expected, tmp_path, package):
    models = {
        f"org/{name}-tiny": (kind, MESSAGES if kind == "custom" else UTTERANCES)
        for name, kind in KINDS.items()
    }
    wishes = {
        "models": models,
        "trust": package == "absent",
        "metric": "org/ndcg",
        "dataset": "org/calls",
    }
    program = Path(__file__).with_name("published_process.py").read_text(encoding="utf-8")
    program = {"absent": WITHOUT_PACKAGE, "imported": "import hf_dialemb\n"}[package] + program
    options = {"environment": hub.environment(tmp_path / "home"), "folder": tmp_path}
    printed_afresh(program, json.dumps(wishes), tmp_path / "arrays.npz", **options)
    with np.load(tmp_path / "arrays.npz") as loaded:
        arrays = dict(loaded)
    for name, vectors in expected.items():
        for library in ("AutoModel", "SentenceTransformer"):
            np.testing.assert_allclose(
                arrays[f"org/{name}-tiny {library}"], vectors, atol=TOLERANCE, err_msg=name
            )
        ours = {"absent": "transformers_modules", "imported": "hf_dialemb"}[package]
        assert arrays[f"org/{name}-tiny class"] == (
            ours if KINDS[name] == "custom" else "transformers"
        )
    if package == "absent":
        assert round(float(arrays["metric"]), 4) == 0.6309
        assert arrays["said"] == "look into /home/me/x"
