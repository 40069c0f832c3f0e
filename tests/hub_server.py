"""A small Hub on loopback over real HTTP.

Repositories that can be created, uploaded to and downloaded from.

Commits appear whole or not at all. `LocalHub.faults` strike the requests that they match.
"""

import base64
import hashlib
import json
import os
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

TOKEN = "dummy"
CUT = 0
"""Stands for the status of a request whose connection breaks off."""

LARGE = (".bin", ".npz", ".onnx", ".parquet", ".safetensors", ".zip")


class RefusalError(Exception):
    """An answer of the Hub: a status, a code for machines and a sentence."""


class Commit(NamedTuple):
    """A state of a repository: all its files, by path."""

    oid: str
    parent: "Commit | None"
    summary: str
    files: dict[str, bytes]


@dataclass
class Repository:
    """Commits, by their ids and by the names of branches and tags."""

    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)

    def at(self, revision: str) -> Commit:
        if revision not in self.commits:
            raise RefusalError(404, "RevisionNotFound", "no such revision")
        return self.commits[revision]

    def add(self, branch: str, summary: str, files: dict[str, bytes]) -> Commit:
        oid = hashlib.sha1(f"{len(self.commits)} {summary}".encode()).hexdigest()
        commit = Commit(oid, self.commits.get(branch), summary, files)
        self.commits |= {oid: commit, branch: commit}
        return commit


def digest_of(path: str, content: bytes) -> str:
    """Return the id that the Hub has for a file."""
    if path.endswith(LARGE):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class LocalHub(ThreadingHTTPServer):
    """Repositories by kind (``models``, ``datasets``) and name, and the requests so far.

    ``faults`` are the statuses of requests whose ``METHOD /path`` a pattern matches.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large: dict[str, bytes] = {}  # files that came before their commit
        self.lock = threading.Lock()
        self.faults: dict[str, int] = {}
        self.requests: list[str] = []
        self.tokens: set[str] = set()

    def environment(self, cache: Path) -> dict[str, str]:
        """Return the variables of a process that takes this server for the Hub, and keeps its cache
        in a folder."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        places = {"HF_ENDPOINT": self.address, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "0"}
        plain = {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        return {**kept, **places, **plain, "HF_TOKEN": TOKEN}

    def asked(self, pattern: str) -> list[str]:
        return [request for request in self.requests if re.search(pattern, request)]

    def get(self, kind: str, name: str) -> Repository:
        if (kind, name) not in self.repositories:
            raise RefusalError(404, "RepoNotFound", "no such repository")
        return self.repositories[kind, name]

    def history(self, kind: str, name: str) -> list[Commit]:
        """Return the commits of main, newest first."""
        commits = [self.get(kind, name).at("main")]
        while commits[-1].parent:
            commits.append(commits[-1].parent)
        return commits

    def files(self, kind: str, name: str, revision: str = "main") -> dict[str, bytes]:
        return dict(self.get(kind, name).at(revision).files)

    def create(self, kind: str, name: str, private: bool = False) -> Repository:
        self.repositories[kind, name] = Repository(private)
        self.repositories[kind, name].add("main", "initial commit", {".gitattributes": b"*"})
        return self.repositories[kind, name]

    def fill(self, kind: str, name: str, folder: Path | str, tag: str = "filled") -> Commit:
        """Make a repository of a folder, or a further commit."""
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        repository = self.repositories.get((kind, name)) or self.create(kind, name)
        repository.commits[tag] = repository.add("main", "fill", files)
        return repository.commits[tag]

    def modes(self, repository: Repository, revision: str, paths: list[str]) -> list[dict]:
        """Return how each file is to be sent, and the digest of the file that is there."""
        present = repository.at(revision).files
        digests = {path: {"oid": digest_of(path, content)} for path, content in present.items()}
        modes = {path: "lfs" if path.endswith(LARGE) else "regular" for path in paths}
        return [
            {"path": path, "uploadMode": mode, "shouldIgnore": False, **digests.get(path, {})}
            for path, mode in modes.items()
        ]

    def commit(self, repository: Repository, branch: str, lines: bytes) -> Commit:
        """Take the lines of a commit; nothing of it is seen unless all of it holds."""
        with self.lock:
            header, *records = [json.loads(line) for line in lines.splitlines()]
            latest = repository.at(branch)
            if header["value"].get("parentCommit", latest.oid) != latest.oid:
                sentence = "A commit has happened since. Please refresh and try again."
                raise RefusalError(412, "ParentCommit", sentence)
            files = dict(latest.files)
            for key, value in ((record["key"], record["value"]) for record in records):
                if key == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif key == "lfsFile":
                    files[value["path"]] = self.large[value["oid"]]
                else:
                    assert key == "deletedFile"
                    del files[value["path"]]
            return repository.add(branch, header["value"]["summary"], files)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_request(self) -> None:
        hub, path = self.server, unquote(urlsplit(self.path).path)
        self.token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        hub.tokens.add(self.token)
        request = f"{self.command} {path}"
        hub.requests.append(request)
        faults = [status for pattern, status in hub.faults.items() if re.search(pattern, request)]
        if CUT in faults:
            self.close_connection = True
            return
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        matches = ((re.fullmatch(pattern, path), action) for pattern, action in _ROUTES)
        try:
            for status in faults:
                raise RefusalError(status, "", "as injected")
            match, action = next((pair for pair in matches if pair[0]), (None, None))
            if match is None:
                raise RefusalError(404, "EntryNotFound", request)
            action(self, **match.groupdict(""))
        except RefusalError as refusal:
            status, code, sentence = refusal.args
            headers = {"X-Error-Code": code, "X-Error-Message": sentence}
            self.answer({"error": sentence}, status, headers)

    def repository(self, kind: str, name: str) -> Repository:
        repository = self.server.get(kind or "models", name)
        if self.token != TOKEN and (repository.private or self.command == "POST"):
            raise RefusalError(401, "RepoNotFound", "Invalid username or password.")
        return repository

    def resolve(self, kind: str, name: str, revision: str, path: str) -> None:
        commit = self.repository(kind, name).at(revision)
        headers = {"X-Repo-Commit": commit.oid}
        if path not in commit.files:
            self.answer({}, 404, {**headers, "X-Error-Code": "EntryNotFound"})
        else:
            content = commit.files[path]
            self.answer(content, 200, {**headers, "ETag": f'"{digest_of(path, content)}"'})

    def info(self, kind: str, name: str, revision: str) -> None:
        repository = self.repository(kind, name)
        commit = repository.at(revision or "main")
        siblings = [{"rfilename": path} for path in commit.files]
        place = {"id": name, "sha": commit.oid, "private": repository.private}
        self.answer({**place, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0})

    def tree(self, kind: str, name: str, revision: str, folder: str) -> None:
        files = self.repository(kind, name).at(revision).files
        folders = {parent.as_posix() for path in files for parent in Path(path).parents}
        rows = [{"type": "directory", "path": path, "size": 0, "oid": ""} for path in folders]
        for path, file in files.items():
            row = {"type": "file", "path": path, "size": len(file), "oid": digest_of(path, file)}
            rows.append(row)
        self.answer([row for row in rows if row["path"].startswith(f"{folder}/".lstrip("/"))])

    def create(self) -> None:
        record = json.loads(self.body)
        name = f"{record['organization']}/{record['name']}"
        exists = ("models", name) in self.server.repositories
        private = True in (record.get("private"), record.get("visibility") == "private")
        if not exists:
            self.server.create("models", name, private)
        self.answer({"url": f"{self.server.address}/{name}"}, 409 if exists else 200)

    def validate(self) -> None:
        self.answer({"errors": [], "warnings": []})

    def preupload(self, kind: str, name: str, revision: str) -> None:
        paths = [file["path"] for file in json.loads(self.body)["files"]]
        self.answer({"files": self.server.modes(self.repository(kind, name), revision, paths)})

    def batch(self, kind: str, name: str) -> None:
        objects = json.loads(self.body)["objects"]
        for wanted in objects:
            if wanted["oid"] not in self.server.large:
                place = f"{self.server.address}/lfs/{wanted['oid']}"
                wanted["actions"] = {"upload": {"href": place}}
        self.answer({"transfer": "basic", "objects": objects})

    def put(self, oid: str) -> None:
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.server.large[oid] = self.body
        self.answer({})

    def commit(self, kind: str, name: str, revision: str) -> None:
        commit = self.server.commit(self.repository(kind, name), revision, self.body)
        place = f"{self.server.address}/{name}/commit/{commit.oid}"
        self.answer({"commitUrl": place, "commitOid": commit.oid})

    def branch(self, kind: str, name: str, revision: str) -> None:
        repository = self.repository(kind, name)
        start = json.loads(self.body or b"{}").get("startingPoint", "main")
        repository.commits[revision] = repository.at(start)
        self.answer({})

    def answer(self, content: object, status: int = 200, headers: dict[str, str] | None = None):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for header, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass

    do_GET = do_HEAD = do_POST = do_PUT = handle_request  # noqa: N815


_NAME = r"(?P<name>[\w.-]+/[\w.-]+)"
_OF = rf"/api/(?P<kind>models|datasets)/{_NAME}"
_PAGE = rf"/(?:(?P<kind>datasets)/)?{_NAME}"
_REVISION = r"(?P<revision>[^/]+)"
_ROUTES = [
    (rf"{_PAGE}/resolve/{_REVISION}/(?P<path>.+)", _Handler.resolve),
    (rf"{_OF}(?:/revision/{_REVISION})?", _Handler.info),
    (rf"{_OF}/tree/{_REVISION}/?(?P<folder>.*)", _Handler.tree),
    ("/api/repos/create", _Handler.create),
    ("/api/validate-yaml", _Handler.validate),
    (rf"{_OF}/preupload/{_REVISION}", _Handler.preupload),
    (rf"{_PAGE}\.git/info/lfs/objects/batch", _Handler.batch),
    (r"/lfs/(?P<oid>[0-9a-f]{64})", _Handler.put),
    (rf"{_OF}/commit/{_REVISION}", _Handler.commit),
    (rf"{_OF}/branch/{_REVISION}", _Handler.branch),
]


@contextmanager
def run_hub():
    """Run a Hub and yield it."""
    with LocalHub() as hub:
        threading.Thread(target=hub.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield hub
        finally:
            hub.shutdown()
