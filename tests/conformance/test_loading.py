"""Options of loading and encoding, by their names in transformers and sentence-transformers."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import cos_sim

from hf_dialemb import load_encoder
from hf_dialemb.cli import main

TEXTS = ["I need a cheap hotel.", "My card was stolen!", "Yes."]
DIALOGUES = [[{"role": "user", "content": text}, {"role": "assistant", "content": "Certainly."}] for text in TEXTS]


@pytest.fixture(params=["plain", "dial2vec"])
def encoder(request, tiny_bert, tiny_checkpoint):
    return load_encoder(tiny_bert if request.param == "plain" else str(tiny_checkpoint))


@pytest.mark.habit("encode(normalize_embeddings=True)", "works")
def test_vectors_can_have_unit_length(encoder):
    plain, unit = encoder.encode(DIALOGUES), encoder.encode(DIALOGUES, normalize_embeddings=True)
    assert np.allclose(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.habit("encode(truncate_dim=k)", "works; normalised after the cut")
def test_vectors_can_be_cut(encoder):
    assert np.array_equal(encoder.encode(DIALOGUES, truncate_dim=4), encoder.encode(DIALOGUES)[:, :4])
    unit = encoder.encode_utterances(TEXTS, truncate_dim=4, normalize_embeddings=True)
    assert np.allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)


@pytest.mark.habit("encode(convert_to_tensor=True)", "works")
def test_vectors_can_be_a_tensor(encoder):
    vectors = encoder.encode(DIALOGUES, convert_to_tensor=True)
    assert isinstance(vectors, torch.Tensor)
    assert np.array_equal(vectors.cpu().numpy(), encoder.encode(DIALOGUES))


@pytest.mark.habit("encode(batch_size=..., show_progress_bar=...)", "works")
def test_the_size_of_a_batch_changes_no_vector(encoder):
    small = encoder.encode(DIALOGUES, batch_size=1, show_progress_bar=True)
    assert np.abs(small - encoder.encode(DIALOGUES, batch_size=8, show_progress_bar=False)).max() <= 1e-5


@pytest.mark.habit("encode of one string", "encode_utterances('...') gives (D,)")
def test_a_single_utterance_gives_a_single_vector(encoder):
    vector = encoder.encode_utterances(TEXTS[0])
    assert vector.shape == encoder.encode_utterances(TEXTS).shape[1:]
    assert np.abs(vector - encoder.encode_utterances(TEXTS)[0]).max() <= 1e-5


@pytest.mark.habit("model.similarity(a, b)", "works: cosines")
def test_similarities_are_cosines(encoder):
    vectors = encoder.encode(DIALOGUES)
    assert torch.allclose(torch.as_tensor(encoder.similarity(vectors, vectors)), cos_sim(vectors, vectors), atol=1e-6)


@pytest.mark.habit("load(dtype=..., attn_implementation=..., device=...)", "works")
def test_models_load_in_a_dtype_with_an_attention_on_a_device(tiny_bert):
    exact = load_encoder(tiny_bert, attn_implementation="eager", device="cpu").encode_utterances(TEXTS)
    assert np.abs(exact - SentenceTransformer(tiny_bert, device="cpu").encode(TEXTS)).max() <= 1e-5
    rough = load_encoder(tiny_bert, dtype=torch.bfloat16).encode_utterances(TEXTS)
    assert 1e-6 < np.abs(rough - exact).max() < 0.1 * np.abs(exact).max()
    assert np.array_equal(rough, load_encoder(tiny_bert, dtype="bfloat16").encode_utterances(TEXTS))


@pytest.mark.habit("--batch-size, --device, --dtype, --revision on the command line", "wherever there is --model")
def test_commands_take_the_options_of_loading(tiny_bert, tmp_path, printed, capsys):
    options = ["--batch-size", "2", "--device", "cpu", "--dtype", "float32"]
    calls, vectors = tmp_path / "calls.jsonl", tmp_path / "vectors.parquet"
    calls.write_text("".join(json.dumps({"id": text, "messages": DIALOGUES[0]}) + "\n" for text in TEXTS))
    printed("embed", calls, "--model", tiny_bert, "--output", vectors, *options)
    assert main(["search", str(calls), "--vectors", str(vectors), "--query", "hotel", "--device", "cpu"]) == 2
    assert "--device: got cpu without a model to load" in capsys.readouterr().err
    for command in ("search", "topics", "flow", "index", "evaluate", "embed"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        text = capsys.readouterr().out
        assert [name for name in (*options[::2], "--revision") if name not in text] == [], command
