"""A Hub on loopback over real HTTP: models, datasets and Spaces that can be created, uploaded to and downloaded from.

Faults can be injected: `LocalHub.faults` for single requests, `LocalHub.stop_after` for a Hub that goes away, and
`LocalHub.watch`, which is called at each moment of each request.
"""

import json
import re
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import yaml
from hub_repositories import Commit, RefusalError, Repository, Store

TOKEN = "dummy"


@dataclass
class Fault:
    """What goes wrong with the requests whose ``METHOD /path`` holds ``pattern``.

    Args:
        pattern: A regular expression.
        status: Is answered, with ``headers``, and nothing is done.
        cut: ``"upload"`` breaks the connection after half of what is sent, ``"answer"`` when all is done.
        corrupt: Changes the last byte of what is downloaded.
        times: So many of them go wrong.
    """

    pattern: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut: str = ""
    corrupt: bool = False
    times: int = 1

    def strikes(self, request: str) -> bool:
        if self.times <= 0 or not re.search(self.pattern, request):
            return False
        self.times -= 1
        return True


class LocalHub(Store):
    """The Hub: its repositories, what goes wrong, and what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.address = ""
        self.faults: list[Fault] = []
        self.stop_after: int | None = None
        self.watch: Callable[[int, str, str], None] = lambda number, moment, request: None
        self.requests: list[str] = []
        self._busy, self._changed = 0, threading.Condition()

    def asked(self, pattern: str) -> list[str]:
        return [request for request in self.requests if re.search(pattern, request)]

    def history(self, kind: str, name: str, branch: str = "main") -> list[Commit]:
        return self.get(kind, name).history(branch)

    def files(self, kind: str, name: str, revision: str = "main") -> dict[str, bytes]:
        """What strangers see."""
        return {path: entry.content for path, entry in self.get(kind, name).at(revision).files.items()}

    @contextmanager
    def at_work(self):
        """Holds for as long as a request is answered."""
        with self._changed:
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def wait_until_idle(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: not self._busy, timeout=60)

    def count(self, request: str) -> tuple[int, Fault | None]:
        with self.lock:
            self.requests.append(request)
            return len(self.requests), next((fault for fault in self.faults if fault.strikes(request)), None)


class _CutError(Exception):
    """The connection ends here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def handle_request(self) -> None:
        with self.hub.at_work():
            self.handle_one()

    def handle_one(self) -> None:
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        request = f"{self.command} {unquote(parts.path)}"
        number, self.fault = self.hub.count(request)
        try:
            if self.hub.stop_after is not None and number > self.hub.stop_after:
                raise _CutError
            self.hub.watch(number, "arrived", request)
            self.body = self.read_body()
            self.hub.watch(number, "read", request)
            answer = self.find_answer(parts.path)
            self.hub.watch(number, "done", request)
            if self.fault and self.fault.cut == "answer":
                raise _CutError
            self.answer(*answer)
        except (_CutError, ConnectionError):
            self.close_connection = True

    def read_body(self) -> bytes:
        if self.fault and self.fault.cut == "upload":
            self.rfile.read1(100)
            raise _CutError
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:
            raise _CutError
        return body

    def find_answer(self, path: str):
        if self.fault and self.fault.status:
            return self.fault.status, b"{}", {"X-Error-Message": "as injected", **self.fault.headers}
        try:
            if self.command not in ("GET", "HEAD") and not self.is_known() and not path.endswith("validate-yaml"):
                raise RefusalError(401, "", "Invalid username or password.")
            for pattern, methods, action in _ROUTES:
                if self.command in methods.split() and (found := re.fullmatch(pattern, path)):
                    return action(self, **{name: unquote(value or "") for name, value in found.groupdict().items()})
            raise RefusalError(404, "EntryNotFound", f"no such route: {self.command} {path}")
        except RefusalError as refusal:
            headers = {"X-Error-Code": refusal.code, "X-Error-Message": refusal.sentence}
            return refusal.status, json.dumps({"error": refusal.sentence}).encode(), headers

    def is_known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}" or bool(re.match("/lfs/", self.path))

    def repository(self, kind: str, name: str) -> Repository:
        repository = self.hub.get(kind or "models", name)
        if repository.private and not self.is_known():
            raise RefusalError(404, "RepoNotFound")
        return repository

    def resolve(self, kind: str, name: str, revision: str, path: str):
        commit = self.repository(kind, name).at(revision)
        if path not in commit.files:
            return 404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit.oid}
        entry = commit.files[path]
        content, status = entry.content, 200
        headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{entry.oid}"', "Accept-Ranges": "bytes"}
        if entry.large:
            headers |= {"X-Linked-ETag": f'"{entry.sha256}"', "X-Linked-Size": str(len(content))}
        if self.fault and self.fault.corrupt:
            content = content[:-1] + bytes([content[-1] ^ 1])
        if part := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(part[1]), min(int(part[2] or len(content)), len(content) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            content, status = content[first : last + 1], 206
        return status, content, headers

    def info(self, kind: str, name: str, revision: str = ""):
        repository = self.repository(kind, name)
        commit = repository.at(revision or "main")
        siblings = [{"rfilename": path} for path in commit.files]
        known = {"id": name, "modelId": name, "sha": commit.oid, "private": repository.private, "siblings": siblings}
        return _json({**known, "tags": [], "downloads": 0, "likes": 0})

    def tree(self, kind: str, name: str, revision: str, folder: str):
        deep = self.query.get("recursive", [""])[0].lower() == "true"
        return _json(self.repository(kind, name).rows(revision, folder, deep))

    def create(self):
        record = json.loads(self.body)
        name = f"{record['organization']}/{record['name']}" if record.get("organization") else record["name"]
        kind = f"{record.get('type', 'model')}s"
        url = {"url": f"{self.hub.address}/{'' if kind == 'models' else f'{kind}/'}{name}"}
        try:
            self.hub.create(kind, name, record.get("visibility") == "private")
        except RefusalError as refusal:  # the client reads the place here too
            return refusal.status, json.dumps({**url, "error": refusal.sentence}).encode(), {}
        return _json(url)

    def validate(self):
        text = json.loads(self.body)["content"]
        assert isinstance(yaml.safe_load(text.split("---\n", 2)[1]) if text.startswith("---\n") else {}, dict)
        return _json({"errors": [], "warnings": []})

    def preupload(self, kind: str, name: str, revision: str):
        record = json.loads(self.body)
        repository = self.repository(kind, name)
        return _json({"files": self.hub.modes(repository, revision, record["files"], record.get("gitIgnore"))})

    def batch(self, kind: str, name: str):
        self.repository(kind, name)
        objects = []
        for wanted in json.loads(self.body)["objects"]:
            place = {"actions": {"upload": {"href": f"{self.hub.address}/lfs/{wanted['oid']}"}}}
            objects.append({**wanted, **({} if wanted["oid"] in self.hub.large else place)})
        return _json({"transfer": "basic", "objects": objects})

    def put(self, oid: str):
        assert sha256(self.body).hexdigest() == oid
        self.hub.large[oid] = self.body
        return 200, b"", {}

    def commit(self, kind: str, name: str, revision: str):
        commit = self.hub.commit(self.repository(kind, name), revision, self.body)
        return _json({"commitUrl": f"{self.hub.address}/{name}/commit/{commit.oid}", "commitOid": commit.oid})

    def branch(self, kind: str, name: str, revision: str):
        repository = self.repository(kind, name)
        repository.branches[revision] = repository.at(json.loads(self.body or b"{}").get("startingPoint", "main")).oid
        return _json({})

    def answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for header, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        pass


def _json(value: object):
    return 200, json.dumps(value).encode(), {"Content-Type": "application/json"}


_NAME = r"(?P<name>[\w.-]+/[\w.-]+)"
_OF = rf"/api/(?P<kind>models|datasets|spaces)/{_NAME}"
_PAGE = rf"/(?:(?P<kind>datasets|spaces)/)?{_NAME}"
_REVISION = r"(?P<revision>[^/]+)"
_ROUTES = [
    (rf"{_PAGE}/resolve/{_REVISION}/(?P<path>.+)", "GET HEAD", _Handler.resolve),
    (rf"{_OF}(?:/revision/{_REVISION})?", "GET HEAD", _Handler.info),
    (rf"{_OF}/tree/{_REVISION}/?(?P<folder>.*)", "GET HEAD", _Handler.tree),
    ("/api/repos/create", "POST", _Handler.create),
    ("/api/validate-yaml", "POST", _Handler.validate),
    (rf"{_OF}/preupload/{_REVISION}", "POST", _Handler.preupload),
    (rf"{_PAGE}\.git/info/lfs/objects/batch", "POST", _Handler.batch),
    (r"/lfs/(?P<oid>[0-9a-f]{64})", "PUT", _Handler.put),
    (rf"{_OF}/commit/{_REVISION}", "POST", _Handler.commit),
    (rf"{_OF}/branch/{_REVISION}", "POST", _Handler.branch),
]


for _method in ("GET", "HEAD", "POST", "PUT"):
    setattr(_Handler, f"do_{_method}", _Handler.handle_request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # whoever asked may be gone
            super().handle_error(request, client_address)


@contextmanager
def run_hub():
    """Runs a Hub; gives it."""
    hub = LocalHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with _Server(("127.0.0.1", 0), handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()


@contextmanager
def serve(root: Path):
    """Serves ``root/org/name/`` as the dataset ``org/name``; gives the address."""
    with run_hub() as hub:
        for folder in sorted(root.glob("*/*")):
            hub.fill("datasets", folder.relative_to(root).as_posix(), folder)
        yield hub.address
