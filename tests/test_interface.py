"""The Python interface: objects in, results out, the same figures as the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from interface_block import dialogues_in_memory, run_block
from sentence_transformers import SentenceTransformer
from transformers import TrainingArguments

import hf_dialemb
from hf_dialemb.cli import main
from hf_dialemb.models.dse import DSEModel
from hf_dialemb.models.errors import InputError

DIALOGUES = dialogues_in_memory()


@pytest.fixture(scope="module")
def run(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "mine"
    return hf_dialemb.train("dse", DIALOGUES, backbone=tiny_bert, max_steps=3, save_steps=2, output_dir=folder)


def test_the_block_of_the_readme(tiny_bert, tmp_path):
    run_block(tmp_path, tiny_bert)


def test_all_forms_of_a_model_give_the_same_vectors(run, tmp_path):
    expected = hf_dialemb.load_encoder(str(run.path)).encode(DIALOGUES)
    model = DSEModel.from_pretrained(run.path)
    for form in (run, run.path, run.encoder(), model):
        assert np.allclose(hf_dialemb.load_encoder(form).encode(DIALOGUES), expected, atol=1e-6)
    stock = SentenceTransformer(str(run.path), device="cpu")
    assert np.allclose(hf_dialemb.load_encoder(stock).encode(DIALOGUES), expected, atol=1e-5)


@pytest.mark.parametrize("checkpoint", ["", "checkpoint-2"])
@pytest.mark.parametrize("method", ["dse", "dial2vec", "dialogue_cse", "dual_encoder"])
def test_a_folder_of_a_run_loads_as_what_it_is(method, checkpoint, tiny_bert, tmp_path, run):
    """Through its own files, in sentence-transformers, gives what the package itself gives."""
    folder = run.path
    if method != "dse":
        more = {"num_candidates": 3} if method == "dual_encoder" else {"backbone": tiny_bert}
        folder = tmp_path / "run"
        hf_dialemb.train(method, DIALOGUES, max_steps=2, save_steps=2, output_dir=folder, **more)
    messages = [dialogue["messages"] for dialogue in DIALOGUES]
    found = SentenceTransformer(str(folder / checkpoint), device="cpu").encode(messages)
    assert np.allclose(found, hf_dialemb.load_encoder(folder / checkpoint).encode(DIALOGUES), atol=1e-5)


def test_training_from_python_and_from_the_command_line_are_one(run, tiny_bert, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(dialogue) + "\n" for dialogue in DIALOGUES))
    words = ["--method", "dse", "--corpus", str(file), "--backbone", tiny_bert, "--max_steps", "3"]
    assert main(["train", *words, "--output_dir", str(tmp_path / "run")]) == 0
    names = [path / "model.safetensors" for path in (run.path, tmp_path / "run")]
    assert names[0].read_bytes() == names[1].read_bytes()


def test_a_finished_run_is_not_trained_again(run, tiny_bert):
    before = run.report_file.stat().st_mtime_ns
    hf_dialemb.train("dse", DIALOGUES, backbone=tiny_bert, max_steps=3, save_steps=2, output_dir=run.path)
    assert run.report_file.stat().st_mtime_ns == before
    with pytest.raises(InputError, match="holds a run with another dialogues"):
        hf_dialemb.train("dse", DIALOGUES[:9], backbone=tiny_bert, max_steps=3, save_steps=2, output_dir=run.path)


def test_the_trainer_takes_a_model_and_dialogues(tiny_bert, tmp_path, run):
    from hf_dialemb import DialogueTrainer

    model, tokenizer = DSEModel.from_backbone(tiny_bert)
    args = TrainingArguments(str(tmp_path), max_steps=2, use_cpu=True, report_to="none", save_strategy="no")
    trainer = DialogueTrainer(model, args, DIALOGUES, tokenizer, dev_dialogues=DIALOGUES[:6])
    assert trainer.train().global_step == 2
    assert 0 <= trainer.evaluate()["eval_contrastive_accuracy"] <= 1
    with pytest.raises(InputError, match="its tokenizer"):
        DialogueTrainer(model, args, DIALOGUES)


REFUSED = {
    "a list of strings": (lambda encoder: encoder.encode(["hello", "there"]), "encode_utterances"),
    "one string as texts": (lambda encoder: encoder.encode_utterances("hi"), "list of strings"),
    "dialogues as texts": (lambda encoder: encoder.encode_utterances([[]]), "encode"),
    "a number as a model": (lambda encoder: hf_dialemb.load_encoder(3), "expected a folder"),
    "a task that is none": (lambda encoder: hf_dialemb.evaluate([encoder], DIALOGUES, tasks=["domain"]), "domain"),
    "a setting": (lambda encoder: hf_dialemb.train("dse", DIALOGUES, output_dir="x", max_step=3), "max_step"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_in_one_sentence(case, run):
    call, said = REFUSED[case]
    with pytest.raises(InputError, match=said) as refused:
        call(hf_dialemb.load_encoder(run))
    assert "\n" not in str(refused.value)
