"""A server on this machine that stands for an endpoint of OpenAI's protocol."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "sk-a-secret-word"


def says(text):
    """An answer with a text."""
    message = {"role": "assistant", "content": text}
    return {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}


class Handler(BaseHTTPRequestHandler):
    """Answers with what the test has put on the server's list, then with how many requests there
    were.

    What is on the list is (status, body, and perhaps headers).
    """

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, self.headers["Authorization"], request))
        status, body, *headers = self.server.answers.pop(0) if self.server.answers else (200, None)
        if body is None:
            body = says(f"name {len(self.server.requests)}")
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **dict(*headers)}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        pass


@contextmanager
def serving(monkeypatch):
    """Runs a server with lists of requests that came and answers to give, and names it in the
    environment."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.requests, running.answers = [], []
        threading.Thread(
            target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{running.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running
        running.shutdown()
