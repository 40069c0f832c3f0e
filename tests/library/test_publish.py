"""Publish on a local Hub.

One commit or none, and one sentence for every fault that a user meets.
"""

from dataclasses import replace

import pytest
from hub_server import Fault, LocalHub
from huggingface_hub import constants
from publish_folders import contents, hub_of_this_process, model_folder, seen, write

from hf_dialemb.errors import InputError
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
    assert seen(hub) == contents(folder)
    hub.requests.clear()
    lines_of(folder)
    assert (len(hub.history("models", NAME)), hub.asked("PUT|/commit/")) == (2, [])
    for name in ("model-0.safetensors", "model-1.safetensors", "model.safetensors.index.json"):
        (folder / name).unlink()
    (total,) = lines_of(model_folder(folder))
    assert total.startswith(f"model {NAME} holds 5 files")
    assert seen(hub) == contents(folder)
    assert len(hub.history("models", NAME)) == 3


def test_branches_and_private_repositories(hub, folder):
    publish(folder, NAME, private=True, revision="v2")
    assert hub.get("models", NAME).private
    assert seen(hub, revision="v2") == contents(folder)
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
    (Fault("/commit/", status=500), ConnectionError, r"HTTP 500.*run the same command again"),
    (Fault("PUT", cut=True), ConnectionError, "cannot be reached or broke off.* check the network"),
    (Fault("/commit/", status=409), ConnectionError, "HTTP 409"),
    (Fault("/commit/", status=401), InputError, "run 'hf auth login' with a token that may write"),
    (Fault("preupload", status=403), InputError, "HTTP 403.*ask the owner"),
    (Fault("/commit/", status=422), InputError, r"HTTP 422 \(as injected\)"),
]


@pytest.mark.parametrize(
    ("fault", "kind", "message"), FAULTS, ids=lambda fault: getattr(fault, "pattern", "")
)
def test_a_fault_is_one_sentence_and_the_old_commit_stays(
    hub, tmp_path, folder, fault, kind, message
):
    publish(model_folder(tmp_path / "before", seed=9), NAME)
    hub.faults.append(replace(fault, times=10**6))
    sentence = refused(message, folder, kind=kind)
    assert "\n" not in sentence
    assert NAME in sentence
    assert seen(hub) == contents(tmp_path / "before")
    hub.faults.clear()
    publish(folder, NAME)
    assert seen(hub) == contents(folder)
    assert len(hub.history("models", NAME)) == 3


def test_large_files_that_arrived_are_not_sent_again(hub, tmp_path):
    folder = model_folder(tmp_path / "parts", parts=3)
    hub.faults.append(Fault("/commit/", status=403))
    refused("HTTP 403", folder)
    assert len(hub.asked("PUT")) == 3
    publish(folder, NAME)
    assert len(hub.asked("PUT")) == 3
    assert seen(hub) == contents(folder)


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
    assert hub.files("models", NAME) == contents(folder)


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
    assert sizes == {path: len(content) for path, content in contents(folder).items()}
    assert total.startswith("5 files, ")
    assert last == f"Nothing stands in the way of the public model {NAME}; nothing was sent"
    assert hub.requests == []
    assert printed(*words, "--revision", "next").startswith(f"model {NAME} holds 5 files")
    files = hub.get("models", NAME).at("next").files
    assert {path for path, entry in files.items() if entry.large} == {"model.safetensors"}
