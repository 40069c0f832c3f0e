"""What is refused before the first request: every fault, all of them at once, and nothing innocent."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import socket
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from publish_folders import METRICS, dataset_folder, metric_folder, model_folder, write
from safetensors.numpy import save_file

from hf_dialemb.hub.forms import plain_encoder
from hf_dialemb.hub.publish import checks as publication_checks
from hf_dialemb.hub.publish import contents as publication_contents
from hf_dialemb.hub.publish.checks import card_of, check, files_of
from hf_dialemb.hub.publish.contents import machine_paths_in, pickle_in, secrets_in
from hf_dialemb.hub.publish.publishing import publish
from hf_dialemb.models.errors import InputError


class Harm:
    """Runs something when it is unpickled."""

    def __reduce__(self):
        return print, ("harm",)


@pytest.fixture(autouse=True)
def without_network(monkeypatch):
    def refuse(*words):
        raise AssertionError("a request was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path / "small")


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def taped(name, content):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tape:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tape.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def array(value):
    stream = io.BytesIO()
    np.save(stream, value, allow_pickle=True)
    return stream.getvalue()


PICKLES = {
    **{f"protocol {protocol}": pickle.dumps(Harm(), protocol) for protocol in range(6)},
    "state of old": pickle.dumps({"weights": [1.5]}, 2),
    "zip": zipped(data=pickle.dumps(Harm())),
    "zip in zip": zipped(a=zipped(b=pickle.dumps(Harm(), 0))),
    "named in zip": zipped(**{"archive/data.pkl": b""}),
    "gzip": gzip.compress(pickle.dumps(Harm())),
    "bz2": bz2.compress(pickle.dumps(Harm())),
    "xz": lzma.compress(taped("x", pickle.dumps(Harm()))),
    "tar": taped("x", pickle.dumps(Harm())),
    "array of objects": array(np.array([Harm()], dtype=object)),
    "arrays of objects": zipped(**{"x.npy": array(np.array([{}, 1], dtype=object))}),
    "7z": b"7z\xbc\xaf\x27\x1c12345",
    "zstd": b"\x28\xb5\x2f\xfd12345",
    "broken zip": zipped(x=b"12345" * 99)[:99],
}


@pytest.mark.parametrize("what", PICKLES)
def test_pickles_are_found_whatever_they_are_called(tmp_path, what):
    file = tmp_path / "innocent.dat"
    file.write_bytes(PICKLES[what])
    assert pickle_in(file)


@pytest.mark.parametrize("name", ["a.pkl", "pytorch_model.bin", "optimizer.pt", "a.PTH", "x.joblib"])
def test_names_of_pickles_are_refused_unread(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert "is a name of pickles" in pickle_in(tmp_path / name)


INNOCENT = {
    "array": array(np.arange(5.0)),
    "structured": array(np.zeros(3, dtype=[("Ordinal", "f4")])),
    "zip": zipped(**{"x.npy": array(np.arange(3)), "readme": b"hello"}),
    "words": b"cat\ndog\n.\nthe\n",
    "module": b"class A:\n    pass\n",
    "json": b'{"a": 1}',
    "nothing": b"",
    "like pickle": b"\x80\x09abc",
}


@pytest.mark.parametrize("what", INNOCENT)
def test_other_files_are_no_pickles(tmp_path, what):
    file = tmp_path / "file.dat"
    file.write_bytes(INNOCENT[what])
    assert pickle_in(file) is None


@pytest.mark.parametrize("length", [0x280, 0x480, 0x10280])
def test_weights_whose_header_begins_like_a_pickle_are_none(tmp_path, length):
    """A header's length is a multiple of eight, and these begin with the bytes of protocols 2 and 4."""
    file = tmp_path / "model.safetensors"
    save_file({"x": np.zeros(2, np.float32)}, file)
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + size].ljust(length)
    file.write_bytes(length.to_bytes(8, "little") + header + content[8 + size :])
    assert file.read_bytes()[:2] in (b"\x80\x02", b"\x80\x04")
    assert pickle_in(file) is None


def test_a_pickle_that_begins_like_weights_is_found(tmp_path):
    """A text of 16 bytes, of which the second opens a brace where a header would, then a call."""
    content = b"\x80\x02X\x10\x00\x00\x00\x00{" + b"x" * 14 + b"0cbuiltins\nlen\nX\x02\x00\x00\x00ab\x85R."
    assert pickle.loads(content) == 2
    (tmp_path / "model.safetensors").write_bytes(content)
    assert pickle_in(tmp_path / "model.safetensors") == "it is a pickle"


TOKEN = "hf_" + "aB3" * 11 + "x"
SECRETS = {
    TOKEN: "a Hugging Face token",
    "api_org_" + "x" * 34: "a Hugging Face token",
    "sk-" + "aB3" * 8: "a key that begins with sk-",
    "sk-proj-a1_" + "x" * 20: "a key that begins with sk-",
    "AKIA" + "Q7" * 8: "an AWS key",
    'AWS_SECRET_ACCESS_KEY = "' + "aB/+" * 10 + '"': "an AWS key",
    "ghp_" + "a1" * 18: "a GitHub token",
    "-----BEGIN OPENSSH PRIVATE KEY-----": "a private key",
    "-----BEGIN PRIVATE KEY-----": "a private key",
    "xoxb-" + "1234567890-ab": "a Slack token",
    "AIza" + "x1" * 17 + "y": "a Google key",
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("name", ["README.md", "config.json", "dial2vec.py", "vocab.txt"])
def test_secrets_are_found_and_not_repeated(tmp_path, name, secret):
    (tmp_path / name).write_text(f"one\ntwo {secret}\nthree {secret}")
    assert list(secrets_in(tmp_path / name)) == [(2, SECRETS[secret])]


def test_secrets_in_headers_of_weights_in_long_files_and_in_wide_letters(tmp_path):
    save_file({"x": np.zeros(2, np.float32)}, tmp_path / "a.safetensors", {"login": TOKEN})
    (tmp_path / "b.jsonl").write_text("x" * ((1 << 20) - 11) + " " + TOKEN)  # across the end of a chunk
    (tmp_path / "c.jsonl").write_text(("x" * 99 + "\n") * 50_000 + TOKEN)
    (tmp_path / "d.txt").write_text(TOKEN, encoding="utf-16")
    found = [list(secrets_in(file)) for file in sorted(tmp_path.iterdir())]
    assert found == [[(line, "a Hugging Face token")] for line in (1, 1, 50_001, 1)]


@pytest.mark.parametrize(
    "text",
    ["hf_dialemb_config.json hf_hub_download", "task-oriented-dialogues-of-2024", "sk-learn-like-estimator-for-text",
     "the AKIA words", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
)  # fmt: skip
def test_other_words_are_no_secrets(tmp_path, text):
    (tmp_path / "README.md").write_text(text)
    assert list(secrets_in(tmp_path / "README.md")) == []


PATHS = ["/home/me/x", "/data/runs/a", "/tmp/x", "/Users/me", "C:\\Users\\me", "D:/data/x", "\\\\server\\share\\x"]


@pytest.mark.parametrize("path", [*PATHS, "file:///x/y", "/opt", "/some/where/else", "/tmp"])
def test_absolute_paths_are_found_in_records(tmp_path, path):
    record = {"settings": {"encoders": [{"_name_or_path": path}]}}
    (tmp_path / "config.json").write_text(json.dumps(record))
    (tmp_path / "results.yaml").write_text(json.dumps(record))
    assert list(machine_paths_in(tmp_path / "config.json")) == [("field settings.encoders.0._name_or_path", path)]
    assert list(machine_paths_in(tmp_path / "results.yaml")) == [("field 0.settings.encoders.0._name_or_path", path)]


def test_places_where_a_graph_was_recorded_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(publication_contents, "_CHUNK", 64)
    record = b'File "/home/me/lib/linear.py", line 7, in forward'
    (tmp_path / "model.onnx").write_bytes(b"\x08" * 90 + record + b"\xff" * 99)
    found = set(machine_paths_in(tmp_path / "model.onnx"))
    assert found == {("a node", "/home/me/lib/linear.py")}
    (tmp_path / "model.onnx").write_bytes(b"\x08/encoder/layer.0/MatMul" * 9)
    assert list(machine_paths_in(tmp_path / "model.onnx")) == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("around", ["at `{}`", "--output={} now", "[it]({})", '"{}"', "{}"])
def test_absolute_paths_are_found_in_texts(tmp_path, path, around):
    (tmp_path / "README.md").write_text("# Title\n\n" + around.format(path))
    (tmp_path / "config.json").write_text(json.dumps({"command": around.format(path)}))
    ((place, found),) = machine_paths_in(tmp_path / "README.md")
    assert (place, found[:6]) == ("line 3", path[:6])
    assert len(list(machine_paths_in(tmp_path / "config.json"))) == 1


@pytest.mark.parametrize(
    "text",
    ["https://example.org/home/me", "org/name", "user/assistant", "and/or", "./data/x", "../tmp/x", "runs/tmp/x", "/",
     "</s>", "</data>", "FOLDER/data/x", "$HOME/data/x", "<folder>/data/x", "~/.cache", "/v1", "a: b", "1/2", "s3://data/x",
     "2024/01/02"],
)  # fmt: skip
def test_other_words_are_no_paths(tmp_path, text):
    (tmp_path / "README.md").write_text(f"at {text} now")
    (tmp_path / "config.json").write_text(json.dumps({"a": text, "b": f"at {text}", text: 1}))
    assert list(machine_paths_in(tmp_path / "README.md")) == []
    assert list(machine_paths_in(tmp_path / "config.json")) == []


@pytest.mark.slow
def test_what_is_whole_passes(folder, tmp_path):
    assert check(folder, "model", "small") == []
    assert check(dataset_folder(tmp_path / "calls"), "dataset", "calls") == []
    for metric in sorted(path.parent.name for path in METRICS.glob("*/specification.yaml")):
        assert check(metric_folder(tmp_path, metric), "space", metric) == [], metric
    assert {file.path for file in files_of(tmp_path / "ndcg")} == {
        "README.md", "app.py", "building.py", "functional.py", "ndcg.py", "requirements.txt", "tests.py",
    }  # fmt: skip


def remove(folder, name):
    (folder / name).unlink()


def config(folder, **more):
    (folder / "config.json").write_text(json.dumps(more))


MODELS = {
    "no card": (lambda folder: remove(folder, "README.md"), "the card, is missing or empty; write it with 'dialemb"),
    "empty card": (lambda folder: write(folder, README__md="---\nlicense: mit\n---\n"), "is missing or empty"),
    "broken card": (lambda folder: write(folder, README__md="---\na: [\n---\nx"), "is no YAML mapping"),
    "open card": (lambda folder: write(folder, README__md="---\na: 1\n"), "is no YAML mapping"),
    "training form": (lambda folder: config(folder, model_type="dialemb-dse"), "run 'dialemb export --model"),
    "no modules": (lambda folder: remove(folder, "modules.json"), "a training's checkpoint or another form that"),
    "no config": (lambda folder: remove(folder, "config.json"), "config.json is missing: this is no model"),
    "no weights": (lambda folder: remove(folder, "model-0.safetensors"), "model.safetensors is missing"),
    "no shard": (
        lambda folder: write(folder, model__safetensors__index__json='{"weight_map": {"a": "model-7.safetensors"}}'),
        "model-7.safetensors is missing, but model.safetensors.index.json lists it",
    ),
    "damaged": (lambda folder: (folder / "model-0.safetensors").write_bytes(b"\x10" + b"\0" * 7 + b"{"), "damaged"),
    "no tokenizer": (lambda folder: remove(folder, "tokenizer.json"), "the tokenizer is missing"),
    "no code": (
        lambda folder: config(folder, model_type="dialemb-dse", auto_map={"AutoModel": "dse.DSEModel"}),
        "dse.py is missing, but the model's code needs it",
    ),
    "no sibling": (lambda folder: write(folder, dse__py="from .losses import x\n"), "losses.py is missing"),
    "not JSON": (lambda folder: write(folder, results__json="{"), "results.json: cannot be read (Expecting"),
    "not YAML": (lambda folder: write(folder, results__yaml="a: ["), "results.yaml: cannot be read (while parsing"),
    "pickle": (lambda folder: (folder / "optimizer.pt").write_bytes(b"x"), "optimizer.pt: '.pt' is a name of pickles"),
    "secret": (lambda folder: write(folder, notes__txt=TOKEN), "notes.txt: line 1 looks like a Hugging Face token"),
    "path": (lambda folder: write(folder, a__json='["/data/x"]'), "a.json: field 0: got '/data/x', an absolute path"),
    "hidden": (lambda folder: write(folder, __env="A=1"), ".env: a hidden file; a publication has none"),
    "link out": (lambda folder: (folder / "a").symlink_to(folder.parent), "a: a link that leads out of the folder"),
    "broken link": (lambda folder: (folder / "a").symlink_to("b"), "a: a link to nothing"),
    "folder link": (lambda folder: (folder / "a").symlink_to("."), "a: a link to a folder"),
    "name": (lambda folder: (folder / "a\nb").write_text(""), "'a\\nb': no name for the Hub"),
}  # fmt: skip


@pytest.mark.parametrize("what", MODELS)
def test_what_stands_in_the_way_of_a_model(folder, what):
    spoil, sentence = MODELS[what]
    spoil(folder)
    (problem,) = check(folder, "model", "small")
    assert sentence in problem
    assert TOKEN not in problem
    with pytest.raises(InputError, match="cannot be published") as caught:
        list(publish(folder, "org/small"))
    assert sentence in str(caught.value)


def test_heads_that_export_leaves_out(folder):
    assert publication_checks.PLAIN_SETTINGS == plain_encoder.SETTINGS_FILE
    write(folder, hf_dialemb_config__json='{"method": "dse"}')
    save_file({"heads.0.weight": np.zeros(2, np.float32)}, folder / "model-0.safetensors")
    (problem,) = check(folder, "model", "small")
    assert problem.startswith("model-0.safetensors holds the heads of the training")


def test_a_folder_of_a_training_is_told_what_to_do(tiny_checkpoint):
    problems = check(tiny_checkpoint, "model", "small")
    assert f"run 'dialemb export --model {tiny_checkpoint} --output FOLDER' and publish that" in problems[0]
    assert "dialemb card" in problems[1]


SPACES = {
    "other name": (lambda folder: None, "evaluate looks for other.py in a Space of that name; publish it as 'ndcg'"),
    "no sdk": (lambda folder: write(folder, README__md="---\ntitle: a\n---\nx"), "field sdk is missing"),
    "no app": (lambda folder: remove(folder, "app.py"), "field app_file: got 'app.py', which is not in the folder"),
}


@pytest.mark.parametrize("what", SPACES)
def test_what_stands_in_the_way_of_a_space(tmp_path, what):
    spoil, sentence = SPACES[what]
    folder = metric_folder(tmp_path)
    spoil(folder)
    (problem,) = check(folder, "space", "other" if what == "other name" else "ndcg")
    assert sentence in problem


DATASETS = {
    "no card": (lambda folder: remove(folder, "README.md"), "the card, is missing or empty; dialemb corpus unify"),
    "no licence": (lambda folder: write(folder, README__md="# Calls"), "field license is missing"),
    "no file": (lambda folder: remove(folder, "train/calls.jsonl"), "got 'train/*.jsonl', which fits no file"),
    "secret": (lambda folder: write(folder / "dev", a__json=f'"{TOKEN}"'), "dev/a.json: line 1 looks like"),
}


@pytest.mark.parametrize("what", DATASETS)
def test_what_stands_in_the_way_of_a_dataset(tmp_path, what):
    spoil, sentence = DATASETS[what]
    folder = dataset_folder(tmp_path / "calls")
    spoil(folder)
    assert any(sentence in problem for problem in check(folder, "dataset", "calls"))


def test_limits_of_the_hub(folder, monkeypatch):
    monkeypatch.setattr(publication_checks, "LARGEST_FILE", 20)
    monkeypatch.setattr(publication_checks, "_MOST_FILES", 4)
    monkeypatch.setattr(publication_checks, "_MOST_ENTRIES", 3)
    problems = check(folder, "model", "small")
    assert problems[0] == "got 5 files, expected at most 4 in one commit; join them"
    assert problems[1].startswith(".: got 5 files, expected at most 3 in one folder")
    assert "dialemb export --max-shard-size" in problems[2]


def test_all_refusals_are_told_at_once(folder):
    for what in ("no card", "pickle", "secret", "path"):
        MODELS[what][0](folder)
    lines = publish(folder, "org/small", dry_run=True)
    listed = [next(lines).split()[-1] for _ in files_of(folder)]
    assert "optimizer.pt" in listed
    assert next(lines).startswith("7 files, ")
    refused = [next(lines) for _ in range(4)]
    assert all(line.startswith("Refused: ") for line in refused)
    with pytest.raises(InputError) as caught:
        next(lines)
    first = refused[0].removeprefix("Refused: ")
    assert str(caught.value) == f"{folder} cannot be published: {first} (3 more are listed above)"


def test_there_must_be_a_folder(tmp_path):
    for path in (tmp_path / "none", Path(__file__)):
        with pytest.raises(InputError, match="is no folder"):
            list(publish(path, "org/small"))
    (tmp_path / "empty").mkdir()
    assert check(tmp_path / "empty", "model", "small")[0] == "the folder is empty"


def test_cards_with_lines_of_windows_and_without_front_matter(tmp_path):
    (tmp_path / "README.md").write_bytes(b"---\r\ntitle: a\r\n---\r\n# A\r\n")
    assert card_of(tmp_path)[0] == {"title": "a"}
    (tmp_path / "README.md").write_text("# A\n")
    assert card_of(tmp_path) == ({}, "# A\n")
