"""A server on this machine that stands for an endpoint of OpenAI's protocol."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "sk-a-secret-word"


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], monkeypatch) -> Iterator[ThreadingHTTPServer]:
    """Runs a server with lists of requests that came and answers to give, and names it in the environment."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.requests, running.answers = [], []
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{running.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running
        running.shutdown()
