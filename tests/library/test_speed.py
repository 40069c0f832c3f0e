"""Encoding and training fast.

Batches by tokens, fewer bits for each number, and the same figures.
"""

import numpy as np
import pytest
from training_runs import train, values_of

from hf_dialemb.encoders.load_encoder import load_encoder
from hf_dialemb.methods import batching
from hf_dialemb.methods.batching import batches
from hf_dialemb.storage.hardware import bfloat16_where_faster, multiplies_bfloat16

MODELS = ("all-MiniLM-L6-v2", "dialogue-minilm")


@pytest.mark.parametrize("most", [1, 7, 64, 10_000])
def test_every_row_is_in_a_batch_of_bounded_tokens(most):
    lengths = np.random.default_rng(0).integers(0, 40, size=300)
    parts = batches(lengths.tolist(), most)
    assert sorted(np.concatenate(parts).tolist()) == list(range(300))
    assert all(len(rows) == 1 or len(rows) * lengths[rows].max() <= most for rows in parts)
    assert (np.diff(lengths[np.concatenate(parts)]) <= 0).all()
    assert batches([], most) == []


def test_a_batch_ends_where_padding_would_cost_more_than_another():
    assert [len(rows) for rows in batches([40] * 4 + [4] * 20, 1_000)] == [4, 20]
    assert [len(rows) for rows in batches([40, 39] * 10, 1_000)] == [20]


@pytest.fixture(scope="module")
def texts(sample_dialogues):
    spoken = [turn.content for dialogue in sample_dialogues[:12] for turn in dialogue.turns]
    return [*spoken, "", "word " * 600, *spoken[:5]]


@pytest.mark.parametrize("model", MODELS)
def test_vectors_do_not_depend_on_the_batch(model, texts):
    encoder = load_encoder(model, batch_size=4)
    together = encoder.encode_utterances(texts)
    assert np.array_equal(together[:5], together[-5:])  # what comes twice is read once
    for place in range(0, len(texts), 7):
        assert np.allclose(encoder.encode_utterances([texts[place]])[0], together[place], atol=1e-5)
    assert np.allclose(
        load_encoder(model, batch_size=500).encode_utterances(texts), together, atol=1e-5
    )


def cosines(first, other):
    return (first * other).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(other, axis=1)


@pytest.mark.parametrize("model", MODELS)
def test_bfloat16_gives_nearly_the_vectors_of_float32(model, texts, sample_dialogues):
    plain, quick = load_encoder(model), load_encoder(model, dtype="bfloat16")
    assert cosines(plain.encode_utterances(texts), quick.encode_utterances(texts)).min() > 0.999
    few = sample_dialogues[:12]
    assert cosines(plain.encode(few), quick.encode(few)).min() > 0.999
    assert quick.encode(few).dtype == np.float32
    assert plain.fingerprint != quick.fingerprint


@pytest.mark.skipif(not multiplies_bfloat16(), reason="the processor does not multiply bfloat16")
def test_bfloat16_where_faster_gives_nearly_the_same_vectors(texts):
    encoder = load_encoder("dialogue-minilm")
    plain = encoder.encode_utterances(texts)
    with bfloat16_where_faster():
        quick = encoder.encode_utterances(texts)
    assert not np.array_equal(quick, plain)
    assert cosines(plain, quick).min() > 0.999


QUICK = {
    "dse": {"max_tokens": 32},
    "dialogue_cse": {"max_tokens": 32, "num_negatives": 2},
    "dialog2flow": {"max_tokens": 32, "contrast": "hard"},
    "dial2vec": {"max_tokens": 128, "num_negatives": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("method", QUICK)
def test_parts_and_the_way_to_attend_change_no_loss_curve(
    method, bf16, tiny_bert, tmp_path, monkeypatch
):
    """Nor do words that are looked up once, as against batches whose parts are computed again
    (chunk_size).

    In bfloat16 both curves attend in one way, as the ways round differently there.
    """

    def curve(name, **more):
        settings = {
            "method": method,
            "backbone": tiny_bert,
            "dropout": 0.0,
            "max_steps": 20,
            "learning_rate": 1e-3,
        }
        settings |= {
            "logging_steps": 1,
            "save_strategy": "no",
            "max_dialogues": 40,
            **QUICK[method],
            **more,
        }
        train(tmp_path / name, bf16=bf16, **settings)
        return values_of(tmp_path / name, "loss")

    quick = curve("quick")
    monkeypatch.setattr(batching, "TOKENS", 10**6)
    whole = curve("whole", **({} if method == "dial2vec" else {"chunk_size": 1000}))
    assert len(quick) == 20
    assert quick == pytest.approx(whole, rel=1e-3 if bf16 else 1e-4)
    assert quick[-1] < quick[0]
