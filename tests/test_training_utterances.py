"""Training utterance encoders: the same trainer, labels, heads of their own learning rate, and what it refuses."""

import numpy as np
import pytest
import torch
import training_runs
from talks import dialogue
from training_runs import assert_same, report_of, values_of, weights_of

from hf_dialemb.corpora import write_jsonl
from hf_dialemb.models.errors import InputError
from hf_dialemb.training import data
from hf_dialemb.training.data import label_vectors

DSE, LAYER = {"method": "dse"}, "encoder.layer.1.output.dense.weight"
DIALOG2FLOW = {"method": "dialog2flow", "target": "joint", "joint_update": "alternating", "label_encoder": "tiny"}


@pytest.fixture(autouse=True)
def tiny_label_encoder(monkeypatch):
    """Stands in for a sentence-transformers model: any encoder's vectors serve."""

    def embed(labels, encoder, folder):
        return np.random.default_rng(len(labels)).normal(size=(len(labels), 5)).astype(np.float32)

    monkeypatch.setattr("hf_dialemb.training.data.label_vectors", embed)


@pytest.fixture
def train(tiny_bert, tmp_path):
    """Trains in the folder of a name; what was told."""

    def train(name, **settings):
        steps = {"max_steps": 9, "save_steps": 4, "per_device_train_batch_size": 16, "learning_rate": 0.01, "seed": 5}
        return training_runs.train(tmp_path / name, backbone=tiny_bert, **{**steps, **settings})

    return train


@pytest.mark.slow
@pytest.mark.parametrize("method", [DSE, DIALOG2FLOW], ids=lambda method: method["method"])
def test_stopped_and_resumed_it_ends_in_the_same_weights(train, tmp_path, method):
    train("run", **method)
    expected = weights_of(tmp_path / "run")
    for file in ("training_report.json", "model.safetensors", "checkpoint-9/complete"):
        (tmp_path / "run" / file).unlink()
    assert "Resuming from" in train("run", **method)
    assert_same(weights_of(tmp_path / "run"), expected)


@pytest.mark.slow
def test_heads_have_a_learning_rate_of_their_own_and_no_part_in_the_average(train, tmp_path, tiny_bert):
    plain = {"max_steps": 1, "optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0, "dropout": 0}
    runs = {
        "still": {"learning_rate": 1e-30},
        "slow": {"learning_rate": 0.1, "head_learning_rate": 0.5},
        "fast": {"learning_rate": 0.1, "head_learning_rate": 1.0},
        "back": {"learning_rate": 0.1, "head_learning_rate": 1.0, "average_with_backbone": 1.0},
    }
    layers, heads = {}, {}
    for name, rates in runs.items():
        train(name, **DSE, **plain, **rates)
        weights = weights_of(tmp_path / name)
        layers[name], heads[name] = weights[f"encoder.{LAYER}"], weights["heads.pairs.0.weight"]
    assert torch.equal(layers["slow"], layers["fast"])
    slow, fast = heads["slow"] - heads["still"], heads["fast"] - heads["still"]
    assert slow.abs().max() > 0
    assert torch.allclose(fast, 2 * slow, atol=1e-6)
    assert torch.equal(layers["back"], weights_of(tiny_bert)[LAYER])
    assert torch.equal(heads["back"], heads["fast"])


def test_several_corpora_and_their_splits(train, tmp_path):
    mine = tmp_path / "mine.jsonl"
    write_jsonl([dialogue("I would like one more thing", "And what would that be then")], mine)
    train("run", **DSE, corpus=["sample/dev", mine], exclude="none", train_split="train", max_steps=1)
    assert report_of(tmp_path / "run")["dialogues"] == 97
    with pytest.raises(InputError, match="corpus sample/best: got split 'best', expected one of train, dev"):
        train("other", **DSE, corpus="sample/best")
    with pytest.raises(InputError, match="none of 1 dialogues has acts; name a corpus with such labels"):
        train("other", **DIALOG2FLOW, corpus=mine)
    with pytest.raises(InputError, match=r"got 5000, but there are [0-9]+ examples; lower it or add data"):
        train("other", **DSE, per_device_train_batch_size=5000)


def test_entailment_pairs_are_a_table_of_two_columns(train, tmp_path):
    table = tmp_path / "pairs.tsv"
    names = ("rex", "bo", "ada", "max")
    table.write_text("".join(f"i have a dog called {name}\tmy pet is a {name} for sure\n" for name in names))
    settings = {**DSE, "corpus": table, "max_steps": 1, "per_device_train_batch_size": 4}
    train("run", **settings, columns="first=1,second=2")
    assert report_of(tmp_path / "run")["examples"] == 4
    table.write_text("premise\thypothesis\na b c d\t \n", encoding="utf-8")
    for columns, message in (
        ("first=premise,second=hypothesis", r"pairs.tsv:2: field second: got ' ', expected text; remove the row"),
        ("first=premise,role=hypothesis", "expected first and second together and nothing beside them"),
    ):
        with pytest.raises(InputError, match=message):
            train("bad", **settings, columns=columns)


@pytest.mark.slow
def test_a_dev_split_can_choose_the_checkpoint_and_rare_labels_are_left_out_and_told(train, tmp_path):
    data = {"train_split": "train", "dev_split": "dev", "exclude": "none", "max_dialogues": 60, "min_utterances": 20}
    choice = {"max_steps": 4, "save_steps": 2, "checkpoint_selection": "contrastive_accuracy"}
    assert "acts: fewer than 20 utterances each" in train("run", **DIALOG2FLOW, **data, **choice)
    values = values_of(tmp_path / "run", "eval_contrastive_accuracy")
    assert len(values) == 2
    assert all(0 <= value <= 1 for value in values)


def test_labels_are_embedded_once(tiny_bert, tmp_path, monkeypatch):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    folder, labels = str(tmp_path / "encoder"), ["inform area", "request area"]
    model = SentenceTransformer(modules=[Transformer(tiny_bert), Pooling(16)])
    model.save(folder)
    found = label_vectors(labels, folder, tmp_path)
    np.testing.assert_allclose(found, model.encode(labels), atol=1e-6)
    with monkeypatch.context() as patched:
        patched.setattr(data, "resolve_backbone", None)  # what is kept is not made again
        assert np.array_equal(label_vectors(labels, folder, tmp_path), found)
    torch.nn.init.normal_(model[0].model.embeddings.word_embeddings.weight)
    model.save(folder)
    assert not np.allclose(label_vectors(labels, folder, tmp_path), found)
