"""Settings that cannot be, or that would do nothing: each is refused by a sentence before any data is read."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2Model, T5Config, T5EncoderModel, T5ForConditionalGeneration

from hf_dialemb.corpora import write_jsonl
from hf_dialemb.encoders.specs import load_encoder
from hf_dialemb.evaluation.tasks.fine_tuning import load_backbone
from hf_dialemb.models.dial2vec import Dial2VecConfig, Dial2VecModel
from hf_dialemb.models.dse import DSEModel
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.run import train

BASE = ["--use_cpu", "true", "--output_dir", "run", "--corpus", "missing.jsonl"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--seed -1", r"seed: got -1, expected a value between 0 and 4294967295; change it"),
        ("--data_seed -1", "data_seed: got -1, expected a value between 0"),
        ("--weight_decay -1", "weight_decay: got -1.0, expected a value at least 0"),
        ("--dataloader_num_workers -1", "dataloader_num_workers: got -1, expected a value at least 0"),
        ("--learning_rate -1e-5", "learning_rate: got -1e-05, expected a value above 0"),
        ("--learning_rate nan", "learning_rate: got nan, expected a finite number; change it"),
        ("--adam_beta1 2", "optim: Invalid beta parameter at index 0: 2.0; choose another"),
        ("--optim adamw_8bit", "optim: .*bitsandbytes"),
        ("--lr_scheduler_type warmup_stable_decay", "lr_scheduler_type: .*num_decay_steps"),
        ("--report_to tensorboad", "report_to: tensorboad is not supported, only"),
        ("--report_to comet_ml", "report_to: .*comet"),
        ("--warmup_steps -3", "warmup_steps .*; correct the setting"),
        ("--lr_scheduler_kwargs {bad", "--lr_scheduler_kwargs: got {bad, expected JSON .*; correct it"),
        ("--resume_from_checkpoint there", "resume_from_checkpoint: got there, but a run goes on from its own last"),
        ("--load_best_model_at_end true --dev_split dev --eval_strategy epoch --save_strategy epoch",
         "load_best_model_at_end: got true, but checkpoint_selection says"),
        ("--dev_split dev --checkpoint_selection uniformity --save_strategy best",
         "checkpoint_selection: got uniformity, but save_strategy is best"),
        ("--max_steps 0", "max_steps: got 0, expected at least 1, or -1"),
        ("--train_sampling_strategy group_by_length", "train_sampling_strategy: got group_by_length, but batches"),
        ("--dev_split dev --checkpoint_selection uniformity --eval_strategy steps --eval_steps 1 --save_strategy epoch",
         "eval_strategy, eval_steps: got steps, 1.*, but checkpoint_selection measures wherever"),
        ("--patience 3", "patience: got 3, but no signal to wait for, as checkpoint_selection is last; choose one of"),
        ("--patience 0", "patience: got 0, expected a value at least 1"),
        ("--loss_temperature nan", "loss_temperature: got nan, expected a value above 0"),
        ("--output_dir=", "output_dir: got nothing, expected a folder; name one"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_with_is_refused(words, sentence):
    with pytest.raises(InputError, match=sentence):
        parse(None, [*BASE, *words.split()])


def test_braces_without_a_setting_are_refused():
    with pytest.raises(InputError, match=r"settings: got \{a, expected JSON"):
        parse(None, ["{a"])


def test_schedules_and_optimisers_that_can_be_are_taken():
    for words in (
        "--lr_scheduler_type cosine --warmup_steps 0.1",
        '--lr_scheduler_type warmup_stable_decay --lr_scheduler_kwargs {"num_decay_steps":2}',
        "--optim adafactor",
        "--optim sgd --weight_decay 0.1",
    ):
        assert parse(None, [*BASE, *words.split()]).training.seed == 42


def test_misspelt_recipes_are_told_with_their_neighbour(tmp_path):
    with pytest.raises(InputError, match=r"Unknown recipe 'dial2vec_minlm'\. Did you mean 'dial2vec_minilm'\?"):
        parse("dial2vec_minlm", [])
    (tmp_path / "empty.yaml").write_text("\n")
    with pytest.raises(InputError, match="got nothing, expected lines of 'field: value'; write some"):
        parse(str(tmp_path / "empty.yaml"), [])


@pytest.mark.parametrize("value", [math.nan, -1.0, 0.0])
def test_what_is_no_number_is_out_of_every_range(value):
    with pytest.raises(InputError, match="loss_temperature: got"):
        Dial2VecConfig(loss_temperature=value)


def test_a_training_that_goes_astray_says_so_and_saves_nothing(tiny_bert, tmp_path, sample_dialogues, monkeypatch):
    write_jsonl(sample_dialogues[:20], tmp_path / "calls.jsonl")
    words = {
        "backbone": tiny_bert, "corpus": tmp_path / "calls.jsonl", "output_dir": tmp_path / "run", "use_cpu": True,
        "max_steps": 3, "save_strategy": "no", "per_device_train_batch_size": 4, "num_negatives": 1, "bf16": False,
        "learning_rate": 1e30, "lr_scheduler_type": "constant", "disable_tqdm": True, "max_grad_norm": 0,
    }  # fmt: skip
    with pytest.raises(InputError, match=r"the training went astray: .* start over \(--resume false\) with a lower"):
        train(parse(None, [word for name, value in words.items() for word in (f"--{name}", str(value))]))
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("model_class", [T5EncoderModel, T5ForConditionalGeneration])
def test_of_a_t5_the_encoder_is_measured_but_not_trained(tiny_bert, tmp_path, model_class, sample_dialogues):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    config = T5Config(vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    model_class(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="a t5 model with encoder and decoder, expected an encoder"):
        DSEModel.from_backbone(str(tmp_path))
    assert load_encoder(str(tmp_path)).encode(sample_dialogues[:2]).shape == (2, 16)
    assert not hasattr(load_backbone(str(tmp_path)).model, "decoder")  # what fine-tuning takes


def test_a_tokenizer_without_padding_pads_with_its_last_token(tiny_bert, tmp_path, sample_dialogues):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    GPT2Model(GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2)).save_pretrained(tmp_path)
    tokenizer.eos_token, tokenizer.pad_token = "[SEP]", None
    tokenizer.save_pretrained(tmp_path)
    model, ours = Dial2VecModel.from_backbone(str(tmp_path))
    assert ours.pad_token == "[SEP]"
    together = encode(model, ours, sample_dialogues[:4])
    assert torch.allclose(
        torch.tensor(together[:1]), torch.tensor(encode(model, ours, sample_dialogues[:1])), atol=1e-6
    )
    tokenizer.eos_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has no padding token"):
        Dial2VecModel.from_backbone(str(tmp_path))


@pytest.mark.parametrize("content", [[{"type": "text", "text": "abc"}], ["a"], 3, None])
def test_content_that_is_no_text_is_refused_by_the_template(tiny_checkpoint, content):
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint)
    with pytest.raises(Exception, match="content is no text, expected text; join its parts"):
        tokenizer.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
    with pytest.raises(Exception, match=r"a prompt has the role system; leave it out"):
        tokenizer.apply_chat_template([{"role": "system", "content": "query: "}], tokenize=False)
