"""Publish on a local Hub.

One commit or none, one sentence for every fault that a user meets, and all that stands in the way
before the first request.
"""

import json
from pathlib import Path

import pytest
from hub_server import CUT, LocalHub
from huggingface_hub import constants
from killed import contents_of
from publish_folders import hub_of_this_process, model_folder, seen, write

from hf_dialemb.errors import InputError
from hf_dialemb.hub.checks import check, files_of
from hf_dialemb.hub.publishing import publish

NAME = "org/small"


@pytest.fixture
def hub():
    with hub_of_this_process() as hub:
        yield hub


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path / "small")


def lines_of(folder, name=NAME, **options) -> list[str]:
    lines: list[str] = []
    publish(folder, name, report=lines.append, **options)
    return lines


def refused(message, folder, name=NAME, kind=InputError, **options) -> str:
    with pytest.raises(kind, match=message) as caught:
        publish(folder, name, **options)
    return str(caught.value)


def test_a_commit_brings_changes_and_removals_and_a_repeat_makes_none(hub, folder):
    commit = publish(model_folder(folder, parts=2), NAME)
    first, created = hub.history("models", NAME)
    assert (commit, created.summary, first.summary) == (
        first.oid,
        "initial commit",
        "Publish with hf_dialemb",
    )
    assert seen(hub) == contents_of(folder)
    hub.requests.clear()
    lines_of(folder)
    assert (len(hub.history("models", NAME)), hub.asked("PUT|/commit/")) == (2, [])
    for name in ("model-0.safetensors", "model-1.safetensors", "model.safetensors.index.json"):
        (folder / name).unlink()
    (total,) = lines_of(model_folder(folder))
    assert total.startswith(f"model {NAME} holds 5 files")
    assert seen(hub) == contents_of(folder)
    assert len(hub.history("models", NAME)) == 3


def test_branches_and_private_repositories(hub, folder):
    publish(folder, NAME, private=True, revision="v2")
    assert hub.get("models", NAME).private
    assert seen(hub, revision="v2") == contents_of(folder)
    assert seen(hub) == {}
    hub.create("models", "org/open")
    refused(
        "org/open exists and everybody can see it; make it private",
        folder,
        "org/open",
        private=True,
    )
    assert len(hub.history("models", "org/open")) == 1


FAULTS = [
    ("/commit/", 500, ConnectionError, r"HTTP 500.*run the same command again"),
    ("PUT", CUT, ConnectionError, "cannot be reached or broke off.* check the network"),
    ("/commit/", 409, ConnectionError, "HTTP 409"),
    ("/commit/", 401, InputError, "run 'hf auth login' with a token that may write"),
    ("preupload", 403, InputError, "HTTP 403.*ask the owner"),
    ("/commit/", 422, InputError, r"HTTP 422 \(as injected\)"),
]


@pytest.mark.parametrize(("pattern", "status", "kind", "message"), FAULTS)
def test_a_fault_is_one_sentence_and_the_old_commit_stays(
    hub, tmp_path, folder, pattern, status, kind, message
):
    publish(model_folder(tmp_path / "before", seed=9), NAME)
    hub.faults[pattern] = status
    sentence = refused(message, folder, kind=kind)
    assert "\n" not in sentence
    assert NAME in sentence
    assert seen(hub) == contents_of(tmp_path / "before")
    hub.faults.clear()
    publish(folder, NAME)
    assert seen(hub) == contents_of(folder)
    assert len(hub.history("models", NAME)) == 3


def test_large_files_that_arrived_are_not_sent_again(hub, tmp_path):
    folder = model_folder(tmp_path / "parts", parts=3)
    hub.faults["/commit/"] = 403
    refused("HTTP 403", folder)
    assert len(hub.asked("PUT")) == 3
    hub.faults.clear()
    publish(folder, NAME)
    assert len(hub.asked("PUT")) == 3
    assert seen(hub) == contents_of(folder)


def test_another_commit_in_between_is_not_overwritten(hub, folder, tmp_path, monkeypatch):
    def interfere(repository, *words):
        repository.add("main", "by hand", repository.at("main").files)
        return LocalHub.modes(hub, repository, *words)

    hub.fill("models", NAME, write(tmp_path / "other", notes__txt="x"))
    with monkeypatch.context() as patch:
        patch.setattr(hub, "modes", interfere)
        refused(
            "A commit has happened since.*run the same command again", folder, kind=ConnectionError
        )
    assert hub.history("models", NAME)[0].summary == "by hand"
    publish(folder, NAME)
    assert hub.files("models", NAME) == contents_of(folder)


def test_no_network_no_login_and_offline_are_told_apart(hub, folder, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    refused(
        r"the Hub at http://127.0.0.1:1 cannot be reached .*: check the network",
        folder,
        kind=ConnectionError,
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused("HF_HUB_OFFLINE is set; unset it to publish", folder)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    refused("no login for the Hub; run 'hf auth login'", folder)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"name": "small"}, "--repo-id: got 'small', expected an organisation or user and a name"),
        ({"name": "org/sm all"}, "--repo-id: got 'org/sm all', expected an organisation"),
    ],
)
def test_a_wrong_target_is_refused_before_any_request(hub, folder, words, message):
    refused(message, folder, **words)
    assert hub.requests == []


def test_what_everybody_can_see_needs_a_licence_and_figures(hub, folder):
    write(folder, README__md="---\nlicense: mit\n---\n# Calls\n")
    refused("README.md: has no figure of the model; measure it", folder, dry_run=True)
    write(folder, README__md="---\nmodel-index:\n- name: a\n---\n# Calls\n")
    refused("README.md: states no licence; add a field license", folder)
    publish(folder, NAME, private=True)
    assert hub.get("models", NAME).private


def test_the_command_lists_on_a_dry_run_and_publishes(hub, folder, printed):
    words = ["publish", folder, "--repo-id", NAME]
    *listed, total, last = printed(*words, "--dry-run").splitlines()
    sizes = {line.split()[1]: int(line.split()[0].replace(",", "")) for line in listed}
    assert sizes == {path: len(content) for path, content in contents_of(folder).items()}
    assert total.startswith("5 files, ")
    assert last == f"Nothing stands in the way of the public model {NAME}; nothing was sent"
    assert hub.requests == []
    assert printed(*words, "--revision", "next").startswith(f"model {NAME} holds 5 files")
    assert len(hub.asked("PUT")) == 1
    assert seen(hub, revision="next") == contents_of(folder)


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
def test_what_stands_in_the_way_of_a_model(hub, folder, what):
    spoil, sentence = MODELS[what]
    spoil(folder)
    assert sentence.format(folder) in refused("cannot be published", folder)
    assert len(check(folder)) == 1
    assert hub.requests == []


def test_all_refusals_are_reported_at_once_and_a_folder_is_needed(folder, tmp_path):
    lines: list[str] = []
    for what in ("no card", "pickle", "notes", "hidden"):
        MODELS[what][0](folder)
    sentence = refused("3 more are listed", folder, dry_run=True, report=lines.append)
    assert [line.split()[-1] for line in lines[:7]] == list(files_of(folder))
    assert lines[7].startswith("7 files, ")
    problems = [line.removeprefix("Refused: ") for line in lines[8:]]
    assert len(problems) == 4
    assert sentence == f"{folder} cannot be published: {problems[0]} (3 more are listed above)"
    for path in (tmp_path / "none", Path(__file__)):
        refused("is not a folder", path)


def test_what_is_included_is_sent(folder):
    write(folder, notes__txt="x", extra__md="y")
    (problem,) = check(folder, ["*.txt"])
    assert problem.startswith("extra.md: no file of an export")
    assert check(folder, ["*.txt", "extra.md"]) == []
