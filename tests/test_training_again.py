"""A run that is given again, in a folder that holds something, or with what cannot be learnt from."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import training_runs
from ranker_checkpoints import dual_encoder
from talks import dialogue
from training_runs import assert_same, report_of, weights_of, words_of
from transformers import AutoModel, AutoTokenizer, ElectraConfig, TrainerState

from hf_dialemb.corpora import write_jsonl
from hf_dialemb.models import get_method
from hf_dialemb.models.dial2vec import Dial2VecExamples, Dial2VecModel, collate
from hf_dialemb.models.dialogue import ROLES
from hf_dialemb.models.dse import DSEModel
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation
from hf_dialemb.models.utterance import mean_of_tokens
from hf_dialemb.runs.folder import RunFolder
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.data import check_number
from hf_dialemb.training.dialogues import training_dialogues
from hf_dialemb.training.run import _build_trainer
from hf_dialemb.training.settings import RunArguments
from hf_dialemb.training.trainer import _ranked_first, out_of_patience


class Runs:
    """Runs in ``folder / "run"`` that end within an epoch; those that choose a checkpoint have dialogues to do so."""

    def __init__(self, folder, backbone, dialogues):
        self.folder, self.backbone, self.dialogues = folder, backbone, dialogues
        self.run = RunFolder(folder / "run")
        self.write()

    def write(self, calls=slice(30), dev=slice(40, 50)):
        write_jsonl(self.dialogues[calls], self.folder / "calls.jsonl")
        write_jsonl(self.dialogues[dev], self.folder / "dev.jsonl")

    def settings(self, **changes):
        steps = {"max_steps": 3, "save_steps": 1, "per_device_train_batch_size": 4, "num_negatives": 2}
        rates = {"learning_rate": 0.01, "lr_scheduler_type": "constant"}
        if "checkpoint_selection" in changes:
            changes = {"dev_split": self.folder / "dev.jsonl", **changes}
        return {"backbone": self.backbone, "corpus": self.folder / "calls.jsonl", **steps, **rates, **changes}

    def train(self, output_dir=None, **changes):
        return training_runs.train(output_dir or self.run.path, **self.settings(**changes))


@pytest.fixture
def runs(tiny_bert, tmp_path, sample_dialogues):
    return Runs(tmp_path, tiny_bert, sample_dialogues)


BY_LOSS = {"checkpoint_selection": "contrastive_loss"}
WITHOUT_GAIN = {"checkpoint_selection": "contrastive_accuracy", "max_steps": 9, "bf16": False, "learning_rate": 1e-30,
                "dropout": 0, "save_total_limit": 1, "patience": 2}  # fmt: skip
ENDS = {"last": {}, "chosen": BY_LOSS, "centred": {"bf16": True, "center": True}, "patience": WITHOUT_GAIN}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_killed_after_its_last_step_a_run_takes_no_step_more_and_complete_it_is_left_as_it_is(runs, end):
    runs.train(**ENDS[end])
    before, report, content = weights_of(runs.run), runs.run.report(), runs.run.report_file.read_bytes()
    assert "Complete already" in runs.train(**ENDS[end])
    assert_same(weights_of(runs.run), before)
    assert runs.run.report_file.read_bytes() == content
    kept = runs.run.settings()
    assert (kept["save_strategy"], kept["save_steps"]) == ("steps", 1)  # as a recipe would say it
    runs.run.report_file.unlink()
    (runs.run.path / "model.safetensors").unlink()
    runs.train(**ENDS[end])
    assert_same(weights_of(runs.run), before)
    assert runs.run.report()["steps"] == report["steps"] == 3
    assert not (runs.run.path / "checkpoint-4").exists()
    assert before["center"].any() == (end == "centred")
    assert end != "patience" or report["checkpoint"] == "checkpoint-1"


def test_patience_counts_measurements_since_the_best():
    for values, selection, patience, stops in (
        ([0.5, 0.6, 0.55, 0.6], "contrastive_accuracy", 2, True),
        ([0.5, 0.6, 0.55, 0.61], "contrastive_accuracy", 2, False),
        ([0.5, 0.6], "contrastive_loss", 1, True),
        ([0.5, 0.4, 0.3], "contrastive_accuracy", None, False),
        ([], "contrastive_accuracy", 1, False),
    ):
        state = TrainerState(log_history=[{"loss": 1.0}, *({f"eval_{selection}": value} for value in values)])
        run = RunArguments(checkpoint_selection=selection, dev_split="dev", patience=patience)
        assert out_of_patience(state, run) == stops


@pytest.mark.slow
def test_the_best_checkpoint_of_a_killed_run_is_found_where_the_run_is(runs):
    runs.train(**BY_LOSS)
    before, state = weights_of(runs.run), runs.run.path / "checkpoint-3" / "trainer_state.json"
    best = Path(json.loads(state.read_text())["best_model_checkpoint"]).name
    state.write_text(state.read_text().replace(str(runs.run.path), "/elsewhere"))
    runs.run.report_file.unlink()
    runs.train(**BY_LOSS)
    assert_same(weights_of(runs.run), before)
    assert runs.run.report()["checkpoint"] == best
    runs.run.report_file.unlink()
    state.write_text(state.read_text().replace(f"/{best}", "/checkpoint-9"))
    with pytest.raises(InputError, match="checkpoint-9: got no folder, expected the run's best checkpoint"):
        runs.train(**BY_LOSS)


@pytest.mark.slow
def test_other_data_under_the_same_name_are_another_run(runs):
    runs.train(**BY_LOSS)
    runs.run.report_file.unlink()
    for written, more, message in (
        ({"calls": slice(31)}, {}, r"another dialogues \(30 there, 31 now\); choose another"),
        ({"calls": slice(1, 31)}, {}, "another sha256"),
        ({"dev": slice(41, 51)}, {}, "another dev_sha256"),
        ({}, {"per_device_eval_batch_size": 3}, "another per_device_eval_batch_size"),
    ):
        runs.write(**written)
        with pytest.raises(InputError, match=message):
            runs.train(**BY_LOSS, **more)
    runs.run.data_file.write_text(json.dumps(json.loads(runs.run.data_file.read_text()) | {"num_processes": 2}))
    with pytest.raises(InputError, match=r"another num_processes \(2 there, 1 now\)"):
        runs.train(**BY_LOSS)
    runs.run.data_file.unlink()  # of an older version
    runs.train(**BY_LOSS)


@pytest.mark.slow
def test_what_is_cut_of_dev_dialogues_before_a_stop_or_by_other_processes_is_not_counted(runs, tmp_path):
    runs.train()
    shutil.rmtree(runs.run.path / "checkpoint-3")
    runs.run.report_file.unlink()
    runs.train()
    assert runs.run.report()["resumed_from"] == "checkpoint-2"
    assert runs.run.report()["truncation"].endswith("; counted since the run was resumed")
    runs.train(tmp_path / "one")
    runs.train(tmp_path / "two", **BY_LOSS)
    assert report_of(tmp_path / "one")["truncation"] == report_of(tmp_path / "two")["truncation"]
    runs.train(tmp_path / "three", dataloader_num_workers=1)
    assert report_of(tmp_path / "three")["truncation"].startswith("truncation was not counted")


def test_the_data_know_the_sampler_that_the_trainer_takes(runs):
    settings = parse(None, words_of(runs.run.path, **runs.settings()))
    dialogues = training_dialogues(settings.run, get_method(settings.run.method), 0, print)
    trainer = _build_trainer(settings, str(settings.run.backbone), dialogues, [], print)
    loader = trainer.get_train_dataloader()
    assert trainer.train_dataset.sampler is not None
    loader.dataset.set_epoch(3)
    assert min(number for batch in loader.batch_sampler for number in batch) >= 3 * len(trainer.train_dataset)


def test_neither_a_tie_nor_what_is_no_number_comes_first():
    scores = torch.tensor([[0.5, 0.4], [0.5, 0.5], [torch.nan, torch.nan], [0.0, 0.0]]).unsqueeze(-1)
    assert _ranked_first(scores).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert _ranked_first(torch.tensor([[[0.5, 0.0, 0.1], [0.4, 0.0, 0.2]]])).tolist() == [0.5]  # one role is not there


def test_a_run_that_starts_over_is_not_complete_by_the_report_of_the_one_before(runs, monkeypatch):
    runs.train()

    def killed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hf_dialemb.training.run.DialogueTrainer.train", killed)
    with pytest.raises(KeyboardInterrupt):
        runs.train(learning_rate=0.02, resume=False)
    assert runs.run.settings()["learning_rate"] == 0.02
    assert not runs.run.complete


def test_checkpoints_of_another_program_stay(runs):
    theirs = runs.run.path / "checkpoint-500" / "model.safetensors"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(InputError, match=r"checkpoints without training_settings\.json, which another program"):
        runs.train(resume=False)
    assert theirs.read_text() == "theirs"


@pytest.mark.parametrize("model_class", [Dial2VecModel, DSEModel])
def test_backbones_of_half_precision_learn_in_float32(tiny_bert, tmp_path, model_class):
    AutoModel.from_pretrained(tiny_bert).bfloat16().save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    model, _ = model_class.from_backbone(str(tmp_path))
    model.save_pretrained(tmp_path / "saved")
    for each in (model, AutoModel.from_pretrained(tmp_path / "saved")):
        assert {parameter.dtype for parameter in each.parameters()} == {torch.float32}


def test_what_leaves_nothing_to_learn_or_cannot_be_read_is_found_before_anything_is_learnt(runs):
    for changes, message in (
        ({"frozen_layers": 2}, "frozen_layers: got all layers, which leaves nothing to learn"),
        ({"method": "dialogue_cse", "head_learning_rate": 0.1}, "head_learning_rate: got 0.1, but with these settings"),
        ({}, "has the role 'speaker_3', but num_roles is 2"),
    ):
        if not changes:
            write_jsonl([dialogue(*"abc", roles=ROLES), *runs.dialogues[:30]], runs.folder / "calls.jsonl")
        with pytest.raises(InputError, match=message):
            runs.train(**changes)


def test_a_step_takes_as_many_examples_as_all_processes():
    sizes = {"per_device_train_batch_size": 16, "per_device_eval_batch_size": 8}
    args = SimpleNamespace(**sizes, dataloader_drop_last=True, world_size=2)
    for part, enough, message in (
        ("train", 32, "train_batch_size: got 16 on each of 2 processes, but there are 31 examples"),
        ("eval", 16, "eval_batch_size: got 8 .* but there are 15 examples of the dev split"),
    ):
        check_number(args, part, enough)
        with pytest.raises(InputError, match=message):
            check_number(args, part, enough - 1)


def test_scores_and_means_are_float32_where_the_backbone_is_not(sample_dialogues):
    model, vectors = dual_encoder(sample_dialogues).model, torch.randn(3, 5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        scores, means = model.product(vectors[:, 0], vectors), mean_of_tokens(vectors, torch.ones(3, 5))
    assert scores.equal(model.product(vectors[:, 0], vectors))
    assert means.equal(mean_of_tokens(vectors, torch.ones(3, 5)))


def test_token_types_of_a_dialogue_beyond_the_limit_are_cut_with_it(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_tokens=12)
    messages = dialogue("a b c d e f g h i j", "k l m").to_messages()
    ids = tokenizer.apply_chat_template(messages, return_tensors="pt")["input_ids"]
    plain, typed = model(ids), model(ids, token_type_ids=torch.zeros_like(ids))
    assert plain.pooler_output.equal(typed.pooler_output)


def test_word_vectors_of_another_width_than_states_are_refused():
    backbone = ElectraConfig(embedding_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    with pytest.raises(InputError, match="word vectors of 8 numbers and states of 16"):
        Dial2VecModel(Dial2VecModel.config_class(encoder_config=backbone))


@pytest.mark.slow
def test_signals_of_dev_dialogues_are_what_their_names_say(runs):
    runs.write(dev=slice(30, 37))
    choice = {"checkpoint_selection": "uniformity", "save_total_limit": 5, "per_device_eval_batch_size": 4}
    runs.train(**choice, bf16=False)
    log = {entry["step"]: entry for entry in runs.run.report()["log"] if "eval_uniformity" in entry}
    assert len({entry["eval_uniformity"] for entry in log.values()}) == 3
    for step, entry in log.items():
        place = runs.run.path / f"checkpoint-{step}"
        model, tokenizer = AutoModel.from_pretrained(place), AutoTokenizer.from_pretrained(place)
        examples = Dial2VecExamples(runs.dialogues[30:37], model.config, seed=42)
        samples = [examples.example(0, index) for index in range(len(examples))]  # one for each speaker
        with torch.no_grad():
            outputs = [model(**collate([sample], tokenizer, model.config, Truncation())) for sample in samples]
        ranked = [row[0].item() > row[1:].max().item() for output in outputs for row in output.similarities[0].T]
        losses = [output.loss.item() for output in outputs]
        unit = torch.nn.functional.normalize(torch.cat([output.pooler_output for output in outputs]), dim=-1)
        uniformity = torch.pdist(unit.double()).pow(2).mul(-2).exp().mean().log().item()
        assert entry["eval_contrastive_accuracy"] == pytest.approx(sum(ranked) / len(ranked), abs=1e-6)
        assert entry["eval_contrastive_loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-4)
        assert entry["eval_uniformity"] == pytest.approx(uniformity, abs=1e-4)
