"""Adapters of peft over every method."""

import numpy as np
import pytest
import torch
from exports import save
from transformers import AutoModel, TrainingArguments

from hf_dialemb import (
    Dial2VecModel,
    Dialog2FlowModel,
    DialogueCSEModel,
    DialogueTrainer,
    DSEModel,
    TransformerDualEncoderModel,
    load_encoder,
)
from hf_dialemb.storage.pretrained import FOLDER, MINILM

peft = pytest.importorskip("peft")

CONFIG = {
    "r": 2,
    "lora_alpha": 4,
    "target_modules": ["query", "value"],
    "init_lora_weights": "gaussian",
}


def saved(model_class, tiny_bert, folder):
    model, tokenizer = model_class.build(tiny_bert, ())
    return AutoModel.from_pretrained(save((model, tokenizer), folder)), tokenizer


def adapted(model, way="get_peft_model"):
    """Give a model an adapter whose second factors, which start as zeros, have some weight."""
    if way == "add_adapter":
        model.add_adapter(peft.LoraConfig(**CONFIG))
    else:
        model = peft.get_peft_model(
            model, peft.LoraConfig(**CONFIG, task_type="FEATURE_EXTRACTION")
        )
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.2)
    return model


def assert_same(encoder, dialogues, expected):
    np.testing.assert_allclose(
        encoder.encode(dialogues), expected, atol=1e-5 * np.abs(expected).max()
    )


def trainer_of(model, tokenizer, folder, dialogues, **settings):
    quiet = {"report_to": "none", "use_cpu": True, "disable_tqdm": True}
    steps = {
        "max_steps": 2,
        "learning_rate": 0.1,
        "per_device_train_batch_size": 8,
        **quiet,
        **settings,
    }
    data = {"train_dataset": dialogues, "eval_dataset": dialogues}
    return DialogueTrainer(
        model, TrainingArguments(str(folder), **steps), processing_class=tokenizer, **data
    )


@pytest.mark.habit(
    "get_peft_model(model) or model.add_adapter(config), save_pretrained, AutoModel", "works"
)
@pytest.mark.parametrize(
    ("model_class", "way"),
    [
        (Dial2VecModel, "get_peft_model"),
        (DSEModel, "get_peft_model"),
        (DialogueCSEModel, "get_peft_model"),
        (Dialog2FlowModel, "get_peft_model"),
        (TransformerDualEncoderModel, "get_peft_model"),
        (DSEModel, "add_adapter"),
    ],
)
def test_an_adapter_is_saved_and_loaded_again(
    model_class, way, tiny_bert, sample_dialogues, tmp_path
):
    few, (model, tokenizer) = sample_dialogues[:3], saved(model_class, tiny_bert, tmp_path / "base")
    before = load_encoder(model, tokenizer=tokenizer).encode(few)
    model = adapted(model, way)
    expected = load_encoder(model, tokenizer=tokenizer).encode(few)
    assert np.abs(before - expected).max() > 1e-3
    save((model, tokenizer), tmp_path / "adapter")
    again = AutoModel.from_pretrained(tmp_path / "adapter")
    assert_same(load_encoder(again, tokenizer=tokenizer), few, expected)
    assert_same(load_encoder(str(tmp_path / "adapter")), few, expected)


@pytest.mark.habit("Trainer over a peft model", "the adapter alone learns")
@pytest.mark.parametrize("model_class", [Dial2VecModel, DSEModel])
def test_an_adapter_alone_learns(model_class, tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = saved(model_class, tiny_bert, tmp_path / "base")
    model.config.max_tokens = 64
    model = peft.get_peft_model(model, peft.LoraConfig(**CONFIG))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer_of(model, tokenizer, tmp_path / "run", sample_dialogues[:16]).train()
    changed = {
        name for name, value in model.state_dict().items() if not torch.equal(value, before[name])
    }
    assert changed
    assert all("lora_" in name for name in changed)


@pytest.mark.habit(
    "Trainer over get_peft_model(model), save_model, load_encoder", "the base is saved beside"
)
def test_an_adapter_over_an_unsaved_model_is_saved_with_it(tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = DSEModel.from_backbone(tiny_bert)
    model = peft.get_peft_model(model, peft.LoraConfig(**CONFIG))
    trainer = trainer_of(model, tokenizer, tmp_path / "run", sample_dialogues[:16], save_steps=2)
    trainer.train()
    trainer.save_model()
    expected = load_encoder(model, tokenizer=tokenizer).encode(sample_dialogues[:3])
    for folder in ("run", "run/checkpoint-2"):
        assert_same(load_encoder(str(tmp_path / folder)), sample_dialogues[:3], expected)


@pytest.mark.habit(
    "resume_from_checkpoint of a model with adapters", "works: same weights as without a stop"
)
@pytest.mark.parametrize("way", ["add_adapter", "get_peft_model"])
def test_a_training_of_an_adapter_is_resumed(way, tiny_bert, sample_dialogues, tmp_path):
    weights = []
    for checkpoint in (None, str(tmp_path / "run" / "checkpoint-2")):
        torch.manual_seed(0)
        model, tokenizer = saved(DSEModel, tiny_bert, tmp_path / "base")
        model = adapted(model, way)
        trainer = trainer_of(
            model, tokenizer, tmp_path / "run", sample_dialogues[:16], max_steps=4, save_steps=2
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        weights.append({key: value.clone() for key, value in model.state_dict().items()})
    whole, resumed = weights
    assert (
        max((whole[key] - value).abs().max() for key, value in resumed.items() if "lora_" in key)
        <= 1e-6
    )


@pytest.mark.habit("load_best_model_at_end of a model with adapters", "works")
def test_the_best_adapter_is_kept(tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = saved(DSEModel, tiny_bert, tmp_path / "base")
    model.add_adapter(peft.LoraConfig(**CONFIG))
    settings = {
        "eval_strategy": "steps",
        "eval_steps": 1,
        "save_steps": 1,
        "load_best_model_at_end": True,
    }
    settings |= {"metric_for_best_model": "eval_loss", "greater_is_better": True}
    trainer = trainer_of(model, tokenizer, tmp_path / "run", sample_dialogues[:16], **settings)
    trainer.train()
    losses = {
        entry["step"]: entry["eval_loss"]
        for entry in trainer.state.log_history
        if "eval_loss" in entry
    }
    assert losses[1] != losses[2]
    assert trainer.evaluate()["eval_loss"] == pytest.approx(max(losses.values()))


@pytest.mark.slow
@pytest.mark.habit("dialemb export over an adapter", "merges it into its base")
def test_an_adapter_is_merged_on_export(tiny_bert, sample_dialogues, exporting, tmp_path):
    model, tokenizer = DSEModel.from_backbone(tiny_bert)
    expected = load_encoder(adapted(model, "add_adapter"), tokenizer=tokenizer).encode(
        sample_dialogues[:3]
    )
    folder, _ = exporting(save((model, tokenizer), tmp_path / "adapter"))
    assert not list(folder.rglob("adapter*"))
    assert_same(load_encoder(str(folder)), sample_dialogues[:3], expected)


@pytest.mark.habit("The adapters that come with the package", "name their base on the Hub")
@pytest.mark.parametrize("name", ["dialogue-minilm", "action-minilm", "turn-minilm"])
def test_shipped_adapters_name_their_base(name):
    assert peft.PeftConfig.from_pretrained(FOLDER / name).base_model_name_or_path == MINILM
