"""The commands of corpora that the papers need."""

import pytest
from made_up_corpora import write
from test_cli_corpus import run

from hf_dialemb.corpora import read_jsonl


def run_papers(capsys, *words, code=0):
    return run(capsys, *words, code=code, before=("papers",))


@pytest.mark.slow
def test_unify_writes_the_folder_and_prints_its_table(capsys, tmp_path):
    assert "| sample |" in run_papers(capsys, "unify", "sample", "--output", tmp_path / "unified")
    assert (tmp_path / "unified" / "README.md").read_text(encoding="utf-8").startswith("---\n")
    assert "choose another" in run_papers(capsys, "unify", "sample", "--output", tmp_path / "unified", code=2)[1]
    assert "--licence research" in run_papers(capsys, "unify", "kvret", "--output", tmp_path / "other", code=2)[1]
    assert not (tmp_path / "other").exists()


def test_benchmark_says_what_is_not_at_hand(capsys, tmp_path):
    turns = [{"speaker": "USER", "utterance": "hello", "frames": []}]
    first = {"dialogue_id": "1", "services": ["Hotels_1"], "turns": turns}
    two = {**first, "dialogue_id": "2", "services": ["Hotels_1", "Taxi_1"]}
    data, output = write(tmp_path / "data", {"sgd/test/dialogues_001.json": [first, two]}), tmp_path / "benchmark"
    table = run_papers(capsys, "benchmark", "--data-dir", data, "--output", output)
    assert "| sgd | test | 1 / 1,331 | 1.0 / 12 | 1.0 / 124 | 1 / 45 |" in table
    assert "| bitod | train | - / 2,952 |" in table
    assert [dialogue.id for dialogue in read_jsonl(output / "sgd" / "test.jsonl")] == ["test/1"]
    assert (
        "None of bitod" in run_papers(capsys, "benchmark", "--data-dir", output, "--output", tmp_path / "b", code=2)[1]
    )
