"""Releasing everything at hand on a local Hub, in one command that can be given again."""

import runpy
import sys
from pathlib import Path

import pytest
from publish_folders import hub_of_this_process
from published_models import measure, train
from sentence_transformers import SentenceTransformer

from hf_dialemb import load_encoder
from hf_dialemb.storage.pretrained import shipped, shipped_record

TEXTS = ["I need a cheap hotel.", "My card was stolen!"]


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
