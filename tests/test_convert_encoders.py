"""Encoders of transformers and sentence-transformers."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conversions import converted, load, refusal, report_of
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
from test_convert_pickles import Calls
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertForMaskedLM, DistilBertForMaskedLM, T5Config, T5Model

from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.methods import get_method
from hf_dialemb.methods.dse import DSEModel
from hf_dialemb.methods.encoder import encode
from hf_dialemb.methods.utterance import encode_utterances

TEXTS = ["I need a cheap hotel in the north.", "which day?", "Hello there " * 40, "My card was stolen!"]
KINDS = pytest.mark.parametrize("kind", ["transformers", "sentence-transformers"])


def far(converted: Path, source: str | Path, limit: int, texts=TEXTS) -> float:
    """How far what was converted is from the mean of the source's tokens."""
    model, tokenizer = AutoModel.from_pretrained(source).eval(), AutoTokenizer.from_pretrained(source)
    rows = []
    for text in texts:
        batch = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.inference_mode():
            rows.append(model(**batch).last_hidden_state[0].mean(0).numpy())
    return np.abs(encode_utterances(*load(converted), texts) - np.stack(rows)).max()


def update(file: Path, **settings) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))


def rewrite(folder: Path, change, binary: bool) -> None:
    """Puts other weights into a model's folder, as safetensors or as a pickle of tensors."""
    state = change({name: value.clone() for name, value in AutoModel.from_pretrained(folder).state_dict().items()})
    (folder / "model.safetensors").unlink()
    if binary:
        torch.save(state, folder / "pytorch_model.bin")
    else:
        save_file(state, folder / "model.safetensors")


@pytest.fixture
def source(tiny_bert, tmp_path) -> Path:
    """A copy of the backbone that a test may spoil."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "source"))


@pytest.fixture
def dse(source) -> Path:
    """A folder as ``aws-ai/dse-bert-base``: a pickle with the backbone's prefix and the contrastive head."""
    torch.manual_seed(5)
    head = {"contrast_head.0.weight": torch.randn(16, 16), "contrast_head.2.weight": torch.randn(8, 16)}

    def change(state):
        old = {f"bert.{key}".replace("LayerNorm.weight", "LayerNorm.gamma"): value for key, value in state.items()}
        return {**old, "bert.embeddings.position_ids": torch.arange(512)[None], **head}

    rewrite(source, change, binary=True)
    update(source / "config.json", architectures=["PSCBert"])
    return source


def test_dse_keeps_backbone_and_head_which_another_method_leaves_out(dse, tiny_bert, tmp_path):
    lines = converted("transformers", dse, tmp_path / "out")
    model, tokenizer = load(tmp_path / "out")
    assert type(model) is DSEModel
    assert (model.config.max_tokens, model.config.projection_size) == (32, 8)
    assert far(tmp_path / "out", tiny_bert, 512) < 1e-5
    head = torch.load(dse / "pytorch_model.bin", weights_only=True)
    vectors = torch.from_numpy(encode_utterances(model, tokenizer, TEXTS))
    expected = torch.relu(vectors @ head["contrast_head.0.weight"].T) @ head["contrast_head.2.weight"].T
    with torch.inference_mode():
        assert torch.allclose(model.project(vectors), torch.nn.functional.normalize(expected), atol=1e-6)
    assert "used        contrast_head.0.weight -> heads.pairs.0.weight [16, 16]" in lines
    left_out = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}
    assert set(report_of(tmp_path / "out")["dropped"]) == {f"bert.{key}" for key in left_out}
    converted("transformers", dse, tmp_path / "other", method="dialog2flow")  # which has no place for the head
    config = load(tmp_path / "other")[0].config
    assert (config.model_type, config.projection_size) == ("dialemb-dialog2flow", None)
    assert "contrast_head.2.weight" in report_of(tmp_path / "other")["dropped"]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "distilbert", "modernbert"])
@pytest.mark.parametrize("method", ["dialogue_cse", "dial2vec"])
def test_every_family_becomes_what_from_backbone_makes(family, method, tiny_backbones, tmp_path):
    converted("transformers", tiny_backbones[family], tmp_path / "out", method=method)
    ours, theirs = load(tmp_path / "out"), get_method(method).model_class.from_backbone(tiny_backbones[family])
    turns = tuple(Turn(role, TEXTS[row]) for role, row in (("user", 0), ("assistant", 1), ("user", 3)))
    embed, given = (encode, [Dialogue(turns)]) if method == "dial2vec" else (encode_utterances, TEXTS)
    assert np.abs(embed(*ours, given) - embed(*theirs, given)).max() < 1e-6
    assert ours[1].chat_template == theirs[1].chat_template
    assert ours[1].get_vocab() == theirs[1].get_vocab()


@pytest.mark.parametrize("model_class", [BertForMaskedLM, DistilBertForMaskedLM])
def test_tod_bert_loses_its_language_model_head(model_class, tiny_backbones, tmp_path):
    backbone, source = tiny_backbones[model_class.config_class.model_type], tmp_path / "tod-bert"
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    tokenizer.add_tokens(["[sys]", "[usr]"])
    tokenizer.save_pretrained(source)
    torch.manual_seed(6)
    model_class(AutoConfig.from_pretrained(backbone, vocab_size=len(tokenizer))).save_pretrained(source)
    lines = converted("transformers", source, tmp_path / "out")
    assert any("[sys] and [usr] stay" in line and "@cls" in line for line in lines)
    assert "0 missing, 0 unexpected" in lines[-1]
    assert far(tmp_path / "out", source, 512, ["[usr] hello [sys] there"]) < 1e-5


def sentence_model(backbone: str, folder: Path, pooling: str = "mean", *more) -> Path:
    modules = [Transformer(backbone, max_seq_length=20), Pooling(16, pooling_mode=pooling), *more]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


@KINDS
@pytest.mark.parametrize("written", ["today", "of old"])
def test_a_sentence_transformer_embeds_alike(kind, written, tiny_bert, tmp_path):
    source = sentence_model(tiny_bert, tmp_path / "source")
    expected = SentenceTransformer(str(source), device="cpu").encode(TEXTS)
    if written == "of old":
        modes = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
        (source / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 16, **modes}))
        names = [
            {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{name}"}
            for place, (path, name) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling")))
        ]
        (source / "modules.json").write_text(json.dumps(names))
        (source / "sentence_bert_config.json").write_text('{"max_seq_length": 20, "do_lower_case": false}')
    converted(kind, source, tmp_path / "out", method="dialog2flow")
    model, tokenizer = load(tmp_path / "out")
    assert np.abs(encode_utterances(model, tokenizer, TEXTS) - expected).max() < 1e-5
    assert model.config.max_tokens == 20


@KINDS
def test_what_no_checkpoint_of_ours_can_do_is_refused(kind, tiny_backbones, tmp_path):
    for sentence, parts in {
        "got the pooling cls, expected the mean of tokens": ["cls"],
        "Normalize, which makes every embedding of length 1": ["mean", Normalize()],
        "Dense, which maps embeddings to others": ["mean", Dense(16, 4)],
    }.items():
        source = sentence_model(tiny_backbones["bert"], tmp_path / type(parts[-1]).__name__, *parts)
        assert sentence in refusal(kind, source, tmp_path)
    other = sentence_model(tiny_backbones["roberta"], tmp_path / "roberta")
    update(other / "sentence_bert_config.json", do_lower_case=True)  # outside the tokenizer
    assert "do_lower_case" in refusal(kind, other, tmp_path)
    for file, content, sentence in (
        ("config_sentence_transformers.json", '{"default_prompt_name": "query"}', "the prompt 'query' is put before"),
        ("modules.json", "[{", "cannot be read"),
    ):
        (other / file).write_text(content)
        assert sentence in refusal(kind, other, tmp_path)


def test_weights_in_shards_are_read_and_half_precision_becomes_single(source, tiny_bert, tmp_path):
    (source / "model.safetensors").unlink()
    AutoModel.from_pretrained(tiny_bert).half().save_pretrained(source, max_shard_size="20KB")
    index = source / "model.safetensors.index.json"
    assert index.is_file()
    converted("transformers", source, tmp_path / "out")
    half = AutoModel.from_pretrained(tiny_bert).half().float().state_dict()
    found = load(tmp_path / "out")[0].encoder.state_dict()
    assert all(value.dtype == torch.float32 and torch.equal(value, half[name]) for name, value in found.items())
    index.write_text(json.dumps({"weight_map": {"a": "../../secret.safetensors"}}))
    assert "another folder" in refusal("transformers", source, tmp_path)


def test_a_hub_repository_in_the_cache_is_found(tiny_bert, tmp_path, monkeypatch):
    cache = tmp_path / "cache/models--someone--encoder"
    shutil.copytree(tiny_bert, cache / "snapshots" / ("0" * 40))
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    converted("transformers", "someone/encoder", tmp_path / "out")
    assert far(tmp_path / "out", tiny_bert, 512) < 1e-5
    assert str(tmp_path) not in (tmp_path / "out/config.json").read_text()
    assert "neither a folder nor on the Hub" in refusal("transformers", "someone/else", tmp_path)


def test_wrong_requests_and_broken_folders_are_refused(tiny_bert, tiny_checkpoint, source, dse, tmp_path):
    assert "modules.json" in refusal("sentence-transformers", tiny_bert, tmp_path)
    assert "--vocab" in refusal("transformers", tiny_bert, tmp_path, vocabulary=Path("vocab.txt"))
    assert "Did you mean 'dse'" in refusal("transformers", tiny_bert, tmp_path, method="dsee")
    assert "is a checkpoint of this package already" in refusal("transformers", tiny_checkpoint, tmp_path)
    sizes = {"vocab_size": 9, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    T5Model(T5Config(**sizes)).save_pretrained(tmp_path / "t5")
    assert "an encoder with a decoder" in refusal("transformers", tmp_path / "t5", tmp_path)
    weights = dse / "pytorch_model.bin"
    torch.save({"bert.x": Calls(eval, f"open({str(tmp_path / 'trace')!r}, 'w').close()")}, weights)
    assert "do not trust the file" in refusal("transformers", dse, tmp_path)
    assert not (tmp_path / "trace").exists()
    weights.unlink()
    assert "has no weights" in refusal("transformers", source, tmp_path)
    content = (Path(tiny_bert) / "model.safetensors").read_bytes()
    (source / "model.safetensors").write_bytes(content[:-100])
    assert "damaged or cut off" in refusal("transformers", source, tmp_path)
    update(source / "config.json", auto_map={"AutoModel": "x.X"})
    assert "needs code of its own" in refusal("transformers", source, tmp_path)


@pytest.mark.parametrize("binary", [False, True])
def test_keys_of_encoders_are_accounted_for(binary, source, tiny_bert, tmp_path):
    lost, other = "encoder.layer.1.output.dense.bias", {"adapter.weight": torch.zeros(3)}
    rewrite(source, lambda state: {**{key: state[key] for key in state if key != lost}, **other}, binary)
    message = refusal("transformers", source, tmp_path)
    for words in (f"1 missing (encoder.{lost})", "1 unexpected (adapter.weight)", "--partial"):
        assert words in message
    for name in ("partial", "again"):
        assert "unexpected  adapter.weight" in converted("transformers", source, tmp_path / name, partial=True)
    assert report_of(tmp_path / "partial")["unexpected"] == ["adapter.weight"]
    left, right = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("partial", "again"))
    assert left == right
    wrong = {"encoder.layer.0.output.dense.weight": torch.zeros(32, 16)}
    source = Path(shutil.copytree(tiny_bert, tmp_path / "wrong"))
    rewrite(source, lambda state: {**state, **wrong}, binary)
    message = refusal("transformers", source, tmp_path, partial=True)
    assert re.search(r"got the shape \(32, 16\).*expected \(16, 32\)", message)
