"""Fine-tuning on few intents: it learns and stops, and test labels stay unread."""

import shutil
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from given_vectors import said
from transformers import (
    AutoModel,
    AutoTokenizer,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

import hf_dialemb.data
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.tasks.task import CorpusPart, get_task
from hf_dialemb.papers.tasks import intent_fine_tuning
from hf_dialemb.papers.tasks.intent_fine_tuning import (
    RUNS,
    Classifier,
    Examples,
    FineTuning,
    draw_parts,
    fine_tune,
    load_backbone,
)

QUICK = FineTuning(learning_rate=1e-2, epochs=20, batch_size=8, max_length=16)
LETTERS = (list("abcdef"), list("mnopqr"), list("012345"))
TEXTS = {"book": "a table for two", "play": "a song by them", "sum": "what is 1 plus 1"}


@pytest.fixture(scope="module")
def backbone(tiny_bert):
    return load_backbone(tiny_bert)


def utterances(count, seed):
    """Texts of the letters of one of three classes."""
    random, classes = np.random.default_rng(seed), np.arange(count) % len(LETTERS)
    return Examples(
        [" ".join(random.choice(LETTERS[number], random.integers(3, 8))) for number in classes],
        classes,
    )


def tuned(backbone, seed=0, **changes):
    settings = replace(QUICK, **changes)
    return fine_tune(backbone, utterances(60, 1), utterances(30, 2), 3, settings, seed)


def test_one_class_of_three_is_learnt(backbone):
    assert tuned(backbone).accuracy(utterances(90, 3)) > 0.9


def test_the_best_weights_are_kept_the_first_of_equal_ones(backbone, monkeypatch):
    measured = []

    def scripted(scores):
        left = iter(scores)
        measured.clear()

        def accuracy(self, examples):
            measured.append(self.head[1].bias.detach().clone())
            return next(left)

        monkeypatch.setattr(Classifier, "accuracy", accuracy)
        return tuned(backbone, patience=2, evaluate_every=3).head[1].bias

    assert scripted([0.1, 0.4, 0.3, 0.5, 0.5, 0.2]).equal(measured[3])
    assert len(measured) == 6
    assert scripted([0.5, 0.5, 0.1]).equal(measured[0])
    monkeypatch.undo()
    scores = []
    accuracy = Classifier.accuracy
    monkeypatch.setattr(
        Classifier,
        "accuracy",
        lambda self, examples: scores.append(accuracy(self, examples)) or scores[-1],
    )
    classifier = tuned(backbone, epochs=3, evaluate_every=7, learning_rate=3e-3)
    assert len(scores) == 5  # after 0, 7, 14, 21 and 24 steps: 60 examples are 8 batches
    assert accuracy(classifier, utterances(30, 2)) == max(scores)


@pytest.mark.slow
def test_a_seed_gives_the_same_weights_twice_and_changes_nothing_else(backbone):
    weights = {name: value.clone() for name, value in backbone.model.state_dict().items()}
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    first, second, other = (tuned(backbone, seed, epochs=2).state_dict() for seed in (0, 0, 1))
    assert all(value.equal(second[name]) for name, value in first.items())
    assert not first["head.1.weight"].equal(other["head.1.weight"])
    assert torch.equal(torch.random.get_rng_state(), state)
    now = backbone.model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in now.items())


def test_logits_are_those_of_the_mean_of_all_tokens_under_the_linear_layer(backbone, tiny_bert):
    classifier = Classifier(backbone, 3, QUICK).eval()
    texts = ["a b c d e f", "m", "0 1 2 3 4 5 a b c d e f m n o p q r"]
    model = AutoModel.from_pretrained(tiny_bert).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    linear = classifier.head[1].cpu()
    with torch.no_grad():
        for text, logits in zip(texts, classifier(texts), strict=True):  # nothing is padded here
            ids = tokenizer(text, truncation=True, max_length=16, return_tensors="pt")
            expected = linear(model(**ids).last_hidden_state[0].mean(dim=0))
            torch.testing.assert_close(logits.cpu(), expected, atol=1e-4, rtol=0)


def test_a_checkpoint_gives_the_encoder_inside_it(tiny_bert, tiny_checkpoint, backbone):
    inside = load_backbone(str(tiny_checkpoint))
    assert type(inside.model) is type(backbone.model)
    expected = {
        name: value
        for name, value in backbone.model.state_dict().items()
        if not name.startswith("pooler.")
    }
    weights = inside.model.state_dict()
    assert weights.keys() == expected.keys()
    # whose table has grown by markers
    layers = {name for name in expected if "word_embeddings" not in name}
    assert all(torch.equal(weights[name], expected[name]) for name in layers)
    with pytest.raises(InputError, match="got a model without weights, expected one to fine-tune"):
        load_backbone("tfidf")
    with pytest.raises(InputError, match="neither a folder nor on the Hub"):
        load_backbone("nobody/nothing")


@pytest.mark.parametrize("model_class", [T5EncoderModel, T5ForConditionalGeneration])
def test_of_a_t5_the_encoder_is_fine_tuned(tiny_bert, tmp_path, model_class):
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    words = len(AutoTokenizer.from_pretrained(tiny_bert))
    config = T5Config(vocab_size=words, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    model_class(config).save_pretrained(tmp_path)
    assert not hasattr(load_backbone(str(tmp_path)).model, "decoder")


@pytest.fixture
def classifiers(monkeypatch):
    """The models that the task fine-tunes, in short runs."""
    made = []

    def noting(*given):
        made.append(fine_tune(*given))
        return made[-1]

    monkeypatch.setattr(intent_fine_tuning, "fine_tune", noting)
    quick = FineTuning(epochs=3, evaluate_every=2, learning_rate=1e-3)
    monkeypatch.setattr(intent_fine_tuning, "SETTINGS", quick)
    return made


@pytest.fixture
def corpora(monkeypatch):
    """Takes splits by name that stand for any corpus's."""
    splits = {}
    monkeypatch.setattr(
        hf_dialemb.data, "load_dialogues", lambda corpus, data_dir, split, **_: splits[split]
    )
    return splits


def asked(intents, numbers):
    return said(
        *(
            (f"{TEXTS.get(intent, 'no')} {number}", intent)
            for intent in intents
            for number in numbers
        )
    )


def loaded(limit=None):
    return get_task("intent-fine-tuning").load(CorpusPart("clinc150", None, "test", limit))


def test_the_parts_of_intents_are_disjoint_and_even(random):
    labels = np.array(["book", "play", "sum"] * 12 + ["rare"] * 3 + ["book", "rare", "sum", "play"])
    train, validation, queries = draw_parts(labels, 39, 2, random)
    assert Counter(labels[train]) == Counter(labels[validation]) == {"book": 2, "play": 2, "sum": 2}
    assert not set(train) & set(validation)
    assert max(*train, *validation) < 39
    assert queries.tolist() == [39, 41, 42]  # "rare" has too few examples
    assert not np.array_equal(draw_parts(labels, 39, 2, random)[0], train)
    with pytest.raises(InputError, match="got 0 labels with 14 utterances"):
        draw_parts(labels, 39, 7, random)


@pytest.mark.slow
def test_intents_are_classified_with_as_many_repeats_as_the_task_has(
    classifiers, corpora, tiny_bert
):
    corpora["train"] = asked([*TEXTS, "oos"], range(10))
    corpora["test"] = asked([*TEXTS, "oos"], range(20, 25))
    rows = loaded().measure(SimpleNamespace(name=tiny_bert), list(range(RUNS + 2)))
    assert [(row.task, row.metric, row.setting, row.n) for row in rows] == [
        ("intent-classification", "accuracy", "1-shot fine-tuned", RUNS),
        ("intent-classification", "accuracy", "5-shot fine-tuned", RUNS),
    ]
    assert all(0 <= row.mean <= 100 for row in rows)
    assert all(len(classifier.head[1].bias) == 3 for classifier in classifiers)
    config = loaded(6).config
    assert (config["utterances"], config["labels"], config["out_of_scope"]) == (6, 3, 5)
    assert config["fine_tuning"]["learning_rate"] == 1e-3


def test_labels_of_the_test_do_not_change_the_weights(classifiers, corpora, tiny_bert):
    corpora["train"], queries = asked(TEXTS, range(10)), asked(TEXTS, range(20, 25))
    labels = [*TEXTS, *["sum"] * 12]
    swapped = [
        Dialogue((replace(query.turns[0], intents=(intent,)),))
        for query, intent in zip(queries, labels, strict=True)
    ]
    rows = []
    for corpora["test"] in (queries, swapped):
        rows.append(loaded().measure(SimpleNamespace(name=tiny_bert), [3]))
    for first, second in zip(classifiers[:2], classifiers[2:], strict=True):
        weights = second.state_dict()
        assert all(value.equal(weights[name]) for name, value in first.state_dict().items())
    assert rows[0] != rows[1]
