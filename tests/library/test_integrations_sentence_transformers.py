"""Evaluators for sentence-transformers.

Their figures are the benchmark's, before, while and after a model trains.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation import SequentialEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from hf_dialemb import Dialogue, InputError, load_encoder
from hf_dialemb.evaluation import Row, evaluate_embeddings
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem
from hf_dialemb.integrations import DialogueDomainEvaluator, TaskEvaluator
from hf_dialemb.integrations.sentence_evaluators import named_figures

SEEDS = [0, 1]


@pytest.fixture(scope="module")
def own_encoder(tiny_bert):
    return load_encoder(tiny_bert, device="cpu")


@pytest.fixture(scope="module")
def published(tiny_export) -> SentenceTransformer:
    """A dialogue encoder of this package, as sentence-transformers loads it."""
    return SentenceTransformer(str(tiny_export), device="cpu")


@pytest.fixture(scope="module")
def dialogues(sample_dialogues):
    return sample_dialogues[:40]


@pytest.fixture(scope="module")
def labels(dialogues):
    return [dialogue.domains[0] for dialogue in dialogues]


def close(figures, measurements):
    expected = named_figures(measurements)
    assert figures.keys() == expected.keys()
    assert figures == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
def test_figures_on_domains_are_those_of_the_benchmark(plain, own_encoder, dialogues, labels):
    expected = evaluate_embeddings(own_encoder.encode(dialogues), labels, seeds=SEEDS)
    texts = [" ".join(turn.content for turn in dialogue.turns) for dialogue in dialogues]
    for form in (dialogues, [dialogue.to_messages() for dialogue in dialogues], texts):
        close(DialogueDomainEvaluator(form, labels, seeds=SEEDS)(plain), expected)


def test_a_model_that_reads_messages_gets_them_as_they_are(
    published, tiny_checkpoint, dialogues, labels
):
    vectors = load_encoder(str(tiny_checkpoint), device="cpu").encode(dialogues)
    np.testing.assert_allclose(load_encoder(published).encode(dialogues), vectors, atol=1e-4)
    other = {"user": "assistant", "assistant": "user"}
    swapped = [
        Dialogue(tuple(replace(turn, role=other[turn.role]) for turn in each.turns))
        for each in dialogues
    ]
    assert np.abs(load_encoder(published).encode(swapped) - vectors).max() > 1e-3
    found = DialogueDomainEvaluator(dialogues, labels, seeds=SEEDS)(published)
    close(found, evaluate_embeddings(vectors, labels, seeds=SEEDS))


@pytest.mark.parametrize(
    ("task", "limit"),
    [
        ("domains", 30),
        ("response-selection", 110),
        ("action-similarity", 60),
        ("next-utterance-retrieval", 20),
    ],
)
def test_a_task_of_the_benchmark_is_an_evaluator(plain, own_encoder, task, limit):
    evaluator = TaskEvaluator(task, "sample", split="dev", limit=limit, seeds=SEEDS, name="")
    expected = load_problem(task, CorpusPart("sample", None, "dev", limit)).measure(
        own_encoder, SEEDS
    )
    close(evaluator(plain), expected)
    assert evaluator.primary_metric == next(iter(named_figures(expected)))


def test_figures_that_would_be_named_alike_get_their_task():
    means = {"one-task": 1.0, "other": 2.0}
    found = [Row(task=task, metric="map", setting="", mean=mean) for task, mean in means.items()]
    other = Row(task="one-task", metric="accuracy", setting="5-shot, unit prototypes", mean=3.0)
    names = {"one_task_map": 1.0, "other_map": 2.0, "accuracy_5_shot_unit_prototypes": 3.0}
    assert named_figures([*found, other]) == names


@pytest.mark.slow
def test_names_and_the_primary_figure(published, dialogues, labels):
    make = partial(DialogueDomainEvaluator, dialogues, labels, seeds=SEEDS)
    evaluator = make(name="dev", primary_metric="uniformity")
    assert not evaluator.greater_is_better
    figures = evaluator(published)
    assert evaluator(published) == figures
    assert evaluator.primary_metric == "dev_uniformity"
    both = SequentialEvaluator([evaluator, make(name="other")])
    assert both(published)["sequential_score"] == figures["dev_purity"]


@pytest.mark.slow
def test_the_trainer_keeps_the_best_checkpoint_and_cards_say_figures(
    tiny_bert, dialogues, labels, tmp_path
):
    torch.manual_seed(0)
    model = SentenceTransformer(tiny_bert, device="cpu")
    turns = {
        name: [each.turns[row].content for each in dialogues]
        for row, name in enumerate(("anchor", "positive"))
    }
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path / "run"),
        max_steps=2,
        eval_strategy="steps",
        eval_steps=1,
        save_steps=1,
        use_cpu=True,
        per_device_train_batch_size=4,
        load_best_model_at_end=True,
        metric_for_best_model="eval_dev_map",
        greater_is_better=True,
        report_to="none",
        disable_tqdm=True,
    )
    evaluator = DialogueDomainEvaluator(
        dialogues, labels, seeds=SEEDS, primary_metric="map", name="dev"
    )
    data, loss = Dataset.from_dict(turns), MultipleNegativesRankingLoss(model)
    trainer = SentenceTransformerTrainer(
        model, arguments, train_dataset=data, loss=loss, evaluator=evaluator
    )
    trainer.train()
    logged = [
        entry["eval_dev_map"] for entry in trainer.state.log_history if "eval_dev_map" in entry
    ]
    assert len(logged) == 2
    assert trainer.state.best_metric == max(logged)
    model.save_pretrained(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    assert "DialogueDomainEvaluator" in card
    assert "**map**" in card


@pytest.mark.parametrize(
    ("make", "given", "sentence"),
    [
        (DialogueDomainEvaluator, ([], []), "dialogues: got none"),
        (DialogueDomainEvaluator, ("a text", ["x"]), "got one str"),
        (
            partial(DialogueDomainEvaluator, limits=3),
            (["a", "b", "c"], ["x", "x", "y"]),
            "argument 'limits'",
        ),
        (TaskEvaluator, ("domain", "sample"), "Did you mean 'domains'"),
    ],
)
def test_mistakes_are_told_in_one_sentence(make, given, sentence):
    with pytest.raises(TypeError if "limits" in sentence else InputError, match=sentence):
        make(*given)
