"""A Hub of datasets on loopback, as far as streaming them needs it: which files a repository has, and parts of them."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

COMMIT = "c" * 40


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def do_GET(self):
        path = urlsplit(self.path).path
        if found := re.fullmatch(r"/datasets/(\w+/\w+)/resolve/\w+/(.+)", path):
            self.send_file(*found.groups())
        elif found := re.fullmatch(r"/api/datasets/(\w+/\w+)(/revision/\w+)?", path):
            self.send_json(found[1], {"id": found[1], "sha": COMMIT})
        elif found := re.fullmatch(r"/api/datasets/(\w+/\w+)/tree/\w+/?(.*)", path):
            self.send_json(found[1], self.entries(found[1], found[2], "recursive=true" in self.path.lower()))
        else:
            self.refuse("EntryNotFound")

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
        name = "/".join(self.path.split("/")[3:5])
        self.send_json(name, [entry for entry in self.entries(name, "", True) if entry["path"] in wanted])

    def entries(self, name, folder, deep):
        found = sorted((self.root / name / folder).glob("**/*" if deep else "*"))
        return [
            {
                "type": "file" if path.is_file() else "directory",
                "path": path.relative_to(self.root / name).as_posix(),
                "size": path.stat().st_size,
                "oid": "0" * 40,
            }
            for path in found
        ]

    def send_file(self, name, path):
        file = self.root / name / path
        if not file.is_file():
            self.refuse("EntryNotFound" if (self.root / name).is_dir() else "RepoNotFound")
            return
        content, status = file.read_bytes(), 200
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{path}"', "Accept-Ranges": "bytes"}
        if part := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(part[1]), min(int(part[2] or len(content)), len(content) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            content, status = content[first : last + 1], 206
        self.answer(status, content, headers)

    def send_json(self, name, value):
        if (self.root / name).is_dir():
            self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})
        else:
            self.refuse("RepoNotFound")

    def refuse(self, code):
        self.answer(404, b"", {"X-Error-Code": code})

    def answer(self, status, content, headers):
        self.send_response(status)
        for header, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *words):
        pass


@contextmanager
def serve(root: Path):
    """Serves ``root/org/name/`` as the dataset ``org/name``; gives the address."""
    handler = type("Handler", (_Handler,), {"root": root})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
