"""What goes wrong ends in one sentence and an exit code.

2 for a wrong request, 1 for a run that failed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_runs import words_of as words_in

from hf_dialemb.apps.cli import main

GOOD = {
    "messages": [
        {"role": "user", "content": "a room"},
        {"role": "assistant", "content": "for whom?"},
    ]
}


def training(backbone: object, output: Path, /, **more: object) -> list[str]:
    """The words of the smallest training; ``more`` overrides."""
    small = {
        "method": "dial2vec",
        "backbone": backbone,
        "max_steps": 1,
        "max_dialogues": 4,
        "num_negatives": 1,
    }
    small |= {"max_tokens": 32}
    return ["train", *words_in(output, **{**small, "per_device_train_batch_size": 2, **more})]


def write_lines(file: Path, *records: object) -> Path:
    texts = [record if isinstance(record, str) else json.dumps(record) for record in records]
    file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return file


def words_of(command: str, model: object, corpus: object, output: Path) -> list[object]:
    """The words of a command that reads a corpus, perhaps a model, and writes something."""
    words = {
        "corpus": ["convert", corpus, "--output", f"{output}.jsonl"],
        "evaluate": ["--model", model, "--corpus", corpus, "--output", output],
        "embed": ["--model", model, "--input", corpus, "--output", f"{output}.parquet"],
        "export": ["--model", model, "--output", output],
        "search": ["--model", model, "--corpus", corpus, "--id", "#1"],
    }
    return (
        training(model, output, corpus=corpus) if command == "train" else [command, *words[command]]
    )


BROKEN = [
    ([GOOD, GOOD, '{"messages": ['], ":3: broken JSON"),
    (
        [GOOD, {"messages": [{"role": "user", "content": 3}]}],
        ":2: messages[0]: field content: got 3",
    ),
    ([GOOD, {"score": 3}], ":2: got an object with the fields score"),
    ([""], ": got no dialogue"),
    (None, ": cannot be read (No such file"),
]


@pytest.mark.parametrize(("records", "sentence"), BROKEN, ids=[sentence for _, sentence in BROKEN])
@pytest.mark.parametrize("command", ["train", "corpus", "evaluate", "search", "embed"])
def test_a_malformed_file_is_told_with_its_line(
    tiny_bert, tmp_path, refused, command, records, sentence
):
    file, output = tmp_path / "mine.jsonl", tmp_path / "output"
    if records is not None:
        write_lines(file, *records)
    assert f"{file}{sentence}" in refused(*words_of(command, tiny_bert, file, output), "--strict")
    assert [path.name for path in tmp_path.glob("output*") if path.is_file()] == []
    assert not (output / "model.safetensors").exists()


def test_a_dialogue_of_one_speaker_can_be_left_out(
    tiny_bert, tmp_path, refused, capsys, sample_dialogues
):
    alone = {
        "id": "odd",
        "messages": [{"role": "user", "content": text} for text in ("hello", "anyone?")],
    }
    file = write_lines(
        tmp_path / "mine.jsonl", *(each.to_json() for each in sample_dialogues[:4]), alone
    )
    words = training(tiny_bert, tmp_path / "run", corpus=file, max_dialogues=10)
    assert "dialogue 'odd' has one speaker ('user')" in refused(*words, "--strict", "true")
    assert main([*words, "--resume", "false"]) == 0
    assert "Left out 1 dialogues of one speaker" in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "training_report.json").read_text())["dialogues"] == 4


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"backbone": "no/such-model"},
            "Model 'no/such-model' is neither a folder nor on the Hub within reach",
        ),
        ({"window": -1}, "window: got -1, expected a value at least 0"),
        ({"max_tokens": 4000}, "max_tokens: got 4000, expected at most 512"),
        ({"frozen_layers": 40}, "frozen_layers: got 40, expected a value between 0 and 2"),
        (
            {"end_of_utterance": "[nothing]"},
            "end_of_utterance: '[nothing]' is not in the tokenizer's vocabulary",
        ),
    ],
)
def test_a_wrong_setting_of_a_training_is_told(tiny_bert, tmp_path, refused, more, sentence):
    assert sentence in refused(*training(tiny_bert, tmp_path / "run", **more))
    assert not (tmp_path / "run" / "model.safetensors").exists()


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
            ["corpus", "convert", "sample", "--output", "/no/such/file.jsonl"],
            "the folder /no/such does not exist",
        ),
        (
            ["topics", "multiwos"],
            "got 'multiwos', which is neither a file nor a corpus. Did you mean 'multiwoz'? See",
        ),
        (["corpus", "check", "calls.csv", "--split", "dev"], "calls.csv has no splits"),
        (["demo", "--max-steps", "0"], "--max-steps: got 0, expected at least 1"),
        ([*EMBED, "m", "--shard-size", "0"], "--shard-size: got 0, expected at least 1"),
        ([*EMBED, "tfidf"], "fitted on the dialogues that it embeds"),
        (["search", "--corpus", "sample"], "one of the arguments --query --id is required"),
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


# Python ignores the signal, so a write beyond the limit fails as on a full disk.


@pytest.mark.slow
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_leaves_is_no_error(tmp_path, buffered):
    bad, good = tmp_path / "bad.jsonl", tmp_path / "good.jsonl"
    bad.write_text("{}\n" * 3000)
    good.write_text(json.dumps({"id": "one", **GOOD}) + "\n")
    for words in (["check", bad], ["show", "--corpus", good, "--id", "one"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "hf_dialemb.apps.cli", "corpus", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": buffered},
        )
        process.stdout.close()
        with process.stderr as errors:
            assert "BrokenPipeError" not in errors.read()
        assert process.wait() == 0
