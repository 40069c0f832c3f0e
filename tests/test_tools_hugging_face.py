"""The examples with transformers' pipeline, sentence-transformers' trainer and datasets, and the encoder of batches."""

from __future__ import annotations

import os
import pickle
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset
from datasets.fingerprint import Hasher
from sentence_transformers import SentenceTransformer
from transformers import AutoModel
from utterance_checkpoints import save_dse

from hf_dialemb import load_dialogues
from hf_dialemb.evaluation import load_encoder
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.integrations import BatchEncoder
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.errors import InputError

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def published(tiny_checkpoint, tiny_bert, tmp_path_factory) -> dict[str, str]:
    """What `dialemb export` writes of a dialogue encoder and of an utterance encoder."""
    folder = tmp_path_factory.mktemp("published")
    sources = {
        "dial2vec": tiny_checkpoint,
        "dse": save_dse(tiny_bert, tmp_path_factory.mktemp("trained") / "dse", max_tokens=256),
    }
    for name, source in sources.items():
        write_checkpoint(*load_checkpoint(str(source)), folder / name)
    return {name: str(folder / name) for name in sources}


def run(name, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", [name, *words])
    return runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.mark.parametrize("method", ["dial2vec", "dse"])
def test_the_pipeline_gives_the_vectors_of_sentence_transformers(published, method, sample_dialogues, monkeypatch):
    found = run("feature_extraction.py", monkeypatch, published[method])
    model = SentenceTransformer(published[method], device="cpu")
    short = [Dialogue(dialogue.turns[:2]) for dialogue in sample_dialogues[:4]]
    expected = model.encode([dialogue.to_messages() for dialogue in short])
    np.testing.assert_allclose([found["embed"](dialogue) for dialogue in short], expected, atol=1e-5)
    tokens = found["extractor"]("a room")
    assert np.shape(tokens) == ((1, 16) if method == "dial2vec" else (1, np.shape(tokens)[1], 16))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dial2vec", "dse"])
def test_few_examples_train_an_encoder_of_messages(published, method, monkeypatch, capsys):
    found = run("few_shot_classifier.py", monkeypatch, published[method])
    assert isinstance(found["examples"][0][0], list), "the example must hand chat messages over"
    assert len(found["examples"]) == found["SHOTS"] * 10
    assert sum(score for _, _, score in found["drawn"]) == len(found["drawn"]) / 2
    before, after = (float(line.split()[2]) for line in capsys.readouterr().out.splitlines() if "accuracy" in line)
    assert 0 <= before <= 1
    assert 0 <= after <= 1


@pytest.mark.slow
def test_a_dataset_is_mapped_by_two_processes(published, tmp_path):
    words = [sys.executable, str(EXAMPLES / "map_dataset.py"), published["dial2vec"]]
    environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    expected = load_encoder(published["dial2vec"]).encode(load_dialogues("sample", split="dev"))
    _, shape, deviation = re.fullmatch(r"(\S+) (\(.+\)) (\S+)", done.stdout.splitlines()[-1]).groups()
    assert shape == str(expected.shape)
    assert float(deviation) == pytest.approx(expected.std(), rel=1e-4)


@pytest.mark.slow
def test_the_cache_knows_the_encoder_used_or_not_and_knows_other_weights(published, tmp_path, sample_dialogues):
    folder = tmp_path / "model"
    AutoModel.from_pretrained(published["dse"]).save_pretrained(folder)
    for file in Path(published["dse"]).glob("token*"):
        (folder / file.name).write_bytes(file.read_bytes())
    encoder = BatchEncoder(str(folder))
    before = Hasher.hash(encoder)
    dataset = Dataset.from_list([dialogue.to_json() for dialogue in sample_dialogues[:6]])
    first = dataset.map(encoder, batched=True)
    assert encoder.encoder._encoder is not None
    assert Hasher.hash(encoder) == before == Hasher.hash(BatchEncoder(str(folder)))
    assert len(pickle.dumps(encoder)) < 1000, "weights do not travel"
    assert dataset.map(BatchEncoder(str(folder)), batched=True)._fingerprint == first._fingerprint
    model = AutoModel.from_pretrained(folder)
    model.embeddings.LayerNorm.bias.data.add_(1)
    model.save_pretrained(folder)
    assert dataset.map(BatchEncoder(str(folder)), batched=True)._fingerprint != first._fingerprint


def test_batches_of_every_form_give_the_same_vectors(published, sample_dialogues):
    dialogues = sample_dialogues[:5]
    encoder = BatchEncoder(published["dial2vec"], output="vector")
    expected = load_encoder(published["dial2vec"]).encode(dialogues)
    records = [dialogue.to_json() for dialogue in dialogues]
    table = pa.Table.from_pylist(records)
    frame = table.to_pandas()  # lists at every depth are arrays in it
    for batch in ({name: list(frame[name]) for name in frame}, {name: frame[name].to_numpy() for name in frame}):
        found = encoder(batch)
        assert list(found) == ["id", "messages", "domains", "vector"]
        np.testing.assert_allclose(found["vector"], expected, atol=1e-5)
    found = encoder(table)
    np.testing.assert_allclose(np.stack(found.to_pandas()["vector"]), expected, atol=1e-5)
    assert found.drop_columns("vector") == table
    texts = BatchEncoder(published["dse"], column="text")
    assert texts({"text": pd.Series(["a room", "a taxi"])})["embedding"].shape == (2, 16)


def test_mistakes_are_told_in_one_sentence(published):
    with pytest.raises(InputError, match=r"column 'messages' is missing \(found: text\)"):
        BatchEncoder(published["dse"])({"text": ["a room"]})
    with pytest.raises(InputError, match=r"messages\[1\]: messages\[0\]: field content is missing"):
        BatchEncoder(published["dse"])({"messages": ["a room", [{"role": "user"}]]})
    with pytest.raises(InputError, match=r"text\[1\]: field content: got ''"):
        BatchEncoder(published["dse"], column="text")({"text": ["a room", ""]})
    for model in ("tfidf", f"{published['dse']}@whitened"):
        with pytest.raises(InputError, match="fitted on the very dialogues"):
            BatchEncoder(model)
