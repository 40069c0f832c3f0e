"""A small Hub on loopback over real HTTP.

Repositories that can be created, uploaded to and downloaded from.

Commits appear whole or not at all. `LocalHub.faults` strike single requests.
"""

import base64
import hashlib
import json
import os
import re
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "dummy"
ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
LARGE = (".bin", ".npz", ".onnx", ".parquet", ".safetensors", ".zip")


class RefusalError(Exception):
    """An answer of the Hub: a status, a code for machines and a sentence."""

    def __init__(self, status: int, code: str, sentence: str = ""):
        super().__init__(status, code, sentence)
        self.status, self.code, self.sentence = status, code, sentence or code


class Entry(NamedTuple):
    """A file of a commit."""

    content: bytes
    large: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def blob(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def oid(self) -> str:
        return self.sha256 if self.large else self.blob

    def row(self, path: str) -> dict:
        row = {"type": "file", "path": path, "size": len(self.content), "oid": self.blob}
        if self.large:
            row["lfs"] = {"oid": self.sha256, "size": len(self.content), "pointerSize": 130}
        return row


class Commit(NamedTuple):
    """A state of a repository: all its files, by path."""

    oid: str
    parent: str | None
    summary: str
    files: dict[str, Entry]


@dataclass
class Repository:
    """Commits, and the names of some of them."""

    name: str
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def at(self, revision: str) -> Commit:
        oid = self.branches.get(revision, revision)
        if oid not in self.commits:
            raise RefusalError(404, "RevisionNotFound")
        return self.commits[oid]

    def add(self, branch: str, summary: str, files: dict[str, Entry]) -> Commit:
        parent = self.branches.get(branch)
        oid = hashlib.sha1(
            f"{self.name} {len(self.commits)} {parent} {summary}".encode()
        ).hexdigest()
        self.commits[oid] = Commit(oid, parent, summary, files)
        self.branches[branch] = oid
        return self.commits[oid]

    def rows(self, revision: str, folder: str, deep: bool) -> list[dict]:
        """Return the contents of a folder as the Hub lists them."""
        start = f"{folder}/" if folder else ""
        inside = {
            path: entry for path, entry in self.at(revision).files.items() if path.startswith(start)
        }
        folders = {parent.as_posix() for path in inside for parent in Path(path).parents} - {
            ".",
            folder,
        }
        rows = [
            {"type": "directory", "path": path, "size": 0, "oid": "0" * 40}
            for path in sorted(folders)
        ]
        rows += [entry.row(path) for path, entry in inside.items()]
        return [row for row in rows if deep or "/" not in row["path"].removeprefix(start)]


@dataclass
class Fault:
    """A fault of the next requests whose ``METHOD /path`` matches.

    A status or a cut.
    """

    pattern: str
    status: int = 0
    cut: bool = False
    times: int = 1

    def strikes(self, request: str) -> bool:
        if self.times <= 0 or not re.search(self.pattern, request):
            return False
        self.times -= 1
        return True


class LocalHub:
    """Repositories by kind (``models``, ``datasets``, ``spaces``) and name, the faults, and the
    requests so far."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large: dict[str, bytes] = {}  # files that came before their commit
        self.lock = threading.Lock()
        self.address = ""
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.tokens: set[str] = set()

    def environment(self, cache: Path) -> dict[str, str]:
        """Return the variables of a process that takes this server for the Hub, and keeps its cache
        in a folder."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        places = {
            "HF_ENDPOINT": self.address,
            "HF_HOME": str(cache),
            "HF_TOKEN": TOKEN,
            "HF_HUB_OFFLINE": "0",
        }
        return {**kept, **places, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

    def asked(self, pattern: str) -> list[str]:
        return [request for request in self.requests if re.search(pattern, request)]

    def get(self, kind: str, name: str) -> Repository:
        if (kind, name) not in self.repositories:
            raise RefusalError(404, "RepoNotFound")
        return self.repositories[kind, name]

    def history(self, kind: str, name: str) -> list[Commit]:
        """Return the commits of main, newest first."""
        repository = self.get(kind, name)
        commits = [repository.at("main")]
        while commits[-1].parent:
            commits.append(repository.commits[commits[-1].parent])
        return commits

    def files(self, kind: str, name: str, revision: str = "main") -> dict[str, bytes]:
        return {
            path: entry.content for path, entry in self.get(kind, name).at(revision).files.items()
        }

    def create(self, kind: str, name: str, private: bool = False) -> Repository:
        if (kind, name) in self.repositories:
            raise RefusalError(409, "RepoExists", "You already created this repo")
        repository = self.repositories[kind, name] = Repository(name, private)
        repository.add("main", "initial commit", {".gitattributes": Entry(ATTRIBUTES, False)})
        return repository

    def fill(self, kind: str, name: str, folder: Path | str, tag: str = "") -> Commit:
        """Make a repository of a folder, or a further commit."""
        folder = Path(folder)
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        entries = {
            str(file.relative_to(folder)): Entry(file.read_bytes(), file.suffix in LARGE)
            for file in files
        }
        repository = self.repositories.get((kind, name)) or self.create(kind, name)
        commit = repository.add("main", "fill", entries)
        repository.branches |= {tag: commit.oid} if tag else {}
        return commit

    def modes(self, repository: Repository, revision: str, files: list[dict]) -> list[dict]:
        """Return how each file is to be sent, and the digest of the file that is there."""
        present = repository.at(revision).files
        answers = []
        for path in (file["path"] for file in files):
            mode = "lfs" if path.endswith(LARGE) else "regular"
            answer = {"path": path, "uploadMode": mode, "shouldIgnore": False}
            answers.append({**answer, "oid": present[path].oid} if path in present else answer)
        return answers

    def commit(self, repository: Repository, branch: str, lines: bytes) -> Commit:
        """Take the lines of a commit; nothing of it is seen unless all of it holds."""
        with self.lock:
            header, *records = [json.loads(line) for line in lines.splitlines()]
            latest = repository.at(branch)
            if header["value"].get("parentCommit", latest.oid) != latest.oid:
                raise RefusalError(
                    412,
                    "ParentCommit",
                    "A commit has happened since. Please refresh and try again.",
                )
            files = dict(latest.files)
            for key, value in ((record["key"], record["value"]) for record in records):
                if key == "file":
                    files[value["path"]] = Entry(base64.b64decode(value["content"]), False)
                elif key == "lfsFile":
                    files[value["path"]] = Entry(self.large[value["oid"]], True)
                else:
                    assert key == "deletedFile"
                    del files[value["path"]]
            return repository.add(branch, header["value"]["summary"], files)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def handle_request(self) -> None:
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        request = f"{self.command} {unquote(parts.path)}"
        with self.hub.lock:
            self.hub.requests.append(request)
            self.hub.tokens.add((self.headers.get("Authorization") or "").removeprefix("Bearer "))
            self.fault = next(
                (fault for fault in self.hub.faults if fault.strikes(request)), Fault("")
            )
        try:
            if self.fault.cut:
                self.rfile.read1(100)
                raise ConnectionError
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(*self.make_answer(parts.path))
        except ConnectionError:
            self.close_connection = True

    def make_answer(self, path: str):
        if self.fault.status:
            return self.fault.status, b"{}", {"X-Error-Message": "as injected"}
        try:
            if (
                self.command not in ("GET", "HEAD")
                and not self.is_known()
                and not path.endswith("validate-yaml")
            ):
                raise RefusalError(401, "", "Invalid username or password.")
            for pattern, methods, action in _ROUTES:
                if self.command in methods.split() and (match := re.fullmatch(pattern, path)):
                    return action(
                        self,
                        **{name: unquote(value or "") for name, value in match.groupdict().items()},
                    )
            raise RefusalError(404, "EntryNotFound", f"no such route: {self.command} {path}")
        except RefusalError as refusal:
            headers = {"X-Error-Code": refusal.code, "X-Error-Message": refusal.sentence}
            return refusal.status, json.dumps({"error": refusal.sentence}).encode(), headers

    def is_known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}" or self.path.startswith(
            "/lfs/"
        )

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
        headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{entry.oid}"'}
        if entry.large:
            headers |= {
                "X-Linked-ETag": f'"{entry.sha256}"',
                "X-Linked-Size": str(len(entry.content)),
            }
        return 200, entry.content, headers

    def info(self, kind: str, name: str, revision: str = ""):
        repository = self.repository(kind, name)
        commit = repository.at(revision or "main")
        siblings = [{"rfilename": path} for path in commit.files]
        known = {
            "id": name,
            "modelId": name,
            "sha": commit.oid,
            "private": repository.private,
            "siblings": siblings,
        }
        return _json({**known, "tags": [], "downloads": 0, "likes": 0})

    def tree(self, kind: str, name: str, revision: str, folder: str):
        deep = self.query.get("recursive", [""])[0].lower() == "true"
        return _json(self.repository(kind, name).rows(revision, folder, deep))

    def create(self):
        record = json.loads(self.body)
        name = (
            f"{record['organization']}/{record['name']}"
            if record.get("organization")
            else record["name"]
        )
        kind = f"{record.get('type', 'model')}s"
        url = {"url": f"{self.hub.address}/{'' if kind == 'models' else f'{kind}/'}{name}"}
        try:
            is_private = record.get("private") or record.get("visibility") == "private"
            self.hub.create(kind, name, bool(is_private))
        except RefusalError as refusal:  # the client reads the place here too
            return refusal.status, json.dumps({**url, "error": refusal.sentence}).encode(), {}
        return _json(url)

    def user(self):
        return _json({"type": "user", "name": "org", "orgs": []})

    def validate(self):
        return _json({"errors": [], "warnings": []})

    def preupload(self, kind: str, name: str, revision: str):
        record = json.loads(self.body)
        repository = self.repository(kind, name)
        return _json({"files": self.hub.modes(repository, revision, record["files"])})

    def batch(self, kind: str, name: str):
        self.repository(kind, name)
        objects = []
        for wanted in json.loads(self.body)["objects"]:
            place = {"actions": {"upload": {"href": f"{self.hub.address}/lfs/{wanted['oid']}"}}}
            objects.append({**wanted, **({} if wanted["oid"] in self.hub.large else place)})
        return _json({"transfer": "basic", "objects": objects})

    def put(self, oid: str):
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.hub.large[oid] = self.body
        return 200, b"", {}

    def commit(self, kind: str, name: str, revision: str):
        commit = self.hub.commit(self.repository(kind, name), revision, self.body)
        return _json(
            {"commitUrl": f"{self.hub.address}/{name}/commit/{commit.oid}", "commitOid": commit.oid}
        )

    def branch(self, kind: str, name: str, revision: str):
        repository = self.repository(kind, name)
        repository.branches[revision] = repository.at(
            json.loads(self.body or b"{}").get("startingPoint", "main")
        ).oid
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

    do_GET = do_HEAD = do_POST = do_PUT = handle_request  # noqa: N815


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
    ("/api/whoami-v2", "GET", _Handler.user),
    ("/api/validate-yaml", "POST", _Handler.validate),
    (rf"{_OF}/preupload/{_REVISION}", "POST", _Handler.preupload),
    (rf"{_PAGE}\.git/info/lfs/objects/batch", "POST", _Handler.batch),
    (r"/lfs/(?P<oid>[0-9a-f]{64})", "PUT", _Handler.put),
    (rf"{_OF}/commit/{_REVISION}", "POST", _Handler.commit),
    (rf"{_OF}/branch/{_REVISION}", "POST", _Handler.branch),
]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # the client may be gone
            super().handle_error(request, client_address)


@contextmanager
def run_hub():
    """Run a Hub and yield it."""
    hub = LocalHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with _Server(("127.0.0.1", 0), handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()
