"""Methods of one's own, from a file or an installed package, in every command."""

import shutil
from pathlib import Path

import pytest

from hf_dialemb import load_encoder

EXAMPLE = Path(__file__).parents[2] / "examples" / "wordsim.py"


@pytest.mark.habit("--method FILE.py: a method of one's own", "works in every command")
def test_a_method_in_a_file_trains_embeds_and_is_exported(tiny_bert, tmp_path, printed):
    method = shutil.copy(EXAMPLE, tmp_path / "wordsim.py")
    printed(
        "train", "sample", "--method", method, "--backbone", tiny_bert, "--output", tmp_path / "run", "--max-steps", 2,
        "--max-dialogues", 16, "--exclude", "none",
    )  # fmt: skip
    printed("embed", "sample/dev", "--model", tmp_path / "run", "--output", tmp_path / "vectors.parquet")
    assert load_encoder(tmp_path / "run").encode_utterances(["hello"]).shape == (1, 16)


@pytest.mark.habit("a run of a method that is not registered", "says to register it")
def test_a_run_of_an_unknown_method_says_to_register_it(tiny_bert, tmp_path, printed, refused):
    (tmp_path / "run").mkdir()
    shutil.copytree(tiny_bert, tmp_path / "run", dirs_exist_ok=True)
    config = (tmp_path / "run" / "config.json").read_text().replace('"bert"', '"hf-dialemb-wordsim"')
    (tmp_path / "run" / "config.json").write_text(config)
    (tmp_path / "run" / "training_settings.json").write_text('{"method": "wordsim"}')
    sentence = refused("embed", "sample/dev", "--model", tmp_path / "run", "--output", tmp_path / "vectors.parquet")
    assert "wordsim" in sentence
    assert "register" in sentence
