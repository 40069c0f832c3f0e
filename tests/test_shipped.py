"""The encoders that come with the package: by name everywhere, whole or not at all, small."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from interface_block import dialogues_in_memory
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

import hf_dialemb
from hf_dialemb.apps.distil import distil
from hf_dialemb.cli import main
from hf_dialemb.corpora import CORPORA
from hf_dialemb.evaluation.results.learnt import sets_behind
from hf_dialemb.hub.shipping import ship
from hf_dialemb.models import backbones
from hf_dialemb.models import shipped as shipped_module
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.shipped import FOLDER, RECORD, shipped

TEXTS = ["I need a cheap hotel in the north.", "My card was stolen!"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, of this test alone."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hf_dialemb"


@pytest.mark.parametrize("name", shipped())
def test_it_loads_by_name_and_as_a_folder_and_gives_the_same_vectors(name, cache, tmp_path):
    encoder = hf_dialemb.load_encoder(name)
    vectors = encoder.encode_utterances(TEXTS)
    plain = SentenceTransformer(str(hf_dialemb.weights(name)), device="cpu")
    assert np.allclose(plain.encode(TEXTS), vectors, atol=1e-6)
    texts = [" ".join(turn["content"] for turn in each["messages"]) for each in dialogues_in_memory()]
    assert np.allclose(plain.encode(texts), encoder.encode(dialogues_in_memory()), atol=1e-5)
    assert plain.max_seq_length >= 512
    assert main(["export", "--model", name, "--output", str(tmp_path / "whole")]) == 0
    whole = SentenceTransformer(str(tmp_path / "whole"), device="cpu").encode(TEXTS)
    assert np.array_equal(whole, plain.encode(TEXTS))
    assert main(["export", "--model", name, "--output", str(tmp_path / "x"), "--onnx"]) == 2


@pytest.mark.parametrize("name", shipped())
def test_its_card_says_what_it_learnt_from_and_nothing_of_it_is_for_research_alone(name):
    card = (FOLDER / name / "README.md").read_text()
    table = card.partition("## Learnt from")[2].partition("\n\nWhat is")[0].strip().splitlines()[2:]
    assert table
    for line in table:
        assert CORPORA[line.split("|")[1].strip()]
        assert hf_dialemb.corpora.get_corpus(line.split("|")[1].strip()).terms != "research"
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) <= 16 * 2**20


def test_an_adapter_is_its_backbone_and_the_difference(tiny_bert, tmp_path, cache, monkeypatch):
    run = hf_dialemb.train("dse", "sample", backbone=tiny_bert, max_steps=2, learning_rate=0.01, max_dialogues=20,
                           output_dir=tmp_path / "dse")  # fmt: skip
    merged = hf_dialemb.merge(tiny_bert, {run: 1}, rank=4, output_dir=tmp_path / "merged")
    monkeypatch.setattr(shipped_module, "FOLDER", tmp_path / "weights")
    (tmp_path / "weights").mkdir()
    folder = ship(merged.path, "small", (), tmp_path / "weights")
    assert not (folder / "model.safetensors").exists()
    assert "dse x 1" in (folder / "README.md").read_text()
    found = hf_dialemb.load_encoder("small").encode_utterances(TEXTS)
    assert np.allclose(found, merged.encoder().encode_utterances(TEXTS), atol=1e-5)
    made = next(cache.iterdir())
    stamp = (made / "model.safetensors").stat().st_mtime_ns
    assert hf_dialemb.weights("small") == made
    assert (made / "model.safetensors").stat().st_mtime_ns == stamp  # merged once

    shutil.rmtree(cache)
    weights = f"{tiny_bert}/model.safetensors"
    kept = load_file(weights)
    try:
        save_file({name: value + 1 for name, value in kept.items()}, weights, metadata={"format": "pt"})
        with pytest.raises(InputError, match=r"small: got other weights of .* than it was made for"):
            hf_dialemb.weights("small")
    finally:
        save_file(kept, weights, metadata={"format": "pt"})
    (folder / "adapter_model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"small: the file adapter_model.safetensors .* missing or damaged; install"):
        hf_dialemb.weights("small")
    assert not cache.exists()


def test_a_table_is_shipped_as_it_is(tiny_bert, tmp_path):
    run = distil(tiny_bert, ["sample/dev"], output_dir=tmp_path / "static", dimensions=8, passes=1)
    folder = ship(run.path, "table", (), tmp_path)
    assert "| sample | dev | Apache-2.0 |" in (folder / "README.md").read_text()
    assert np.array_equal(
        hf_dialemb.load_encoder(folder).encode_utterances(TEXTS), run.encoder().encode_utterances(TEXTS)
    )
    record = json.loads((folder / RECORD).read_text())
    assert record["backbone"] is None
    assert "0_StaticEmbedding/model.safetensors" in record["files"]
    whole = hf_dialemb.train(
        "dse", "sample", backbone=tiny_bert, max_steps=1, max_dialogues=9, output_dir=tmp_path / "x"
    )
    with pytest.raises(InputError, match="got a run without an adapter or a table; merge with --rank"):
        ship(whole.path, "whole", (), tmp_path)


def test_commands_choose_one_where_none_is_named(tmp_path, capsys, monkeypatch, cache):
    assert backbones.default_encoder() == "dialogue-minilm"
    assert backbones.default_encoder("action").endswith("-minilm")
    monkeypatch.setattr(backbones, "find_spec", lambda name: None)
    assert backbones.default_encoder() == "dialogue-static"  # MiniLM's weights are out of reach
    assert main(["search", "--corpus", "sample", "--split", "dev", "--id", "#3", "--top", "2"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("Model: dialogue-static (choose another with --model)")
    assert len(told.out.splitlines()) == 3


@pytest.mark.slow
def test_searching_by_the_table_imports_no_torch():
    program = (
        "import sys\nfrom hf_dialemb.cli import main\n"
        "words = ['search', '--model', 'dialogue-static', '--corpus', 'sample', '--id', '#3']\n"
        "assert main(words) == 0 and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_it_learnt_from_is_known_so_that_figures_on_it_are_marked():
    assert ("muldogo", "test") in sets_behind("action-minilm") == sets_behind("action-minilm@utterances")
    assert not {"star", "kvret", "doc2dial", "self_dialogue"} & {corpus for corpus, _ in sets_behind("dialogue-minilm")}


def test_another_name_is_refused():
    with pytest.raises(InputError, match="weights: got 'nothing'"):
        hf_dialemb.weights("nothing")
