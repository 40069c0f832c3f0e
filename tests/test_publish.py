"""Publishing: one commit or none, whatever happens on the way, and one sentence that says what did.

``HF_DIALEMB_KILLS`` says how often publishing is killed (default: 20); ``--junitxml`` writes what came of it.
"""

import json
import os
import queue
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hub_server import TOKEN, Fault, run_hub
from huggingface_hub import constants
from publish_folders import contents, dataset_folder, hub_of_this_process, metric_folder, model_folder, seen, write

from hf_dialemb.cli import main
from hf_dialemb.hub.publish.errors import LONGEST_PAUSE
from hf_dialemb.hub.publish.publishing import publish
from hf_dialemb.models.errors import InputError

NAME = "org/small"
KILLS = int(os.environ.get("HF_DIALEMB_KILLS", "20"))
MOMENTS = ("arrived", "read", "done")


@pytest.fixture
def reached():
    with hub_of_this_process() as (hub, pauses):
        yield hub, pauses


@pytest.fixture
def hub(reached):
    return reached[0]


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path / "small")


def refused(sentence, folder, name=NAME, kind=InputError, **options):
    """Makes sure that a folder is not published, and returns what is said."""
    with pytest.raises(kind, match=sentence) as caught:
        list(publish(folder, name, **options))
    return str(caught.value)


def test_a_model_is_published_in_one_commit_and_a_repeat_makes_none(hub, folder):
    (line,) = publish(folder, NAME)
    first, created = hub.history("models", NAME)
    assert line.startswith("Published 5 files (")
    assert line.endswith(f"as model {NAME}, commit {first.oid}")
    assert (created.summary, first.summary) == ("initial commit", "Publish with hf_dialemb")
    assert seen(hub) == contents(folder)
    hub.requests.clear()
    (line,) = publish(folder, NAME)
    assert line == f"Nothing has changed: {NAME} has all of it already in commit {first.oid}"
    assert len(hub.history("models", NAME)) == 2
    assert hub.asked("PUT|/commit/") == []


def test_what_changed_is_sent_and_what_is_gone_is_removed(hub, folder):
    list(publish(model_folder(folder, parts=2), NAME))
    (folder / "model-1.safetensors").unlink()
    (folder / "config.json").write_text('{"model_type": "bert", "layers": 2}')
    hub.requests.clear()
    removed, published = publish(folder, NAME)
    assert removed == "Removed: model-1.safetensors, which is not in the folder"
    assert published.startswith("Published")
    assert seen(hub) == contents(folder)
    assert len(hub.history("models", NAME)) == 3
    assert hub.asked("PUT") == []


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


IN_PASSING = {
    "preupload fails": Fault("preupload", status=500, times=3),
    "storage fails": Fault("PUT /lfs", status=503, times=2),
    "storage breaks off": Fault("PUT /lfs", cut="upload", times=2),
    "creation fails": Fault("repos/create", status=502, times=2),
    "creation is not answered": Fault("repos/create", cut="answer"),
    "card check fails": Fault("validate-yaml", status=500),
    "commit fails": Fault("/commit/", status=500, times=3),
    "commit breaks off": Fault("/commit/", cut="upload"),
    "commit is not answered": Fault("/commit/", cut="answer"),
    "commit is to wait": Fault("/commit/", status=429, headers={"Retry-After": "7"}),
    "preupload is to wait": Fault("preupload", status=429, headers={"Retry-After": "7"}),
    "preupload is limited": Fault("preupload", status=429, headers={"ratelimit": '"api";r=0;t=7'}),
    "listing breaks off": Fault("GET .*/tree/", cut="answer"),
}


@pytest.mark.parametrize("what", IN_PASSING)
def test_what_fails_in_passing_is_tried_again(reached, folder, what):
    hub, pauses = reached
    fault = replace(IN_PASSING[what])
    hub.faults.append(fault)
    assert list(publish(folder, NAME))[-1].startswith("Published 5 files")
    assert fault.times == 0
    assert len(hub.history("models", NAME)) == 2
    assert seen(hub) == contents(folder)
    assert pauses
    assert fault.status != 429 or 7 <= pauses[0] <= 8


FOREVER = {
    "fails": (Fault("/commit/", status=500), ConnectionError, "the Hub fails (HTTP 500): run the same command again"),
    "storage fails": (Fault("PUT", status=500), ConnectionError, "the Hub fails (HTTP 500)"),
    "storage cut": (Fault("PUT", cut="upload"), ConnectionError, "cannot be reached or broke off"),
    "commit cut": (Fault("/commit/", cut="upload"), ConnectionError, "check the network and run the same command"),
    "limited": (Fault("preupload", status=429, headers={"Retry-After": str(LONGEST_PAUSE + 1)}), ConnectionError,
                f"the Hub asks for a pause of {LONGEST_PAUSE + 1} seconds: run the same command again then"),
    "limited storage": (Fault("PUT", status=429, headers={"Retry-After": "3600"}), ConnectionError,
                        "for a pause of 3600 seconds"),
    "login": (Fault("/commit/", status=401), InputError, "does not accept the login: run 'hf auth login'"),
    "rights": (Fault("preupload", status=403), InputError, "does not let this login write here: ask its owner"),
    "no such": (Fault("preupload", status=404), InputError, "knows no such repository or branch: correct --repo-id"),
    "overtaken": (Fault("/commit/", status=412), InputError, "got another commit while this one was on its way"),
    "refused": (Fault("/commit/", status=422), InputError, "refuses the request (HTTP 422); it says: as injected"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", FOREVER)
def test_what_fails_for_good_is_one_sentence_and_leaves_what_was_there(reached, tmp_path, folder, what):
    hub, pauses = reached
    list(publish(model_folder(tmp_path / "before", seed=9), NAME))
    hub.requests.clear()
    fault, kind, sentence = FOREVER[what]
    hub.faults.append(replace(fault, times=10**6))
    with pytest.raises(kind) as caught:
        list(publish(folder, NAME))
    message = getattr(caught.value, "strerror", None) or str(caught.value)
    assert sentence in message
    assert "\n" not in message
    assert NAME in str(caught.value)
    assert "dummy" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert len(hub.requests) <= 50
    assert sum(pauses) <= 60
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


def test_another_commit_in_between_is_not_overwritten(hub, folder, tmp_path):
    def interfere(number, moment, request):
        if moment == "arrived" and "/commit/" in request:
            hub.watch = lambda *_: None
            hub.get("models", NAME).add("main", "by hand", dict(hub.get("models", NAME).at("main").files))

    hub.fill("models", NAME, write(tmp_path / "other", notes__md="mine"))
    hub.watch = interfere
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


def test_the_command_prints_what_happens(hub, folder, capsys):
    words = ["publish", str(folder), "--repo-id", NAME]
    assert main([*words, "--dry-run"]) == 0
    *listed, whole, last = capsys.readouterr().out.splitlines()
    rows = {line.split()[-1]: line.split()[:-1] for line in listed}
    size = len(contents(folder)["model-0.safetensors"])
    assert (rows["model-0.safetensors"], rows["config.json"]) == (["LFS", f"{size:,}"], ["22"])
    assert rows.keys() == contents(folder).keys()
    assert whole.startswith("5 files, ")
    assert whole.endswith("1 of them large (LFS)")
    assert last == f"Nothing stands in the way of model {NAME}, branch main; nothing was sent"
    assert hub.requests == []
    assert main([*words, "--revision", "next"]) == 0
    assert capsys.readouterr().out.startswith("Published 5 files")
    files = hub.get("models", NAME).at("next").files
    assert {path for path, entry in files.items() if entry.large} == {"model-0.safetensors"}


@pytest.fixture
def killable(tmp_path):
    """A Hub, and a function that publishes in a process, may kill it at a moment of a request, and tells the exit."""
    with run_hub() as hub:
        places = {
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(tmp_path / "home"),
            "HF_TOKEN": TOKEN,
            "HF_HUB_OFFLINE": "0",
        }
        environment = {**os.environ, **places, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        command, pipe = [sys.executable, Path(__file__).with_name("publish_forks.py")], subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:

            def run(folder: Path, kill_at: tuple[int, str] | None = None) -> tuple[int, str]:
                numbers, killed_at = queue.Queue(), []

                def kill(number: int, moment: str, request: str) -> None:
                    if (number, moment) == kill_at:
                        killed_at.append(f"{moment}: {request}")
                        os.kill(numbers.get(timeout=60), signal.SIGKILL)

                hub.requests.clear()
                hub.watch = kill
                process.stdin.write(json.dumps([str(folder), NAME]) + "\n")
                process.stdin.flush()
                numbers.put(int(process.stdout.readline()))
                code = int(process.stdout.readline())
                hub.wait_until_idle()  # what was sent before the end is still answered
                return code, "".join(killed_at)

            yield hub, run
            process.stdin.close()


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_the_old_commit_or_the_new_one(killable, tmp_path, record_testsuite_property):
    (hub, run), draw = killable, random.Random(7)
    folders = [model_folder(tmp_path / name, seed, parts=2 + seed) for seed, name in enumerate(("old", "new"))]
    states = [contents(folder) for folder in folders]
    outcomes, moments = {"old": 0, "new": 0}, set()
    assert [run(folder) for folder in folders] == [(0, ""), (0, "")]
    total = len(hub.requests)
    assert total > 10
    for turn in range(KILLS):
        hub.large.clear()
        wanted = turn % 2
        moment = (draw.randint(1, total), draw.choice(MOMENTS)) if turn else (total, "done")  # first, the commit
        code, killed_at = run(folders[wanted], moment)
        assert code in (-signal.SIGKILL, 0)
        assert (code == 0) == (killed_at == "")
        moments.add(killed_at)
        after = seen(hub)
        assert after in states
        outcomes["new" if after == states[wanted] else "old"] += 1
        commits = len(hub.history("models", NAME))
        assert run(folders[wanted]) == (0, "")
        assert seen(hub) == states[wanted]
        assert len(hub.history("models", NAME)) == commits + (after != states[wanted])
    for commit in hub.history("models", NAME)[:-1]:
        files = {path: entry.content for path, entry in commit.files.items() if path != ".gitattributes"}
        assert files in states
    assert all(outcomes.values())
    record_testsuite_property("kills", f"{KILLS} at {len(moments)} moments of {total} requests: {outcomes}")
