"""The Hub as users of transformers know it: what is there, what comes to be there, and what is sent."""

import json
import os
import subprocess
import sys

import pytest
from local_hub import serving
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from hf_dialemb.hub.export import load_checkpoint, write_checkpoint

LATER = """
import sys
from huggingface_hub import HfApi, constants
from sentence_transformers import SentenceTransformer
import hf_dialemb
from hf_dialemb.errors import InputError
try:
    hf_dialemb.load_encoder("org/later")
    raise SystemExit("a model that is not there was loaded")
except InputError:
    pass
assert not constants.HF_HUB_OFFLINE
SentenceTransformer(sys.argv[1], device="cpu").push_to_hub("org/later")
print(hf_dialemb.load_encoder("org/later").encode_utterances(["hello"]).shape[1])
"""


@pytest.fixture(scope="module")
def published(tiny_checkpoint, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    write_checkpoint(*load_checkpoint(str(tiny_checkpoint)), folder)
    return folder


@pytest.mark.slow
@pytest.mark.habit("a repository that is made after it was asked for", "seen in the same process")
def test_a_model_that_comes_later_is_seen(tiny_bert, tmp_path):
    with serving() as hub:
        environment = {**os.environ, **hub.environment(tmp_path)}
        command = [sys.executable, "-c", LATER, tiny_bert]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == "16"


@pytest.mark.habit("save a published model again, by any library", "its code goes along")
@pytest.mark.parametrize("way", ["AutoModel", "SentenceTransformer"])
def test_a_published_model_keeps_its_code_when_it_is_saved_again(way, published, tmp_path):
    if way == "AutoModel":
        AutoModel.from_pretrained(published).save_pretrained(tmp_path)
    else:
        SentenceTransformer(str(published), device="cpu").save(str(tmp_path))
    names = {name.split(".")[0] for name in json.loads((tmp_path / "config.json").read_text())["auto_map"].values()}
    assert names
    assert all((tmp_path / f"{name}.py").is_file() for name in names)
