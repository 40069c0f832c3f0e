"""Trainings that go on where they were stopped, and those of utterance encoders."""

import shutil

import numpy as np
import pytest
import torch
import training_runs
from checkpoints import dual_encoder
from talks import dialogue
from training_runs import assert_same, report_of, weights_of
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.data import write_jsonl
from hf_dialemb.errors import InputError
from hf_dialemb.methods.dial2vec import Dial2VecExamples, collate
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.utterance import mean_of_tokens
from hf_dialemb.storage.files import locked
from hf_dialemb.storage.run_folder import RunFolder
from hf_dialemb.training.data import label_vectors
from hf_dialemb.training.measuring import ranked_first


class Runs:
    """Runs in ``folder / "run"`` that end within an epoch.

    Those that choose a checkpoint have dialogues to do so.
    """

    def __init__(self, folder, backbone, dialogues):
        self.folder, self.backbone, self.dialogues = folder, backbone, dialogues
        self.run = RunFolder(folder / "run")
        self.write()

    def write(self, calls=slice(30), dev=slice(40, 50)):
        write_jsonl(self.dialogues[calls], self.folder / "calls.jsonl")
        write_jsonl(self.dialogues[dev], self.folder / "dev.jsonl")

    def train(self, **changes):
        steps = {"max_steps": 3, "save_steps": 1, "per_device_train_batch_size": 4}
        rates = {"learning_rate": 0.01, "lr_scheduler_type": "constant", "num_negatives": 2}
        places = {"backbone": self.backbone, "corpus": self.folder / "calls.jsonl"}
        if "checkpoint_selection" in changes:
            places["dev_split"] = self.folder / "dev.jsonl"
        return training_runs.train(self.run.path, **places, **{**steps, **rates, **changes})


@pytest.fixture
def runs(tiny_bert, tmp_path, sample_dialogues):
    return Runs(tmp_path, tiny_bert, sample_dialogues)


BY_LOSS = {"checkpoint_selection": "contrastive_loss"}
WITHOUT_GAIN = {
    "checkpoint_selection": "contrastive_accuracy",
    "max_steps": 9,
    "bf16": False,
    "learning_rate": 1e-30,
    "dropout": 0,
    "save_total_limit": 1,
    "patience": 2,
}
ENDS = {
    "chosen": BY_LOSS,
    "centred": {"bf16": True, "center": 1.0},
    "patience": WITHOUT_GAIN,
    "rank": {"rank": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_run_killed_after_its_last_step_takes_no_step_more(runs, end):
    runs.train(**ENDS[end])
    before, report, content = (
        weights_of(runs.run),
        runs.run.report(),
        runs.run.report_file.read_bytes(),
    )
    assert "Complete already" in runs.train(**ENDS[end])
    assert runs.run.report_file.read_bytes() == content
    runs.run.report_file.unlink()
    (runs.run.path / "model.safetensors").unlink()
    runs.train(**ENDS[end])
    assert_same(weights_of(runs.run), before)
    assert runs.run.report()["steps"] == report["steps"] == 3
    assert not (runs.run.path / "checkpoint-4").exists()
    assert before["center"].any() == (end == "centred")
    assert end != "patience" or report["checkpoint"] == "checkpoint-1"


def test_a_training_of_low_rank_goes_on_to_the_same_weights(runs, tiny_bert):
    runs.train(rank=2)
    before, start = weights_of(runs.run), AutoModel.from_pretrained(tiny_bert).state_dict()
    for name, value in start.items():
        moved = (
            before[f"encoder.{name}"] - value if f"encoder.{name}" in before else torch.zeros(1, 1)
        )
        linear = moved.ndim == 2 and "embeddings" not in name
        assert (
            torch.linalg.matrix_rank(moved, atol=1e-5) == 2 * moved.any()
            if linear
            else not moved.any()
        )
    shutil.rmtree(runs.run.path / "checkpoint-3")  # as if it had stopped before
    runs.run.report_file.unlink()
    runs.train(rank=2)
    assert_same(weights_of(runs.run), before)


@pytest.mark.slow
def test_other_data_under_the_same_name_are_another_run(runs):
    runs.train(**BY_LOSS)
    runs.run.report_file.unlink()
    for written, message in (
        ({"calls": slice(31)}, r"another dialogues \(30 there, 31 now\); choose another"),
        ({"calls": slice(1, 31)}, "another sha256"),
        ({"dev": slice(41, 51)}, "another dev_sha256"),
    ):
        runs.write(**written)
        with pytest.raises(InputError, match=message):
            runs.train(**BY_LOSS)


def test_scores_are_float32_and_neither_ties_nor_nan_come_first(sample_dialogues):
    model, vectors = dual_encoder(sample_dialogues).model, torch.randn(3, 5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        scores, means = (
            model.product(vectors[:, 0], vectors),
            mean_of_tokens(vectors, torch.ones(3, 5)),
        )
    assert scores.equal(model.product(vectors[:, 0], vectors))
    assert means.equal(mean_of_tokens(vectors, torch.ones(3, 5)))
    scores = torch.tensor([[0.5, 0.4], [0.5, 0.5], [torch.nan, torch.nan], [0.0, 0.0]]).unsqueeze(
        -1
    )
    assert ranked_first(scores).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert ranked_first(torch.tensor([[[0.5, 0.0, 0.1], [0.4, 0.0, 0.2]]])).tolist() == [
        0.5
    ]  # one role is not there


def test_a_second_run_and_checkpoints_of_others_are_left_alone(runs):
    with (
        locked(runs.run.path, "wait"),
        pytest.raises(InputError, match="run: another run writes there now"),
    ):
        runs.train()
    theirs = runs.run.path / "checkpoint-500" / "model.safetensors"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(
        InputError, match=r"checkpoint-500 without training_settings\.json, which another program"
    ):
        runs.train(resume=False)
    assert theirs.read_text() == "theirs"


@pytest.mark.slow
def test_signals_of_dev_dialogues_are_what_their_names_say(runs):
    runs.write(dev=slice(30, 37))
    choice = {
        "checkpoint_selection": "contrastive_loss",
        "save_total_limit": 5,
        "per_device_eval_batch_size": 4,
    }
    runs.train(**choice, bf16=False)
    log = {entry["step"]: entry for entry in runs.run.report()["log"] if "eval_loss" in entry}
    assert len({entry["eval_loss"] for entry in log.values()}) == 3
    for step, entry in log.items():
        place = runs.run.path / f"checkpoint-{step}"
        model, tokenizer = AutoModel.from_pretrained(place), AutoTokenizer.from_pretrained(place)
        examples = Dial2VecExamples(runs.dialogues[30:37], model.config, seed=42)
        # one for each speaker
        samples = [examples.example(0, index) for index in range(len(examples))]
        with torch.no_grad():
            outputs = [
                model(**collate([sample], tokenizer, model.config, Truncation()))
                for sample in samples
            ]
        ranked = [
            row[0].item() > row[1:].max().item()
            for output in outputs
            for row in output.similarities[0].T
        ]
        losses = [output.loss.item() for output in outputs]
        assert entry["eval_contrastive_accuracy"] == pytest.approx(
            sum(ranked) / len(ranked), abs=1e-6
        )
        assert entry["eval_contrastive_loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-4)


DSE, LAYER = {"method": "dse"}, "encoder.layer.1.output.dense.weight"


@pytest.fixture
def train(tiny_bert, tmp_path):
    """Trains in the folder of a name; what was told."""

    def train(name, **settings):
        steps = {
            "max_steps": 9,
            "save_steps": 4,
            "per_device_train_batch_size": 16,
            "learning_rate": 0.01,
            "seed": 5,
        }
        return training_runs.train(tmp_path / name, backbone=tiny_bert, **{**steps, **settings})

    return train


@pytest.mark.slow
def test_heads_have_a_learning_rate_of_their_own(train, tmp_path, tiny_bert):
    plain = {
        "max_steps": 1,
        "optim": "sgd",
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0,
        "dropout": 0,
    }
    runs = {
        "still": {"learning_rate": 1e-30},
        "slow": {"learning_rate": 0.1, "head_learning_rate": 0.5},
        "fast": {"learning_rate": 0.1, "head_learning_rate": 1.0},
        "back": {"learning_rate": 0.1, "head_learning_rate": 1.0, "average_with_backbone": 1.0},
    }
    layers, heads = {}, {}
    for name, rates in runs.items():
        train(name, **DSE, **plain, **rates)
        weights = weights_of(tmp_path / name)
        layers[name], heads[name] = weights[f"encoder.{LAYER}"], weights["heads.pairs.0.weight"]
    assert torch.equal(layers["slow"], layers["fast"])
    slow, fast = heads["slow"] - heads["still"], heads["fast"] - heads["still"]
    assert slow.abs().max() > 0
    assert torch.allclose(fast, 2 * slow, atol=1e-6)
    assert torch.equal(layers["back"], weights_of(tiny_bert)[LAYER])
    assert torch.equal(heads["back"], heads["fast"])


def test_several_corpora_and_their_splits(train, tmp_path):
    mine = tmp_path / "mine.jsonl"
    write_jsonl([dialogue("I would like one more thing", "And what would that be then")], mine)
    train(
        "run", **DSE, corpus=["sample/dev", mine], exclude="none", train_split="train", max_steps=1
    )
    assert report_of(tmp_path / "run")["dialogues"] == 97


def test_labels_have_the_vectors_of_sentence_transformers(plain, tiny_bert):
    labels = ["inform area", "request area"]
    np.testing.assert_allclose(label_vectors(labels, tiny_bert), plain.encode(labels), atol=1e-6)
