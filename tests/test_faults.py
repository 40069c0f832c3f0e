"""Damaged checkpoints: every command that reads one tells it in a sentence, writes nothing, and runs no code of it."""

import io
import json
import shutil
from pathlib import Path

import pytest
import torch
from checkpoints import save_dse
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer

from hf_dialemb.corpora import write_jsonl


def change_weights(folder, change):
    file = next(folder.rglob("model.safetensors"))
    weights = load_file(file)
    save_file(change(weights), file, {"format": "pt"})


def bring_code(folder):
    file = next(each for each in folder.rglob("config.json") if "model_type" in each.read_text())
    auto_map = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "auto_map": auto_map, "model_type": "evil"}))
    (file.parent / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Config: pass\nclass Model: pass")


def configured(text):
    return lambda folder: next(folder.rglob("config.json")).write_text(text)


DAMAGES = {
    "a layer is missing": lambda folder: change_weights(
        folder, lambda weights: {name: value for name, value in weights.items() if "layer.1." not in name}
    ),
    "other tensors": lambda folder: change_weights(folder, lambda weights: {"x": torch.zeros(2)}),
    "not finite": lambda folder: change_weights(
        folder, lambda weights: {**weights, max(weights): torch.full_like(weights[max(weights)], torch.nan)}
    ),
    "cut": lambda folder: next(folder.rglob("model.safetensors")).write_bytes(b"\x08\0\0\0\0\0\0\0{"),
    "no tokenizer": lambda folder: [file.unlink() for file in folder.rglob("*") if file.stem in ("tokenizer", "vocab")],
    "a list": configured("[]"),
    "null": configured("null"),
    "deep": configured("[" * 100_000),
    "Latin-1": lambda folder: next(folder.rglob("config.json")).write_bytes(b'{"model_type": "\xe9"}'),
    "endless": configured('{"model_type": "bert", "num_hidden_layers": 1000000}'),
    "another type": configured('{"model_type": 7}'),
    "code": bring_code,
}


@pytest.fixture(scope="module")
def healthy(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("healthy")
    inner = Transformer(tiny_bert)
    model = SentenceTransformer(modules=[inner, Pooling(inner.get_embedding_dimension())], device="cpu")
    model.save(str(folder / "sentence"))
    shutil.copytree(tiny_bert, folder / "plain")
    save_dse(tiny_bert, folder / "dse")
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["plain", "sentence", "dse"])
def test_a_damaged_checkpoint_is_told(kind, damage, healthy, tmp_path, sample_dialogues, refused, monkeypatch):
    folder = shutil.copytree(healthy / kind, tmp_path / "model")
    DAMAGES[damage](folder)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))  # whoever asks gets an answer
    calls = tmp_path / "calls.jsonl"
    write_jsonl(sample_dialogues[:40], calls)
    before = sorted(filter(Path.is_file, tmp_path.rglob("*")))
    for command in (
        ("embed", "--input", calls, "--output", tmp_path / "vectors.parquet"),
        ("search", "--corpus", calls, "--query", "a hotel"),
        ("evaluate", "--corpus", calls, "--task", "domains", "--output", tmp_path / "results.json"),
        ("flow", calls, "--output", tmp_path / "flow"),
        ("export", "--output", tmp_path / "export"),
    ):
        said = refused(*command, "--model", folder)
        assert str(folder) in said, said
    assert sorted(filter(Path.is_file, tmp_path.rglob("*"))) == before


def test_nothing_is_written_over_a_model(healthy, refused):
    plain, trained = healthy / "plain", healthy / "dse"
    before = {file: file.read_bytes() for file in healthy.rglob("*") if file.is_file()}
    learn = ("train", "--method", "dse", "--backbone", plain, "--max_steps", 1)
    for words, told in (
        ((*learn, "--output_dir", plain), "is what is read, and would be lost"),
        ((*learn, "--output_dir", trained), "holds a model without training_settings.json"),
        (("evaluate", "--corpus", "sample", "--model", "tfidf", "--output", plain / "config.json"), "file of a model"),
    ):
        assert told in refused(*words)
    assert {file: file.read_bytes() for file in healthy.rglob("*") if file.is_file()} == before
