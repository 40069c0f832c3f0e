"""Training utterance encoders: the same trainer, labels, heads of their own learning rate, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from hf_dialemb.corpora import write_jsonl
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError
from hf_dialemb.training import label_vectors as vectors_of_labels
from hf_dialemb.training import run as training
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.label_vectors import label_vectors

METHODS = {
    "dse": {"method": "dse"},
    "dialog2flow": {"method": "dialog2flow", "target": "joint", "joint_update": "alternating", "label_encoder": "tiny"},
}


@pytest.fixture(autouse=True)
def tiny_label_encoder(monkeypatch):
    """Stands in for a sentence-transformers model: any encoder's vectors serve."""

    def embed(labels, encoder, folder):
        return np.random.default_rng(len(labels)).normal(size=(len(labels), 5)).astype(np.float32)

    monkeypatch.setattr("hf_dialemb.training.data.label_vectors", embed)


def train(backbone: str, output: Path, **more: object) -> tuple[dict[str, torch.Tensor], list[str]]:
    settings = {
        "backbone": backbone, "corpus": "sample", "train_split": "dev", "output_dir": output, "use_cpu": True,
        "max_steps": 9, "save_steps": 4, "per_device_train_batch_size": 16, "learning_rate": 0.01, "seed": 5,
        "disable_tqdm": True, **more,
    }  # fmt: skip
    words = [word for name, value in settings.items() for word in (f"--{name}", *str(value).split("|"))]
    lines: list[str] = []
    training.train(parse(None, words), lines.append)
    return load_file(output / "model.safetensors"), lines


class KilledError(Exception):
    """Stands for whatever ends a process."""


class KillAt(TrainerCallback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.step:
            raise KilledError


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_killed_and_resumed_it_ends_in_the_same_weights(tiny_bert, tmp_path, method, monkeypatch):
    expected, _ = train(tiny_bert, tmp_path / "whole", **METHODS[method])
    trainer = training.DialogueTrainer
    monkeypatch.setattr(training, "DialogueTrainer", lambda *a, **k: trainer(*a, callbacks=[KillAt(6)], **k))
    with pytest.raises(KilledError):
        train(tiny_bert, tmp_path / "killed", **METHODS[method])
    monkeypatch.setattr(training, "DialogueTrainer", trainer)
    weights, lines = train(tiny_bert, tmp_path / "killed", **METHODS[method])
    assert any(line.startswith("Resuming from") for line in lines)
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


@pytest.mark.slow
def test_heads_have_a_learning_rate_of_their_own(tiny_bert, tmp_path):
    step = {"max_steps": 1, "optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0, "dropout": 0}
    rates = {"slow": 0.5, "fast": 1.0}
    moved = {}
    for name, rate in rates.items():
        weights, _ = train(tiny_bert, tmp_path / name, method="dse", head_learning_rate=rate, learning_rate=0.1, **step)
        moved[name] = weights
    still, _ = train(tiny_bert, tmp_path / "still", method="dse", learning_rate=1e-30, **step)
    assert torch.equal(
        moved["slow"]["encoder.encoder.layer.1.output.dense.weight"],
        moved["fast"]["encoder.encoder.layer.1.output.dense.weight"],
    )
    slow, fast = (moved[name]["heads.pairs.0.weight"] - still["heads.pairs.0.weight"] for name in rates)
    assert slow.abs().max() > 0
    assert torch.allclose(fast, 2 * slow, atol=1e-6)


@pytest.mark.slow
def test_heads_stay_out_of_the_average_with_the_backbone(tiny_bert, tmp_path):
    weights, _ = train(tiny_bert, tmp_path / "one", method="dse", max_steps=2)
    back, _ = train(tiny_bert, tmp_path / "two", method="dse", max_steps=2, average_with_backbone=1.0)
    start = load_file(Path(tiny_bert) / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    assert torch.equal(back[f"encoder.{name}"], start[name])
    assert torch.equal(back["heads.pairs.0.weight"], weights["heads.pairs.0.weight"])


def test_several_corpora_and_their_splits(tiny_bert, tmp_path):
    mine = tmp_path / "mine.jsonl"
    talk = Dialogue((Turn("user", "I would like one more thing"), Turn("assistant", "And what would that be then")))
    write_jsonl([talk], mine)
    train(
        tiny_bert, tmp_path / "run", method="dse", corpus=f"sample/dev|{mine}", exclude="none", train_split="train",
        max_steps=1,
    )  # fmt: skip
    report = json.loads((tmp_path / "run" / "training_report.json").read_text())
    assert report["dialogues"] == 97
    with pytest.raises(InputError, match="corpus sample/best: got split 'best', expected one of train, dev"):
        train(tiny_bert, tmp_path / "other", method="dse", corpus="sample/best")


def test_entailment_pairs_are_a_table_of_two_columns(tiny_bert, tmp_path):
    pairs = [(f"i have a dog called {name}", f"my pet is a {name} for sure") for name in ("rex", "bo", "ada", "max")]
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"{first}\t{second}\n" for first, second in pairs), encoding="utf-8")
    words = {"corpus": table, "columns": "first=1,second=2", "max_steps": 1, "per_device_train_batch_size": 4}
    train(tiny_bert, tmp_path / "run", method="dse", **words)
    assert json.loads((tmp_path / "run" / "training_report.json").read_text())["examples"] == 4
    table.write_text("premise\thypothesis\na b c d\t \n", encoding="utf-8")
    with pytest.raises(InputError, match=r"pairs.tsv:2: field second: got ' ', expected text; remove the row"):
        train(tiny_bert, tmp_path / "bad", method="dse", **{**words, "columns": "first=premise,second=hypothesis"})
    with pytest.raises(InputError, match="expected first and second together and nothing beside them"):
        train(tiny_bert, tmp_path / "bad", method="dse", **{**words, "columns": "first=premise,role=hypothesis"})


def test_labels_that_a_method_needs_and_a_corpus_lacks(tiny_bert, tmp_path):
    mine = tmp_path / "mine.jsonl"
    write_jsonl([Dialogue((Turn("user", "so it is"), Turn("assistant", "indeed it is")))], mine)
    with pytest.raises(InputError, match="none of 1 dialogues has acts; name a corpus with such labels"):
        train(tiny_bert, tmp_path / "run", corpus=mine, **METHODS["dialog2flow"])


@pytest.mark.slow
def test_rare_labels_are_left_out_and_told(tiny_bert, tmp_path):
    _, lines = train(tiny_bert, tmp_path / "run", max_steps=1, **METHODS["dialog2flow"], min_utterances=50)
    assert any("acts: fewer than 50 utterances each" in line for line in lines)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"per_device_train_batch_size": 1}, "per_device_train_batch_size: got 1, expected a value at least 2"),
        ({"per_device_train_batch_size": 5000}, "got 5000, but there are [0-9]+ examples; lower it or add data"),
        ({"center": True}, "center: got a setting that is not for dse, which is no dialogue encoder"),
        ({"head_learning_rate": 0}, "head_learning_rate: got 0.0, expected a value above 0"),
        (
            {"method": "dial2vec", "head_learning_rate": 1},
            "head_learning_rate: got a setting that is not for dial2vec, which has no contrastive head",
        ),
        ({"negative_weights": "heavy"}, "negative_weights"),
    ],
)
def test_what_cannot_be_trained_is_told(tiny_bert, tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        train(tiny_bert, tmp_path, **{"method": "dse", **settings})


@pytest.mark.slow
def test_a_dev_split_can_choose_the_checkpoint(tiny_bert, tmp_path):
    train(
        tiny_bert, tmp_path, **METHODS["dialog2flow"], train_split="train", dev_split="dev", max_steps=4, save_steps=2,
        checkpoint_selection="contrastive_accuracy", exclude="none", max_dialogues=60,
    )  # fmt: skip
    report = json.loads((tmp_path / "training_report.json").read_text())
    values = [entry["eval_contrastive_accuracy"] for entry in report["log"] if "eval_contrastive_accuracy" in entry]
    assert len(values) == 2
    assert all(0 <= value <= 1 for value in values)


def test_labels_are_embedded_once(tiny_bert, tmp_path, monkeypatch):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    folder = tmp_path / "encoder"
    SentenceTransformer(modules=[Transformer(tiny_bert), Pooling(16)]).save(str(folder))
    found = label_vectors(["inform area", "request area"], str(folder), tmp_path)
    expected = SentenceTransformer(str(folder)).encode(["inform area", "request area"])
    assert np.abs(found - expected).max() < 1e-6
    assert np.abs(found - expected[::-1]).max() > 1e-3
    monkeypatch.setattr(vectors_of_labels, "resolve_backbone", None)  # what is kept is not made again
    assert np.array_equal(label_vectors(["inform area", "request area"], str(folder), tmp_path), found)
    monkeypatch.undo()
    model = SentenceTransformer(str(folder))
    torch.nn.init.normal_(model[0].model.embeddings.word_embeddings.weight)
    model.save(str(folder))
    assert not np.allclose(label_vectors(["inform area", "request area"], str(folder), tmp_path), found)


def test_processes_do_not_wait_for_a_head_that_has_no_part_in_a_step():
    words = ["--method", "dialog2flow", "--target", "joint", "--gradient_checkpointing", "true", "--joint_update"]
    assert parse(None, [*words, "alternating"]).training.ddp_find_unused_parameters is True
    assert parse(None, [*words, "summed"]).training.ddp_find_unused_parameters is None
