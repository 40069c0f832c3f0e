"""Pre-training goes on: an ordinary checkpoint comes out, once, whoever interrupts, and the method starts from it."""

import json
import math
from pathlib import Path

import pytest
import torch
from training_runs import assert_same, settings_in, train, weights_of
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from hf_dialemb.checkpoints.pretrained import resolve_backbone
from hf_dialemb.errors import InputError
from hf_dialemb.training import language_model
from hf_dialemb.training.language_model import adapted_backbone
from hf_dialemb.training.settings import Settings


def settings(backbone: str, output: Path, **more: object) -> Settings:
    usual = {"method": "dialogue_cse", "backbone": backbone, "save_steps": 2, "logging_steps": 1, "seed": 5}
    return settings_in(output, **usual, **more)


def adapt(wanted: Settings, dialogues: list, lines: list[str] | None = None) -> Path:
    report = (lambda line: None) if lines is None else lines.append
    return Path(adapted_backbone(wanted, resolve_backbone(wanted.run.backbone), dialogues, report))


def test_by_default_the_backbone_stays_as_it_is(tiny_bert, tmp_path, sample_dialogues):
    assert adapt(settings(tiny_bert, tmp_path), sample_dialogues) == Path(tiny_bert)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def adapted(tiny_bert, tmp_path_factory, sample_dialogues) -> Path:
    """The outcome of four steps that nobody disturbed."""
    return adapt(settings(tiny_bert, tmp_path_factory.mktemp("adapted"), language_model_steps=4), sample_dialogues)


def test_it_is_an_ordinary_checkpoint_with_its_tokenizer(tiny_bert, adapted):
    start, model = AutoModel.from_pretrained(tiny_bert), AutoModel.from_pretrained(adapted)
    name = "encoder.layer.0.output.dense.weight"
    assert (model.state_dict()[name] - start.state_dict()[name]).abs().max() > 1e-6
    assert "cls.predictions.transform.dense.weight" in AutoModelForMaskedLM.from_pretrained(adapted).state_dict()
    assert AutoTokenizer.from_pretrained(adapted)("hello") == AutoTokenizer.from_pretrained(tiny_bert)("hello")
    assert not list(adapted.glob("checkpoint-*"))
    report = json.loads((adapted / "language_model_report.json").read_text())
    assert report["steps"] == 4
    assert all(entry["loss"] > 0 for entry in report["log"] if "loss" in entry)


@pytest.mark.slow
def test_epochs_count_passes_over_the_utterances(tiny_bert, tmp_path, sample_dialogues):
    count = sum(len(dialogue.turns) for dialogue in sample_dialogues[:20])
    folder = adapt(settings(tiny_bert, tmp_path, language_model_epochs=1.5), sample_dialogues[:20])
    steps = json.loads((folder / "language_model_report.json").read_text())["steps"]
    assert steps == math.ceil(1.5 * math.ceil(count / 50))


@pytest.mark.slow
def test_killed_and_run_again_it_ends_in_the_same_weights(tiny_bert, tmp_path, sample_dialogues, adapted, monkeypatch):
    wanted = settings(tiny_bert, tmp_path, language_model_steps=4)

    def die(self, args, state, control, **_):
        if state.global_step == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(language_model._MarkComplete, "on_step_end", die)
        with pytest.raises(KeyboardInterrupt):
            adapt(wanted, sample_dialogues)
    assert (tmp_path / "language_model" / "checkpoint-2").is_dir()
    folder = adapt(wanted, sample_dialogues)
    assert_same(weights_of(folder), weights_of(adapted))


@pytest.mark.slow
def test_what_is_complete_is_not_done_again_and_another_setting_is_not_mistaken_for_it(
    tiny_bert, tmp_path, sample_dialogues
):
    wanted = settings(tiny_bert, tmp_path, language_model_steps=1)
    weights = adapt(wanted, sample_dialogues) / "model.safetensors"
    written = weights.stat().st_mtime_ns
    lines: list[str] = []
    adapt(wanted, sample_dialogues, lines)
    assert weights.stat().st_mtime_ns == written
    assert "complete already" in lines[0]
    with pytest.raises(InputError, match="holds a language model with another sha256"):
        adapt(wanted, sample_dialogues[::-1])
    file = tmp_path / "language_model" / "language_model_settings.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "sha256"}))
    adapt(wanted, sample_dialogues[::-1])  # an older version did not say
    other = settings(tiny_bert, tmp_path, language_model_steps=2)
    with pytest.raises(InputError, match=r"another language_model_steps \(1 there, 2 now\)"):
        adapt(other, sample_dialogues)
    again = settings(tiny_bert, tmp_path, language_model_steps=2, resume=False)
    assert json.loads((adapt(again, sample_dialogues) / "language_model_report.json").read_text())["steps"] == 2


@pytest.mark.slow
def test_the_method_starts_from_it(tiny_bert, tmp_path):
    # A learning rate of nothing: what comes out is what the method started from.
    steps = {"language_model_steps": 1, "max_steps": 1, "learning_rate": 1e-30, "per_device_train_batch_size": 2}
    assert "Language model: 1 steps" in train(tmp_path, method="dialogue_cse", backbone=tiny_bert, **steps)
    trained = AutoModel.from_pretrained(tmp_path).encoder.state_dict()
    start = AutoModel.from_pretrained(tmp_path / "language_model").state_dict()
    assert all(torch.allclose(trained[name], start[name]) for name in trained)


def test_a_backbone_without_a_mask_token_is_refused(tiny_bert, tmp_path, sample_dialogues):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.mask_token = None
    folder = tmp_path / "maskless"
    AutoModel.from_pretrained(tiny_bert).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with pytest.raises(InputError, match="no mask token"):
        adapt(settings(str(folder), tmp_path / "run", language_model_steps=1), sample_dialogues)
