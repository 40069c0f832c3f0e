"""Adapters of peft over every method."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, TrainingArguments

from hf_dialemb import DialogueTrainer, load_encoder
from hf_dialemb.checkpoints.pretrained import FOLDER, MINILM
from hf_dialemb.methods.dial2vec import Dial2VecModel
from hf_dialemb.methods.dialog2flow import Dialog2FlowModel
from hf_dialemb.methods.dialogue_cse import DialogueCSEModel
from hf_dialemb.methods.dse import DSEModel
from hf_dialemb.methods.dual_encoder import TransformerDualEncoderModel

peft = pytest.importorskip("peft")

CONFIG = {"r": 2, "lora_alpha": 4, "target_modules": ["query", "value"], "init_lora_weights": "gaussian"}
MODELS = [Dial2VecModel, DSEModel, DialogueCSEModel, Dialog2FlowModel]


def saved(model_class, tiny_bert, folder):
    model, tokenizer = model_class.from_backbone(tiny_bert)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return AutoModel.from_pretrained(folder), tokenizer


def moved(model):
    """Give the adapters' second factors, which start as zeros, some weight."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    return model


@pytest.mark.habit("peft.get_peft_model(model), save_pretrained, PeftModel.from_pretrained", "works")
@pytest.mark.parametrize("model_class", MODELS)
def test_an_adapter_is_saved_and_loaded_again(model_class, tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = saved(model_class, tiny_bert, tmp_path / "base")
    adapted = moved(peft.get_peft_model(model, peft.LoraConfig(**CONFIG, task_type="FEATURE_EXTRACTION")))
    expected = load_encoder(adapted, tokenizer=tokenizer).encode(sample_dialogues[:3])
    adapted.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    base = AutoModel.from_pretrained(tmp_path / "base")
    plain = load_encoder(base, tokenizer=tokenizer).encode(sample_dialogues[:3])
    assert np.abs(plain - expected).max() > 1e-3
    again = peft.PeftModel.from_pretrained(base, tmp_path / "adapter")
    for way in (load_encoder(again, tokenizer=tokenizer), load_encoder(str(tmp_path / "adapter"))):
        np.testing.assert_allclose(way.encode(sample_dialogues[:3]), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.habit("model.add_adapter(config), save_pretrained, AutoModel.from_pretrained", "works")
@pytest.mark.parametrize("model_class", MODELS)
def test_an_added_adapter_is_saved_and_loaded_again(model_class, tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = saved(model_class, tiny_bert, tmp_path / "base")
    model.add_adapter(peft.LoraConfig(**CONFIG))
    moved(model)
    expected = load_encoder(model, tokenizer=tokenizer).encode(sample_dialogues[:3])
    model.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    again = AutoModel.from_pretrained(tmp_path / "adapter")
    for way in (load_encoder(again, tokenizer=tokenizer), load_encoder(str(tmp_path / "adapter"))):
        np.testing.assert_allclose(way.encode(sample_dialogues[:3]), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.habit("Trainer over a peft model", "the adapter alone learns")
@pytest.mark.parametrize("model_class", [Dial2VecModel, DSEModel])
def test_an_adapter_alone_learns(model_class, tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = saved(model_class, tiny_bert, tmp_path / "base")
    adapted = peft.get_peft_model(model, peft.LoraConfig(**CONFIG))
    before = {name: value.clone() for name, value in adapted.state_dict().items()}
    settings = {"max_steps": 2, "report_to": "none", "use_cpu": True, "disable_tqdm": True}
    arguments = TrainingArguments(str(tmp_path / "run"), per_device_train_batch_size=8, **settings)
    trainer = DialogueTrainer(
        adapted, arguments, train_dataset=sample_dialogues[:16], processing_class=tokenizer
    )  # fmt: skip
    trainer.train()
    changed = {name for name, value in adapted.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert all("lora_" in name for name in changed)


@pytest.mark.habit("Trainer over get_peft_model(model), save_model, load_encoder", "the base is saved beside")
def test_an_adapter_over_an_unsaved_model_is_saved_with_it(tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = DSEModel.from_backbone(tiny_bert)
    adapted = peft.get_peft_model(model, peft.LoraConfig(**CONFIG))
    settings = {"max_steps": 2, "learning_rate": 0.1, "report_to": "none", "use_cpu": True, "disable_tqdm": True}
    arguments = TrainingArguments(str(tmp_path / "run"), per_device_train_batch_size=8, save_steps=2, **settings)
    trainer = DialogueTrainer(adapted, arguments, train_dataset=sample_dialogues[:16], processing_class=tokenizer)
    trainer.train()
    trainer.save_model()
    expected = load_encoder(adapted, tokenizer=tokenizer).encode(sample_dialogues[:3])
    (tmp_path / "run").rename(tmp_path / "moved")
    for folder in ("moved", "moved/checkpoint-2"):
        vectors = load_encoder(str(tmp_path / folder)).encode(sample_dialogues[:3])
        np.testing.assert_allclose(vectors, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.habit("resume_from_checkpoint of a model with adapters", "works: same weights as without a stop")
@pytest.mark.parametrize("way", ["add_adapter", "get_peft_model"])
def test_a_training_of_an_adapter_is_resumed(way, tiny_bert, sample_dialogues, tmp_path):
    settings = {"max_steps": 4, "learning_rate": 0.1, "report_to": "none", "use_cpu": True, "disable_tqdm": True}
    weights = []
    for name, checkpoint in (("whole", None), ("whole", str(tmp_path / "whole" / "checkpoint-2"))):
        torch.manual_seed(0)
        model, tokenizer = saved(DSEModel, tiny_bert, tmp_path / "base")
        if way == "add_adapter":
            model.add_adapter(peft.LoraConfig(**CONFIG))
        else:
            model = peft.get_peft_model(model, peft.LoraConfig(**CONFIG))
        arguments = TrainingArguments(str(tmp_path / name), per_device_train_batch_size=8, save_steps=2, **settings)
        trainer = DialogueTrainer(model, arguments, train_dataset=sample_dialogues[:16], processing_class=tokenizer)
        trainer.train(resume_from_checkpoint=checkpoint)
        weights.append({key: value.clone() for key, value in model.state_dict().items()})
    whole, resumed = weights
    assert max((whole[key] - value).abs().max() for key, value in resumed.items() if "lora_" in key) <= 1e-6


@pytest.mark.habit("load_best_model_at_end of a model with adapters", "works")
def test_the_best_adapter_is_kept(tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = saved(DSEModel, tiny_bert, tmp_path / "base")
    model.add_adapter(peft.LoraConfig(**CONFIG))
    settings = {"report_to": "none", "use_cpu": True, "disable_tqdm": True, "load_best_model_at_end": True}
    settings |= {"eval_strategy": "steps", "eval_steps": 1, "save_steps": 1, "max_steps": 2}
    settings |= {"metric_for_best_model": "eval_loss", "greater_is_better": True, "learning_rate": 0.1}
    arguments = TrainingArguments(str(tmp_path / "run"), per_device_train_batch_size=8, **settings)
    dialogues = {"train_dataset": sample_dialogues[:16], "eval_dataset": sample_dialogues[:16]}
    trainer = DialogueTrainer(model, arguments, processing_class=tokenizer, **dialogues)
    trainer.train()
    losses = {entry["step"]: entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry}
    assert losses[1] != losses[2]
    assert trainer.evaluate()["eval_loss"] == pytest.approx(max(losses.values()))


@pytest.mark.habit("peft over a ranker of responses", "works")
def test_an_adapter_over_a_ranker(tiny_bert, sample_dialogues, tmp_path):
    ranker, tokenizer = TransformerDualEncoderModel.build(tiny_bert, ())
    config = peft.LoraConfig(**CONFIG, task_type="FEATURE_EXTRACTION")
    ranker.save_pretrained(tmp_path / "base")
    adapted = moved(peft.get_peft_model(AutoModel.from_pretrained(tmp_path / "base"), config))
    expected = load_encoder(adapted, tokenizer=tokenizer).encode(sample_dialogues[:3])
    adapted.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    vectors = load_encoder(str(tmp_path / "adapter")).encode(sample_dialogues[:3])
    np.testing.assert_allclose(vectors, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.habit("dialemb export over an adapter", "merges it into its base")
def test_an_adapter_is_merged_on_export(tiny_bert, sample_dialogues, exporting, tmp_path):
    model, tokenizer = DSEModel.from_backbone(tiny_bert)
    model.add_adapter(peft.LoraConfig(**CONFIG))
    expected = load_encoder(moved(model), tokenizer=tokenizer).encode(sample_dialogues[:3])
    model.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    folder, _ = exporting(tmp_path / "adapter")
    assert not list(folder.rglob("adapter*"))
    vectors = load_encoder(str(folder)).encode(sample_dialogues[:3])
    np.testing.assert_allclose(vectors, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.habit("The adapters that come with the package", "name their base on the Hub")
@pytest.mark.parametrize("name", ["dialogue-minilm", "action-minilm"])
def test_shipped_adapters_name_their_base(name):
    assert peft.PeftConfig.from_pretrained(FOLDER / name).base_model_name_or_path == MINILM
