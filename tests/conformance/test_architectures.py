"""Architectures that people start from: train two steps, export, load in a fresh process without the package."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from architectures import SETTINGS, save_architecture

import hf_dialemb
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint

pytestmark = pytest.mark.slow

METHODS = ("dse", "dial2vec")
NAMES = [f"{architecture} {method}" for architecture in SETTINGS for method in METHODS]
MESSAGES = [
    [{"role": "user", "content": "I need a cheap hotel."}, {"role": "assistant", "content": "For how many nights?"}],
    [{"role": "user", "content": "My card was stolen!"}],
]


@pytest.fixture(scope="module")
def trained(tiny_bert, sample_dialogues, tmp_path_factory) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The vectors of every run by ``load_encoder``, and by its export in a process without the package."""
    place = tmp_path_factory.mktemp("architectures")
    expected, folders = {}, {}
    settings = {"max_steps": 2, "per_device_train_batch_size": 8, "learning_rate": 1e-4, "disable_tqdm": True}
    for architecture in SETTINGS:
        backbone = save_architecture(architecture, place / architecture, tiny_bert)
        for method in METHODS:
            name = f"{architecture} {method}"
            output = place / f"{architecture}-{method}"
            run = hf_dialemb.train(method, sample_dialogues[:24], output_dir=output, backbone=str(backbone), **settings)
            encoder = run.encoder()  # one by one, as ConvBERT's convolutions read padding
            expected[name] = np.concatenate([encoder.encode([messages]) for messages in MESSAGES])
            folders[name] = str(place / f"{architecture}-{method}-published")
            Path(folders[name]).mkdir()
            write_checkpoint(*load_checkpoint(str(output)), Path(folders[name]))
    wishes, output = json.dumps({"folders": folders, "messages": MESSAGES}), place / "vectors.npz"
    program = Path(__file__).with_name("published_process.py")
    subprocess.run([sys.executable, str(program), wishes, str(output)], check=True, capture_output=True, text=True)
    with np.load(output) as vectors:
        return {name: (expected[name], vectors[name]) for name in NAMES}


@pytest.mark.habit("21 architectures as backbones, exported and loaded without the package", "works")
@pytest.mark.parametrize("name", NAMES)
def test_an_export_without_the_package_equals_the_run(trained, name):
    expected, vectors = trained[name]
    assert np.isfinite(expected).all()
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    assert np.abs(vectors - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
