"""The Space of a metric starts, and computes."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from hf_dialemb.metrics.space import get_metric, write_space

pytestmark = pytest.mark.slow


@contextmanager
def page(folder):
    """Run a Space's page in a process, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
    command = [sys.executable, "-u", "app.py"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert any("Running on" in line for line in process.stdout)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.habit("the Space of each metric", "starts with gradio, and computes")
def test_the_page_of_a_metric_computes(tmp_path):
    pytest.importorskip("gradio")
    from gradio_client import Client
    from gradio_client.exceptions import AppError

    metric = get_metric("purity")
    write_space("purity", tmp_path / "purity")
    with page(tmp_path / "purity") as address:
        client = Client(address, verbose=False)
        scores = client.predict(json.dumps(metric.example), api_name="/compute")
        with pytest.raises(AppError):
            client.predict("[]", api_name="/compute")
    assert scores.keys() == metric.result.keys()
    assert all(
        scores[key] == pytest.approx(value, abs=1e-3) for key, value in metric.result.items()
    )
