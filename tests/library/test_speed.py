"""Encoding and training fast.

Batches by tokens, fewer bits for each number, and the same figures.
"""

import numpy as np
import pytest
from training_runs import train, values_of

from hf_dialemb.encoders.load_encoder import load_encoder
from hf_dialemb.methods import batching

MODELS = [pytest.param("all-MiniLM-L6-v2", marks=pytest.mark.slow), "dialogue-minilm"]


@pytest.fixture(scope="module")
def texts(sample_dialogues):
    spoken = [turn.content for dialogue in sample_dialogues[:4] for turn in dialogue.turns]
    return [*spoken, "", "word " * 300, *spoken[:5]]


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
    few = sample_dialogues[:4]
    assert cosines(plain.encode(few), quick.encode(few)).min() > 0.999
    assert quick.encode(few).dtype == np.float32
    assert plain.fingerprint != quick.fingerprint


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
    (mini_batch_size).

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
    whole = curve("whole", **({} if method == "dial2vec" else {"mini_batch_size": 1000}))
    assert len(quick) == 20
    # the last of the eight bits of bfloat16, as processors round its products each in their own way
    assert quick == pytest.approx(whole, rel=2**-7 if bf16 else 1e-4)
    assert quick[-1] < quick[0]
