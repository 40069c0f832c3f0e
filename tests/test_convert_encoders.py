"""Encoders of transformers and sentence-transformers, and DialogueCSE's TensorFlow checkpoint."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertForMaskedLM, DistilBertForMaskedLM

from hf_dialemb.hub.conversion import dialogue_cse
from hf_dialemb.hub.conversion.assembly import Request
from hf_dialemb.hub.conversion.convert import convert
from hf_dialemb.models import register
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.dse import DSEModel
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.utterance import encode_utterances

TEXTS = ["I need a cheap hotel in the north.", "which day?", "Hello there " * 40, "My card was stolen!"]


def converted(source: Path | str, output: Path, kind: str = "transformers", **options) -> list[str]:
    method, vocabulary = options.pop("method", None), options.pop("vocabulary", None)
    return list(convert(Request(kind, str(source), vocabulary, method), output, **options))


def load(folder: Path):
    register()
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def refusal(source: Path | str, tmp_path: Path, kind: str = "transformers", **options) -> str:
    """Returns why a conversion is refused; makes sure that it leaves nothing behind."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as error:
        converted(source, tmp_path / "refused", kind, **options)
    assert sorted(tmp_path.rglob("*")) == before
    return str(error.value)


def report_of(folder: Path) -> dict:
    return json.loads((folder / "conversion.json").read_text(encoding="utf-8"))


def mean_of_tokens(folder: str | Path, texts: list[str], limit: int) -> np.ndarray:
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    rows = []
    for text in texts:
        batch = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.inference_mode():
            rows.append(model(**batch).last_hidden_state[0].mean(0).numpy())
    return np.stack(rows)


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], binary: bool) -> None:
    """Puts other weights into a model's folder, as safetensors or as a pickle of tensors."""
    state = {name: value.clone() for name, value in AutoModel.from_pretrained(folder).state_dict().items()}
    (folder / "model.safetensors").unlink()
    state = change(state)
    if binary:
        torch.save(state, folder / "pytorch_model.bin")
    else:
        save_file(state, folder / "model.safetensors")


@pytest.fixture
def dse(tiny_bert, tmp_path) -> Path:
    """A folder as ``aws-ai/dse-bert-base``: a pickle with the backbone's prefix and the contrastive head."""
    folder = tmp_path / "dse-tiny"
    shutil.copytree(tiny_bert, folder)
    torch.manual_seed(5)
    head = {"contrast_head.0.weight": torch.randn(16, 16), "contrast_head.2.weight": torch.randn(8, 16)}

    def change(state):
        old = {name.replace("LayerNorm.weight", "LayerNorm.gamma"): value for name, value in state.items()}
        ids = {"bert.embeddings.position_ids": torch.arange(512)[None]}
        return {**{f"bert.{name}": value for name, value in old.items()}, **ids, **head}

    rewrite(folder, change, binary=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["PSCBert"]}))
    return folder


def test_dse_keeps_backbone_and_head_which_another_method_leaves_out(dse, tiny_bert, tmp_path):
    lines = converted(dse, tmp_path / "out")
    model, tokenizer = load(tmp_path / "out")
    assert type(model) is DSEModel
    assert (model.config.max_tokens, model.config.projection_size) == (32, 8)
    ours = encode_utterances(model, tokenizer, TEXTS)
    assert np.abs(ours - mean_of_tokens(tiny_bert, TEXTS, 32)).max() < 1e-5
    head = torch.load(dse / "pytorch_model.bin", weights_only=True)
    vectors = torch.from_numpy(ours)
    expected = torch.relu(vectors @ head["contrast_head.0.weight"].T) @ head["contrast_head.2.weight"].T
    with torch.inference_mode():
        assert torch.allclose(model.project(vectors), torch.nn.functional.normalize(expected), atol=1e-6)
    assert "used        contrast_head.0.weight -> heads.pairs.0.weight [16, 16]" in lines
    assert set(report_of(tmp_path / "out")["dropped"]) == {
        "bert.embeddings.position_ids", "bert.pooler.dense.weight", "bert.pooler.dense.bias",
    }  # fmt: skip
    converted(dse, tmp_path / "other", method="dialog2flow")  # which has no place for the head
    model, _ = load(tmp_path / "other")
    assert (model.config.model_type, model.config.projection_size) == ("dialemb-dialog2flow", None)
    assert "contrast_head.2.weight" in report_of(tmp_path / "other")["dropped"]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "distilbert", "modernbert"])
@pytest.mark.parametrize("method", ["dialogue_cse", "dial2vec"])
def test_every_family_becomes_what_from_backbone_makes(family, method, tiny_backbones, tmp_path):
    from hf_dialemb.models import get_method

    converted(tiny_backbones[family], tmp_path / "out", method=method)
    model, tokenizer = load(tmp_path / "out")
    theirs, their_tokenizer = get_method(method).model_class.from_backbone(tiny_backbones[family])
    if method == "dial2vec":
        dialogues = [Dialogue((Turn("user", TEXTS[0]), Turn("assistant", TEXTS[1]), Turn("user", TEXTS[3])))]
        ours, expected = encode(model, tokenizer, dialogues), encode(theirs, their_tokenizer, dialogues)
    else:
        ours = encode_utterances(model, tokenizer, TEXTS)
        expected = encode_utterances(theirs, their_tokenizer, TEXTS)
    assert np.abs(ours - expected).max() < 1e-6
    assert tokenizer.chat_template == their_tokenizer.chat_template
    assert tokenizer.get_vocab() == their_tokenizer.get_vocab()


def test_half_precision_becomes_single(tiny_bert, tmp_path):
    AutoModel.from_pretrained(tiny_bert).half().save_pretrained(tmp_path / "half")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "half")
    converted(tmp_path / "half", tmp_path / "out")
    model, _ = load(tmp_path / "out")
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}


@pytest.mark.parametrize("model_class", [BertForMaskedLM, DistilBertForMaskedLM])
def test_tod_bert_loses_its_language_model_head(model_class, tiny_backbones, tmp_path):
    family = model_class.config_class.model_type
    tokenizer = AutoTokenizer.from_pretrained(tiny_backbones[family])
    tokenizer.add_tokens(["[sys]", "[usr]"])
    config = AutoConfig.from_pretrained(tiny_backbones[family], vocab_size=len(tokenizer))
    torch.manual_seed(6)
    model_class(config).save_pretrained(tmp_path / "tod-bert")
    tokenizer.save_pretrained(tmp_path / "tod-bert")
    lines = converted(tmp_path / "tod-bert", tmp_path / "out")
    assert any("[sys] and [usr] stay" in line and "@cls" in line for line in lines)
    assert "0 missing, 0 unexpected" in lines[-1]
    ours = encode_utterances(*load(tmp_path / "out"), ["[usr] hello [sys] there"])
    assert np.abs(ours - mean_of_tokens(tmp_path / "tod-bert", ["[usr] hello [sys] there"], 32)).max() < 1e-5


def sentence_model(backbone: str, folder: Path, pooling: str = "mean", *more) -> Path:
    transformer = Transformer(backbone, max_seq_length=20)
    model = SentenceTransformer(modules=[transformer, Pooling(16, pooling_mode=pooling), *more], device="cpu")
    model.save(str(folder))
    return folder


@pytest.mark.parametrize("kind", ["transformers", "sentence-transformers"])
@pytest.mark.parametrize("written", ["today", "of old"])
def test_a_sentence_transformer_embeds_alike(kind, written, tiny_bert, tmp_path):
    source = sentence_model(tiny_bert, tmp_path / "source")
    expected = SentenceTransformer(str(source), device="cpu").encode(TEXTS)
    if written == "of old":
        modes = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
        (source / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 16, **modes}))
        names = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        (source / "modules.json").write_text(json.dumps(names))
        (source / "sentence_bert_config.json").write_text('{"max_seq_length": 20, "do_lower_case": false}')
    converted(source, tmp_path / "out", kind, method="dialog2flow")
    model, tokenizer = load(tmp_path / "out")
    assert np.abs(encode_utterances(model, tokenizer, TEXTS) - expected).max() < 1e-5
    assert model.config.max_tokens == 20


@pytest.mark.parametrize("kind", ["transformers", "sentence-transformers"])
def test_what_no_checkpoint_of_ours_can_do_is_refused(kind, tiny_bert, tmp_path):
    from sentence_transformers.models import Dense

    for sentence, parts in {
        "got the pooling cls, expected the mean of tokens": ["cls"],
        "Normalize, which makes every embedding of length 1": ["mean", Normalize()],
        "Dense, which maps embeddings to others": ["mean", Dense(16, 4)],
    }.items():
        source = sentence_model(tiny_bert, tmp_path / type(parts[-1]).__name__, *parts)
        assert sentence in refusal(source, tmp_path, kind)
    other = sentence_model(tiny_bert, tmp_path / "prompt")
    (other / "config_sentence_transformers.json").write_text('{"default_prompt_name": "query"}')
    assert "the prompt 'query' is put before every text" in refusal(other, tmp_path, kind)
    (other / "modules.json").write_text("[{")
    assert "cannot be read" in refusal(other, tmp_path, kind)


def test_lower_casing_outside_the_tokenizer_is_refused(tiny_backbones, tmp_path):
    source = sentence_model(tiny_backbones["roberta"], tmp_path / "source")
    settings = json.loads((source / "sentence_bert_config.json").read_text())
    (source / "sentence_bert_config.json").write_text(json.dumps({**settings, "do_lower_case": True}))
    assert "do_lower_case" in refusal(source, tmp_path)


def test_weights_in_shards_are_read(tiny_bert, tmp_path):
    AutoModel.from_pretrained(tiny_bert).save_pretrained(tmp_path / "source", max_shard_size="20KB")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "source")
    index = tmp_path / "source/model.safetensors.index.json"
    assert index.is_file()
    converted(tmp_path / "source", tmp_path / "out")
    expected = mean_of_tokens(tiny_bert, TEXTS, 32)
    assert np.abs(encode_utterances(*load(tmp_path / "out"), TEXTS) - expected).max() < 1e-5
    index.write_text(json.dumps({"weight_map": {"a": "../../secret.safetensors"}}))
    assert "another folder" in refusal(tmp_path / "source", tmp_path)


def test_a_hub_repository_in_the_cache_is_found(tiny_bert, tmp_path, monkeypatch):
    cache = tmp_path / "cache/models--someone--encoder"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs/main").write_text("0" * 40)
    shutil.copytree(tiny_bert, cache / "snapshots" / ("0" * 40))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    converted("someone/encoder", tmp_path / "out")
    expected = mean_of_tokens(tiny_bert, TEXTS, 32)
    assert np.abs(encode_utterances(*load(tmp_path / "out"), TEXTS) - expected).max() < 1e-5
    assert str(tmp_path) not in (tmp_path / "out/config.json").read_text()
    assert "neither a folder nor on the Hub" in refusal("someone/else", tmp_path)


def test_broken_folders_are_refused(tiny_bert, dse, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    weights = (source / "model.safetensors").read_bytes()
    (source / "model.safetensors").write_bytes(weights[:-100])
    assert "damaged or cut off" in refusal(source, tmp_path)
    (source / "model.safetensors").unlink()
    assert "has no weights" in refusal(source, tmp_path)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "x.X"}}))
    assert "needs code of its own" in refusal(source, tmp_path)
    assert "modules.json" in refusal(tiny_bert, tmp_path, "sentence-transformers")
    assert "--vocab" in refusal(tiny_bert, tmp_path, vocabulary=Path("vocab.txt"))
    assert "Did you mean 'dse'" in refusal(tiny_bert, tmp_path, method="dsee")
    (dse / "pytorch_model.bin").write_bytes((dse / "pytorch_model.bin").read_bytes()[:-100])
    assert "damaged" in refusal(dse, tmp_path)


def test_a_pickle_with_a_call_in_a_model_folder_is_refused(dse, tmp_path):
    class Call:
        def __reduce__(self):
            return eval, (f"open({str(tmp_path / 'trace')!r}, 'w').close()",)

    torch.save({"bert.x": Call()}, dse / "pytorch_model.bin")
    assert "do not trust the file" in refusal(dse, tmp_path)
    assert not (tmp_path / "trace").exists()


def test_our_own_checkpoints_and_decoders_are_refused(tiny_checkpoint, tmp_path):
    from transformers import T5Config, T5Model

    assert "is a checkpoint of this package already" in refusal(tiny_checkpoint, tmp_path)
    T5Model(T5Config(vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)).save_pretrained(
        tmp_path / "t5"
    )
    assert "an encoder with a decoder" in refusal(tmp_path / "t5", tmp_path)


@pytest.mark.parametrize("binary", [False, True])
def test_keys_of_encoders_are_accounted_for(binary, tiny_bert, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    lost, other = "encoder.layer.1.output.dense.bias", {"adapter.weight": torch.zeros(3)}
    rewrite(source, lambda state: {**{key: state[key] for key in state if key != lost}, **other}, binary)
    message = refusal(source, tmp_path)
    assert f"1 missing (encoder.{lost})" in message
    assert "1 unexpected (adapter.weight)" in message
    converted(source, tmp_path / "out", partial=True)
    assert report_of(tmp_path / "out")["unexpected"] == ["adapter.weight"]
    shutil.rmtree(source)
    shutil.copytree(tiny_bert, source)
    wrong = {"encoder.layer.0.output.dense.weight": torch.zeros(32, 16)}
    rewrite(source, lambda state: {**state, **wrong}, binary)
    assert re.search(r"got the shape \(32, 16\).*expected \(16, 32\)", refusal(source, tmp_path, partial=True))


open_checkpoint = dialogue_cse.open_checkpoint


class Checkpoint:
    """Stands for TensorFlow's reader of a checkpoint."""

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values, self.asked = values, []

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(value.shape) for name, value in self.values.items()}

    def get_tensor(self, name: str) -> np.ndarray:
        self.asked.append(name)
        return self.values[name]


def tensorflow_variables(state: dict[str, torch.Tensor], attention: str = "round_attention//") -> dict[str, np.ndarray]:
    """BERT under the names of Google's program, with the turn attention and the optimiser's variables."""
    found = {}
    for name, value in state.items():
        array, path = value.numpy(), name.replace("encoder.layer.", "encoder/layer_").replace(".", "/")
        if "_embeddings/" in path:
            path = path.removesuffix("/weight")
        elif "LayerNorm" in path:
            path = path.replace("/weight", "/gamma").replace("/bias", "/beta")
        elif path.endswith("/weight"):
            path, array = path.replace("/weight", "/kernel"), array.T
        found[f"bert/{path}"] = array
    generator = np.random.default_rng(7)
    width = state["pooler.dense.bias"].shape[0]
    for name, shape in (("w", (width, 256)), ("b", (256,)), ("u", (256,))):
        found[attention + name] = generator.standard_normal(shape).astype(np.float32)
    found["bert/encoder/layer_0/output/dense/kernel/Adam_1"] = np.zeros((2, 2), np.float32)
    return {**found, **{name: np.float32(0) for name in ("beta1_power", "step", "learning_rate", "beta2_power_1")}}


@pytest.fixture
def cse(tiny_bert, tmp_path, monkeypatch) -> tuple[Checkpoint, Path]:
    """A checkpoint of DialogueCSE's program, whose BERT computes GELU by tanh, and its folder."""
    folder = tmp_path / "cse"
    folder.mkdir()
    shutil.copy(Path(tiny_bert) / "vocab.txt", folder)
    (folder / "bert_config.json").write_text('{"num_attention_heads": 2, "hidden_act": "gelu"}')
    checkpoint = Checkpoint(tensorflow_variables(AutoModel.from_pretrained(tiny_bert).state_dict()))
    monkeypatch.setattr(dialogue_cse, "open_checkpoint", lambda path: checkpoint)
    return checkpoint, folder


def test_dialogue_cse_is_bert_under_other_names(cse, tiny_bert, tmp_path):
    checkpoint, folder = cse
    converted(folder / "model.ckpt-200", tmp_path / "out", "dialogue-cse")
    model, tokenizer = load(tmp_path / "out")
    plain = AutoModel.from_pretrained(tiny_bert, hidden_act="gelu_new")
    plain.save_pretrained(tmp_path / "tanh")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "tanh")
    expected = mean_of_tokens(tmp_path / "tanh", TEXTS, 100)
    assert np.abs(encode_utterances(model, tokenizer, TEXTS) - expected).max() < 1e-5
    assert (model.config.turn_aggregation, model.config.max_tokens) == ("official", 100)
    turns = torch.randn(3, 16)
    scores = np.tanh(turns.numpy() @ checkpoint.values["round_attention//w"] + checkpoint.values["round_attention//b"])
    with torch.inference_mode():
        ours = model.heads["turns"](turns)[:, 0].numpy()
    assert np.abs(ours - scores @ checkpoint.values["round_attention//u"]).max() < 1e-3
    report = report_of(tmp_path / "out")
    assert {"step", "beta2_power_1", "bert/pooler/dense/kernel"} <= set(report["dropped"])
    assert (report["missing"], report["unexpected"]) == ([], [])
    assert not {name for name in checkpoint.asked if "Adam" in name}  # what is dropped is never read
    checkpoint.values = {name: value for name, value in checkpoint.values.items() if "round_attention" not in name}
    converted(folder, tmp_path / "without", "dialogue-cse")
    assert load(tmp_path / "without")[0].config.turn_aggregation == "mean"


def test_dialogue_cse_that_is_not_whole_is_refused(cse, tmp_path):
    checkpoint, folder = cse
    checkpoint.values["bert_1/embeddings/word_embeddings"] = np.zeros(2, np.float32)
    del checkpoint.values["bert/encoder/layer_1/output/LayerNorm/beta"]
    message = refusal(folder, tmp_path, "dialogue-cse")
    assert "1 missing (encoder.encoder.layer.1.output.LayerNorm.bias)" in message
    assert "1 unexpected (bert_1/embeddings/word_embeddings)" in message
    checkpoint.values = {"conv/kernel": np.zeros((2, 2))}
    assert "expected the key 'bert/embeddings/word_embeddings'" in refusal(folder, tmp_path, "dialogue-cse")


def test_without_tensorflow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorflow", None)
    assert 'pip install "hf-dialemb[tensorflow]"' in refusal(tmp_path / "model.ckpt", tmp_path, "dialogue-cse")


def test_a_tensorflow_checkpoint_is_read_by_tensorflow(cse, tmp_path, monkeypatch):
    tensorflow = pytest.importorskip("tensorflow")
    checkpoint, folder = cse
    monkeypatch.setattr(dialogue_cse, "open_checkpoint", open_checkpoint)
    names = list(checkpoint.values)
    prefix = tensorflow.constant(str(folder / "model.ckpt-200"))
    values = [tensorflow.constant(checkpoint.values[name]) for name in names]
    tensorflow.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)
    converted(folder / "model.ckpt-200", tmp_path / "out", "dialogue-cse")
    table = load(tmp_path / "out")[0].encoder.embeddings.word_embeddings.weight.detach().numpy()
    assert np.array_equal(table, checkpoint.values["bert/embeddings/word_embeddings"])
    assert "got no TensorFlow checkpoint" in refusal(tmp_path / "nothing", tmp_path, "dialogue-cse")
