"""The encoders that come with the package: by name everywhere, whole or not at all, small.

And distilling one.
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
from safetensors.numpy import load_file
from transformers import AutoModel, AutoTokenizer

import hf_dialemb
from hf_dialemb.data import CORPORA, load_dialogues
from hf_dialemb.encoders import specs
from hf_dialemb.encoders.encoder import dialogue_texts
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.results.contamination import sets_behind
from hf_dialemb.storage import pretrained as backbones
from hf_dialemb.storage.pretrained import FOLDER, RECORD, shipped, shipped_record

SCRIPTS = Path(__file__).parents[2] / "training_scripts"
SCRIPTS = Path(__file__).parents[2] / "training_scripts"
ship = runpy.run_path(str(SCRIPTS / "ship.py"))["ship"]
DISTILLING = runpy.run_path(str(SCRIPTS / "distil.py"))
distil, learn_table = DISTILLING["distil"], DISTILLING["learn_table"]
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
        backbone not in (None, "all-MiniLM-L6-v2")
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
    for corpus in (line.split("|")[1].strip() for line in table):
        assert CORPORA[corpus]
        assert hf_dialemb.data.get_corpus(corpus).terms != "research"
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) <= 30 * 2**20


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
    assert [record["name"] for record in run.report()["trainings"]] == ["dse", "dial2vec"]
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
    (folder / "adapter_model.safetensors").write_bytes(b"torn")
    (tmp_path / "backbone" / "model.safetensors").write_bytes(whole)
    with pytest.raises(InputError, match=r"'small' cannot be read"):
        hf_dialemb.weights("small")
    assert not [*cache.iterdir()]


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
    options = {"max_steps": 1, "max_dialogues": 9, "output_dir": tmp_path / "x"}
    whole = hf_dialemb.train("dse", "sample", backbone=tiny_bert, **options)
    with pytest.raises(
        InputError, match="got a run without an adapter or a table; merge or distil it"
    ):
        ship(whole.path, "whole", (), tmp_path)
    assert (
        ("muldogo", "test")
        in sets_behind("action-minilm")
        == sets_behind("action-minilm (utterances)")
    )
    assert not {"star", "kvret", "doc2dial"} & {
        corpus for corpus, _ in sets_behind("dialogue-minilm")
    }
    with pytest.raises(InputError, match="weights: got 'nothing'"):
        hf_dialemb.weights("nothing")


def test_commands_choose_one_where_none_is_named(capsys, monkeypatch, cache):
    assert backbones.default_encoder() == "dialogue-minilm"
    assert backbones.default_encoder("action") == "action-minilm"
    monkeypatch.setattr(backbones, "find_spec", lambda name: None)
    assert (
        backbones.default_encoder("action") == "action-static"
    )  # MiniLM's weights are out of reach
    assert main(["search", "--corpus", "sample", "--split", "dev", "--id", "#3", "--top", "2"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("Model: dialogue-static (choose another with --model)")
    assert len(told.out.splitlines()) == 3


def test_a_search_in_stored_vectors_imports_no_torch(tmp_path, printed):
    calls, stored, model = (
        tmp_path / "calls.jsonl",
        tmp_path / "vectors.parquet",
        ["--model", "dialogue-static"],
    )
    lines = (json.dumps({**said, "id": f"d{place}"}) for place, said in enumerate(DIALOGUES))
    calls.write_text("\n".join(lines))
    printed("embed", "--input", calls, *model, "--output", stored)
    search = ["search", "--corpus", calls]
    program = """import sys; from hf_dialemb.apps.cli import main
code = main(sys.argv[1:])
assert not {'torch', 'transformers'} & set(sys.modules)
sys.exit(code)"""
    for wanted in (["--query", "a cheap hotel", "--whole"], ["--id", "d1"]):
        words, said = (
            [sys.executable, "-c", program, *search, "--vectors", stored],
            printed(*search, *model, *wanted),
        )
        assert (
            subprocess.run([*words, *wanted], check=True, capture_output=True, text=True).stdout
            == said
        )


@pytest.mark.slow
def test_models_load_without_libraries_that_they_do_not_need(static):
    program = """import sys, hf_dialemb; from hf_dialemb.apps.cli import main
assert hf_dialemb.load_encoder(sys.argv[1]).encode_utterances(['hello']).shape == (1, 8)
assert main('search --model dialogue-static --corpus sample --id #3'.split()) == 0
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


def test_what_is_learnt_is_nearer_to_the_teacher_than_the_words_alone():
    """Texts whose vectors are sums of hidden word vectors.

    The table finds those, which the given ones are not.
    """
    random = np.random.default_rng(0)
    hidden, alone = random.normal(size=(2, 20, 4)).astype(np.float32)
    tokens = [random.integers(0, 20, size=4).tolist() for _ in range(120)]
    vectors = np.stack([hidden[ids].sum(axis=0) for ids in tokens]).astype(np.float32)

    def agreement(table):
        found = np.stack([table[ids].mean(axis=0) for ids in tokens])
        unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (found, vectors)]
        return np.corrcoef(*((each @ each.T).ravel() for each in unit))[0, 1]

    table, again = (
        learn_table(alone, tokens, vectors, dimensions=4, passes=500, seed=0) for _ in range(2)
    )
    assert agreement(alone) < 0.5
    assert agreement(table) > 0.85
    assert np.array_equal(table, again)


def test_what_cannot_be_distilled_or_loaded_is_refused(static, tiny_bert, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        distil(tiny_bert, ["sample/dev"], output_dir=static)
    for name, value in (("dimensions", 0), ("runs", -1), ("passes", 0)):
        with pytest.raises(InputError, match=f"{name}: got {value}, expected a value at least"):
            distil(tiny_bert, ["sample/dev"], output_dir=tmp_path / "x", **{name: value})
    with pytest.raises(InputError, match=r"has no config\.json: expected a model folder"):
        distil(str(static), ["sample/dev"], output_dir=tmp_path / "x")
    (tmp_path / "torn/0_StaticEmbedding").mkdir(parents=True)
    (tmp_path / "torn/0_StaticEmbedding/model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"torn' cannot be read .*; fetch or make the model again"):
        hf_dialemb.load_encoder(tmp_path / "torn")
