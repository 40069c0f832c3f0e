"""The Hub as users of transformers know it.

What is there, what comes to be there, and what is sent.
"""

import json
import shutil

import pytest
from afresh import printed_afresh
from hub_server import run_hub
from huggingface_hub import constants
from publish_folders import hub_of_this_process
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

import hf_dialemb
from hf_dialemb import load_encoder

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


@pytest.mark.slow
@pytest.mark.habit("a repository that is made after it was asked for", "seen in the same process")
def test_a_model_that_comes_later_is_seen(tiny_bert, tmp_path):
    with run_hub() as hub:
        printed = printed_afresh(LATER, tiny_bert, environment=hub.environment(tmp_path))
    assert printed.split()[-1] == "16"


@pytest.mark.habit("save a published model again, by any library", "its code goes along")
@pytest.mark.parametrize("way", ["AutoModel", "SentenceTransformer"])
def test_a_published_model_keeps_its_code_when_it_is_saved_again(way, tiny_export, tmp_path):
    if way == "AutoModel":
        AutoModel.from_pretrained(tiny_export).save_pretrained(tmp_path)
    else:
        SentenceTransformer(str(tiny_export), device="cpu").save(str(tmp_path))
    names = {
        name.split(".")[0]
        for name in json.loads((tmp_path / "config.json").read_text())["auto_map"].values()
    }
    assert names
    assert all((tmp_path / f"{name}.py").is_file() for name in names)


@pytest.mark.slow
@pytest.mark.habit(
    "push(run, 'org/name'), encoder.push_to_hub('org/name'), dialemb publish RUN",
    "export, card, checks in one",
)
@pytest.mark.parametrize("way", ["push", "push_to_hub", "publish"])
def test_a_run_is_pushed_in_one_call(way, tiny_run, printed):
    ways = {
        "push": lambda: hf_dialemb.push(tiny_run, "org/calls", private=True),
        "push_to_hub": lambda: load_encoder(tiny_run).push_to_hub("org/calls", private=True),
        "publish": lambda: printed("publish", tiny_run, "--repo-id", "org/calls", "--private"),
    }
    with hub_of_this_process() as hub:
        ways[way]()
        files = hub.files("models", "org/calls")
        assert hub.get("models", "org/calls").private
    assert {
        "README.md",
        "config.json",
        "model.safetensors",
        "modules.json",
        "tokenizer.json",
    } <= files.keys()
    assert not [name for name in files if name.startswith("training") or name.endswith(".bin")]
    assert b'SentenceTransformer("org/calls")' in files["README.md"]


@pytest.mark.habit("push without a network", "one sentence")
def test_a_push_without_a_network_is_one_sentence(tiny_export, tmp_path, refused):
    folder = shutil.copytree(tiny_export, tmp_path / "calls")
    (folder / "README.md").write_text("# A model\n")
    with hub_of_this_process(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        words = "publish", folder, "--repo-id", "org/calls", "--private"
        assert "network" in refused(*words, code=1)
