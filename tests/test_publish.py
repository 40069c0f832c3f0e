"""Publishing: one commit or none, whatever happens on the way, and one sentence that says what did."""

from dataclasses import replace

import pytest
from hub_server import Fault, LocalHub
from huggingface_hub import constants
from publish_folders import contents, dataset_folder, hub_of_this_process, metric_folder, model_folder, seen, write

from hf_dialemb.errors import InputError
from hf_dialemb.hub.publish.errors import LONGEST_PAUSE
from hf_dialemb.hub.publish.publishing import publish

NAME = "org/small"


@pytest.fixture
def hub():
    with hub_of_this_process() as hub:
        yield hub


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path / "small")


def refused(sentence, folder, name=NAME, kind=InputError, **options):
    """Makes sure that a folder is not published, and returns what is said."""
    with pytest.raises(kind, match=sentence) as caught:
        list(publish(folder, name, **options))
    return str(caught.value)


def test_one_commit_brings_what_changed_and_removes_what_is_gone_and_a_repeat_makes_none(hub, folder):
    (line,) = publish(model_folder(folder, parts=2), NAME)
    first, created = hub.history("models", NAME)
    assert line.startswith("Published 8 files (")
    assert line.endswith(f"as model {NAME}, commit {first.oid}")
    assert (created.summary, first.summary) == ("initial commit", "Publish with hf_dialemb")
    assert seen(hub) == contents(folder)
    hub.requests.clear()
    assert [*publish(folder, NAME)] == [f"Nothing has changed: {NAME} has all of it already in commit {first.oid}"]
    assert (len(hub.history("models", NAME)), hub.asked("PUT|/commit/")) == (2, [])
    for name in ("model-0.safetensors", "model-1.safetensors", "model.safetensors.index.json"):
        (folder / name).unlink()
    *removed, published = publish(model_folder(folder), NAME)
    assert removed[1] == "Removed: model-1.safetensors, which is not in the folder"
    assert published.startswith("Published")
    assert seen(hub) == contents(folder)
    assert len(hub.history("models", NAME)) == 3


def test_spaces_datasets_branches_and_private_repositories(hub, folder, tmp_path):
    list(publish(metric_folder(tmp_path), "org/ndcg", repo_type="space"))
    assert seen(hub, "spaces", "org/ndcg") == contents(tmp_path / "ndcg")
    list(publish(dataset_folder(tmp_path / "calls"), "org/calls", repo_type="dataset"))
    assert seen(hub, "datasets", "org/calls") == contents(tmp_path / "calls")
    list(publish(folder, NAME, private=True, revision="v2"))
    assert hub.get("models", NAME).private
    assert seen(hub, revision="v2") == contents(folder)
    assert seen(hub) == {}
    hub.create("models", "org/open")
    refused("org/open exists and everybody can see it; make it private", folder, "org/open", private=True)
    assert len(hub.history("models", "org/open")) == 1


def test_a_gitignore_there_keeps_nothing_back(hub, folder, tmp_path):
    hub.fill("models", NAME, write(tmp_path / "before", __gitignore="modules.json\n", __gitattributes="* text\n"))
    assert next(publish(folder, NAME)) == "Removed: .gitignore, which is not in the folder"
    assert seen(hub) == contents(folder)


SOON = {"Retry-After": "7"}
IN_PASSING = [
    Fault("preupload", status=500, times=3),
    Fault("PUT /lfs", status=503, times=2),
    Fault("PUT /lfs", cut="upload", times=2),
    Fault("repos/create", status=502, times=2),
    Fault("repos/create", cut="answer"),
    Fault("validate-yaml", status=500),
    Fault("/commit/", status=500, times=3),
    Fault("/commit/", cut="upload"),
    Fault("/commit/", cut="answer"),
    Fault("/commit/", status=429, headers=SOON),
    Fault("preupload", status=429, headers=SOON),
    Fault("preupload", status=429, headers={"ratelimit": '"api";r=0;t=7'}),
    Fault("GET .*/tree/", cut="answer"),
]


@pytest.mark.parametrize("fault", IN_PASSING, ids=lambda fault: f"{fault.pattern} {fault.status or fault.cut}")
def test_what_fails_in_passing_is_tried_again(hub, folder, fault):
    fault = replace(fault)
    hub.faults.append(fault)
    assert list(publish(folder, NAME))[-1].startswith("Published 5 files")
    assert (fault.times, len(hub.history("models", NAME))) == (0, 2)
    assert seen(hub) == contents(folder)
    assert hub.pauses
    assert fault.status != 429 or 7 <= hub.pauses[0] <= 8


FOREVER = [
    (Fault("/commit/", status=500), "the Hub fails (HTTP 500): run the same command again"),
    (Fault("PUT", status=500), "the Hub fails (HTTP 500)"),
    (Fault("PUT", cut="upload"), "cannot be reached or broke off"),
    (Fault("/commit/", cut="upload"), "check the network and run the same command"),
    (Fault("preupload", status=429, headers={"Retry-After": str(LONGEST_PAUSE + 1)}),
     f"the Hub asks for a pause of {LONGEST_PAUSE + 1} seconds: run the same command again then"),
    (Fault("PUT", status=429, headers={"Retry-After": "3600"}), "for a pause of 3600 seconds"),
    (Fault("/commit/", status=401), "does not accept the login: run 'hf auth login'"),
    (Fault("preupload", status=403), "does not let this login write here: ask its owner"),
    (Fault("preupload", status=404), "knows no such repository or branch: correct --repo-id"),
    (Fault("/commit/", status=412), "got another commit while this one was on its way"),
    (Fault("/commit/", status=422), "refuses the request (HTTP 422); it says: as injected"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "sentence"), FOREVER)
def test_what_fails_for_good_is_one_sentence_and_leaves_what_was_there(hub, tmp_path, folder, fault, sentence):
    list(publish(model_folder(tmp_path / "before", seed=9), NAME))
    hub.requests.clear()
    hub.faults.append(replace(fault, times=10**6))
    passing = fault.cut or fault.status in (429, 500)
    with pytest.raises(ConnectionError if passing else InputError) as caught:
        list(publish(folder, NAME))
    message = getattr(caught.value, "strerror", None) or str(caught.value)
    assert sentence in message
    assert "\n" not in message
    assert NAME in str(caught.value)
    assert "dummy" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert len(hub.requests) <= 50
    assert sum(hub.pauses) <= 60
    assert seen(hub) == contents(tmp_path / "before")
    hub.faults.clear()
    assert list(publish(folder, NAME))[-1].startswith("Published")
    assert seen(hub) == contents(folder)
    assert len(hub.history("models", NAME)) == 3


@pytest.mark.slow
def test_however_early_the_hub_goes_away_the_old_commit_stays_and_a_rerun_completes(hub, tmp_path):
    old, new = (model_folder(tmp_path / name, seed, parts=2) for seed, name in enumerate(("before", "after")))
    list(publish(old, NAME))
    hub.requests.clear()
    list(publish(new, NAME))
    total = len(hub.requests)
    assert total > 8
    for number in range(total):
        old, new = new, old
        hub.large.clear()
        hub.requests.clear()
        hub.stop_after = number
        refused("broke off", new, kind=ConnectionError)
        assert seen(hub) == contents(old)
        hub.stop_after = None
        list(publish(new, NAME))
        assert seen(hub) == contents(new)
    history = hub.history("models", NAME)
    assert len(history) == 3 + total
    assert all(commit.files.keys() - {".gitattributes"} == contents(old).keys() for commit in history[:-1])


def test_large_files_that_arrived_are_not_sent_again(hub, tmp_path):
    folder = model_folder(tmp_path / "parts", parts=3)
    hub.faults.append(Fault("/commit/", status=403))
    refused(None, folder)
    assert len(hub.asked("PUT")) == 3
    list(publish(folder, NAME))
    assert len(hub.asked("PUT")) == 3
    assert seen(hub) == contents(folder)


def test_another_commit_in_between_is_not_overwritten(hub, folder, tmp_path, monkeypatch):
    def interfere(repository, *words):
        repository.add("main", "by hand", repository.at("main").files)
        return LocalHub.modes(hub, repository, *words)

    hub.fill("models", NAME, write(tmp_path / "other", notes__md="mine"))
    with monkeypatch.context() as patch:
        patch.setattr(hub, "modes", interfere)
        refused("got another commit while this one was on its way: run the same command", folder)
    assert hub.history("models", NAME)[0].summary == "by hand"
    list(publish(folder, NAME))
    assert hub.files("models", NAME) == contents(folder)


def test_unreachable_offline_and_without_login(hub, folder, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    sentence = r"the Hub at http://127.0.0.1:1 cannot be reached .*: check the network"
    refused(sentence, folder, kind=ConnectionError)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused("HF_HUB_OFFLINE is set; unset it to publish", folder)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    refused("no login for the Hub; run 'hf auth login'", folder)
    assert hub.requests == []


def test_the_login_is_nowhere_in_what_is_said(hub, folder, monkeypatch, capfd, caplog):
    monkeypatch.setenv("HF_TOKEN", "hf_" + "s" * 34)
    said = refused("does not accept the login", folder)
    hub.faults.append(Fault("create", status=400, headers={"X-Error-Message": "Bearer hf_" + "s" * 34}))
    said += refused(r"it says: Bearer \*\*\*", folder)
    assert "hf_sss" not in "".join([said, *capfd.readouterr(), caplog.text])


@pytest.mark.parametrize(("words", "sentence"), [
    ({"name": "small"}, "--repo-id: got 'small', expected an organisation or user and a name: org/small"),
    ({"name": "org/sm all"}, "--repo-id: Repo id must use alphanumeric chars"),
    ({"repo_type": "spaces"}, "Unknown repository type 'spaces'. Did you mean 'space'?"),
])  # fmt: skip
def test_a_wrong_target_is_told_before_anything_else(hub, folder, words, sentence):
    assert refused(None, folder, **words).startswith(sentence)
    assert hub.requests == []


def test_a_download_that_is_not_what_was_sent_is_told(hub, tmp_path):
    folder, options = dataset_folder(tmp_path / "calls"), {"repo_type": "dataset", "verify": True}
    *_, line = publish(folder, "org/calls", **options)
    commit = hub.history("datasets", "org/calls")[0].oid
    assert line == f"Verified: 2 files of commit {commit} are those of {folder}"
    hub.faults.append(Fault(r"GET .*jsonl", corrupt=True))
    refused(r"train/calls.jsonl of commit \w{40} is not what was sent", folder, "org/calls", **options)


def test_the_command_prints_what_happens(hub, folder, printed):
    words = ["publish", folder, "--repo-id", NAME]
    *listed, whole, last = printed(*words, "--dry-run").splitlines()
    rows = {line.split()[-1]: line.split()[:-1] for line in listed}
    sizes = [f"{len(contents(folder)[name]):,}" for name in ("model.safetensors", "config.json")]
    assert [rows["model.safetensors"], rows["config.json"]] == [["LFS", sizes[0]], [sizes[1]]]
    assert rows.keys() == contents(folder).keys()
    assert whole.startswith("5 files, ")
    assert whole.endswith("1 of them large (LFS)")
    assert last == f"Nothing stands in the way of model {NAME}, branch main; nothing was sent"
    assert hub.requests == []
    assert printed(*words, "--revision", "next").startswith("Published 5 files")
    files = hub.get("models", NAME).at("next").files
    assert {path for path, entry in files.items() if entry.large} == {"model.safetensors"}
