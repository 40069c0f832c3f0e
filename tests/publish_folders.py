"""Folders that may be published, and a Hub on loopback that this process reaches."""

import json
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hub_server import TOKEN, run_hub
from huggingface_hub import constants
from huggingface_hub.utils import close_session
from safetensors.numpy import save_file
from transformers import BertConfig, BertModel

CARD = "---\nlicense: apache-2.0\nmodel-index:\n- name: small\n  results: []\n---\n# A model\n"


def write(folder: Path, **texts: str) -> Path:
    """Write files; in their names ``__`` stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def model_folder(folder: Path, seed: int = 0, parts: int = 1) -> Path:
    """Write a published encoder.

    A BERT of one layer, its weights drawn by the seed, in ``parts`` files.
    """
    config = BertConfig(
        vocab_size=2,
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        max_position_embeddings=4,
    )
    vocabulary = {"[UNK]": 0, "/home": 1}
    tokenizer = {
        "added_tokens": [],
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    state = BertModel(config).state_dict()
    files = (
        [f"model-{part}.safetensors" for part in range(parts)]
        if parts > 1
        else ["model.safetensors"]
    )
    places = {name: files[number % parts] for number, name in enumerate(state)}
    settings = {
        "config": {"model_type": "bert", **config.to_diff_dict()},
        "modules": [],
        "tokenizer": tokenizer,
    }
    if parts > 1:
        settings["model.safetensors.index"] = {"metadata": {}, "weight_map": places}
    write(
        folder,
        README__md=CARD,
        **{f"{name}__json": json.dumps(record) for name, record in settings.items()},
    )
    random = np.random.default_rng(seed)
    for file in files:
        names = [name for name in state if places[name] == file]
        save_file(
            {name: random.random(state[name].shape, dtype=np.float32) for name in names},
            folder / file,
        )
    return folder


def seen(hub, name: str = "org/small", revision: str = "main") -> dict[str, bytes]:
    """Return the files of a repository without the Hub's own."""
    files = hub.files("models", name, revision)
    assert files.pop(".gitattributes")
    return files


@contextmanager
def hub_of_this_process():
    """Run a Hub that huggingface_hub in this process takes for its own; retries do not wait."""
    with run_hub() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", hub.address)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.address + template)
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setenv("HF_TOKEN", TOKEN)
        patch.setattr(time, "sleep", lambda seconds: None)
        # Both keep their first address: transformers' own object, and what older ones use instead.
        patch.setattr("transformers.utils.hub._hf_api", None, raising=False)
        patch.setattr("huggingface_hub.hf_api.api.endpoint", hub.address)
        close_session()
        yield hub
        close_session()
