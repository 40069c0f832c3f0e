"""Publishing may be killed at any moment: strangers see the old commit or the new one, and a rerun completes.

``HF_DIALEMB_KILLS`` says how many times (default: 20); ``--junitxml`` writes what came of them.
"""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from hub_server import TOKEN, run_hub
from publish_folders import contents, model_folder

NAME = "org/small"
KILLS = int(os.environ.get("HF_DIALEMB_KILLS", "20"))
MOMENTS = ("arrived", "read", "done")


class Publisher:
    """Starts processes that publish, and kills one at a moment of a request."""

    def __init__(self, hub, process):
        self.hub, self.process = hub, process
        self.numbers: queue.Queue[int] = queue.Queue()
        self.killed_at = ""

    def publish(self, folder: Path, kill_at: tuple[int, str] | None = None) -> int:
        """Publishes a folder; returns the exit code."""
        self.hub.requests.clear()
        self.killed_at = ""

        def kill(number: int, moment: str, request: str) -> None:
            if (number, moment) == kill_at:
                self.killed_at = f"{moment}: {request}"
                os.kill(self.numbers.get(timeout=60), signal.SIGKILL)

        self.hub.watch = kill
        self.numbers = queue.Queue()
        self.process.stdin.write(json.dumps([str(folder), NAME]) + "\n")
        self.process.stdin.flush()
        self.numbers.put(int(self.process.stdout.readline()))
        code = int(self.process.stdout.readline())
        self.hub.wait_until_idle()  # what was sent before the end is still answered
        return code


@contextmanager
def publisher(home: Path):
    with run_hub() as hub:
        places = {"HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0"}
        with subprocess.Popen(
            [sys.executable, Path(__file__).with_name("publish_forks.py")],
            env={**os.environ, **places, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                yield Publisher(hub, process)
            finally:
                process.stdin.close()


def seen(hub) -> dict[str, bytes]:
    return {path: content for path, content in hub.files("models", NAME).items() if path != ".gitattributes"}


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_the_old_commit_or_the_new_one(tmp_path, record_testsuite_property):
    draw = random.Random(7)
    folders = [model_folder(tmp_path / name, seed, parts=2 + seed) for seed, name in enumerate(("old", "new"))]
    states = [contents(folder) for folder in folders]
    outcomes, moments = {"old": 0, "new": 0}, set()
    with publisher(tmp_path / "home") as one:
        assert one.publish(folders[0]) == 0
        assert one.publish(folders[1]) == 0
        total, shown = len(one.hub.requests), 1
        assert total > 10
        for turn in range(KILLS):
            one.hub.large.clear()
            wanted = 1 - shown
            moment = (draw.randint(1, total), draw.choice(MOMENTS)) if turn else (total, "done")  # first, the commit
            code = one.publish(folders[wanted], moment)
            assert code in (-signal.SIGKILL, 0)
            assert (code == 0) == (one.killed_at == "")
            moments.add(one.killed_at)
            after = seen(one.hub)
            assert after in states
            outcomes["new" if after == states[wanted] else "old"] += 1
            commits = len(one.hub.history("models", NAME))
            assert one.publish(folders[wanted]) == 0
            assert seen(one.hub) == states[wanted]
            assert len(one.hub.history("models", NAME)) == commits + (after != states[wanted])
            shown = wanted
        for commit in one.hub.history("models", NAME)[:-1]:
            files = {path: entry.content for path, entry in commit.files.items() if path != ".gitattributes"}
            assert files in states
    assert all(outcomes.values())
    record_testsuite_property("kills", f"{KILLS} at {len(moments)} moments of {total} requests: {outcomes}")
