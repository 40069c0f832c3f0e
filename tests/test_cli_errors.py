"""What goes wrong ends in one sentence and an exit code: 2 for a wrong request, 1 for a run that failed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from hf_dialemb.cli import main
from hf_dialemb.corpora import write_jsonl

GOOD = {"messages": [{"role": "user", "content": "a room"}, {"role": "assistant", "content": "for whom?"}]}


def sentences(stderr: str) -> list[str]:
    """The error lines; warnings and progress bars may stand around them."""
    assert "Traceback" not in stderr
    lines = stderr.replace("\r", "\n").splitlines()
    return [line for line in lines if "error:" in line or line.startswith("usage:")]


def fails(capsys, code: int, *words: object) -> str:
    """Runs a command that must fail with one sentence, and returns it."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == code
    found = sentences(capsys.readouterr().err)
    assert len(found) == 1, found
    assert found[0].startswith("dialemb: error: ")
    return found[0]


def training(backbone: object, output: Path, /, **more: object) -> list[str]:
    """The words of the smallest training; ``more`` overrides."""
    values = {
        "backbone": backbone, "output_dir": output, "train_split": "dev", "max_steps": 1, "max_dialogues": 4,
        "use_cpu": True, "num_negatives": 1, "per_device_train_batch_size": 2, "max_tokens": 32,
        "disable_tqdm": True, **more,
    }  # fmt: skip
    return ["train", *(word for name, value in values.items() for word in (f"--{name}", str(value)))]


def write_lines(file: Path, *records: object) -> Path:
    texts = [record if isinstance(record, str) else json.dumps(record) for record in records]
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return file


def messages(*pairs: tuple[str, str]) -> dict[str, object]:
    return {"id": "odd", "messages": [{"role": role, "content": content} for role, content in pairs]}


BROKEN = [
    ([GOOD, GOOD, '{"messages": ['], ":3: broken JSON"),
    ([GOOD, {"messages": [{"role": "user", "content": 3}]}], ":2: messages[0]: field content: got 3"),
    ([GOOD, {"turns": []}], ":2: field messages is missing (found: turns)"),
    ([GOOD, messages()], ":2: field messages: got no turn"),
    ([""], ": got no dialogue"),
]


@pytest.mark.parametrize(("records", "sentence"), BROKEN, ids=[sentence for _, sentence in BROKEN])
@pytest.mark.parametrize("command", ["train", "corpus", "evaluate", "search"])
def test_a_malformed_file_is_told_with_its_line(tiny_bert, tmp_path, capsys, command, records, sentence):
    file = write_lines(tmp_path / "mine.jsonl", *records)
    words = {
        "train": [*training(tiny_bert, tmp_path / "run", corpus=file)],
        "corpus": ["corpus", "stats", "--corpus", file],
        "evaluate": ["evaluate", "--model", "tfidf", "--corpus", file, "--output", tmp_path / "results.json"],
        "search": ["search", "--model", tiny_bert, "--corpus", file, "--id", "odd"],
    }
    assert f"{file}{sentence}" in fails(capsys, 2, *words[command])
    assert not (tmp_path / "results.json").exists()
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("command", ["train", "corpus", "embed"])
def test_a_missing_file_is_told(tiny_checkpoint, tiny_bert, tmp_path, capsys, command):
    file = tmp_path / "absent.jsonl"
    words = {
        "train": training(tiny_bert, tmp_path / "run", corpus=file),
        "corpus": ["corpus", "stats", "--corpus", file],
        "embed": ["embed", "--model", tiny_checkpoint, "--input", file, "--output", tmp_path / "vectors.parquet"],
    }
    message = fails(capsys, 2, *words[command])
    assert str(file) in message
    assert "no such file" in message.lower()


def test_a_dialogue_of_one_speaker_is_told_and_can_be_left_out(tiny_bert, tmp_path, capsys, sample_dialogues):
    file = tmp_path / "mine.jsonl"
    write_jsonl(sample_dialogues[:4], file)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(messages(("user", "hello"), ("user", "anyone?"))) + "\n")
    words = training(tiny_bert, tmp_path / "run", corpus=file, max_dialogues=10)
    assert "dialogue 'odd' has one speaker ('user')" in fails(capsys, 2, *words)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert main([*words, "--skip_invalid", "true", "--resume", "false"]) == 0
    assert "Left out 1 dialogues of one speaker" in capsys.readouterr().out
    assert load_file(tmp_path / "run" / "model.safetensors")
    assert json.loads((tmp_path / "run" / "training_report.json").read_text())["dialogues"] == 4


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"backbone": "no/such-model"}, "Model 'no/such-model' is neither a folder nor on the Hub within reach"),
        ({"loss_temprature": 0.1}, "Unknown setting 'loss_temprature'. Did you mean 'loss_temperature'?"),
        ({"window": -1}, "window: got -1, expected a value at least 0"),
        ({"num_roles": 9}, "num_roles: got 9, expected a value between 1 and 5"),
        ({"max_tokens": 4000}, "max_tokens: got 4000, expected at most 512"),
        ({"frozen_layers": 40}, "frozen_layers: got 40, expected a value between 0 and 2"),
        ({"learning_rate": 0}, "learning_rate: got 0.0, expected a value above 0"),
        ({"max_steps": "many"}, "invalid int value: 'many'"),
        ({"end_of_utterance": "[nothing]"}, "end_of_utterance: '[nothing]' is not in the tokenizer's vocabulary"),
        ({"corpus": "sampel"}, "Unknown corpus 'sampel'. Did you mean 'sample'?"),
        ({"train_split": "trian"}, "Unknown split 'trian' of corpus sample. Available: train, dev, test, all."),
        ({"method": "dial3vec"}, "Unknown method 'dial3vec'. Did you mean 'dial2vec'?"),
        ({"max_dialogues": 1}, "max_dialogues: got 1, expected a value at least 2"),
        ({"config": "no_recipe"}, "--config: Unknown recipe 'no_recipe'."),
    ],
)
def test_a_wrong_setting_of_a_training_is_told(tiny_bert, tmp_path, capsys, more, sentence):
    assert sentence in fails(capsys, 2, *training(tiny_bert, tmp_path / "run", **more))
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "the following arguments are required: command"),
        (["trian"], "invalid choice: 'trian'"),
        (["corpus", "stats", "--corpus", "sample", "--colour", "red"], "unknown argument '--colour'"),
        (["corpus", "stats", "--corpus", "nothing"], "Unknown corpus 'nothing'"),
        (["corpus", "stats", "--corpus", "sample", "--split", "trian"], "Unknown split 'trian'"),
        (["corpus", "stats", "--corpus", "sgd", "--data-dir", "/no/such"], "no such folder or archive: /no/such"),
        (
            ["corpus", "stats", "--corpus", "sample", "--output", "/no/such/file.jsonl"],
            "the folder /no/such does not exist",
        ),
        (
            ["evaluate", "--model", "tfidf", "--corpus", "./calls.jsonl", "--split", "dev"],
            "--split: got 'dev', but ./calls.jsonl has no splits and is read whole; leave it out",
        ),
        (["corpus", "check", "calls.csv", "--split", "dev"], "calls.csv has no splits"),
        (
            ["export", "--model", "m", "--output", "o", "--int8", "--corpus", "calls.jsonl", "--split", "dev"],
            "calls.jsonl has no splits",
        ),
        (["export", "--model", "m", "--output", "o", "--split", "dev"], "--split: got it without --int8"),
        (["train", "--method", "multi_granularity"], "whose members are trained; train them one by one"),
        (["demo", "--max-steps", "0"], "--max-steps: got 0, expected at least 1"),
        (["search", "--corpus", "sample"], "one of the arguments --query --id is required"),
        (
            ["evaluate", "--model", "no/such", "--corpus", "sample"],
            "Model 'no/such' is neither a folder nor on the Hub",
        ),
        (["evaluate", "--model", "tfidf@words", "--corpus", "sample"], "got 'words' after the '@'"),
        (["evaluate", "--model", "tfidf", "--corpus", "sample", "--limit", "1"], "limit: got 1, expected at least 2"),
        (["evaluate", "--model", "tfidf", "--corpus", "sample", "--seeds", "0"], "seeds: got none"),
        (["evaluate", "--model", "tfidf", "--corpus", "sample", "--seeds", "x"], "invalid int value: 'x'"),
    ],
)
def test_a_wrong_request_is_told(tmp_path, capsys, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)  # results.json is the default of --output
    monkeypatch.delenv("HF_DIALEMB_DATA", raising=False)
    assert sentence in fails(capsys, 2, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("command", "end"), [("embed", "to go on"), ("corpus", "to start over")])
def test_an_interrupted_command_says_whether_it_will_go_on(monkeypatch, capsys, command, end):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"hf_dialemb.cli.{'embed._run' if command == 'embed' else 'corpus._list'}", interrupted)
    words = {"embed": ["--model", "m", "--input", "i.jsonl", "--output", "o.parquet"], "corpus": ["list"]}
    assert main([command, *words[command]]) == 130
    assert capsys.readouterr().err == f"dialemb: error: interrupted; run the same command again {end}\n"


def test_a_corpus_without_a_folder_says_how_to_name_one(capsys, monkeypatch):
    monkeypatch.delenv("HF_DIALEMB_DATA", raising=False)
    assert "give --data-dir or set HF_DIALEMB_DATA" in fails(capsys, 2, "corpus", "stats", "--corpus", "sgd")


@pytest.mark.parametrize("place", ["{}/file.txt/run", "{}/file.txt", "/proc/run"])
def test_a_folder_that_cannot_be_written_is_told_before_any_work(tiny_bert, tmp_path, capsys, place):
    (tmp_path / "file.txt").write_text("a file")
    output = place.format(tmp_path)
    message = fails(capsys, 2, *training(tiny_bert, Path(output)))
    assert output in message
    assert "cannot be written" in message
    assert (tmp_path / "file.txt").read_text() == "a file"


@pytest.mark.parametrize("command", ["evaluate", "embed", "export", "corpus"])
def test_a_result_that_cannot_be_written_is_told(tiny_checkpoint, tmp_path, capsys, sample_dialogues, command):
    (tmp_path / "file.txt").write_text("a file")
    write_jsonl(sample_dialogues[:6], tmp_path / "six.jsonl")
    output = tmp_path / "file.txt" / "below"
    words = {
        "evaluate": ["--model", "tfidf", "--corpus", "sample", "--output", output],
        "embed": ["--model", tiny_checkpoint, "--input", tmp_path / "six.jsonl", "--output", output],
        "export": ["--model", tiny_checkpoint, "--output", output],
        "corpus": ["stats", "--corpus", "sample", "--output", output],
    }
    code = 1 if command == "export" else 2
    assert str(tmp_path / "file.txt") in fails(capsys, code, command, *words[command])
    assert (tmp_path / "file.txt").read_text() == "a file"


@pytest.fixture(params=["cut", "garbled"])
def damaged(request, tiny_checkpoint, tmp_path) -> Path:
    folder = shutil.copytree(tiny_checkpoint, tmp_path / "damaged")
    file = folder / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] if request.param == "cut" else b"\xff" * 64 + content[64:])
    return folder


@pytest.mark.parametrize("command", ["evaluate", "embed", "search", "train"])
def test_a_damaged_checkpoint_is_told_with_its_folder(damaged, tmp_path, capsys, sample_dialogues, command):
    write_jsonl(sample_dialogues[:6], tmp_path / "six.jsonl")
    words = {
        "evaluate": ["--model", damaged, "--corpus", "sample", "--output", tmp_path / "results.json"],
        "embed": ["--model", damaged, "--input", tmp_path / "six.jsonl", "--output", tmp_path / "vectors.parquet"],
        "search": ["--model", damaged, "--corpus", tmp_path / "six.jsonl", "--id", sample_dialogues[0].id],
        "train": training(damaged, tmp_path / "run")[1:],
    }
    assert str(damaged) in fails(capsys, 2, command, *words[command])
    assert not (tmp_path / "results.json").exists()
    assert not (tmp_path / "vectors.parquet").exists()


def test_a_config_that_is_not_json_is_told_with_its_folder(tiny_checkpoint, tmp_path, capsys):
    folder = shutil.copytree(tiny_checkpoint, tmp_path / "garbled")
    (folder / "config.json").write_text("{")
    message = fails(capsys, 2, "export", "--model", folder, "--output", tmp_path / "out")
    assert str(folder) in message


def test_a_backbone_without_a_tokenizer_is_told(tiny_bert, tmp_path, capsys):
    folder = tmp_path / "weights_only"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(Path(tiny_bert) / name, folder)
    message = fails(capsys, 2, *training(folder, tmp_path / "run"))
    assert str(folder) in message
    assert "tokenizer" in message


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 1.5], ids=["in the weights", "in the optimizer's state"])
def test_a_disk_that_fills_up_is_told_and_leaves_nothing_that_looks_whole(tiny_bert, tmp_path, share):
    largest = int(share * (Path(tiny_bert) / "model.safetensors").stat().st_size)

    def limit_files() -> None:  # Python ignores the signal, so a write beyond the limit fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    words = training(tiny_bert, tmp_path / "run", save_steps=1)
    command = [sys.executable, "-m", "hf_dialemb.cli", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit_files)
    assert run.returncode == 1
    assert len(sentences(run.stderr)) == 1, run.stderr[-2000:]
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert not (tmp_path / "run" / "training_report.json").exists()
    assert list((tmp_path / "run").glob("checkpoint-*/complete")) == []
    assert main(words) == 0  # with room on the disk, the same command goes on
    assert load_file(tmp_path / "run" / "model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_leaves_changes_neither_the_exit_code_nor_what_is_written(tmp_path, buffered):
    bad, good, report = tmp_path / "bad.jsonl", tmp_path / "good.jsonl", tmp_path / "report.json"
    bad.write_text("{}\n" * 3000)
    good.write_text(json.dumps(GOOD) + "\n")
    words = {"check": [str(bad)], "stats": ["--corpus", str(good), "--report", str(report)]}
    found = {}
    for action, more in words.items():
        process = subprocess.Popen(
            [sys.executable, "-m", "hf_dialemb.cli", "corpus", action, *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": buffered},
        )
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        assert "BrokenPipeError" not in errors
        found[action] = process.wait()
    assert found == {"check": 2, "stats": 0}
    assert json.loads(report.read_text())["dialogues"] == 1
