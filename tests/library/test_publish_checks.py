"""What is refused before the first request: every fault, all of them at once."""

import json
import socket
from pathlib import Path

import pytest
from publish_folders import model_folder, write

from hf_dialemb.errors import InputError
from hf_dialemb.hub.checks import check, files_of
from hf_dialemb.hub.publishing import publish


@pytest.fixture(autouse=True)
def without_network(monkeypatch):
    def refuse(*words):
        raise AssertionError("a request was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path / "small")


def test_a_whole_folder_passes_and_caches_are_passed_over(folder):
    write(folder / "__pycache__", x__pyc="")
    assert check(folder) == []
    assert not any("__pycache__" in path for path in files_of(folder))


def without(name):
    return lambda folder: (folder / name).unlink()


def written(*names, **texts):
    return lambda folder: write(folder.joinpath(*names), **texts)


def config(**settings):
    return written(config__json=json.dumps(settings))


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
    "no weights": (without("model.safetensors"), "model.safetensors"),
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
    (problem,), sentence = check(folder), sentence.format(folder)
    assert sentence in problem
    with pytest.raises(InputError, match="cannot be published") as caught:
        publish(folder, "org/small")
    assert sentence in str(caught.value)


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
    (problem,) = check(folder, ["*.txt"])
    assert problem.startswith("extra.md: no file of an export")
    assert check(folder, ["*.txt", "extra.md"]) == []
