"""What is refused before the first request.

Every fault, all of them at once, and nothing innocent.
"""

import gzip
import io
import json
import lzma
import pickle
import socket
import zipfile
from pathlib import Path

import numpy as np
import pytest
from publish_folders import dataset_folder, metric_folder, model_folder, write
from safetensors.numpy import load_file, save, save_file

from hf_dialemb.errors import InputError
from hf_dialemb.hub.checks import check, files_of
from hf_dialemb.hub.contents import machine_paths_in, pickle_in, secrets_in
from hf_dialemb.hub.publishing import publish
from hf_dialemb.metrics.space import NAMES


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


def array(value):
    stream = io.BytesIO()
    np.save(stream, value, allow_pickle=True)
    return stream.getvalue()


def weights(length):
    """Safetensors with a header of so many bytes.

    A multiple of eight that begins as protocols 2 and 4 do.
    """
    content = save({"x": np.zeros(2, np.float32)})
    size = int.from_bytes(content[:8], "little")
    return length.to_bytes(8, "little") + content[8 : 8 + size].ljust(length) + content[8 + size :]


PICKLES = {
    **{f"protocol {protocol}": pickle.dumps(Harm(), protocol) for protocol in range(2, 6)},
    # a text of 16 bytes, of which the second opens a brace where a header would, then a call
    "like weights": b"\x80\x02X\x10\x00\x00\x00\x00{"
    + b"x" * 14
    + b"0cbuiltins\nlen\nX\x02\x00\x00\x00ab\x85R.",
    "zip": zipped(data=pickle.dumps(Harm())),
    "zip in zip": zipped(a=zipped(b=b"")),
    "gzip": gzip.compress(pickle.dumps(Harm())),
    "xz": lzma.compress(b""),
    "tar": b"x".ljust(257, b"\0") + b"ustar",
    "arrays of objects": zipped(**{"x.npy": array(np.array([{}, 1], dtype=object))}),
    "broken zip": zipped(x=b"12345" * 99)[:99],
    **dict.fromkeys(("pytorch_model.bin", "a.PTH"), b""),  # refused unread
}
INNOCENT = {
    **{f"weights, header of {length}": weights(length) for length in (0x280, 0x480, 0x10280)},
    "structured array": array(np.zeros(3, dtype=[("Ordinal", "f4")])),
    "zip of arrays": zipped(**{"x.npy": array(np.arange(3)), "readme": b"hello"}),
    "words": b"cat\ndog\n.\nthe\n",
    "nothing": b"",
    "like pickle": b"\x80\x09abc",
}


@pytest.mark.parametrize("what", [*PICKLES, *INNOCENT])
def test_pickles_are_recognised_whatever_their_name(tmp_path, what):
    file = tmp_path / (what if "." in what else "innocent.dat")
    file.write_bytes({**PICKLES, **INNOCENT}[what])
    assert (pickle_in(file) is None) == (what in INNOCENT)


TOKEN = "hf_" + "aB3" * 11 + "x"
SECRETS = {
    TOKEN: "a Hugging Face token",
    "sk-" + "aB3" * 8: "a key that begins with sk-",
    "sk-proj-a1_" + "x" * 20: "a key that begins with sk-",
    "AKIA" + "Q7" * 8: "an AWS key",
    'AWS_SECRET_ACCESS_KEY = "' + "aB/+" * 10 + '"': "an AWS key",
    "ghp_" + "a1" * 18: "a GitHub token",
    "-----BEGIN OPENSSH PRIVATE KEY-----": "a private key",
    "xoxb-" + "1234567890-ab": "a Slack token",
    "AIza" + "x1" * 17 + "y": "a Google key",
    **dict.fromkeys(
        (
            "hf_dialemb_config.json hf_hub_download",
            "task-oriented-dialogues-of-2024",
            "the AKIA words",
        )
    ),
}


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_recognised_and_other_words_are_not(tmp_path, text):
    (tmp_path / "config.json").write_text(f"one\ntwo {text}\nthree {text}")
    assert list(secrets_in(tmp_path / "config.json")) == (
        [(2, SECRETS[text])] if SECRETS[text] else []
    )


def test_secrets_in_headers_and_places_in_graphs_are_recognised(tmp_path):
    save_file({"x": np.zeros(2, np.float32)}, tmp_path / "a.safetensors", {"login": TOKEN})
    (tmp_path / "b.jsonl").write_text(("x" * 99 + "\n") * 50_000 + TOKEN)
    (tmp_path / "c.txt").write_text(TOKEN, encoding="utf-16")
    secrets = [list(secrets_in(file)) for file in sorted(tmp_path.iterdir())]
    assert secrets == [[(line, "a Hugging Face token")] for line in (1, 50_001, 1)]
    graph, record = tmp_path / "model.onnx", b'File "/home/me/lib/linear.py", line 7, in forward'
    graph.write_bytes(b"\x08" * 90 + record + b"\xff" * 99)
    assert set(machine_paths_in(graph)) == {("a node", "/home/me/lib/linear.py")}
    graph.write_bytes(b"\x08/encoder/layer.0/MatMul" * 9)
    assert list(machine_paths_in(graph)) == []


PATHS = [
    "/home/me/x",
    "/data/runs/a",
    "/tmp/x",
    "/Users/me",
    "C:\\Users\\me",
    "D:/data/x",
    "\\\\server\\share\\x",
]
NO_PATHS = [
    "https://example.org/home/me",
    "org/name",
    "and/or",
    "./data/x",
    "../tmp/x",
    "runs/tmp/x",
    "/",
    "</data>",
    "FOLDER/data/x",
    "$HOME/data/x",
    "<folder>/data/x",
    "~/.cache",
    "/v1",
    "a: b",
    "s3://data/x",
    "2024/01/02",
]


@pytest.mark.parametrize("path", [*PATHS, *NO_PATHS])
@pytest.mark.parametrize("around", ["--output={} now", "[it]({})", "{}"])
def test_absolute_paths_in_texts_and_no_other_words(tmp_path, path, around):
    texts = {
        "README.md": "# Title\n\n" + around.format(path),
        "config.json": json.dumps({"a": [around.format(path)]}),
    }
    texts["results.yaml"] = texts["config.json"]
    for (name, text), place in zip(
        texts.items(), ("line 3", "field a.0", "field 0.a.0"), strict=True
    ):
        (tmp_path / name).write_text(text)
        found = [(where, word[:6]) for where, word in machine_paths_in(tmp_path / name)]
        assert found == ([(place, path[:6])] if path in PATHS else [])


@pytest.mark.slow
def test_whole_folders_pass(folder, tmp_path):
    assert check(folder, "model", "small") == []
    assert check(dataset_folder(tmp_path / "calls"), "dataset", "calls") == []
    for metric in NAMES:
        assert check(metric_folder(tmp_path, metric), "space", metric) == [], metric
    assert not any("__pycache__" in path for path in files_of(tmp_path / "ndcg"))


def without(name):
    return lambda folder: (folder / name).unlink()


def written(*names, **texts):
    return lambda folder: write(folder.joinpath(*names), **texts)


def config(**settings):
    return written(config__json=json.dumps(settings))


def changed(change):
    def change_weights(folder):
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return change_weights


MODELS = {
    "no card": (
        without("README.md"),
        "the card, is missing or empty; write one with 'dialemb model card",
    ),
    "broken card": (written(README__md="---\na: [\n---\nx"), "is not a YAML mapping"),
    "training form": (
        config(model_type="dialemb-dse"),
        "run 'dialemb export --model {} --output FOLDER' and publish that",
    ),
    "no modules": (without("modules.json"), "this is a training checkpoint, or lacks modules.json"),
    "no config": (without("config.json"), "config.json is missing: this is not a model"),
    "no weights": (without("model.safetensors"), "model.safetensors is missing"),
    "damaged": (written(model__safetensors="{"), "cannot be read"),
    "no tensor": (
        changed(lambda weights: weights.pop("embeddings.word_embeddings.weight")),
        "lacks weights",
    ),
    "NaN": (
        changed(lambda weights: weights["embeddings.LayerNorm.bias"].fill(np.nan)),
        "not finite",
    ),
    "no tokenizer": (without("tokenizer.json"), "has no tokenizer files"),
    "no code": (
        config(model_type="dialemb-dse", auto_map={"AutoModel": "dse.DSEModel"}),
        "dse.py is missing, but the model's code needs it",
    ),
    "not JSON": (written(results__json="{"), "results.json: cannot be read (Expecting"),
    "pickle": (written(optimizer__pt="x"), "optimizer.pt: '.pt' is a suffix of pickles"),
    "secret": (written(notes__txt=TOKEN), "notes.txt: line 1 looks like a Hugging Face token"),
    "path": (written(a__json='["/data/x"]'), "a.json: field 0: got '/data/x', an absolute path"),
    "hidden": (written(__env="A=1"), ".env: a hidden file, which is not published"),
    "link": (lambda folder: (folder / "a").symlink_to(folder.parent), "a: a link; put a copy"),
    "name": (written(**{"a\nb": ""}), "'a\\nb': not a valid name on the Hub"),
}


@pytest.mark.parametrize("what", MODELS)
def test_what_stands_in_the_way_of_a_model(folder, what):
    spoil, sentence = MODELS[what]
    spoil(folder)
    (problem,), sentence = check(folder, "model", "small"), sentence.format(folder)
    assert sentence in problem
    assert TOKEN not in problem
    with pytest.raises(InputError, match="cannot be published") as caught:
        publish(folder, "org/small")
    assert sentence in str(caught.value)


OTHERS = {
    "space, other": (
        written(),
        "evaluate looks for other.py in a Space of that name; publish it as 'ndcg'",
    ),
    "space, no sdk": (written(README__md="---\ntitle: a\n---\nx"), "field sdk is missing"),
    "space, no app": (
        without("app.py"),
        "field app_file: got 'app.py', which is not in the folder",
    ),
    "dataset, no card": (
        without("README.md"),
        "the card, is missing or empty; dialemb papers corpus unify",
    ),
    "dataset, no licence": (written(README__md="# Calls"), "field license is missing"),
    "dataset, secret": (written("dev", a__json=f'"{TOKEN}"'), "dev/a.json: line 1 looks like"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_stands_in_the_way_of_a_space_or_dataset(tmp_path, what):
    (spoil, sentence), kind = OTHERS[what], what.split(",")[0]
    folder = metric_folder(tmp_path) if kind == "space" else dataset_folder(tmp_path / "calls")
    spoil(folder)
    problems = check(folder, kind, "other" if "other" in what else folder.name)
    assert [sentence in problem for problem in problems].count(True) == 1


def test_all_refusals_are_reported_at_once_and_a_folder_is_needed(folder, tmp_path):
    lines: list[str] = []
    for what in ("no card", "pickle", "secret", "path"):
        MODELS[what][0](folder)
    with pytest.raises(InputError) as caught:
        publish(folder, "org/small", dry_run=True, report=lines.append)
    assert [line.split()[-1] for line in lines[:7]] == list(files_of(folder))
    assert lines[7].startswith("7 files, ")
    refused = [line.removeprefix("Refused: ") for line in lines[8:]]
    assert len(refused) == 4
    assert (
        str(caught.value) == f"{folder} cannot be published: {refused[0]} (3 more are listed above)"
    )
    for path in (tmp_path / "none", Path(__file__)):
        with pytest.raises(InputError, match="is not a folder"):
            publish(path, "org/small")
    (tmp_path / "empty").mkdir()
    assert check(tmp_path / "empty", "model", "small")[0] == "the folder is empty"
