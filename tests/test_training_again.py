"""A run that is given again, in a folder that holds something, or with what cannot be learnt from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from ranker_checkpoints import dual_encoder
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, BartConfig, BartModel, ElectraConfig, TrainerState

from hf_dialemb.corpora import write_jsonl
from hf_dialemb.models import get_method
from hf_dialemb.models.dial2vec import Dial2VecExamples, Dial2VecModel, collate
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.dse import DSEModel
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation
from hf_dialemb.models.utterance import mean_of_tokens
from hf_dialemb.runs.folder import RunFolder
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.data import check_number
from hf_dialemb.training.dialogues import training_dialogues
from hf_dialemb.training.run import _build_trainer, train
from hf_dialemb.training.settings import RunArguments
from hf_dialemb.training.trainer import _ranked_first, out_of_patience


@pytest.fixture
def request_(tiny_bert, tmp_path, sample_dialogues):
    """Makes settings of a run in ``tmp_path / "run"`` that ends within an epoch."""
    write_jsonl(sample_dialogues[:30], tmp_path / "calls.jsonl")

    def settings(**changes):
        words = {
            "backbone": tiny_bert, "corpus": tmp_path / "calls.jsonl", "output_dir": tmp_path / "run", "use_cpu": True,
            "max_steps": 3, "save_steps": 1, "per_device_train_batch_size": 4, "num_negatives": 2, "disable_tqdm": True,
            "learning_rate": 0.01, "lr_scheduler_type": "constant", **changes,
        }  # fmt: skip
        return parse(None, [word for name, value in words.items() for word in (f"--{name}", str(value))])

    return settings


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(first, second) -> bool:
    return all(first[name].equal(second[name]) for name in first)


@pytest.mark.slow
def test_a_complete_run_given_again_is_left_as_it_is(request_, tmp_path):
    folder, told = train(request_()), []
    before, report = weights(folder), RunFolder(folder).report_file.read_bytes()
    assert train(request_(), told.append) == folder
    assert any("Complete already" in line for line in told)
    assert same(before, weights(folder))
    assert RunFolder(folder).report_file.read_bytes() == report
    kept = json.loads(RunFolder(folder).settings_file.read_text())
    assert (kept["save_strategy"], kept["save_steps"]) == ("steps", 1)  # as a recipe would say it


@pytest.mark.slow
def test_what_was_cut_is_said_to_be_of_the_resumed_part(request_, tmp_path):
    train(request_())
    shutil.rmtree(tmp_path / "run" / "checkpoint-3")
    RunFolder(tmp_path / "run").report_file.unlink()
    train(request_())
    told = json.loads(RunFolder(tmp_path / "run").report_file.read_text())
    assert told["resumed_from"] == "checkpoint-2"
    assert told["truncation"].endswith("; counted since the run was resumed")


@pytest.mark.slow
@pytest.mark.parametrize("choice", [{}, {"checkpoint_selection": "contrastive_loss", "dev_split": "dev"}])
def test_killed_after_its_last_step_a_run_takes_no_step_more(request_, tmp_path, choice, sample_dialogues):
    if choice:
        write_jsonl(sample_dialogues[30:40], tmp_path / "dev.jsonl")
        choice = {**choice, "dev_split": tmp_path / "dev.jsonl"}
    folder = train(request_(**choice))
    before = weights(folder)
    RunFolder(folder).report_file.unlink()
    (folder / "model.safetensors").unlink()
    train(request_(**choice))
    assert same(before, weights(folder))
    assert json.loads(RunFolder(folder).report_file.read_text())["steps"] == 3
    assert not (folder / "checkpoint-4").exists()


@pytest.mark.slow
def test_killed_before_its_centre_a_run_of_half_precision_ends_with_the_same_one(request_):
    choice = {"bf16": True, "center": True}
    folder = train(request_(**choice))
    before = weights(folder)
    RunFolder(folder).report_file.unlink()
    (folder / "model.safetensors").unlink()
    train(request_(**choice))
    assert before["center"].abs().max() > 0
    assert same(before, weights(folder))


@pytest.mark.slow
def test_a_run_without_gain_stops_when_its_patience_ends_and_is_then_complete(request_, tmp_path, sample_dialogues):
    write_jsonl(sample_dialogues[30:40], tmp_path / "dev.jsonl")
    choice = {
        "checkpoint_selection": "contrastive_accuracy",
        "dev_split": tmp_path / "dev.jsonl",
        "max_steps": 9,
        "bf16": False,
    }
    choice |= {"learning_rate": 1e-30, "dropout": 0, "save_total_limit": 1, "patience": 2}
    folder = train(request_(**choice))
    report = json.loads(RunFolder(folder).report_file.read_text())
    assert (report["steps"], report["checkpoint"]) == (3, "checkpoint-1")
    before = weights(folder)
    RunFolder(folder).report_file.unlink()
    (folder / "model.safetensors").unlink()
    train(request_(**choice))
    assert json.loads(RunFolder(folder).report_file.read_text())["steps"] == 3
    assert same(before, weights(folder))


@pytest.mark.parametrize(
    ("values", "selection", "patience", "stops"),
    [
        ([0.5, 0.6, 0.55, 0.6], "contrastive_accuracy", 2, True),
        ([0.5, 0.6, 0.55, 0.61], "contrastive_accuracy", 2, False),
        ([0.5, 0.6], "contrastive_loss", 1, True),
        ([0.5, 0.4], "contrastive_loss", 1, False),
        ([0.5, 0.4, 0.3], "contrastive_accuracy", None, False),
        ([], "contrastive_accuracy", 1, False),
    ],
)
def test_patience_counts_measurements_since_the_best(values, selection, patience, stops):
    state = TrainerState(log_history=[{"loss": 1.0}, *({f"eval_{selection}": value} for value in values)])
    assert (
        out_of_patience(state, RunArguments(checkpoint_selection=selection, dev_split="dev", patience=patience))
        == stops
    )


@pytest.mark.slow
def test_the_best_checkpoint_of_a_killed_run_is_found_where_the_run_is(request_, tmp_path, sample_dialogues):
    write_jsonl(sample_dialogues[30:40], tmp_path / "dev.jsonl")
    choice = {"checkpoint_selection": "contrastive_loss", "dev_split": tmp_path / "dev.jsonl"}
    folder = train(request_(**choice))
    before, state = weights(folder), folder / "checkpoint-3" / "trainer_state.json"
    best = Path(json.loads(state.read_text())["best_model_checkpoint"]).name
    state.write_text(state.read_text().replace(str(folder), "/elsewhere"))
    RunFolder(folder).report_file.unlink()
    train(request_(**choice))
    assert same(before, weights(folder))
    assert json.loads(RunFolder(folder).report_file.read_text())["checkpoint"] == best
    RunFolder(folder).report_file.unlink()
    state.write_text(state.read_text().replace(f"/{best}", "/checkpoint-9"))
    with pytest.raises(InputError, match="checkpoint-9: got no folder, expected the run's best checkpoint"):
        train(request_(**choice))


@pytest.mark.slow
def test_other_dialogues_under_the_same_name_are_another_run(request_, tmp_path, sample_dialogues):
    folder = train(request_())
    RunFolder(folder).report_file.unlink()
    write_jsonl(sample_dialogues[:31], tmp_path / "calls.jsonl")
    with pytest.raises(InputError, match=r"another dialogues \(30 there, 31 now\); choose another"):
        train(request_())
    write_jsonl(sample_dialogues[1:31], tmp_path / "calls.jsonl")
    with pytest.raises(InputError, match="another sha256"):
        train(request_())
    write_jsonl(sample_dialogues[:30], tmp_path / "calls.jsonl")
    described = json.loads(RunFolder(folder).data_file.read_text())
    RunFolder(folder).data_file.write_text(json.dumps(described | {"num_processes": 2}))
    with pytest.raises(InputError, match=r"another num_processes \(2 there, 1 now\)"):
        train(request_())
    RunFolder(folder).data_file.unlink()  # of an older version
    train(request_())


@pytest.mark.slow
def test_other_dev_dialogues_or_batches_of_them_are_another_run(request_, tmp_path, sample_dialogues):
    write_jsonl(sample_dialogues[30:40], tmp_path / "dev.jsonl")
    choice = {"checkpoint_selection": "contrastive_loss", "dev_split": tmp_path / "dev.jsonl"}
    folder = train(request_(**choice))
    RunFolder(folder).report_file.unlink()
    with pytest.raises(InputError, match="another per_device_eval_batch_size"):
        train(request_(**choice, per_device_eval_batch_size=3))
    write_jsonl(sample_dialogues[31:41], tmp_path / "dev.jsonl")
    with pytest.raises(InputError, match="another dev_sha256"):
        train(request_(**choice))


@pytest.mark.slow
def test_what_is_cut_of_dev_dialogues_is_not_counted(request_, tmp_path, sample_dialogues):
    write_jsonl(sample_dialogues[30:40], tmp_path / "dev.jsonl")
    choice = {"checkpoint_selection": "contrastive_loss", "dev_split": tmp_path / "dev.jsonl"}
    told = [RunFolder(train(request_(**more))).report()["truncation"] for more in (
        {"output_dir": tmp_path / "one"}, {"output_dir": tmp_path / "two", **choice}
    )]  # fmt: skip
    assert told[0] == told[1]


def test_the_data_know_the_sampler_that_the_trainer_takes(request_):
    settings, silent = request_(), lambda line: None
    dialogues = training_dialogues(settings.run, get_method(settings.run.method), 0, silent)
    trainer = _build_trainer(settings, str(settings.run.backbone), dialogues, [], silent)
    loader = trainer.get_train_dataloader()
    assert trainer.train_dataset.sampler is not None
    loader.dataset.set_epoch(3)
    assert min(number for batch in loader.batch_sampler for number in batch) >= 3 * len(trainer.train_dataset)


def test_neither_a_tie_nor_what_is_no_number_comes_first():
    scores = torch.tensor([[0.5, 0.4], [0.5, 0.5], [torch.nan, torch.nan], [0.0, 0.0]]).unsqueeze(-1)
    assert _ranked_first(scores).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert _ranked_first(torch.tensor([[[0.5, 0.0, 0.1], [0.4, 0.0, 0.2]]])).tolist() == [0.5]  # one role is not there
    assert _ranked_first(torch.tensor([[[0.5]]])).tolist() == [1.0]


def test_a_run_that_starts_over_is_not_complete_by_the_report_of_the_one_before(request_, monkeypatch):
    folder = train(request_())

    def killed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hf_dialemb.training.run.DialogueTrainer.train", killed)
    with pytest.raises(KeyboardInterrupt):
        train(request_(learning_rate=0.02, resume=False))
    assert json.loads(RunFolder(folder).settings_file.read_text())["learning_rate"] == 0.02
    assert not RunFolder(folder).report_file.exists()


@pytest.mark.parametrize("resume", [True, False])
def test_checkpoints_of_another_program_stay(request_, tmp_path, resume):
    theirs = tmp_path / "run" / "checkpoint-500"
    theirs.mkdir(parents=True)
    (theirs / "model.safetensors").write_text("theirs")
    with pytest.raises(InputError, match=r"checkpoints without training_settings\.json, which another program"):
        train(request_(resume=resume))
    assert (theirs / "model.safetensors").read_text() == "theirs"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("model_class", [Dial2VecModel, DSEModel])
def test_backbones_of_half_precision_learn_in_float32(tiny_bert, tmp_path, dtype, model_class):
    AutoModel.from_pretrained(tiny_bert).to(dtype).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    model, _ = model_class.from_backbone(str(tmp_path))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    model.save_pretrained(tmp_path / "saved")
    assert {parameter.dtype for parameter in AutoModel.from_pretrained(tmp_path / "saved").parameters()} == {
        torch.float32
    }


def test_backbones_that_cannot_serve_are_refused(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "bart")
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    BartModel(BartConfig(vocab_size=99, **sizes, **heads)).save_pretrained(tmp_path / "bart")
    with pytest.raises(InputError, match="a bart model with encoder and decoder, expected an encoder"):
        DSEModel.from_backbone(str(tmp_path / "bart"))


def test_all_layers_frozen_leave_nothing_to_learn(request_):
    with pytest.raises(InputError, match="frozen_layers: got all layers, which leaves nothing to learn"):
        train(request_(frozen_layers=2))


def test_a_speaker_too_many_is_found_before_anything_is_learnt(request_, tmp_path, sample_dialogues):
    third = Dialogue.from_messages([{"role": role, "content": "hello"} for role in ("user", "assistant", "speaker_3")])
    write_jsonl([*sample_dialogues[:30], third], tmp_path / "calls.jsonl")
    with pytest.raises(InputError, match="has the role 'speaker_3', but num_roles is 2"):
        train(request_())


@pytest.mark.slow
def test_what_other_processes_cut_is_not_counted_and_that_is_told(request_):
    folder = train(request_(dataloader_num_workers=1))
    assert json.loads(RunFolder(folder).report_file.read_text())["truncation"].startswith("truncation was not counted")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"save_strategy": "no", "checkpoint_selection": "uniformity", "dev_split": "dev"}, "but save_strategy is no"),
        ({"eval_strategy": "steps"}, "eval_strategy: got one, but no dev_split"),
        ({"method": "dialogue_cse", "head_learning_rate": 0.1}, "head_learning_rate: got 0.1, but with these settings"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(request_, words, sentence):
    with pytest.raises(InputError, match=sentence):
        train(request_(**words))


def test_a_step_takes_as_many_examples_as_all_processes():
    args = SimpleNamespace(
        per_device_train_batch_size=16, per_device_eval_batch_size=8, dataloader_drop_last=True, world_size=2
    )
    check_number(args, "train", 32)
    check_number(args, "eval", 16)
    with pytest.raises(InputError, match="train_batch_size: got 16 on each of 2 processes, but there are 31 examples"):
        check_number(args, "train", 31)
    with pytest.raises(InputError, match=r"eval_batch_size: got 8 .* but there are 15 examples of the dev split"):
        check_number(args, "eval", 15)
    args.dataloader_drop_last = False
    check_number(args, "train", 1)


def test_scores_and_means_are_float32_where_the_backbone_is_not(sample_dialogues):
    model = dual_encoder(sample_dialogues).model
    contexts, responses = torch.randn(3, 8), torch.randn(3, 4, 8)
    hidden, mask = torch.randn(3, 5, 8), torch.ones(3, 5)
    with torch.autocast("cpu", torch.bfloat16):
        scores, means = model.product(contexts, responses), mean_of_tokens(hidden, mask)
    assert scores.equal(model.product(contexts, responses))
    assert means.equal(mean_of_tokens(hidden, mask))


def test_token_types_of_a_dialogue_beyond_the_limit_are_cut_with_it(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_tokens=12)
    messages = [{"role": "user", "content": "a b c d e f g h i j"}, {"role": "assistant", "content": "k l m"}]
    batch = tokenizer.apply_chat_template([messages], return_dict=True, return_tensors="pt")
    assert batch["input_ids"].shape[1] > 12
    ids = batch["input_ids"]
    with torch.inference_mode():
        plain, typed = model(ids), model(ids, token_type_ids=torch.zeros_like(ids))
    assert plain.pooler_output.equal(typed.pooler_output)


def test_word_vectors_of_another_width_than_states_are_refused(tiny_bert):
    config = Dial2VecModel.config_class(
        encoder_config=ElectraConfig(vocab_size=60, embedding_size=8, hidden_size=16, num_hidden_layers=1,
                                     num_attention_heads=2, intermediate_size=16)
    )  # fmt: skip
    with pytest.raises(InputError, match="word vectors of 8 numbers and states of 16"):
        Dial2VecModel(config)


@pytest.mark.slow
def test_signals_of_dev_dialogues_are_what_their_names_say(request_, tmp_path, sample_dialogues):
    dev = sample_dialogues[30:37]
    write_jsonl(dev, tmp_path / "dev.jsonl")
    choice = {"checkpoint_selection": "uniformity", "dev_split": tmp_path / "dev.jsonl", "save_total_limit": 5}
    folder = train(request_(**choice, per_device_eval_batch_size=4, bf16=False))
    report = json.loads(RunFolder(folder).report_file.read_text())
    log = {entry["step"]: entry for entry in report["log"] if "eval_uniformity" in entry}
    assert len({entry["eval_uniformity"] for entry in log.values()}) == 3
    for step, entry in log.items():
        model, tokenizer = (kind.from_pretrained(folder / f"checkpoint-{step}") for kind in (AutoModel, AutoTokenizer))
        examples = Dial2VecExamples(dev, model.config, request_().training.seed)
        samples = [examples.example(0, index) for index in range(len(examples))]  # one for each speaker
        with torch.no_grad():
            outputs = [model(**collate([sample], tokenizer, model.config, Truncation())) for sample in samples]
        ranked = [row[0].item() > row[1:].max().item() for output in outputs for row in output.similarities[0].T]
        losses = [output.loss.item() for output in outputs]
        vectors = torch.cat([output.pooler_output for output in outputs])
        assert entry["eval_contrastive_accuracy"] == pytest.approx(sum(ranked) / len(ranked), abs=1e-6)
        assert entry["eval_contrastive_loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-4)
        unit = torch.nn.functional.normalize(vectors, dim=-1)
        apart = torch.pdist(unit.double()).pow(2)
        assert entry["eval_uniformity"] == pytest.approx(apart.mul(-2).exp().mean().log().item(), abs=1e-4)
    best = min(log, key=lambda step: log[step]["eval_uniformity"])
    assert report["checkpoint"] == f"checkpoint-{best}"
