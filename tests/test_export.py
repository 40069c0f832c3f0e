"""Export of dialogue encoders: what the published folder holds, that it loads, and what stops it from appearing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from hf_dialemb.cli import main
from hf_dialemb.hub.export import load_checkpoint, verify, write_checkpoint
from hf_dialemb.hub.forms import custom_encoder
from hf_dialemb.hub.forms.custom_encoder import WAYS
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exported(tiny_checkpoint, tmp_path_factory) -> tuple[Path, list[str]]:
    """The export of the tiny checkpoint as the command makes it, and the lines that it printed."""
    folder = tmp_path_factory.mktemp("exports") / "tiny"
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda *words, **_: lines.append(" ".join(map(str, words))))
        assert main(["export", "--model", str(tiny_checkpoint), "--output", str(folder)]) == 0
    return folder, lines


def refused(capsys, *words: object) -> str:
    """Runs a command that must end in one sentence, and returns it."""
    assert main([str(word) for word in words]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("dialemb: error: ")]
    assert len(lines) == 1
    return lines[0]


def test_every_way_of_loading_was_verified(exported):
    folder, lines = exported
    assert [line.split(": largest")[0] for line in lines[:-1]] == [f"Verified: {way}" for way in WAYS]
    assert len(WAYS) == 4
    assert lines[-1] == f"Wrote {folder}"
    assert sum("package absent" in way for way in WAYS) == 2
    for way, program in WAYS.items():
        assert ("_Blocked" in program) == ("package absent" in way) == ("trust_remote_code" in program)
        assert ("import hf_dialemb\n" in program) == ("package imported" in way)


def test_the_folder_holds_what_strangers_need_and_nothing_that_runs_when_unpickled(exported):
    folder, _ = exported
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja", "modules.json",
        "sentence_bert_config.json", "config_sentence_transformers.json", "dial2vec.py", "encoder.py", "matching.py",
    }  # fmt: skip
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt"))]
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]  # nothing temporary stays beside it


def test_the_configs_name_the_classes_that_both_libraries_look_for(exported):
    folder, _ = exported
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "dialemb-dial2vec"
    assert config["auto_map"] == {"AutoConfig": "dial2vec.Dial2VecConfig", "AutoModel": "dial2vec.Dial2VecModel"}
    modules = json.loads((folder / "modules.json").read_text())
    assert [entry["type"] for entry in modules] == ["sentence_transformers.models.Transformer"]


def test_no_file_names_a_place_on_this_machine(exported, tiny_bert, tiny_checkpoint):
    folder, _ = exported
    places = {tiny_bert, str(tiny_checkpoint), str(folder), str(folder.parent), str(Path.home())}
    files = [*folder.glob("*.json"), *folder.glob("*.jinja")]
    assert len(files) >= 5
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not [place for place in places if place in text], file.name
        assert '"/' not in text.replace('"/"', "").replace('"/":', ""), file.name  # the token "/" is no path


def test_the_export_has_the_weights_and_vectors_of_the_checkpoint(exported, tiny_checkpoint, sample_dialogues):
    folder, _ = exported
    before, after = (load_file(place / "model.safetensors") for place in (tiny_checkpoint, folder))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    one, two = (encode(*load_checkpoint(str(place)), sample_dialogues[:5]) for place in (tiny_checkpoint, folder))
    assert np.array_equal(one, two)


def test_sentence_transformers_gives_the_same_vectors(exported, sample_dialogues):
    folder, _ = exported
    model = SentenceTransformer(str(folder), device="cpu")
    expected = encode(*load_checkpoint(str(folder)), sample_dialogues[:7])
    vectors = model.encode([dialogue.to_messages() for dialogue in sample_dialogues[:7]])
    assert np.abs(vectors - expected).max() <= 1e-5 * np.abs(expected).max()
    texts = model.encode(["i need a hotel", "a taxi to the station"])
    assert texts.shape == (2, 16)
    assert np.isfinite(texts).all()
    assert not np.allclose(texts[0], texts[1])


def test_a_checkpoint_of_an_older_version_reads_long_dialogues_as_it_does(tiny_checkpoint, tmp_path):
    model, tokenizer = load_checkpoint(str(tiny_checkpoint))
    model.config.opening_tokens = model.config.closing_tokens = None
    tokenizer.model_max_length = model.config.max_tokens = 32
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "old")
    model, tokenizer = load_checkpoint(str(tmp_path / "old"))
    write_checkpoint(model, tokenizer, tmp_path / "new")
    turns = [{"role": role, "content": f"{number} a b c d e"} for number in range(9) for role in ("user", "assistant")]
    expected = encode(model, tokenizer, [Dialogue.from_messages(turns)])
    found = SentenceTransformer(str(tmp_path / "new"), device="cpu").encode([turns])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_existing_folder_is_refused_and_left_alone(tiny_checkpoint, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("keep me")
    message = refused(capsys, "export", "--model", tiny_checkpoint, "--output", tmp_path)
    assert f"--output {tmp_path} exists already" in message
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert (tmp_path / "mine.txt").read_text() == "keep me"


def test_a_model_that_is_not_ours_is_refused(tiny_bert, tmp_path, capsys):
    message = refused(capsys, "export", "--model", tiny_bert, "--output", tmp_path / "out")
    assert "is a bert model; expected a checkpoint of dial2vec" in message
    assert list(tmp_path.iterdir()) == []


def test_changed_weights_do_not_pass_the_verification(tiny_checkpoint, tmp_path):
    model, tokenizer = load_checkpoint(str(tiny_checkpoint))
    write_checkpoint(model, tokenizer, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["role_embeddings.weight"][0, 0] += 1
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="gives other embeddings"):
        list(verify(tmp_path, model, tokenizer))


def test_nothing_appears_when_a_way_of_loading_fails(tiny_checkpoint, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(custom_encoder, "WAYS", {"a way that fails": "raise RuntimeError('no such class')"})
    message = refused(capsys, "export", "--model", tiny_checkpoint, "--output", tmp_path / "out")
    assert "does not load (a way that fails): RuntimeError: no such class" in message
    assert list(tmp_path.iterdir()) == []


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def overwrite_header(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(b"\xff" * 64 + content[64:])


@pytest.mark.parametrize("damage", [cut, overwrite_header])
def test_damaged_weights_are_told_with_the_folder(tiny_checkpoint, tmp_path, capsys, damage):
    folder = shutil.copytree(tiny_checkpoint, tmp_path / "damaged")
    damage(folder / "model.safetensors")
    message = refused(capsys, "export", "--model", folder, "--output", tmp_path / "out")
    assert str(folder) in message
    assert not (tmp_path / "out").exists()


def test_a_damaged_shard_is_told_with_the_folder(tiny_checkpoint, tmp_path, capsys):
    folder = shutil.copytree(tiny_checkpoint, tmp_path / "sharded")
    (folder / "model.safetensors").unlink()
    AutoModel.from_pretrained(tiny_checkpoint).save_pretrained(folder, max_shard_size="20KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 2
    load_checkpoint(str(folder))
    cut(shards[1])
    message = refused(capsys, "export", "--model", folder, "--output", tmp_path / "out")
    assert str(folder) in message
    assert not (tmp_path / "out").exists()


def test_a_missing_shard_is_told_with_the_folder(tiny_checkpoint, tmp_path, capsys):
    folder = shutil.copytree(tiny_checkpoint, tmp_path / "without")
    (folder / "model.safetensors").unlink()
    message = refused(capsys, "export", "--model", folder, "--output", tmp_path / "out")
    assert str(folder) in message
