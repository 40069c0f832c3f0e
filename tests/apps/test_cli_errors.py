"""What goes wrong ends in one sentence and an exit code.

2 for a wrong request, 1 for a run that failed.
"""

import json

import pytest
from training_runs import words_of

from hf_dialemb.apps.cli import main
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn


def test_a_dialogue_of_one_speaker_can_be_left_out(
    tiny_bert, tmp_path, refused, capsys, sample_dialogues
):
    alone = Dialogue((Turn("user", "hello"), Turn("user", "anyone?")), "odd")
    file = tmp_path / "mine.jsonl"
    write_jsonl([*sample_dialogues[:4], alone], file)
    small = {"max_steps": 1, "num_negatives": 1, "max_tokens": 32, "backbone": tiny_bert}
    words = ["train", *words_of(tmp_path / "run", method="dial2vec", corpus=file, **small)]
    assert "dialogue 'odd' has one speaker ('user')" in refused(*words, "--strict", "true")
    assert main([*words, "--resume", "false"]) == 0
    assert "Left out 1 dialogues of one speaker" in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "training_report.json").read_text())["dialogues"] == 4


EMBED = ("embed", "--input", "calls.jsonl", "--output", "o.parquet", "--model")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "the following arguments are required: command"),
        (["trian"], "invalid choice: 'trian'"),
        (
            ["corpus", "show", "sample", "--id", "1", "--colour", "red"],
            "unknown argument '--colour'",
        ),
        (
            ["topics", "multiwos"],
            "got 'multiwos', which is neither a file nor a corpus. Did you mean 'multiwoz'? See",
        ),
        (["corpus", "check", "calls.csv", "--split", "dev"], "calls.csv has no splits"),
        ([*EMBED, "tfidf"], "fitted on the dialogues that it embeds"),
        (["search", "--corpus", "sample"], "the following arguments are required: --query"),
        (
            ["evaluate", "--model", "tfidf", "--corpus", "./calls.jsonl", "--split", "dev"],
            "got 'dev', but ./calls.jsonl has no splits and is read whole",
        ),
    ],
)
def test_a_wrong_request_is_told(tmp_path, refused, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)  # results.json is the default of --output
    assert sentence in refused(*words)
    assert list(tmp_path.iterdir()) == []
