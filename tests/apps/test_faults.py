"""Damaged checkpoints.

Each command that reads one says so in a sentence, writes nothing, and runs none of its code.
"""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import save, save_dse
from killed import contents_of
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer
from transformers import AutoModel

from hf_dialemb import Dial2VecModel, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.methods import layout
from hf_dialemb.methods.layout import token_ids
from hf_dialemb.methods.ranker import LoadedRanker


def change_weights(folder, change):
    file = next(folder.rglob("model.safetensors"))
    save_file(change(load_file(file)), file, {"format": "pt"})


def bring_code(folder):
    file = next(each for each in folder.rglob("config.json") if "model_type" in each.read_text())
    auto_map = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    file.write_text(
        json.dumps({**json.loads(file.read_text()), "auto_map": auto_map, "model_type": "evil"})
    )
    (file.parent / "evil.py").write_text(
        f"open({str(folder / 'ran')!r}, 'w')\nclass Config: pass\nclass Model: pass"
    )


def cut_a_shard(folder):
    file = next(folder.rglob("model.safetensors"))
    AutoModel.from_pretrained(file.parent).save_pretrained(file.parent, max_shard_size="20KB")
    file.unlink(missing_ok=True)
    _, shard, *_ = sorted(folder.rglob("model-*.safetensors"))
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])


def bring_pickles(folder):
    file = next(folder.rglob("model.safetensors"))
    file.unlink()
    code = f"cbuiltins\nopen\n(V{folder / 'ran'}\nVw\ntR.".encode()
    file.with_name("pytorch_model.bin").write_bytes(code)


def configured(text):
    return lambda folder: next(folder.rglob("config.json")).write_text(text)


DAMAGES = {
    "a layer is missing": lambda folder: change_weights(
        folder,
        lambda weights: {name: value for name, value in weights.items() if "layer.1." not in name},
    ),
    "other tensors": lambda folder: change_weights(folder, lambda weights: {"x": torch.zeros(2)}),
    "not finite": lambda folder: change_weights(
        folder,
        lambda weights: {
            **weights,
            max(weights): torch.full_like(weights[max(weights)], torch.nan),
        },
    ),
    "garbled": lambda folder: next(folder.rglob("model.safetensors")).write_bytes(b"\xff" * 99),
    "cut": lambda folder: next(folder.rglob("model.safetensors")).write_bytes(
        b"\x08\0\0\0\0\0\0\0{"
    ),
    "cut a shard": cut_a_shard,
    "missing": lambda folder: next(folder.rglob("model.safetensors")).unlink(),
    "no tokenizer": lambda folder: [
        file.unlink() for file in folder.rglob("*") if file.stem in ("tokenizer", "vocab")
    ],
    "a list": configured("[]"),
    "null": configured("null"),
    "deep": configured("[" * 100_000),
    "Latin-1": lambda folder: next(folder.rglob("config.json")).write_bytes(
        b'{"model_type": "\xe9"}'
    ),
    "another type": configured('{"model_type": 7}'),
    "code": bring_code,
    "pickles": bring_pickles,
}


@pytest.fixture(scope="module")
def healthy(tiny_bert, tiny_checkpoint, tmp_path_factory):
    folder = tmp_path_factory.mktemp("healthy")
    inner = Transformer(tiny_bert)
    model = SentenceTransformer(
        modules=[inner, Pooling(inner.get_embedding_dimension())], device="cpu"
    )
    model.save(str(folder / "sentence"))
    shutil.copytree(tiny_bert, folder / "plain")
    save_dse(tiny_bert, folder / "dse")
    shutil.copytree(tiny_checkpoint, folder / "dial2vec")
    return folder


KINDS = ["plain", "sentence", "dse", "dial2vec"]


@pytest.mark.parametrize(
    ("kind", "damage"),
    [(kind, damage) for place, damage in enumerate(DAMAGES) for kind in KINDS[place % 2 :: 2]],
)
def test_a_damaged_checkpoint_is_told(
    kind, damage, healthy, tmp_path, sample_dialogues, refused, monkeypatch
):
    folder = shutil.copytree(healthy / kind, tmp_path / "model")
    DAMAGES[damage](folder)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))  # whoever asks gets an answer
    calls = tmp_path / "calls.jsonl"
    write_jsonl(sample_dialogues[:40], calls)
    before = sorted(filter(Path.is_file, tmp_path.rglob("*")))
    # which load alike: by turns, so that each meets every damage and every kind
    commands = (
        ("embed", "--input", calls, "--output", tmp_path / "vectors.parquet"),
        ("search", "--corpus", calls, "--query", "a hotel"),
        ("evaluate", "--corpus", calls, "--task", "domains", "--output", tmp_path / "results.json"),
        ("flow", calls, "--output", tmp_path / "flow"),
    )
    encoding = commands[(KINDS.index(kind) + [*DAMAGES].index(damage)) % len(commands)]
    for command in (encoding, ("export", "--output", tmp_path / "export")):
        said = refused(*command, "--model", folder)
        assert str(folder) in said, said
    assert sorted(filter(Path.is_file, tmp_path.rglob("*"))) == before
    assert str(folder) in refused(
        "train", "--corpus", calls, "--backbone", folder, "--output_dir", tmp_path / "run"
    )


@pytest.mark.parametrize("keep", ["start", "end"])
def test_a_huge_turn_is_cut_before_it_is_tokenised_and_has_the_same_vector(
    healthy, tmp_path, keep, monkeypatch
):
    words = " ".join(
        f"{word} {number}" for number, word in enumerate(["a", "hotel", "[SEP]", "room"] * 1_000)
    )
    texts = [words, " " * 50_000 + words, "x" * 50_000, "hotel", words[::-1]]
    side = {"truncation_side": "right" if keep == "start" else "left"}
    for name in ("plain", "sentence", "dse"):
        folder = shutil.copytree(healthy / name, tmp_path / name)
        settings = next(folder.rglob("tokenizer_config.json"))
        settings.write_text(json.dumps({**json.loads(settings.read_text()), **side}))
    model, tokenizer = Dial2VecModel.from_backbone(str(healthy / "plain"), max_tokens=64, keep=keep)
    save(LoadedRanker(model, tokenizer, None), tmp_path / "dial2vec")
    for name in ("plain", "sentence", "dse", "dial2vec"):
        encoder, found = load_encoder(tmp_path / name), []
        for characters in (10**9, 64):
            monkeypatch.setattr(layout, "CHARACTERS", characters)
            found.append(encoder.encode_utterances(texts))
        assert np.array_equal(*found), name
    rows = [len(row) for row in token_ids(texts[:3], tokenizer, 64, keep)]
    assert rows[0] < 8_000 < len(token_ids(texts[:1], tokenizer)[0])
    assert rows[1] > 64


def test_nothing_is_written_over_a_model(healthy, refused):
    before = contents_of(healthy)
    learn = ("train", "--method", "dse", "--backbone", healthy / "plain", "--output_dir")
    for words, told in (
        ((*learn, healthy / "plain"), "is what is read, and would be lost"),
        (
            "embed --model tfidf --input {0} --output {0}".format(
                healthy / "plain" / "config.json"
            ).split(),
            "and would be lost",
        ),
        ((*learn, healthy / "dse"), "holds config.json without training_settings.json"),
    ):
        assert told in refused(*words)
    assert contents_of(healthy) == before
