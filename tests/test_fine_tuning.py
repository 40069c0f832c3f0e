"""The trainer of the tasks that fine-tune: it learns, repeats itself, stops in time and keeps the best weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.evaluation.tasks import fine_tuning
from hf_dialemb.evaluation.tasks.action_prediction import f1_scores
from hf_dialemb.evaluation.tasks.fine_tuning import (
    Classifier,
    Examples,
    FineTuning,
    fine_tune,
    load_backbone,
    precision,
)
from hf_dialemb.evaluation.tasks.intent_fine_tuning import accuracy
from hf_dialemb.models.errors import InputError

QUICK = FineTuning(
    learning_rate=1e-2, epochs=20, batch_size=8, evaluate_every=10, patience=5, max_length=16, dropout=0.1
)
LETTERS = (list("abcdef"), list("mnopqr"), list("012345"))


@pytest.fixture(scope="module")
def backbone(tiny_bert):
    return load_backbone(tiny_bert)


def utterances(count: int, seed: int) -> Examples:
    """Texts of the letters of one of three classes."""
    random = np.random.default_rng(seed)
    classes = np.arange(count) % len(LETTERS)
    return Examples([" ".join(random.choice(LETTERS[number], random.integers(3, 8))) for number in classes], classes)


def turns(count: int, seed: int) -> Examples:
    """Texts of the letters of the classes that hold, of none to all of three."""
    random = np.random.default_rng(seed)
    holds = random.integers(0, 2, (count, len(LETTERS)))
    words = [["x", *(letter for number in np.flatnonzero(row) for letter in LETTERS[number][:3])] for row in holds]
    return Examples([" ".join(random.permutation(letters)) for letters in words], holds)


def tuned(backbone, settings=QUICK, score=accuracy, seed=0):
    return fine_tune(backbone, utterances(60, 1), utterances(30, 2), len(LETTERS), settings, score, seed=seed)


def scripted(*values):
    remaining = iter(values)
    return lambda logits, targets: next(remaining)


def test_one_class_of_three_is_learnt(backbone):
    found, unseen = tuned(backbone), utterances(90, 3)
    assert accuracy(found.classifier.predict(unseen.texts), unseen.targets) > 0.9
    assert found.scores[0] < 0.7


@pytest.mark.slow
def test_several_classes_at_once_are_learnt(backbone):
    unseen = turns(90, 3)
    settings = replace(QUICK, max_length=32)

    def score(logits, targets):
        return f1_scores(logits, targets)["micro_f1"]

    found = fine_tune(backbone, turns(80, 1), turns(40, 2), len(LETTERS), settings, score, seed=0)
    assert score(found.classifier.predict(unseen.texts), unseen.targets) > 0.9


@pytest.mark.slow
def test_a_seed_gives_the_same_figures_twice_and_leaves_everything_else_alone(backbone):
    weights = {name: value.clone() for name, value in backbone.model.state_dict().items()}
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    first, second, other = (tuned(backbone, replace(QUICK, epochs=2), seed=seed) for seed in (0, 0, 1))
    texts = utterances(9, 3).texts
    assert first.scores == second.scores
    assert np.array_equal(first.classifier.predict(texts), second.classifier.predict(texts))
    assert not np.array_equal(first.classifier.predict(texts), other.classifier.predict(texts))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(value, weights[name]) for name, value in backbone.model.state_dict().items())


def test_scores_are_taken_at_the_start_at_intervals_and_at_the_end_and_the_best_weights_are_kept(backbone):
    settings = replace(QUICK, epochs=3, evaluate_every=7, learning_rate=3e-3)
    found, validation = tuned(backbone, settings), utterances(30, 2)
    assert list(found.scores) == [0, 7, 14, 21, 24]  # 60 examples are 8 batches
    assert accuracy(found.classifier.predict(validation.texts), validation.targets) == max(found.scores.values())


def test_it_stops_after_as_many_scores_that_are_not_better_as_its_patience(backbone):
    found = tuned(backbone, replace(QUICK, patience=2, evaluate_every=3), scripted(0.1, 0.4, 0.3, 0.5, 0.5, 0.2))
    assert found.scores == {0: 0.1, 3: 0.4, 6: 0.3, 9: 0.5, 12: 0.5, 15: 0.2}


def test_the_first_of_equal_scores_is_the_best(backbone):
    texts = utterances(9, 3).texts
    stopped = tuned(backbone, replace(QUICK, patience=1), scripted(0.5, 0.5))
    untrained = tuned(backbone, replace(QUICK, patience=1), scripted(0.5, 0.1))
    trained = tuned(backbone, replace(QUICK, patience=1), scripted(0.5, 0.6, 0.6))
    assert np.array_equal(stopped.classifier.predict(texts), untrained.classifier.predict(texts))
    assert not np.array_equal(stopped.classifier.predict(texts), trained.classifier.predict(texts))


def test_logits_are_those_of_the_mean_of_all_tokens_under_the_linear_layer(backbone, tiny_bert, monkeypatch):
    monkeypatch.setattr(fine_tuning, "_has_bfloat16", lambda device: False)
    classifier = Classifier(backbone, 3, QUICK)
    texts = ["a b c d e f", "m", "0 1 2 3 4 5 a b c d e f m n o p q r"]
    model, tokenizer = AutoModel.from_pretrained(tiny_bert).eval(), AutoTokenizer.from_pretrained(tiny_bert)
    linear = classifier.layers["head"][1].cpu()
    expected = []
    for text in texts:  # one at a time, so that nothing is padded
        ids = tokenizer(text, truncation=True, max_length=16, return_tensors="pt")
        with torch.no_grad():
            expected.append(linear(model(**ids).last_hidden_state[0].mean(dim=0)).numpy())
    classifier.layers["head"].to(classifier.device)
    assert np.allclose(classifier.predict(texts), expected, atol=1e-4)


def test_bfloat16_changes_logits_by_its_rounding_only(backbone, monkeypatch):
    classifier, texts = Classifier(backbone, 3, QUICK), utterances(9, 3).texts
    exact, rounded = [], []
    for found, enabled in ((exact, False), (rounded, True)):
        monkeypatch.setattr(fine_tuning, "_has_bfloat16", lambda device, enabled=enabled: enabled)
        found.append(classifier.predict(texts))
        assert precision() == ("bfloat16" if enabled else "float32")
    assert exact[0].dtype == rounded[0].dtype == np.float32
    assert 0 < np.abs(exact[0] - rounded[0]).max() < 0.05


@pytest.mark.parametrize("side", ["left", "right"])
def test_long_texts_are_cut_on_the_side_that_is_named(backbone, side):
    classifier = Classifier(backbone, 3, replace(QUICK, max_length=4, truncation_side=side))
    [ids] = classifier.token_ids(["a b c d"])
    words = backbone.tokenizer.convert_ids_to_tokens(ids)
    assert words == ["[CLS]", *("cd" if side == "left" else "ab"), "[SEP]"]


def test_every_family_of_backbones_can_be_trained(tiny_backbones):
    settings = replace(QUICK, epochs=1, batch_size=60)
    for folder in tiny_backbones.values():
        assert list(tuned(load_backbone(folder), settings).scores) == [0, 1]


def test_a_checkpoint_gives_the_encoder_inside_it(tiny_bert, tiny_checkpoint, backbone):
    inside = load_backbone(str(tiny_checkpoint))
    assert type(inside.model) is type(backbone.model)
    expected = {name: value for name, value in backbone.model.state_dict().items() if not name.startswith("pooler.")}
    found = inside.model.state_dict()
    assert found.keys() == expected.keys()
    layers = {name for name in expected if "word_embeddings" not in name}  # whose table has grown by markers
    assert all(torch.equal(found[name], expected[name]) for name in layers)
    assert load_backbone(f"{tiny_bert}@utterances").model.config.hidden_size == 16


def test_a_model_without_weights_cannot_be_fine_tuned():
    with pytest.raises(InputError, match="got a model without weights, expected one to fine-tune"):
        load_backbone("tfidf")
    with pytest.raises(InputError, match="neither a folder nor on the Hub"):
        load_backbone("nobody/nothing")
