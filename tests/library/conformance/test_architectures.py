"""Architectures that people start from.

Train a step, export, load in a fresh process without the package.
"""

import json

import numpy as np
import pytest
from architectures import SETTINGS, save_architecture
from published_models import output_without_package, publish
from talks import CHATS

import hf_dialemb

pytestmark = pytest.mark.slow

METHODS = {"dse": {}, "dial2vec": {"num_negatives": 1, "max_tokens": 64}}
NAMES = [f"{architecture} {method}" for architecture in SETTINGS for method in METHODS]
LOAD = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
folders, chats = map(json.loads, sys.argv[1:3])
vectors = {}
for name, folder in folders.items():
    model = SentenceTransformer(folder, device="cpu", trust_remote_code="dial2vec" in name)
    vectors[name] = model.encode(chats, batch_size=1, show_progress_bar=False)
np.savez(sys.argv[3], **vectors)
"""


@pytest.fixture(scope="module")
def trained(
    tiny_bert, sample_dialogues, tmp_path_factory
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The vectors of every run by ``load_encoder``, and by its export in a process without the
    package."""
    place = tmp_path_factory.mktemp("architectures")
    expected, folders = {}, {}
    settings = {
        "max_steps": 1,
        "per_device_train_batch_size": 8,
        "learning_rate": 1e-4,
        "disable_tqdm": True,
    }
    for architecture in SETTINGS:
        backbone = str(save_architecture(architecture, place / architecture, tiny_bert))
        for method, small in METHODS.items():
            name, output = f"{architecture} {method}", place / f"{architecture}-{method}"
            run = hf_dialemb.train(
                method,
                sample_dialogues[:8],
                output_dir=output,
                backbone=backbone,
                **settings,
                **small,
            )
            encoder = run.encoder()  # one by one, as ConvBERT's convolutions read padding
            expected[name] = np.concatenate([encoder.encode([chat]) for chat in CHATS])
            folders[name] = str(publish(output, place / f"{architecture}-{method}-published"))
    output = place / "vectors.npz"
    output_without_package(LOAD, place, json.dumps(folders), json.dumps(CHATS), output)
    with np.load(output) as vectors:
        return {name: (expected[name], vectors[name]) for name in NAMES}


@pytest.mark.habit(
    "21 architectures as backbones, exported and loaded without the package", "works"
)
@pytest.mark.parametrize("name", NAMES)
def test_an_export_without_the_package_equals_the_run(trained, name):
    expected, vectors = trained[name]
    assert np.isfinite(expected).all()
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    assert np.abs(vectors - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
