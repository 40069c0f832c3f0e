"""What is refused before the first request: every fault, all of them at once."""

import json
import socket
from pathlib import Path

import numpy as np
import pytest
from publish_folders import dataset_folder, metric_folder, model_folder, write
from safetensors.numpy import load_file, save_file

from hf_dialemb.errors import InputError
from hf_dialemb.hub.checks import check, files_of
from hf_dialemb.hub.publishing import publish
from hf_dialemb.metrics.space import NAMES


@pytest.fixture(autouse=True)
def without_network(monkeypatch):
    def refuse(*words):
        raise AssertionError("a request was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path / "small")


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
    "no config": (without("config.json"), "config.json"),
    "no weights": (without("model.safetensors"), "model.safetensors"),
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
    "pickle": (written(optimizer__pt="x"), "optimizer.pt: no file of an export; remove it, or"),
    "notes": (written(notes__txt="x"), "notes.txt: no file of an export; remove it, or --include"),
    "hidden": (written(__env="A=1"), ".env: no file of an export"),
    "code": (written(other__py="x = 1"), "other.py: no file of an export"),
    "folder": (written("more", a__json="{}"), "more/a.json: no file of an export"),
}


@pytest.mark.parametrize("what", MODELS)
def test_what_stands_in_the_way_of_a_model(folder, what):
    spoil, sentence = MODELS[what]
    spoil(folder)
    (problem,), sentence = check(folder, "model", "small"), sentence.format(folder)
    assert sentence in problem
    with pytest.raises(InputError, match="cannot be published") as caught:
        publish(folder, "org/small")
    assert sentence in str(caught.value)


OTHERS = {
    "space, other": (
        written(),
        "evaluate looks for other.py in a Space of that name; publish it as 'ndcg'",
    ),
    "space, no sdk": (written(README__md="---\ntitle: a\n---\nx"), "field sdk is missing"),
    "dataset, no card": (
        without("README.md"),
        "the card, is missing or empty; dialemb papers corpus unify",
    ),
    "dataset, no licence": (written(README__md="# Calls"), "field license is missing"),
    "dataset, script": (written("dev", a__sh="ls"), "dev/a.sh: no file of an export"),
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
    for what in ("no card", "pickle", "notes", "hidden"):
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


def test_what_is_included_is_sent(folder):
    write(folder, notes__txt="x", extra__md="y")
    (problem,) = check(folder, "model", "small", ["*.txt"])
    assert problem.startswith("extra.md: no file of an export")
    assert check(folder, "model", "small", ["*.txt", "extra.md"]) == []
