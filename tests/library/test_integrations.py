"""Dialogues in scikit-learn, as its own checks want it, and in other libraries' batches.

Evaluators for sentence-transformers: figures are the benchmark's, before, while and after training.
"""

import copy
import pickle
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation import SequentialEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import estimator_checks
from transformers import AutoModel

from hf_dialemb import Dialogue, InputError, Turn, load_encoder
from hf_dialemb.dialogue import ROLES
from hf_dialemb.evaluation import Row, evaluate_embeddings
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem
from hf_dialemb.integrations import (
    DialogueDomainEvaluator,
    DialogueVectorizer,
    TaskEvaluator,
    to_transcript,
)
from hf_dialemb.integrations.inputs import from_transcript
from hf_dialemb.integrations.sentence_evaluators import named_figures

CHECKS = (
    "estimator_cloneable",
    "estimator_tags_renamed",
    "valid_tag_types",
    "estimator_repr",
    "no_attributes_set_in_init",
    "do_not_raise_errors_in_init_or_set_params",
    "mixin_order",
    "parameters_default_constructible",
    "get_params_invariance",
    "set_params",
    "transformers_unfitted",
    "estimators_unfitted",
)
"""Those of scikit-learn that fit no table of numbers.

For transformers of text it leaves out all but the first.
"""


@pytest.fixture
def vectorizer(tiny_bert):
    return DialogueVectorizer(tiny_bert)


@pytest.mark.parametrize("check", CHECKS)
def test_what_scikit_learn_can_check_without_numbers(check):
    getattr(estimator_checks, f"check_{check}")("DialogueVectorizer", DialogueVectorizer())


def test_vectors_are_those_of_the_encoder_in_every_form_of_input(tiny_bert, dialogues):
    few = dialogues[:4]
    expected = load_encoder(tiny_bert).encode(few)
    fitted = DialogueVectorizer(tiny_bert).fit(dialogues)
    forms = (
        few,
        tuple(dialogue.to_messages() for dialogue in few),
        [dialogue.to_json() for dialogue in few],
        [" ".join(turn.content for turn in dialogue.turns) for dialogue in few],
        pd.Series([np.array(dialogue.to_messages(), dtype=object) for dialogue in few]),
    )
    for form in forms:
        np.testing.assert_allclose(fitted.transform(form), expected, atol=1e-5)
    assert fitted.transform(few).dtype == np.float32
    np.testing.assert_allclose(
        DialogueVectorizer(tiny_bert).fit_transform(few), expected, atol=1e-5
    )
    np.testing.assert_allclose(fitted.transform(few[::-1])[::-1], expected, atol=1e-5)


def test_clones_are_not_fitted_and_copies_are(vectorizer, dialogues):
    expected = vectorizer.fit(dialogues).transform(dialogues)
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    with pytest.raises(NotFittedError):
        clone(vectorizer).transform(dialogues)
    for again in (pickle.loads(pickle.dumps(vectorizer)), copy.deepcopy(vectorizer)):
        assert again.get_feature_names_out().shape == (16,)
        np.testing.assert_array_equal(again.transform(dialogues), expected)


def test_beside_other_encoders_and_columns(vectorizer, tiny_bert, dialogues):
    levels = ("dialogue", "utterances")
    union = FeatureUnion([(level, DialogueVectorizer(tiny_bert, level)) for level in levels])
    assert union.fit_transform(dialogues).shape == (40, 32)
    messages = [dialogue.to_messages() for dialogue in dialogues]
    table = pd.DataFrame({"dialogue": messages, "channel": ["chat", "phone"] * 20})
    columns = ColumnTransformer(
        [("vector", vectorizer, "dialogue"), ("channel", OneHotEncoder(), ["channel"])]
    )
    assert columns.fit_transform(table).shape == (40, 18)
    names = [f"dialoguevectorizer{place}" for place in range(16)]
    assert list(vectorizer.set_output(transform="pandas").fit_transform(dialogues).columns) == names
    channels = ["channel__channel_chat", "channel__channel_phone"]
    assert columns.get_feature_names_out()[15:].tolist() == [
        "vector__dialoguevectorizer15",
        *channels,
    ]
    with pytest.raises(InputError, match="X: got a table"):
        ColumnTransformer([("vector", vectorizer, ["dialogue"])]).fit(table)


@pytest.mark.parametrize(
    ("model", "dialogues", "sentence"),
    [
        ("tfidf", ["a text"], "is fitted on the dialogues"),
        ("no/such-model", ["a text"], "no/such-model"),
        ("tfidf", "a text", "got one str"),
        ("tfidf", ["a text", ""], r"dialogues\[1\]: got the text"),
        ("tfidf", ["a text", float("nan")], r"dialogues\[1\]: got float"),
    ],
)
def test_mistakes_are_told_in_one_sentence(model, dialogues, sentence):
    with pytest.raises(InputError, match=sentence):
        DialogueVectorizer(model).fit(dialogues)


TURNS = st.builds(
    Turn,
    st.sampled_from(ROLES),
    st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip),
)


@given(st.lists(TURNS, min_size=1).map(lambda turns: Dialogue(tuple(turns))))
def test_a_transcript_is_read_back_word_for_word(dialogue):
    assert from_transcript(to_transcript(dialogue)) == dialogue


@pytest.mark.slow
@pytest.mark.habit("dataset.map with an encoder, pickle.dumps(encoder)", "works, and is cached")
def test_the_cache_knows_an_encoder_and_knows_other_weights(tiny_bert, tmp_path, sample_dialogues):
    folder = str(shutil.copytree(tiny_bert, tmp_path / "model"))
    dataset = Dataset.from_list([dialogue.to_json() for dialogue in sample_dialogues[:6]])

    def embedded():
        encoder = load_encoder(folder)
        return dataset.map(
            lambda messages: {"embedding": encoder.encode(messages)},
            input_columns="messages",
            batched=True,
        )

    first = embedded()
    expected = load_encoder(folder).encode(sample_dialogues[:6])
    np.testing.assert_allclose(first.with_format("numpy")["embedding"][:], expected, atol=1e-5)
    assert embedded()._fingerprint == first._fingerprint
    model = AutoModel.from_pretrained(folder)
    model.embeddings.LayerNorm.bias.data.add_(1)
    model.save_pretrained(folder)
    assert embedded()._fingerprint != first._fingerprint


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
def test_mistakes_of_evaluators_are_told_in_one_sentence(make, given, sentence):
    with pytest.raises(TypeError if "limits" in sentence else InputError, match=sentence):
        make(*given)
