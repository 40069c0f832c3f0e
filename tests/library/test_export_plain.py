"""Export of utterance encoders.

A plain encoder that anyone loads without our code, with the checkpoint's vectors.
"""

import json
import logging
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import save_dse
from exports import close, stock
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.errors import InputError
from hf_dialemb.hub import plain_encoder
from hf_dialemb.hub.export import load_checkpoint, verify, write_checkpoint
from hf_dialemb.methods.dialog2flow import Dialog2FlowModel
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


@pytest.fixture(scope="module")
def vectors(checkpoint) -> np.ndarray:
    return encode_utterances(*load_checkpoint(str(checkpoint)), TEXTS)


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


def test_sentence_transformers_gives_the_vectors_by_stock_modules(
    folder, checkpoint, vectors, caplog
):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        model = stock(folder)
        assert close(model.encode(TEXTS), vectors)
        assert close(model.encode([[{"role": "user", "content": text}] for text in TEXTS]), vectors)
    assert not caplog.records
    dialogue = [
        {"role": role, "content": text}
        for role, text in zip(("user", "assistant"), TEXTS, strict=False)
    ]
    joined = encode_utterances(*load_checkpoint(str(checkpoint)), [" ".join(TEXTS[:2])])
    assert close(model.encode([dialogue]), joined)
    built = SentenceTransformer(
        modules=[Transformer(str(folder)), Pooling(16, "mean")], device="cpu"
    )
    assert (model.max_seq_length, model.similarity_fn_name) == (32, "cosine")
    assert np.array_equal(model.encode(TEXTS), built.encode(TEXTS))


def test_the_vector_is_the_mean_and_messages_hold_no_control_tokens(folder, checkpoint, vectors):
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    for row in (0, 2, 3, 4):
        batch = tokenizer(TEXTS[row], truncation=True, return_tensors="pt")
        with torch.inference_mode():
            assert close(model(**batch).last_hidden_state[0].mean(0).numpy(), vectors[row])
    assert batch["input_ids"].shape == (1, 32)
    assert batch["input_ids"][0, -1] == tokenizer.sep_token_id  # a long string keeps its last token
    alone, expected = (
        Tokenizer.from_file(str(folder / "tokenizer.json")),
        AutoTokenizer.from_pretrained(checkpoint),
    )
    assert alone.encode(TEXTS[4]).ids == expected(TEXTS[4], truncation=True)["input_ids"]
    string = tokenizer("a [SEP] b")["input_ids"]
    message = tokenizer.apply_chat_template(
        [{"role": "user", "content": "a [SEP] b"}], return_dict=True
    )["input_ids"]
    assert string == message
    assert tokenizer.sep_token_id in string[1:-1]


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
