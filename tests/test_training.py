"""Training as a user runs it: in this process, in one that is killed and resumed, and in two."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.data_loader import prepare_data_loader, skip_first_batches
from safetensors.torch import load_file
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.corpora import load_dialogues, write_jsonl
from hf_dialemb.models.dial2vec import Dial2VecConfig, Dial2VecExamples
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError
from hf_dialemb.training.arguments import parse, recipe_path
from hf_dialemb.training.data import EpochSampler, ExampleDataset
from hf_dialemb.training.run import train as train_as_set

ROOT = Path(__file__).parents[1]

KILLED_AT_STEP = """
import os, signal, sys
from transformers import TrainerCallback
from hf_dialemb import cli
from hf_dialemb.training import trainer
step, during_save = int(sys.argv[1]), sys.argv[2] == "save"
class Killer(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == step and not during_save:
            os.kill(os.getpid(), signal.SIGKILL)
class Trainer(trainer.DialogueTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.add_callback(Killer())
    def _save_rng_state(self, folder):
        if self.state.global_step >= step and during_save:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._save_rng_state(folder)
import hf_dialemb.training.run as run
run.DialogueTrainer = Trainer
sys.exit(cli.main(["train", *sys.argv[3:]]))
"""


def settings(backbone: str, output: Path, **more: object) -> list[str]:
    words = {
        "backbone": backbone, "corpus": "sample", "train_split": "dev", "output_dir": output, "use_cpu": True,
        "max_steps": 14, "save_steps": 4, "save_total_limit": 1, "per_device_train_batch_size": 8, "num_negatives": 2,
        "learning_rate": 0.01, "seed": 5, "disable_tqdm": True, **more,
    }  # fmt: skip
    return [word for name, value in words.items() for word in (f"--{name}", str(value))]


def process(words: list[str], expected: int = 0) -> None:
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}  # the same bits in all
    result = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env=environment, cwd=ROOT, timeout=600
    )
    assert result.returncode == expected, result.stderr[-3000:]


def train(words: list[str]) -> str:
    """Trains in this process; what was told."""
    lines: list[str] = []
    train_as_set(parse(None, words), lines.append)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def uninterrupted(tiny_bert, tmp_path_factory) -> dict[str, torch.Tensor]:
    """The weights of a run that nobody disturbed.

    An epoch has 12 steps, so 14 steps cross an epoch's end. Dropout is on.
    """
    folder = tmp_path_factory.mktemp("uninterrupted")
    train(settings(tiny_bert, folder))
    return load_file(folder / "model.safetensors")


def assert_same_weights(folder: Path, expected: dict[str, torch.Tensor]) -> None:
    weights = load_file(folder / "model.safetensors")
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [[(3, "step"), (7, "step"), (13, "step")], [(8, "save")]], ids=["steps", "save"])
def test_killed_and_resumed_it_ends_in_the_same_weights(tiny_bert, tmp_path, uninterrupted, kills):
    words = settings(tiny_bert, tmp_path)
    for step, moment in kills:
        process(["-c", KILLED_AT_STEP, str(step), moment, *words], -signal.SIGKILL)
    assert (tmp_path / "checkpoint-8").is_dir() == (kills[-1] == (8, "save"))  # no whole one
    assert "Resuming from" in train(words)
    assert_same_weights(tmp_path, uninterrupted)


def test_training_changes_the_weights_and_fills_the_tables(tiny_bert, uninterrupted):
    start = AutoModel.from_pretrained(tiny_bert).state_dict()
    name = "encoder.layer.1.output.dense.weight"
    moved = (uninterrupted[f"encoder.{name}"] - start[name]).abs().max()
    assert moved > 1e-3
    assert uninterrupted["turn_embeddings.weight"].abs().max() > 0  # the tables started at zero


def test_another_setting_is_not_mistaken_for_the_same_run(tiny_bert, tmp_path):
    train(settings(tiny_bert, tmp_path, max_steps=2, save_steps=1))
    with pytest.raises(InputError, match=r"another learning_rate \(0.01 there, 0.02 now\)"):
        train(settings(tiny_bert, tmp_path, max_steps=2, save_steps=1, learning_rate=0.02))
    train(settings(tiny_bert, tmp_path, max_steps=2, save_steps=1, learning_rate=0.02, resume=False))


LAUNCH = [
    "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
    "--dynamo_backend", "no", str(ROOT / "training_scripts" / "train.py"),
]  # fmt: skip


@pytest.mark.slow
def test_two_processes_have_the_gradients_of_one(tiny_bert, tmp_path):
    # One plain gradient step of size 1: the difference of the weights is the gradient.
    step = {"max_steps": 1, "optim": "sgd", "learning_rate": 1.0, "lr_scheduler_type": "constant", "max_grad_norm": 0,
            "dropout": 0}  # fmt: skip
    train(settings(tiny_bert, tmp_path / "one", **step, per_device_train_batch_size=8))
    words = settings(tiny_bert, tmp_path / "two", **step, per_device_train_batch_size=4)
    process(["-m", "accelerate.commands.accelerate_cli", *LAUNCH, *words])
    assert json.loads((tmp_path / "two" / "training_report.json").read_text())["processes"] == 2
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    start = AutoModel.from_pretrained(tiny_bert).state_dict()
    assert max(float((one[name] - two[name]).abs().max()) for name in one) < 1e-5
    name = "encoder.layer.1.output.dense.weight"
    assert (one[f"encoder.{name}"] - start[name]).abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["contrastive_loss", "contrastive_accuracy", "uniformity", "dev_purity"])
def test_a_checkpoint_is_chosen_by_the_signal(tiny_bert, tmp_path, choice):
    train(settings(tiny_bert, tmp_path, dev_split="test", checkpoint_selection=choice, max_steps=6, save_steps=2,
                   max_dev_dialogues=40, save_total_limit=5))  # fmt: skip
    report = json.loads((tmp_path / "training_report.json").read_text())
    values = {entry["step"]: entry[f"eval_{choice}"] for entry in report["log"] if f"eval_{choice}" in entry}
    assert sorted(values) == [2, 4, 6]
    better = max if choice in ("contrastive_accuracy", "dev_purity") else min
    best = better(values, key=lambda step: (values[step], -step) if better is max else (values[step], step))
    assert report["checkpoint"] == f"checkpoint-{best}"
    assert_same_weights(tmp_path, load_file(tmp_path / report["checkpoint"] / "model.safetensors"))


def test_the_average_with_the_backbone_lies_between_both(tiny_bert, tmp_path, uninterrupted):
    train(settings(tiny_bert, tmp_path, average_with_backbone=0.25))
    averaged = load_file(tmp_path / "model.safetensors")
    name = "encoder.layer.0.intermediate.dense.weight"
    start, end = AutoModel.from_pretrained(tiny_bert).state_dict()[name], uninterrupted[f"encoder.{name}"]
    assert torch.allclose(averaged[f"encoder.{name}"], 0.75 * end + 0.25 * start, atol=1e-6)
    table = "turn_embeddings.weight"
    assert torch.allclose(averaged[table], 0.75 * uninterrupted[table], atol=1e-6)


@pytest.mark.slow
def test_the_centre_is_the_mean_of_the_training_dialogues(tiny_bert, tmp_path, uninterrupted, sample_dialogues):
    train(settings(tiny_bert, tmp_path, center=True))
    weights = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(weights[name], uninterrupted[name]) for name in weights if name != "center")
    assert torch.equal(uninterrupted["center"], torch.zeros(16))
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    vectors = encode(model, tokenizer, sample_dialogues)
    assert np.abs(vectors.mean(axis=0)).max() < 1e-4 * np.abs(vectors).max()
    assert weights["center"].abs().max() > 0.1


def test_the_whole_share_of_the_backbone_gives_the_backbone_back(tiny_bert, tmp_path):
    train(settings(tiny_bert, tmp_path, average_with_backbone=1, max_steps=2))
    weights, start = load_file(tmp_path / "model.safetensors"), AutoModel.from_pretrained(tiny_bert).state_dict()
    assert all(torch.equal(weights[f"encoder.{name}"], start[name]) for name in start if not name.startswith("pooler"))


@pytest.mark.slow
def test_the_official_schedule_counts_examples(tiny_bert, tmp_path):
    train(settings(tiny_bert, tmp_path, learning_rate_schedule="official", logging_steps=1, max_steps=24))
    report = json.loads((tmp_path / "training_report.json").read_text())
    rates = [entry["learning_rate"] for entry in report["log"] if "learning_rate" in entry]
    total = report["examples"]
    expected = [0.01 * (s / total / 0.1 if s / total < 0.1 else 1 - s / total) for s in range(24)]
    assert np.allclose(rates, expected)


def test_the_order_is_that_of_seed_and_epoch_and_covers_every_example(sample_dialogues):
    examples = Dial2VecExamples(sample_dialogues, Dial2VecConfig(num_negatives=1), seed=0)
    sampler = EpochSampler(examples, batch_size=8, seed=0)
    first = list(sampler)
    assert sorted(first) == list(range(len(examples)))
    assert first == list(EpochSampler(examples, batch_size=8, seed=0))
    sampler.set_epoch(1)
    second = list(sampler)
    assert sorted(number - len(examples) for number in second) == list(range(len(examples)))
    assert [number - len(examples) for number in second] != first
    dataset = ExampleDataset(examples)
    assert dataset[len(examples) + 3] == examples.example(1, 3)


@pytest.mark.parametrize("processes", [1, 2])
def test_within_a_resumed_epoch_the_order_goes_on_as_it_would_have(sample_dialogues, processes):
    examples = Dial2VecExamples(sample_dialogues, Dial2VecConfig(num_negatives=1), seed=0)

    def loader():
        dataset = ExampleDataset(examples)
        dataset.sampler = EpochSampler(examples, batch_size=4 * processes, seed=0)
        whole = DataLoader(dataset, 4, sampler=dataset.sampler, collate_fn=lambda batch: torch.zeros(len(batch)))
        return prepare_data_loader(whole, num_processes=processes, process_index=0, put_on_device=False)

    def numbers(loader):
        loader.set_epoch(1)
        return list(loader.batch_sampler)

    straight = numbers(loader())
    assert numbers(skip_first_batches(loader(), 3)) == straight[3:]
    assert min(number for batch in straight for number in batch) >= len(examples)


def test_a_batch_holds_examples_of_like_length(sample_dialogues):
    examples = Dial2VecExamples(sample_dialogues, Dial2VecConfig(num_negatives=1), seed=0)
    order = list(EpochSampler(examples, batch_size=8, seed=0))
    lengths = np.array([examples.length(number) for number in order])
    spread = np.ptp(lengths[: len(lengths) // 8 * 8].reshape(-1, 8), axis=1).mean()
    assert (
        spread
        < 0.5
        * np.ptp(np.random.default_rng(0).permutation(lengths)[: len(lengths) // 8 * 8].reshape(-1, 8), axis=1).mean()
    )


@pytest.mark.parametrize("recipe", sorted(path.stem for path in (ROOT / "training_scripts" / "recipes").glob("*.yaml")))
def test_every_recipe_parses(recipe):
    assert recipe_path(recipe) is not None
    parsed = parse(recipe, ["--use_cpu", "true"])
    assert parsed.training.output_dir


def test_the_command_line_wins_over_the_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("loss_temperature: 0.5\nlearning_rate: 1.0e-3\nbf16: false\n")
    parsed = parse(str(file), ["--loss_temperature", "0.1", "--use_cpu", "true"])
    assert parsed.method["loss_temperature"] == 0.1
    assert parsed.training.learning_rate == 1e-3


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("loss_temprature: 0.1", [], "Did you mean 'loss_temperature'"),
        ("num_negatives: many", [], "invalid int value: 'many'"),
        ("num_negatives: 0", [], "num_negatives: got 0, expected a value at least 1"),
        ("keep: middle", [], "invalid choice: 'middle'"),
        ("learning_rate: -1", [], "learning_rate: got -1"),
        ("- a\n- b", [], "expected lines of 'field: value'"),
        ("a: [", [], "not YAML"),
        ("method: dial3vec", [], "Did you mean 'dial2vec'"),
        ("checkpoint_selection: uniformity", [], "needs a dev_split"),
        ("", ["--windw", "3"], "Did you mean 'window'"),
        ("dropout: 1.5", [], "dropout: got 1.5"),
    ],
)
def test_wrong_settings_end_in_one_sentence(tmp_path, text, words, sentence):
    file = tmp_path / "mine.yaml"
    file.write_text(text or "seed: 1")
    with pytest.raises(InputError) as caught:
        parse(str(file), [*words, "--use_cpu", "true"])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_training_on_real_dialogues_lowers_the_loss(tiny_bert, tmp_path, data_dir):
    words = settings(tiny_bert, tmp_path, corpus="multiwoz", data_dir=data_dir, train_split="train", max_steps=30,
                     logging_steps=5, max_dialogues=300, dropout=0, save_steps=30)  # fmt: skip
    train(words)
    losses = [
        entry["loss"] for entry in json.loads((tmp_path / "training_report.json").read_text())["log"] if "loss" in entry
    ]
    assert losses[-1] < losses[0] - 0.02
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    dialogues = load_dialogues("multiwoz", data_dir, "test")[:20]
    assert np.isfinite(encode(model, tokenizer, dialogues)).all()


def test_what_an_evaluation_set_holds_is_left_out_of_training(tiny_bert, tmp_path):
    mine = tmp_path / "mine.jsonl"
    write_jsonl([*load_dialogues("sample", None, "dev")[:5], *load_dialogues("sample", None, "train")[:7]], mine)
    words = settings(tiny_bert, tmp_path / "run", corpus=mine, max_steps=1, exclude="sample/dev", train_split="train")
    told = train(words)
    assert "Left out of training, as sample/dev hold them or nearly so: 5 dialogues" in told
    assert json.loads((tmp_path / "run" / "training_report.json").read_text())["dialogues"] == 7
    assert "Left out" not in train([*words, "--output_dir", str(tmp_path / "all"), "--exclude", "none"])


def test_a_corpus_is_kept_from_its_own_other_splits(tiny_bert, tmp_path):
    told = train(settings(tiny_bert, tmp_path, max_steps=1))
    assert "as sample/train, sample/test hold them or nearly so: 0 dialogues" in told


def test_training_on_transcripts_of_ones_own(tiny_bert, tmp_path):
    for number in range(6):
        lines = (f"Ana: I would like room {number}", "Desk: For how many nights?", f"Ana: For {number + 1}")
        (tmp_path / f"call{number}.txt").write_text("\n".join(lines))
    output = tmp_path / "run"
    train(settings(tiny_bert, output, corpus=tmp_path, max_steps=1, roles="Ana=user,Desk=assistant", train_split="x"))
    assert json.loads((output / "training_report.json").read_text())["dialogues"] == 6
