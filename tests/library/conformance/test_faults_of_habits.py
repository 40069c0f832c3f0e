"""What was wrong in silence, or fell, where a Hugging Face user tried it.

The Hub as users of transformers know it: what is there, what comes to be there, and what is sent.
"""

import json
import pydoc
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from afresh import printed_afresh
from commands import applications
from datasets import Dataset, DatasetDict
from exports import save
from hub_server import run_hub
from huggingface_hub import constants
from peft import LoraConfig, get_peft_model
from publish_folders import hub_of_this_process
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

import hf_dialemb
from hf_dialemb import Dial2VecModel, DSEModel, InputError, load_dialogues, load_encoder
from hf_dialemb.hub.card.card import write_card
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.methods import get_method

CHATS = [[{"role": "user", "content": text}] for text in ("a hotel", "my card", "a train")]
FORMS = {
    "list": list,
    "generator": iter,
    "Series": pd.Series,
    "DataFrame": lambda chats: pd.DataFrame({"messages": chats, "label": "x"}),
    "Dataset": lambda chats: Dataset.from_dict({"messages": chats, "label": ["x"] * len(chats)}),
}
for _form in ("numpy", "torch", "pandas", "arrow"):
    FORMS[_form] = lambda chats, form=_form: FORMS["Dataset"](chats).with_format(form)


@pytest.mark.habit("encode(Dataset, DataFrame, Series, generator)", "row i belongs to item i")
@pytest.mark.parametrize("form", FORMS)
def test_no_row_vanishes_from_any_form(form):
    encoder = load_encoder("dialogue-static")
    expected = encoder.encode(CHATS)
    np.testing.assert_allclose(encoder.encode(FORMS[form](CHATS)), expected, atol=1e-6)
    blank = [CHATS[0], [{"role": "user", "content": ""}], *CHATS[1:]]
    with pytest.raises(InputError, match=r"dialogues\[1\]"):
        encoder.encode(FORMS[form](blank))


def test_a_text_that_a_model_of_dialogues_cannot_read_is_named_by_its_row(tiny_checkpoint):
    with pytest.raises(InputError, match=r"texts\[1\]: got ' '"):
        load_encoder(str(tiny_checkpoint)).encode_utterances(["a hotel", " "])


THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import hf_dialemb
from transformers import AutoModel
with ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(AutoModel.from_pretrained, sys.argv[1]) for _ in range(4)]
print([type(job.result()).__name__ for job in jobs])
"""


@pytest.mark.slow
@pytest.mark.habit("the first load in several threads", "works")
def test_the_first_models_load_in_several_threads(tiny_checkpoint):
    assert printed_afresh(THREADS, tiny_checkpoint).count("Dial2VecModel") == 4


@pytest.mark.habit("config.output_hidden_states", "works")
@pytest.mark.parametrize("kind", [Dial2VecModel, DSEModel])
def test_a_config_asks_for_hidden_states(kind, tiny_bert, tmp_path):
    save(kind.from_backbone(tiny_bert), tmp_path)
    model = AutoModel.from_pretrained(tmp_path, output_hidden_states=True).eval()
    assert len(model(torch.tensor([[2, 5, 3]])).hidden_states) == 3


def test_roles_without_turns_are_refused_and_a_model_is_traced(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    ids = tokenizer(["hello there"], return_tensors="pt")["input_ids"]
    with pytest.raises(ValueError, match="role_ids or turn_ids alone"):
        model(ids, role_ids=torch.zeros_like(ids))
    traced = torch.jit.trace(model.eval(), (ids, torch.ones_like(ids)), strict=False)
    longer = tokenizer(["hello there, my card was stolen"], return_tensors="pt")["input_ids"]
    found = traced(longer, torch.ones_like(longer))["pooler_output"]
    assert torch.allclose(found, model(longer).pooler_output, atol=1e-5)


def test_a_model_is_exported_for_batches_of_any_size_up_to_its_limit(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    talks = [CHATS[0] * 4, CHATS[1], CHATS[2] * 2]
    how = {"return_dict": True, "return_tensors": "pt", "padding": True}
    batches = [tokenizer.apply_chat_template(part, **how) for part in (talks, talks[1:])]
    given = [{name: batch[name] for name in ("input_ids", "attention_mask")} for batch in batches]
    sizes = {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}
    shapes = {name: sizes for name in given[0]}
    program = torch.export.export(model.eval(), (), given[0], dynamic_shapes=shapes)
    for batch in given:
        vectors = program.module()(**batch).pooler_output
        assert torch.allclose(vectors, model(**batch).pooler_output, atol=1e-5)


def test_an_export_says_where_it_cuts_and_cuts_there(tiny_checkpoint, tiny_export):
    model = SentenceTransformer(str(tiny_export), device="cpu")
    encoder = load_encoder(str(tiny_checkpoint))
    assert model.max_seq_length == encoder.module.config.max_tokens
    long = CHATS[0] * model.max_seq_length
    np.testing.assert_allclose(model.encode([long]), encoder.encode([long]), atol=1e-5)


@applications
def test_help_is_a_page():
    assert len(pydoc.render_doc(hf_dialemb)) < 20_000


@pytest.mark.habit("DSE in bfloat16 weights", "trains")
def test_heads_compute_in_the_type_of_their_weights(tiny_bert):
    model, _ = DSEModel.from_backbone(tiny_bert)
    model = model.to(torch.bfloat16)
    assert model.project(torch.ones(2, 16)).shape == (2, 128)


@pytest.mark.habit("model.encoder = get_peft_model(model.encoder)", "refused when it is saved")
def test_adapters_inside_a_model_are_refused_when_it_is_saved(tiny_bert, tmp_path):
    model, _ = DSEModel.from_backbone(tiny_bert)
    model.encoder = get_peft_model(model.encoder, LoraConfig(r=2, target_modules=["query"]))
    with pytest.raises(InputError, match=r"add them to the model itself"):
        model.save_pretrained(tmp_path)


@pytest.mark.habit("a folder of Parquet shards, Dataset.save_to_disk", "are read")
@pytest.mark.parametrize("way", ["shards", "disk", "splits"])
def test_stored_datasets_are_read(way, tmp_path):
    data = Dataset.from_dict({"messages": CHATS})
    if way == "shards":
        data.to_parquet(tmp_path / "train-00000-of-00001.parquet")
    elif way == "disk":
        data.save_to_disk(tmp_path)
    else:
        DatasetDict({"train": data, "test": data}).save_to_disk(tmp_path)
    split = "test" if way == "splits" else None
    assert len(load_dialogues(tmp_path, split=split)) == 3


def test_a_revision_is_of_the_hub_alone(tmp_path):
    with pytest.raises(InputError, match="expected a dataset on the Hub"):
        load_dialogues("sample", revision="v1")
    with pytest.raises(InputError, match=r"org/name.* cannot be read from the Hub"):
        load_dialogues("org/name", revision="v1", token="hf_x")


@pytest.mark.slow
def test_no_folder_names_code_that_is_imported(tiny_bert, tmp_path):
    evil = tmp_path / "evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    run, published = tmp_path / "run", tmp_path / "published"
    save(DSEModel.from_backbone(tiny_bert), run)
    published.mkdir()
    write_checkpoint(*load_checkpoint(str(run)), published)
    record = {"method": str(evil), "settings": {"max_tokens": 8}}
    (published / "hf_dialemb_config.json").write_text(json.dumps(record))
    settings = {"method": str(evil), "corpus": [], "train_split": "train"}
    (run / "training_settings.json").write_text(json.dumps(settings))
    for work in (
        lambda: write_card(published, run),
        lambda: hf_dialemb.push(run, "org/x", dry_run=True),
    ):
        with pytest.raises((InputError, LookupError)):
            work()
    with pytest.raises(InputError, match="a file that was not registered"):
        get_method(str(evil))
    assert not (tmp_path / "ran").exists()


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
