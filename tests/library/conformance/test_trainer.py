"""Habits of transformers' Trainer, with the trainer of this package."""

from types import SimpleNamespace

import numpy as np
import pytest
from datasets import Dataset
from transformers import EarlyStoppingCallback, TrainerCallback, TrainingArguments

import hf_dialemb
from hf_dialemb import Dial2VecModel, DialogueTrainer, DSEModel, InputError
from hf_dialemb.methods import get_method
from hf_dialemb.storage.run_folder import RunFolder
from hf_dialemb.training.arguments import make_settings

QUIET = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
SMALL = {Dial2VecModel: {"num_negatives": 1, "max_tokens": 64}}


@pytest.fixture
def training(tiny_bert, sample_dialogues, tmp_path):
    """A function that makes a trainer of dial2vec on 16 dialogues, with settings and arguments of
    one's choice."""

    def make(model_class=Dial2VecModel, arguments=None, **options):
        model, tokenizer = model_class.from_backbone(tiny_bert, **SMALL.get(model_class, {}))
        settings = {"max_steps": 2, "per_device_train_batch_size": 8, **QUIET, **(arguments or {})}
        options = {"train_dataset": sample_dialogues[:16], "processing_class": tokenizer, **options}
        return DialogueTrainer(
            model, TrainingArguments(str(tmp_path / "run"), **settings), **options
        )

    return make


@pytest.mark.habit("Trainer.evaluate(eval_dataset=D)", "D is measured")
def test_what_is_given_to_evaluate_is_measured(training, sample_dialogues):
    first, second = sample_dialogues[:8], sample_dialogues[8:24]
    trainer = training(eval_dataset=first)
    assert trainer.evaluate(second)["eval_loss"] == pytest.approx(
        training(eval_dataset=second).evaluate()["eval_loss"]
    )
    assert trainer.evaluate()["eval_loss"] != pytest.approx(trainer.evaluate(second)["eval_loss"])


@pytest.mark.habit("Trainer.evaluate('nonsense')", "refused")
def test_evaluate_refuses_what_holds_no_dialogues(training, sample_dialogues):
    with pytest.raises(InputError, match="nonsense"):
        training(eval_dataset=sample_dialogues[:8]).evaluate("nonsense")


@pytest.mark.habit("Trainer(eval_dataset={name: D, ...})", "works: eval_<name>_loss")
def test_several_sets_are_measured_by_name(training, sample_dialogues):
    trainer = training(eval_dataset={"near": sample_dialogues[:8], "far": sample_dialogues[8:16]})
    assert {"eval_near_loss", "eval_far_loss"} <= trainer.evaluate().keys()
    assert trainer.evaluate("far")["eval_loss"] == pytest.approx(
        trainer.evaluate()["eval_far_loss"]
    )


@pytest.mark.habit(
    "Trainer(train_dataset=list, Dataset, path or corpus)", "works, all of dialogues"
)
def test_a_dataset_and_a_list_of_the_same_dialogues_train_alike(training, sample_dialogues):
    rows = [
        {"messages": [{"role": t.role, "content": t.content} for t in d.turns]}
        for d in sample_dialogues[:16]
    ]
    losses = [
        training(train_dataset=form).train().training_loss
        for form in (rows, Dataset.from_list(rows))
    ]
    assert losses[0] == losses[1]


@pytest.mark.habit("Trainer(data_collator=...)", "refused: the method makes its batches")
def test_a_collator_and_no_tokenizer_are_refused(training):
    with pytest.raises(InputError, match="data_collator"):
        training(data_collator=lambda rows: rows)
    with pytest.raises(InputError, match="a model and its tokenizer"):
        training(processing_class=None)


@pytest.mark.habit("Trainer(compute_metrics=f)", "f gets the embeddings, and domains as labels")
def test_metrics_of_embeddings_are_computed(training, sample_dialogues):
    seen = []

    def measured(prediction):
        seen.append(prediction)
        return {"norm": float(np.linalg.norm(prediction.predictions, axis=1).mean())}

    trainer = training(eval_dataset=sample_dialogues[:8], compute_metrics=measured)
    assert trainer.evaluate()["eval_norm"] > 0
    vectors = hf_dialemb.load_encoder(trainer.model, tokenizer=trainer.processing_class).encode(
        sample_dialogues[:8]
    )
    assert np.abs(seen[0].predictions - vectors).max() <= 1e-5
    assert [label for label in seen[0].label_ids] == [
        d.domains[0] if d.domains else None for d in sample_dialogues[:8]
    ]


@pytest.mark.habit("Trainer.predict(D)", "embeddings (N, D), and metrics")
@pytest.mark.parametrize("model_class", [Dial2VecModel, DSEModel])
def test_predictions_are_embeddings(training, sample_dialogues, model_class):
    trainer = training(model_class)
    output = trainer.predict(sample_dialogues[:5])
    vectors = hf_dialemb.load_encoder(trainer.model, tokenizer=trainer.processing_class).encode(
        sample_dialogues[:5]
    )
    assert np.abs(output.predictions - vectors).max() <= 1e-5
    assert {"test_loss", "test_runtime", "test_samples_per_second"} <= output.metrics.keys()


@pytest.mark.habit("Trainer.predict(trainer.eval_dataset)", "works as evaluate does")
def test_predictions_of_the_measured_set_have_its_loss(training, sample_dialogues):
    trainer = training(eval_dataset=sample_dialogues[:5])
    output = trainer.predict(trainer.eval_dataset)
    assert output.predictions.shape == (5, 16)
    assert output.metrics["test_loss"] == trainer.evaluate()["eval_loss"]


@pytest.mark.habit("per_device_eval_batch_size", "changes no figure, for each method")
@pytest.mark.parametrize("name", ["dse", "dialog2flow", "turns", "dialogue_cse", "dial2vec"])
def test_no_figure_depends_on_the_batch(name, tiny_bert, sample_dialogues, tmp_path):
    model_class = get_method(name).model_class
    settings = {"contrast": "hard"} if name == "dialog2flow" else SMALL.get(model_class, {})
    model, tokenizer = model_class.from_backbone(tiny_bert, **settings)
    measured = []
    for size in (3, 64):
        arguments = TrainingArguments(str(tmp_path), per_device_eval_batch_size=size, **QUIET)
        trainer = DialogueTrainer(model, arguments, processing_class=tokenizer)
        measured.append(trainer.evaluate(sample_dialogues[:8]))
    for figure in ("eval_loss", "eval_contrastive_accuracy"):
        assert measured[0][figure] == pytest.approx(measured[1][figure], abs=1e-5)


@pytest.mark.habit("ACCELERATE_MIXED_PRECISION, accelerate config", "the record says what ran")
@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_the_record_says_which_precision_ran(
    precision, training, tiny_bert, sample_dialogues, tmp_path, monkeypatch
):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", precision)
    trainer = training(arguments={"max_steps": 1})
    trainer.train()
    trainer.save_model(str(tmp_path / "mine"))
    options = {"backbone": tiny_bert, "max_steps": 1, "save_strategy": "no", "disable_tqdm": True}
    hf_dialemb.train("dse", sample_dialogues[:8], output_dir=tmp_path / "own", **options)
    for name in ("mine", "own"):
        assert RunFolder(tmp_path / name).settings()["bf16"] == (precision == "bf16")


@pytest.mark.habit("TrainingArguments(data_seed=N)", "the seed of the sampler")
def test_the_order_of_examples_has_a_seed_of_its_own(training):
    orders = []
    for seeds in ({"seed": 1, "data_seed": 2}, {"seed": 2}, {"seed": 1}):
        orders.append(list(training(arguments=seeds)._get_train_sampler()))
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.habit("train(resume_from_checkpoint=True)", "goes on; a run does so by itself")
def test_a_training_goes_on_from_its_last_whole_checkpoint(
    training, tiny_bert, sample_dialogues, tmp_path
):
    saving = {"max_steps": 3, "save_steps": 1, "dataloader_drop_last": True}
    with pytest.raises(InputError, match="has no checkpoint that is whole"):
        training(arguments=saving).train(resume_from_checkpoint=True)
    whole = training(arguments=saving)
    whole.train()
    (tmp_path / "run/checkpoint-3/complete").unlink()
    trainer = training(arguments=saving)
    trainer.train(resume_from_checkpoint=True)
    assert trainer.resumed.name == "checkpoint-2"
    expected = whole.model.state_dict()
    assert all(value.equal(expected[name]) for name, value in trainer.model.state_dict().items())
    options = {"backbone": tiny_bert, "max_steps": 1, "resume_from_checkpoint": True}
    run = hf_dialemb.train("dse", sample_dialogues[:8], output_dir=tmp_path / "own", **options)
    assert run.report()["steps"] == 1


@pytest.mark.habit("load_best_model_at_end and EarlyStoppingCallback", "work by eval_loss")
def test_the_best_checkpoint_is_kept_and_training_stops_early(training, sample_dialogues):
    arguments = {
        "max_steps": 6,
        "eval_strategy": "steps",
        "eval_steps": 1,
        "save_strategy": "steps",
        "save_steps": 1,
        "load_best_model_at_end": True,
        "learning_rate": 1e-12,
    }
    stop = EarlyStoppingCallback(early_stopping_patience=2, early_stopping_threshold=0.1)
    trainer = training(DSEModel, arguments, eval_dataset=sample_dialogues[:16], callbacks=[stop])
    trainer.train()
    assert trainer.state.global_step < 6
    assert trainer.state.best_metric is not None


@pytest.mark.habit("Trainer(model_init=f)", "works: f returns a model")
def test_a_model_can_be_made_by_the_trainer(tiny_bert, sample_dialogues, tmp_path):
    _, tokenizer = DSEModel.from_backbone(tiny_bert)
    arguments = TrainingArguments(str(tmp_path), max_steps=1, **QUIET)
    trainer = DialogueTrainer(
        args=arguments,
        train_dataset=sample_dialogues[:16],
        processing_class=tokenizer,
        model_init=lambda: DSEModel.from_backbone(tiny_bert)[0],
    )
    assert trainer.train().global_step == 1
    assert arguments.remove_unused_columns  # the caller's arguments are as they were


@pytest.mark.habit("Trainer(label_smoothing_factor, push_to_hub without a name)", "refused")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"label_smoothing_factor": 0.1}, "label_smoothing_factor"), ({"push_to_hub": True}, "hub_m")],
)
def test_arguments_without_effect_are_refused(training, arguments, name):
    with pytest.raises(InputError, match=name):
        training(arguments=arguments)


@pytest.mark.habit("metric_for_best_model, deepspeed or use_liger_kernel", "one sentence")
@pytest.mark.parametrize(
    "setting",
    [
        {"metric_for_best_model": "x"},
        {"deepspeed": {"zero_optimization": {"stage": 3}}},
        {"use_liger_kernel": True},
    ],
)
def test_what_has_no_effect_or_is_not_installed_is_one_sentence(
    tiny_bert, sample_dialogues, tmp_path, setting
):
    settings = {"output_dir": tmp_path, "backbone": tiny_bert, "max_steps": 1, **setting}
    with pytest.raises(InputError, match=next(iter(setting))) as refused:
        hf_dialemb.train("dse", sample_dialogues[:16], **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.habit("train(callbacks=[...])", "works")
def test_callbacks_of_a_training_are_called(tiny_bert, sample_dialogues, tmp_path):
    steps = []

    class Counter(TrainerCallback):
        def on_step_end(self, *_, **__):
            steps.append(1)

    hf_dialemb.train(
        "dse",
        sample_dialogues[:16],
        output_dir=tmp_path,
        backbone=tiny_bert,
        max_steps=2,
        callbacks=[Counter()],
        per_device_train_batch_size=4,
        disable_tqdm=True,
    )
    assert len(steps) == 2


@pytest.mark.habit("a last batch of one example", "left out, as it has no negatives")
def test_a_last_batch_of_one_is_left_out(training, sample_dialogues):
    arguments = {"max_steps": -1, "num_train_epochs": 1, "per_device_train_batch_size": 4}
    trainer = training(DSEModel, arguments)
    examples = len(trainer.examples)
    trainer = training(DSEModel, {**arguments, "per_device_train_batch_size": examples - 1})
    assert np.isfinite(trainer.train().training_loss)
    assert trainer.state.global_step == 1


@pytest.mark.habit("fsdp=True", "accepted")
def test_fsdp_is_switched_on_by_true(tiny_bert, tmp_path):
    values = {"method": "dse", "output_dir": str(tmp_path), "backbone": tiny_bert}
    for value in (True, "true", "full_shard auto_wrap"):
        assert make_settings({**values, "fsdp": value}).training.fsdp


@pytest.mark.habit("hyperparameter_search", "works, by eval_loss")
def test_trials_have_models_of_their_own(tiny_bert, sample_dialogues, tmp_path, monkeypatch):
    from transformers import hyperparameter_search as searches

    losses = []

    class Backend(searches.OptunaBackend):
        def ensure_available(self):
            """Nothing is needed."""

        def run(self, trainer, n_trials, direction, **_):
            for rate in (1e-12, 0.1):
                trainer.train(trial=SimpleNamespace(number=0, params={"learning_rate": rate}))
                losses.append(trainer.compute_objective(trainer.evaluate()))

    monkeypatch.setitem(
        searches.ALL_HYPERPARAMETER_SEARCH_BACKENDS, searches.HPSearchBackend.OPTUNA, Backend
    )
    # it asks the backend's package
    monkeypatch.setattr("transformers.integrations.hp_params", vars)
    _, tokenizer = DSEModel.from_backbone(tiny_bert)
    trainer = DialogueTrainer(
        args=TrainingArguments(str(tmp_path), max_steps=3, save_strategy="no", **QUIET),
        processing_class=tokenizer,
        train_dataset=sample_dialogues[:16],
        eval_dataset=sample_dialogues[:16],
        model_init=lambda trial: DSEModel.from_backbone(tiny_bert)[0],
    )
    untrained = trainer.evaluate()["eval_loss"]
    trainer.hyperparameter_search(lambda trial: trial.params, backend="optuna", n_trials=2)
    assert losses[0] == pytest.approx(untrained)
    assert abs(losses[1] - untrained) > 1e-3
