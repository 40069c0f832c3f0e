"""Pre-training goes on: an ordinary checkpoint comes out, once, and the method starts from it."""

import json
import math
from pathlib import Path

import pytest
import torch
from training_runs import settings_in, train
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from hf_dialemb.errors import InputError
from hf_dialemb.storage.pretrained import resolve_backbone
from hf_dialemb.training.language_model import REPORT_FILE, adapted_backbone


def adapt(backbone: str, output: Path, dialogues: list, **more: object) -> tuple[Path, list[str]]:
    wanted, lines = (
        settings_in(output, method="dialogue_cse", backbone=backbone, seed=5, **more),
        [],
    )
    return Path(
        adapted_backbone(wanted, resolve_backbone(backbone), dialogues, lines.append)
    ), lines


def test_by_default_the_backbone_stays_and_one_without_a_mask_is_refused(
    tiny_bert, tmp_path, sample_dialogues
):
    assert adapt(tiny_bert, tmp_path, sample_dialogues)[0] == Path(tiny_bert)
    assert not list(tmp_path.iterdir())
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.mask_token = None
    folder = tmp_path / "maskless"
    AutoModel.from_pretrained(tiny_bert).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with pytest.raises(InputError, match="no mask token"):
        adapt(str(folder), tmp_path / "run", sample_dialogues, language_model_epochs=1)


def test_it_is_an_ordinary_checkpoint_and_is_made_once(tiny_bert, tmp_path, sample_dialogues):
    dialogues = sample_dialogues[:20]
    folder, _ = adapt(tiny_bert, tmp_path, dialogues, language_model_epochs=1.5)
    start, model = AutoModel.from_pretrained(tiny_bert), AutoModel.from_pretrained(folder)
    name = "encoder.layer.0.output.dense.weight"
    assert (model.state_dict()[name] - start.state_dict()[name]).abs().max() > 1e-6
    assert (
        "cls.predictions.transform.dense.weight"
        in AutoModelForMaskedLM.from_pretrained(folder).state_dict()
    )
    assert AutoTokenizer.from_pretrained(folder)("hello") == AutoTokenizer.from_pretrained(
        tiny_bert
    )("hello")
    count = sum(len(dialogue.turns) for dialogue in dialogues)
    assert json.loads((folder / REPORT_FILE).read_text())["steps"] == math.ceil(
        1.5 * math.ceil(count / 50)
    )
    weights = (folder / "model.safetensors").read_bytes()
    assert (
        "complete already" in adapt(tiny_bert, tmp_path, dialogues, language_model_epochs=1.5)[1][0]
    )
    for changed, more, message in (
        (
            dialogues[::-1],
            {"language_model_epochs": 1.5},
            "holds a language model with another sha256",
        ),
        (
            dialogues,
            {"language_model_epochs": 1},
            r"another language_model_epochs \(1.5 there, 1.0 now\)",
        ),
    ):
        with pytest.raises(InputError, match=message):
            adapt(tiny_bert, tmp_path, changed, **more)
    # as if it had been killed: it starts over, and ends in the same weights
    (folder / REPORT_FILE).unlink()
    adapt(tiny_bert, tmp_path, dialogues, language_model_epochs=1.5)
    assert (folder / "model.safetensors").read_bytes() == weights
    adapt(tiny_bert, tmp_path, dialogues, language_model_epochs=0.1, resume=False)
    assert (folder / "model.safetensors").read_bytes() != weights


@pytest.mark.slow
def test_the_method_starts_from_it(tiny_bert, tmp_path):
    # A learning rate of nothing: what comes out is what the method started from.
    steps = {
        "language_model_epochs": 0.01,
        "max_steps": 1,
        "learning_rate": 1e-30,
        "per_device_train_batch_size": 2,
    }
    assert "Language model: 1 steps" in train(
        tmp_path, method="dialogue_cse", backbone=tiny_bert, **steps
    )
    trained = AutoModel.from_pretrained(tmp_path).encoder.state_dict()
    start = AutoModel.from_pretrained(tmp_path / "language_model").state_dict()
    assert all(torch.allclose(trained[name], start[name]) for name in trained)
