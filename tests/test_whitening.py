"""Whitened embeddings: uncorrelated, of variance one, and the same from a stock sentence-transformers folder."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hf_dialemb.encoders.whitening import add_whitening, apply_whitening, fit_whitening
from hf_dialemb.models.errors import InputError


def embeddings(count: int = 400, width: int = 6) -> np.ndarray:
    generator = np.random.default_rng(0)
    return generator.normal(size=(count, width)) @ generator.normal(size=(width, width)) + 5


def whitened(vectors: np.ndarray, dimensions: int | None = None) -> np.ndarray:
    return apply_whitening(vectors, *fit_whitening(vectors, dimensions))


@pytest.mark.parametrize("dimensions", [None, 1, 3])
def test_the_covariance_is_the_identity(dimensions):
    result = whitened(embeddings(), dimensions)
    assert result.dtype == np.float32
    assert np.abs(result.mean(axis=0)).max() < 1e-6
    covariance = np.cov(result.T, bias=True).reshape(result.shape[1], -1)
    assert np.abs(covariance - np.eye(dimensions or 6)).max() < 1e-5


def test_the_first_dimensions_are_those_of_the_greatest_variance():
    vectors = np.random.default_rng(1).normal(size=(5000, 3)) * [1.0, 9.0, 3.0]
    _, matrix = fit_whitening(vectors, 2)
    assert np.abs(matrix).argmax(axis=0).tolist() == [1, 2]
    assert np.allclose(np.abs(matrix).max(axis=0), [1 / 9, 1 / 3], rtol=0.05)
    assert np.allclose(np.abs(whitened(vectors, 3)[:, :2]), np.abs(whitened(vectors, 2)), atol=1e-5)


def test_moving_and_mixing_all_embeddings_changes_no_cosine():
    vectors = embeddings()
    one, two = whitened(vectors), whitened(vectors @ np.random.default_rng(2).normal(size=(6, 6)) - 3)
    assert np.allclose(one @ one.T, two @ two.T, atol=1e-3)


def test_few_embeddings_carry_few_dimensions():
    with pytest.raises(InputError, match="4 embeddings vary in 3 directions; give more texts"):
        fit_whitening(embeddings(4))
    assert whitened(embeddings(4), 3).shape == (4, 3)
    with pytest.raises(InputError, match="dimensions: got 9, expected 1 to 6"):
        fit_whitening(embeddings(), 9)


LOAD = """
import sys
import numpy as np
sys.modules["hf_dialemb"] = None
from sentence_transformers import SentenceTransformer
path, output = sys.argv[1:]
np.save(output, SentenceTransformer(path, device="cpu").encode(["where is it", "goodbye"]))
"""


@pytest.mark.slow
def test_a_saved_model_needs_only_sentence_transformers(tiny_bert, sample_dialogues, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    model = SentenceTransformer(modules=[Transformer(tiny_bert), Pooling(16)], device="cpu")
    texts = [turn.content for dialogue in sample_dialogues[:10] for turn in dialogue.turns]
    mean, matrix = fit_whitening(model.encode(texts), 8)
    expected = apply_whitening(model.encode(["where is it", "goodbye"]), mean, matrix)
    add_whitening(model, mean, matrix)
    assert np.abs(np.cov(model.encode(texts).T, bias=True) - np.eye(8)).max() < 1e-3
    model.save_pretrained(str(tmp_path / "model"))
    words = [sys.executable, "-W", "error::UserWarning", "-c", LOAD, str(tmp_path / "model"), str(tmp_path / "out.npy")]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert np.abs(np.load(tmp_path / "out.npy") - expected).max() < 1e-3
