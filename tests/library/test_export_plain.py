"""Export of utterance encoders.

A plain encoder that anyone loads without our code, with the checkpoint's vectors.
"""

import json
import logging
import warnings
from pathlib import Path

import pytest
import torch
from checkpoints import save_dse
from exports import close, stock
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

from hf_dialemb import Dialog2FlowModel, InputError
from hf_dialemb.hub import plain_encoder
from hf_dialemb.hub.export import load_checkpoint, verify, write_checkpoint
from hf_dialemb.methods.utterance import encode_utterances

pytestmark = pytest.mark.slow

WAYS = [
    "AutoModel, strings",
    "AutoModel, messages",
    "SentenceTransformer, strings",
    "SentenceTransformer, messages",
]
TEXTS = [
    "i need a hotel",
    "Hello [SEP] [MASK] [unused3] </s>!",
    "",
    " a\t taxi,\n please ",
    "a room " * 40,
]


@pytest.fixture(scope="module")
def checkpoint(tiny_bert, tmp_path_factory) -> Path:
    return save_dse(tiny_bert, tmp_path_factory.mktemp("training") / "dse")


@pytest.fixture(scope="module")
def exported(checkpoint, exporting) -> tuple[Path, list[str]]:
    """Return the export of the checkpoint by the command, and the printed lines."""
    return exporting(checkpoint)


@pytest.fixture(scope="module")
def folder(exported) -> Path:
    return exported[0]


def record(*path: Path | str) -> dict:
    return json.loads(Path(*path).read_text(encoding="utf-8"))


def test_stock_files_load_in_every_way_without_the_package(exported):
    folder, lines = exported
    assert [line.split(": largest")[0] for line in lines] == [
        f"Verified: {way}, package absent" for way in WAYS
    ]
    assert "trust_remote_code" not in plain_encoder._PROGRAM
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "1_Pooling/config.json",
        "chat_template.jinja",
        "config.json",
        "config_sentence_transformers.json",
        "hf_dialemb_config.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    config, pooling = record(folder, "config.json"), record(folder, "1_Pooling/config.json")
    assert (config["model_type"], config["architectures"], config["dtype"]) == (
        "bert",
        ["BertModel"],
        "float32",
    )
    assert not {"auto_map", "encoder_config", "_name_or_path"} & set(config)
    modes = {name: pooling[name] for name in pooling if name.startswith("pooling_mode")}
    assert (len(modes), [name for name in modes if modes[name]]) == (
        6,
        ["pooling_mode_mean_tokens"],
    )
    assert record(folder, "tokenizer_config.json")["model_max_length"] == 32
    side = record(folder, "hf_dialemb_config.json")
    assert (side["method"], side["settings"]["loss_temperature"]) == ("dse", 0.05)


def test_no_file_names_a_place_on_this_machine(tiny_bert, tmp_path):
    encoder, tokenizer = Dialog2FlowModel.from_backbone(
        tiny_bert, label_encoder=str(tmp_path / "my-labels")
    )
    write_checkpoint(encoder, tokenizer, tmp_path / "flow")
    assert (
        record(tmp_path, "flow/hf_dialemb_config.json")["settings"]["label_encoder"] == "my-labels"
    )
    for file in (
        path for path in (tmp_path / "flow").rglob("*") if path.suffix in {".json", ".jinja"}
    ):
        text = file.read_text(encoding="utf-8")
        assert not [
            place for place in (tiny_bert, str(tmp_path), str(Path.home())) if place in text
        ], file.name
        assert "local" not in text or file.name == "tokenizer.json", file.name


def test_the_weights_are_the_backbones_and_all_that_its_class_has(folder, checkpoint):
    before, after = (
        load_file(checkpoint / "model.safetensors"),
        load_file(folder / "model.safetensors"),
    )
    assert any(name.startswith("heads.") for name in before)
    ours = {
        name.removeprefix("encoder."): value
        for name, value in before.items()
        if name.startswith("encoder.")
    }
    assert after.keys() - ours.keys() == {"pooler.dense.weight", "pooler.dense.bias"}
    assert not any(after[name].any() for name in after.keys() - ours.keys())
    assert all(torch.equal(after[name], ours[name]) for name in ours)
    _, loading = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not any(loading[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))


def test_sentence_transformers_loads_it_without_a_warning(folder, checkpoint, caplog):
    expected = encode_utterances(*load_checkpoint(str(checkpoint)), TEXTS)
    caplog.clear()
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        model = stock(folder)
        assert close(model.encode(TEXTS), expected)
        chats = [[{"role": "user", "content": text}] for text in TEXTS]
        assert close(model.encode(chats), expected)
    assert not caplog.records
    assert (model.max_seq_length, model.similarity_fn_name) == (32, "cosine")


def test_any_tokenizer_cuts_a_long_text_and_keeps_its_last_token(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(TEXTS[4], truncation=True)["input_ids"]
    assert (len(ids), ids[-1]) == (32, tokenizer.sep_token_id)
    assert Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXTS[4]).ids == ids


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_becomes_float32(dtype, tiny_bert, tmp_path):
    model, tokenizer = load_checkpoint(str(save_dse(tiny_bert, tmp_path / "half", dtype)))
    write_checkpoint(model, tokenizer, tmp_path / "plain")
    plain = stock(tmp_path / "plain")
    assert plain[0].model.dtype == torch.float32
    assert close(plain.encode(TEXTS), encode_utterances(model, tokenizer, TEXTS))


def test_changed_weights_do_not_pass_the_verification(checkpoint, tmp_path):
    model, tokenizer = load_checkpoint(str(checkpoint))
    write_checkpoint(model, tokenizer, tmp_path / "plain")
    weights = load_file(tmp_path / "plain" / "model.safetensors")
    weights["encoder.layer.1.output.dense.bias"][0] += 1e-3
    save_file(weights, tmp_path / "plain" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"gives other embeddings .*e-04$"):
        list(verify(tmp_path / "plain", model, tokenizer))
