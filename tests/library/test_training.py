"""Training as a user runs it: in this process, in one that is killed and resumed, and in two."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.data_loader import prepare_data_loader, skip_first_batches
from afresh import COMMAND, of_ranks, printed_afresh, run_afresh
from torch.utils.data import DataLoader
from training_runs import assert_same, report_of, train, values_of, weights_of, words_of
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.data import load_dialogues, write_jsonl
from hf_dialemb.methods import METHODS
from hf_dialemb.methods.dial2vec import Dial2VecConfig, Dial2VecExamples
from hf_dialemb.methods.encoding import encode
from hf_dialemb.training.arguments import make_settings, read_recipe, recipe_path
from hf_dialemb.training.data import EpochSampler, ExampleDataset

SCRIPTS = Path(__file__).parents[2] / "training_scripts"
LAYER = "encoder.layer.1.output.dense.weight"  # one of the backbone's

KILLED_AT_STEP = """
import os, signal, sys
from hf_dialemb.apps import cli
from hf_dialemb.training import trainer, training_run
step, during_save = int(sys.argv[1]), sys.argv[2] == "save"
class Trainer(trainer.DialogueTrainer):
    def _maybe_log_save_evaluate(self, *args, **kwargs):
        if self.state.global_step == step and not during_save:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._maybe_log_save_evaluate(*args, **kwargs)
    def _save_rng_state(self, folder):
        if self.state.global_step >= step and during_save:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._save_rng_state(folder)
training_run.DialogueTrainer = Trainer
sys.exit(cli.main(["train", *sys.argv[3:]]))
"""


def settings(backbone: str, **more: object) -> dict[str, object]:
    """An epoch has 12 steps, so 14 steps cross an epoch's end. Dropout is on."""
    steps = {
        "max_steps": 14,
        "save_steps": 4,
        "save_total_limit": 1,
        "per_device_train_batch_size": 8,
    }
    return {
        "method": "dial2vec",
        "backbone": backbone,
        **steps,
        "num_negatives": 2,
        "learning_rate": 0.01,
        "seed": 5,
        **more,
    }


@pytest.fixture(scope="module")
def start(tiny_bert) -> dict[str, torch.Tensor]:
    """The weights of the backbone."""
    return AutoModel.from_pretrained(tiny_bert).state_dict()


@pytest.fixture(scope="module")
def uninterrupted(tiny_bert, tmp_path_factory) -> dict[str, torch.Tensor]:
    """The weights of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    train(folder, **settings(tiny_bert, max_steps=4))
    return weights_of(folder)


@pytest.mark.slow
def test_killed_and_resumed_it_ends_in_the_same_weights(tiny_bert, tmp_path):
    whole, killed = (
        words_of(tmp_path / name, **settings(tiny_bert)) for name in ("whole", "killed")
    )
    for step, moment in ((3, "step"), (8, "save"), (13, "step")):
        assert run_afresh(KILLED_AT_STEP, step, moment, *killed).returncode == -signal.SIGKILL
        assert (tmp_path / "killed/checkpoint-8").is_dir() == (moment == "save")  # no whole one
    for words in (
        whole,
        killed,
    ):  # both in fresh processes: this one may have other settings by now
        printed_afresh(KILLED_AT_STEP, 0, "step", *words)
    assert "checkpoint-" in report_of(tmp_path / "killed")["resumed_from"]
    assert_same(weights_of(tmp_path / "killed"), weights_of(tmp_path / "whole"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "machines", "more", "tolerance"),
    [
        (2, 2, {}, 1e-5),
        (2, "launched", {"gradient_accumulation_steps": 2, "bf16": True}, 2**-7),
        (4, 1, {"gradient_accumulation_steps": 2, "method": "dse", "num_negatives": None}, 1e-5),
    ],
)
def test_processes_have_the_gradients_and_figures_of_one(
    tiny_bert, tmp_path, start, processes, machines, more, tolerance
):
    # One plain gradient step of size 1: the difference of the weights is the gradient.
    plain = {"max_steps": 1, "optim": "sgd", "learning_rate": 1.0, "lr_scheduler_type": "constant"}
    dev = {"dev_split": "test", "max_dev_dialogues": 9, "checkpoint_selection": "contrastive_loss"}
    step = {**plain, **dev, "save_steps": 1, "max_grad_norm": 0, "dropout": 0, "max_tokens": 40}
    step = settings(tiny_bert, **step) | more
    step = {name: value for name, value in step.items() if value is not None}
    train(tmp_path / "one", **step)
    words = words_of(tmp_path / "all", **{**step, "per_device_train_batch_size": 8 // processes})
    if machines != "launched":
        printed_afresh(of_ranks(COMMAND, processes, machines=machines), "train", *words)
    else:
        launch = "launch --multi_gpu --num_processes 2 --num_machines 1"
        command = [sys.executable, "-m", "accelerate.commands.accelerate_cli", *launch.split()]
        command += ["--mixed_precision", "no", "--dynamo_backend", "no", SCRIPTS / "train.py"]
        environment = {**os.environ, "ACCELERATE_USE_CPU": "true"}
        subprocess.run([*command, *words], check=True, env=environment)
    one, every = (report_of(tmp_path / name) for name in ("one", "all"))
    assert every["processes"] == processes
    assert every["truncation"] == one["truncation"]
    figures = [values_of(tmp_path / name, "eval_contrastive_loss") for name in ("one", "all")]
    assert figures[1] == pytest.approx(figures[0], rel=tolerance)
    one, every = weights_of(tmp_path / "one"), weights_of(tmp_path / "all")
    gradients = [weights[f"encoder.{LAYER}"] - start[LAYER] for weights in (one, every)]
    assert gradients[0].abs().max() > 1e-3
    difference = max(float((one[name] - every[name]).abs().max()) for name in one)
    assert difference < tolerance * max(1.0, float(gradients[0].abs().max()))


ASTRAY = """
import sys
from pathlib import Path
import pytest
import torch
from accelerate import PartialState
from hf_dialemb.errors import InputError
from hf_dialemb.training.training_run import check_finite
state, model = PartialState(cpu=True), torch.nn.Linear(2, 2)
check_finite(model, [])
with torch.no_grad():
    model.weight[0, 0] = torch.nan if state.process_index == 1 else 0.0
with pytest.raises(InputError, match="weight holds numbers that are not finite"):
    check_finite(model, [])
Path(sys.argv[1], str(state.process_index)).touch()
"""


@pytest.mark.slow
def test_a_number_that_is_not_finite_stops_all_processes(tmp_path):
    printed_afresh(of_ranks(ASTRAY), tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"0", "1"}


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["contrastive_loss", "dev_purity"])
def test_a_checkpoint_is_chosen_by_the_signal(tiny_bert, tmp_path, choice):
    dev = {"dev_split": "test", "max_dev_dialogues": 40, "checkpoint_selection": choice}
    train(tmp_path, **settings(tiny_bert, **dev, max_steps=6, save_steps=2, save_total_limit=5))
    report = report_of(tmp_path)
    values = {
        entry["step"]: entry[f"eval_{choice}"]
        for entry in report["log"]
        if f"eval_{choice}" in entry
    }
    assert sorted(values) == [2, 4, 6]
    sign = -1 if choice == "dev_purity" else 1
    best = min(values, key=lambda step: (sign * values[step], step))
    assert report["checkpoint"] == f"checkpoint-{best}"
    assert_same(weights_of(tmp_path), weights_of(tmp_path / report["checkpoint"]))


def test_an_average_with_the_backbone_lies_between_both(tiny_bert, tmp_path, start, uninterrupted):
    assert (uninterrupted[f"encoder.{LAYER}"] - start[LAYER]).abs().max() > 1e-3
    assert uninterrupted["turn_embeddings.weight"].abs().max() > 0  # the tables started at zero
    train(tmp_path / "part", **settings(tiny_bert, max_steps=4, average_with_backbone=0.25))
    averaged = weights_of(tmp_path / "part")
    for name, before in ((f"encoder.{LAYER}", start[LAYER]), ("turn_embeddings.weight", 0)):
        assert torch.allclose(averaged[name], 0.75 * uninterrupted[name] + 0.25 * before, atol=1e-6)


@pytest.mark.slow
def test_the_centre_is_the_mean_of_the_training_dialogues(
    tiny_bert, tmp_path, uninterrupted, sample_dialogues
):
    train(tmp_path, **settings(tiny_bert, max_steps=4, center=1.0))
    weights = weights_of(tmp_path)
    assert weights.pop("center").abs().max() > 0.1
    assert torch.equal(uninterrupted["center"], torch.zeros(16))
    assert all(torch.equal(weights[name], uninterrupted[name]) for name in weights)
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    vectors = encode(model, tokenizer, sample_dialogues)
    assert np.abs(vectors.mean(axis=0)).max() < 1e-4 * np.abs(vectors).max()


@pytest.mark.slow
def test_the_official_schedule_counts_examples(tiny_bert, tmp_path):
    train(
        tmp_path,
        **settings(tiny_bert, learning_rate_schedule="official", logging_steps=1, max_steps=24),
    )
    shares = np.arange(24) / report_of(tmp_path)["examples"]
    expected = 0.01 * np.where(shares < 0.1, shares / 0.1, 1 - shares)
    assert np.allclose(values_of(tmp_path, "learning_rate"), expected)


@pytest.fixture(scope="module")
def examples(sample_dialogues) -> Dial2VecExamples:
    return Dial2VecExamples(sample_dialogues, Dial2VecConfig(num_negatives=1), seed=0)


def test_the_order_is_that_of_seed_and_epoch_and_covers_every_example(examples):
    sampler = EpochSampler(examples, batch_size=8, seed=0)
    first = list(sampler)
    assert sorted(first) == list(range(len(examples)))
    assert first == list(EpochSampler(examples, batch_size=8, seed=0))
    sampler.set_epoch(1)
    second = [number - len(examples) for number in sampler]
    assert sorted(second) == list(range(len(examples)))
    assert second != first
    assert ExampleDataset(examples)[len(examples) + 3] == examples.example(1, 3)
    lengths = np.array([examples.length(number) for number in first])

    def spread(lengths):  # within batches
        return np.ptp(lengths[: len(lengths) // 8 * 8].reshape(-1, 8), axis=1).mean()

    assert spread(lengths) < 0.5 * spread(np.random.default_rng(0).permutation(lengths))


@pytest.mark.parametrize("processes", [1, 2])
def test_within_a_resumed_epoch_the_order_goes_on_as_it_would_have(examples, processes):
    def numbers(skipped):
        dataset = ExampleDataset(examples)
        dataset.sampler = EpochSampler(examples, batch_size=4 * processes, seed=0)
        whole = DataLoader(dataset, 4, sampler=dataset.sampler)
        loader = prepare_data_loader(
            whole, num_processes=processes, process_index=0, put_on_device=False
        )
        loader = skip_first_batches(loader, skipped) if skipped else loader
        loader.set_epoch(1)
        return list(loader.batch_sampler)

    straight = numbers(0)
    assert numbers(3) == straight[3:]
    assert min(number for batch in straight for number in batch) >= len(examples)


@pytest.mark.parametrize(
    "recipe", sorted(path.stem for path in (SCRIPTS / "recipes").glob("*.yaml"))
)
def test_every_recipe_parses(recipe):
    assert recipe_path(recipe) is not None
    if read_recipe(recipe)["method"] not in METHODS:
        pytest.skip("another package has the method")
    assert make_settings({"use_cpu": True}, recipe).training.output_dir


def test_what_an_evaluation_set_holds_is_left_out_of_training(tiny_bert, tmp_path):
    mine, one = tmp_path / "mine.jsonl", settings(tiny_bert, max_steps=1)
    write_jsonl(
        [*load_dialogues("sample", None, "dev")[:5], *load_dialogues("sample", None, "train")[:7]],
        mine,
    )
    told = train(tmp_path / "run", **one, corpus=mine, exclude="sample/dev")
    assert "Left out of training, as sample/dev hold them or nearly so: 5 dialogues" in told
    assert report_of(tmp_path / "run")["dialogues"] == 7
    assert "Left out" not in train(tmp_path / "all", **one, corpus=mine, exclude="none")
    told = train(tmp_path / "own", **one)  # a corpus is kept from its own other splits
    assert "as sample/train, sample/test hold them or nearly so: 0 dialogues" in told
