"""Distilling: a table of word vectors that agrees with its teacher, and loads wherever static models do."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from interface_block import dialogues_in_memory
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer

import hf_dialemb
from hf_dialemb.apps.distil import distil, learn_table, sample_texts
from hf_dialemb.cli import main
from hf_dialemb.corpora.objects import as_dialogues
from hf_dialemb.models.errors import InputError

TEXTS = ["I need a cheap hotel in the north.", "When does the train leave?", "", "Größe? 40, bitte"]


@pytest.fixture(scope="module")
def static(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("distilled") / "static"
    words = ["distil", "--teacher", tiny_bert, "--corpus", "sample/dev", "--output", str(folder), "--dimensions", "8"]
    assert main([*words, "--passes", "3"]) == 0
    return folder


def test_it_loads_everywhere_and_is_eight_bits_with_a_scale_for_each_word(static):
    encoder = hf_dialemb.load_encoder(static)
    vectors = encoder.encode_utterances(TEXTS)
    assert vectors.shape == (4, 8)
    assert not vectors[2].any()  # nothing was said
    assert np.allclose(SentenceTransformer(str(static), device="cpu").encode(TEXTS), vectors, atol=1e-6)
    dialogues = as_dialogues(dialogues_in_memory())
    whole = encoder.encode_utterances([" ".join(turn.content for turn in each.turns) for each in dialogues])
    assert np.allclose(encoder.encode(dialogues), whole)
    tensors = load_file(static / "0_StaticEmbedding/model.safetensors")
    assert tensors["embeddings"].dtype == np.int8
    assert np.abs(tensors["embeddings"]).max(axis=1).min() == 127  # each row uses its scale to the full
    settings = json.loads((static / "training_settings.json").read_text())
    assert settings["corpus"] == ["sample/dev"]


def test_what_is_learnt_is_nearer_to_the_teacher_than_the_words_alone():
    """Texts whose vectors are sums of hidden word vectors: the table finds those, which the given ones are not."""
    random = np.random.default_rng(0)
    hidden, alone = random.normal(size=(2, 20, 4)).astype(np.float32)
    tokens = [random.integers(0, 20, size=4).tolist() for _ in range(120)]
    vectors = np.stack([hidden[ids].sum(axis=0) for ids in tokens]).astype(np.float32)

    def agreement(table, wanted):
        found = np.stack([table[ids].mean(axis=0) for ids in tokens])
        unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (found, wanted)]
        scores = [each @ each.T for each in unit]
        return np.corrcoef(scores[0].ravel(), scores[1].ravel())[0, 1]

    table = learn_table(alone, tokens, vectors, dimensions=4, passes=500, seed=0)
    assert agreement(alone, vectors) < 0.5
    assert agreement(table, vectors) > 0.85
    again = learn_table(alone, tokens, vectors, dimensions=4, passes=500, seed=0)
    assert np.array_equal(table, again)


def test_texts_are_distinct_utterances_and_runs_of_turns(sample_dialogues):
    texts = sample_texts(sample_dialogues[:20], seed=0)
    utterances = {turn.content for dialogue in sample_dialogues[:20] for turn in dialogue.turns}
    assert {*texts[: len(utterances)]} == utterances
    whole = [" ".join(turn.content for turn in dialogue.turns) for dialogue in sample_dialogues[:20]]
    runs = texts[len(utterances) :]
    assert len(runs) == 20
    assert all(any(run in each for each in whole) for run in runs)


@pytest.mark.slow
def test_it_embeds_without_torch(static):
    program = (
        "import sys, hf_dialemb; e = hf_dialemb.load_encoder(sys.argv[1]); v = e.encode_utterances(['hello'])\n"
        "assert v.shape == (1, 8) and 'torch' not in sys.modules, 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(static)], check=True)


def test_what_cannot_be_is_refused(static, tiny_bert, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        distil(tiny_bert, ["sample/dev"], output_dir=static)
    with pytest.raises(InputError, match=r"has no config\.json: expected a model folder"):
        distil(str(static), ["sample/dev"], output_dir=tmp_path / "x")
    (tmp_path / "torn/0_StaticEmbedding").mkdir(parents=True)
    (tmp_path / "torn/0_StaticEmbedding/model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"torn' cannot be read .*; fetch or make the model again"):
        hf_dialemb.load_encoder(tmp_path / "torn")
