"""The encoders that come with the package: by name everywhere, whole or not at all, small.

Distilling one, and releasing everything at hand on a local Hub, in one command that can be given
again.
"""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import main
from exports import stock
from interface_block import dialogues_in_memory
from made_up_corpora import needs
from publish_folders import hub_of_this_process
from published_models import measure, train
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

import hf_dialemb
from hf_dialemb import InputError, load_dialogues, load_encoder
from hf_dialemb.encoders import specs
from hf_dialemb.encoders.encoder import dialogue_texts
from hf_dialemb.evaluation.results.contamination import sets_behind
from hf_dialemb.storage import pretrained as backbones
from hf_dialemb.storage.pretrained import FOLDER, RECORD, shipped, shipped_record

SCRIPTS = Path(__file__).parents[2] / "training_scripts"
ship = runpy.run_path(str(SCRIPTS / "ship.py"))["ship"]
distil = runpy.run_path(str(SCRIPTS / "distil.py"))["distil"]
FURTHER = runpy.run_path(str(SCRIPTS / "pairs.py"))["FURTHER"]
merging = runpy.run_path(str(SCRIPTS / "merge.py"))
TEXTS = ["I need a cheap hotel in the north.", "My card was stolen!", "", "Größe? 40, bitte"]
DIALOGUES = dialogues_in_memory()
AS_TEXTS = dialogue_texts(load_dialogues(DIALOGUES))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, of this test alone."""
    specs._hub_path.cache_clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "hf_dialemb"
    specs._hub_path.cache_clear()


def needs_backbone(name):
    """Skip where the weights below an adapter can be had from the Hub alone."""
    backbone = shipped_record(name)["backbone"]
    if (
        backbone not in (None, "all-MiniLM-L6-v2", *backbones.BACKBONES)
        and backbones._cached(backbone, backbones.WEIGHTS) is None
    ):
        pytest.skip(f"{backbone} is not in Hugging Face's cache")


@pytest.mark.parametrize("name", shipped())
def test_it_loads_by_name_and_as_a_folder_and_gives_the_same_vectors(name, cache, tmp_path):
    needs_backbone(name)
    encoder, plain = hf_dialemb.load_encoder(name), stock(hf_dialemb.weights(name))
    vectors = plain.encode(TEXTS)
    assert np.allclose(vectors, encoder.encode_utterances(TEXTS), atol=1e-6)
    assert np.allclose(plain.encode(AS_TEXTS), encoder.encode(DIALOGUES), atol=1e-5)
    assert main(["export", "--model", name, "--output", str(tmp_path / "whole")]) == 0
    assert np.array_equal(stock(tmp_path / "whole").encode(TEXTS), vectors)
    words = ["export", "--model", name, "--output", str(tmp_path / "x"), "--dtype", "bf16"]
    assert main(words) == 2


@needs("muldogo", "self_dialogue")
@pytest.mark.parametrize("name", shipped())
def test_its_card_names_its_sources_and_their_licences(name):
    card = (FOLDER / name / "README.md").read_text()
    table = card.partition("## Learnt from")[2].partition("\n\nWhat is")[0].strip().splitlines()[2:]
    assert table
    for corpus, split, licence in (
        [cell.strip() for cell in line.split("|")[1:4]] for line in table
    ):
        if f"{corpus}/{split}" in FURTHER:
            assert FURTHER[f"{corpus}/{split}"][0] == licence
        else:
            assert hf_dialemb.data.get_corpus(corpus).terms != "research"
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) <= 36e6


@pytest.fixture(scope="module")
def trained(tiny_bert, tmp_path_factory):
    """Two trainings of one backbone: of utterances, and of dialogues, whose markers are words."""
    place = tmp_path_factory.mktemp("trained")
    options = {"backbone": tiny_bert, "max_steps": 3, "learning_rate": 0.01, "max_dialogues": 20}
    return [
        str(hf_dialemb.train(name, "sample", output_dir=place / name, **options).path)
        for name in ("dse", "dial2vec")
    ]


def test_a_merge_adds_what_each_part_moved_cut_to_a_rank(tiny_bert, trained):
    start = AutoModel.from_pretrained(tiny_bert).state_dict()
    first, second = (load_file(Path(path) / "model.safetensors") for path in trained)
    parts = {trained[0]: 0.5, trained[1]: 2}
    merged = merging["merged_model"](tiny_bert, parts, 2)[0].encoder.state_dict()
    for name, value in merged.items():
        before = start[name].numpy()
        if name.startswith("encoder.") and value.dim() == 2:
            moved = 0.5 * (first[f"encoder.{name}"] - before)
            moved += 2 * (second[f"encoder.{name}"] - before)
            left, values, right = np.linalg.svd(moved)
            best = left[:, :2] * values[:2] @ right[:2]
            error = np.abs(value.numpy() - before - best).max()
            assert error <= 0.01 * np.abs(best).max()  # bfloat16
        else:
            assert np.array_equal(value, before), name


def test_a_merge_is_a_run_whose_adapter_peft_reads(tiny_bert, trained, tmp_path):
    run = merging["merge"](tiny_bert, dict.fromkeys(trained, 1.0), 4, tmp_path / "both")
    encoder = hf_dialemb.load_encoder(run)
    vectors = encoder.encode(DIALOGUES)
    assert np.allclose(encoder.encode_utterances(AS_TEXTS), vectors, atol=1e-5)
    assert np.allclose(stock(run.path).encode(AS_TEXTS), vectors, atol=1e-5)
    assert sets_behind(str(run.path)) == {("sample", "train")}
    batch = AutoTokenizer.from_pretrained(run.path)(AS_TEXTS[:1], return_tensors="pt")
    adapted = AutoModel.from_pretrained(run.path / "adapter")(**batch).last_hidden_state
    assert np.allclose(adapted.mean(1).detach(), vectors[:1], atol=1e-5)
    assert json.loads((run.path / "adapter/adapter_config.json").read_text())["r"] == 4


def test_an_adapter_is_its_backbone_and_the_difference(tiny_bert, tmp_path, cache, monkeypatch):
    backbone = str(shutil.copytree(tiny_bert, tmp_path / "backbone"))
    options = {
        "max_steps": 2,
        "learning_rate": 0.01,
        "max_dialogues": 20,
        "output_dir": tmp_path / "dse",
    }
    run = hf_dialemb.train("dse", "sample", backbone=backbone, **options)
    merged = merging["merge"](backbone, {str(run.path): 1}, 4, tmp_path / "merged")
    monkeypatch.setattr(backbones, "FOLDER", tmp_path / "weights")
    (tmp_path / "weights").mkdir()
    folder = ship(merged.path, "small", (), tmp_path / "weights")
    assert not (folder / "model.safetensors").exists()
    assert "dse x 1" in (folder / "README.md").read_text()
    found = hf_dialemb.load_encoder("small").encode_utterances(TEXTS)
    assert np.allclose(found, hf_dialemb.load_encoder(merged).encode_utterances(TEXTS), atol=1e-5)
    made = next(cache.glob("small-*")) / "model.safetensors"
    stamp = made.stat().st_mtime_ns
    assert hf_dialemb.weights("small") == made.parent
    assert made.stat().st_mtime_ns == stamp  # merged once
    shutil.rmtree(cache)
    whole = (tmp_path / "backbone" / "model.safetensors").read_bytes()
    (tmp_path / "backbone" / "model.safetensors").write_bytes(whole + b"other")
    with pytest.raises(InputError, match=r"small: got other weights of .* than it was made for"):
        hf_dialemb.weights("small")


@pytest.fixture(scope="module")
def static(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("distilled") / "static"
    distil(tiny_bert, ["sample/dev"], output_dir=folder, dimensions=8, passes=3)
    return folder


def test_a_table_is_shipped_as_it_is_and_its_sources_are_known(static, tiny_bert, tmp_path):
    folder = ship(static, "table", (), tmp_path)
    assert "| sample | dev | Apache-2.0 |" in (folder / "README.md").read_text()
    vectors = [
        hf_dialemb.load_encoder(place).encode_utterances(TEXTS) for place in (static, folder)
    ]
    assert np.array_equal(*vectors)
    assert (
        "0_StaticEmbedding/model.safetensors" in json.loads((folder / RECORD).read_text())["files"]
    )
    assert (
        ("sgd", "train")
        in sets_behind("action-minilm")
        == sets_behind("action-minilm (utterances)")
    )
    assert not {"star", "kvret", "doc2dial"} & {
        corpus for corpus, _ in sets_behind("dialogue-minilm")
    }


@pytest.mark.slow
def test_models_load_without_libraries_that_they_do_not_need(static):
    program = """import sys, hf_dialemb; from hf_dialemb.apps.cli import main
assert hf_dialemb.load_encoder(sys.argv[1]).encode_utterances(['hello']).shape == (1, 8)
assert main('search --model dialogue-static --corpus sample --query card'.split()) == 0
assert 'torch' not in sys.modules
hf_dialemb.load_encoder('dialogue-minilm').encode_utterances(['hello'])
assert 'sentence_transformers' not in sys.modules"""
    subprocess.run([sys.executable, "-c", program, str(static)], check=True)


def test_a_table_of_eight_bits_loads_everywhere(static):
    encoder = hf_dialemb.load_encoder(static)
    vectors = encoder.encode_utterances(TEXTS)
    assert vectors.any(axis=1).tolist() == [True, True, False, True]  # nothing was said
    assert np.allclose(stock(static).encode(TEXTS), vectors, atol=1e-6)
    assert np.allclose(
        encoder.encode(load_dialogues(DIALOGUES)), encoder.encode_utterances(AS_TEXTS)
    )
    rows = load_file(static / "0_StaticEmbedding/model.safetensors")["embeddings"]
    assert rows.dtype == np.int8
    assert np.abs(rows).max(axis=1).min() == 127  # each row uses its scale to the full
    assert json.loads((static / "training_settings.json").read_text())["corpus"] == ["sample/dev"]


@pytest.mark.slow
def test_everything_at_hand_is_released_once(
    tiny_bert, sample_dialogues, tmp_path, monkeypatch, capsys
):
    train("dse", tiny_bert, sample_dialogues, tmp_path / "runs" / "mine")
    (tmp_path / "runs" / "unfinished").mkdir()
    (tmp_path / "results").mkdir()
    measure(tmp_path / "results" / "mine.json", "runs/mine", tiny_bert)
    words = ["acme", "--runs", tmp_path / "runs", "--output", tmp_path / "out"]
    words += ["--results", tmp_path / "results"]

    scripts = Path(__file__).parents[2] / "training_scripts"
    main = runpy.run_path(str(scripts / "release.py"))["main"]
    # an adapter is exported whole by its name in test_shipped, and takes long
    tables = [name for name in shipped() if shipped_record(name)["backbone"] is None]
    monkeypatch.setitem(main.__globals__, "shipped", lambda: tables)

    def release(*more):
        monkeypatch.setattr(sys, "argv", ["release.py", *map(str, words), *more])
        assert main() == 0
        return capsys.readouterr().out

    with hub_of_this_process() as hub:
        assert "nothing was sent" in release()
        assert not hub.asked("PUT")
        sent = release("--send")
        names = [*tables, "mine"]
        assert [f"== acme/{name}" in sent for name in names] == [True] * len(names)
        assert "unfinished" not in sent
        histories = {name: hub.history("models", f"acme/{name}") for name in names}
        release("--send")
        for name, history in histories.items():
            assert hub.history("models", f"acme/{name}") == history
        files = hub.files("models", "acme/mine")
    assert {"README.md", "results/figures.md", ".eval_results/hf_dialemb.yaml"} <= set(files)
    assert b"acme/mine" in files["README.md"]
    for name in names:
        folder = tmp_path / "out" / name
        source = name if name in tables else tmp_path / "runs" / name
        expected = load_encoder(source).encode_utterances(TEXTS)
        vectors = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
        assert vectors == pytest.approx(expected, abs=1e-5)
