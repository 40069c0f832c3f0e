"""A small server of the Hub's interface: models in memory, each with one branch, its commits and tags.

    with serving() as hub:
        environment = hub.environment(cache)  # for a process whose Hub this is

Uploads, large files, cards, downloads and listings are answered as huggingface.co answers them; nothing else is.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LARGE = 10_000  # bytes from which a file is sent apart


class LocalHub:
    """The repositories of a server, and what was asked of it."""

    def __init__(self) -> None:
        self.commits: dict[str, list[dict[str, bytes]]] = {}
        self.private: dict[str, bool] = {}
        self.large: dict[str, bytes] = {}
        self.tags: dict[str, dict[str, int]] = {}  # of a repository: the places of commits
        self.tokens: set[str] = set()
        self.requests: list[str] = []
        self.url = ""

    def environment(self, cache: Path) -> dict[str, str]:
        """Return the variables of a process that takes this server for the Hub, and keeps its cache in a folder."""
        return {
            "HF_ENDPOINT": self.url, "HF_HOME": str(cache), "HF_TOKEN": "hf_local", "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_TELEMETRY": "1",
        }  # fmt: skip

    def files(self, repository: str) -> dict[str, bytes]:
        """Return the files of the last commit."""
        return self.commits[repository][-1]

    def sha(self, repository: str, place: int = -1) -> str:
        """Return the id of a commit, the last by default."""
        place %= len(self.commits[repository])
        return hashlib.sha1(f"{repository} {place}".encode()).hexdigest()

    def place(self, repository: str, name: str) -> int | None:
        """Return the place of a revision, ``main``, a tag or the id of a commit; None where there is none."""
        shas = [self.sha(repository, place) for place in range(len(self.commits[repository]))]
        return {"main": len(shas) - 1, **self.tags.get(repository, {})}.get(
            name, shas.index(name) if name in shas else None
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def log_message(self, *_: object) -> None:
        """Keep silent."""

    def answer(self, status: int, body: object = b"", **headers: object) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(content), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def missing(self, code: str) -> None:
        self.answer(404, {"error": code}, X_Error_Code=code)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        hub.requests.append(f"{self.command} {path}")
        hub.tokens.add((self.headers.get("Authorization") or "").removeprefix("Bearer "))
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+)(?:/(.*))?)?", path):
            self._listing(*match.groups())
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(*match.groups())
        elif path == "/api/whoami-v2":
            self.answer(200, {"type": "user", "name": "org", "orgs": []})
        else:
            self.missing("RepoNotFound")

    do_HEAD = do_GET  # noqa: N815

    def _listing(self, repository: str, kind: str | None, revision: str | None, folder: str | None) -> None:
        hub = self.hub
        if repository not in hub.commits:
            return self.missing("RepoNotFound")
        place = hub.place(repository, revision or "main")
        if place is None:
            return self.missing("RevisionNotFound")
        files, sha = hub.commits[repository][place], hub.sha(repository, place)
        if kind != "tree":
            siblings = [{"rfilename": name} for name in files]
            facts = {"id": repository, "sha": sha, "private": hub.private[repository], "siblings": siblings, "tags": []}
            return self.answer(200, {**facts, "modelId": repository, "downloads": 0, "likes": 0})
        inside = {name: data for name, data in files.items() if name.startswith(folder or "")}
        if folder and not inside:
            return self.missing("EntryNotFound")
        rows = [{"type": "file", "path": name, "size": len(data), "oid": _git(data)} for name, data in inside.items()]
        return self.answer(200, rows)

    def _file(self, repository: str, revision: str, name: str) -> None:
        hub = self.hub
        if repository not in hub.commits:
            return self.missing("RepoNotFound")
        place = hub.place(repository, revision)
        if place is None:
            return self.missing("RevisionNotFound")
        files, sha = hub.commits[repository][place], hub.sha(repository, place)
        if name not in files:
            return self.answer(404, b"", X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
        return self.answer(200, files[name], X_Repo_Commit=sha, ETag=f'"{hashlib.sha256(files[name]).hexdigest()}"')

    def do_PUT(self) -> None:
        self.hub.large[self.path.rsplit("/", 1)[1]] = self.body()
        self.answer(200)

    def do_POST(self) -> None:
        hub, path, body = self.hub, unquote(urlsplit(self.path).path), self.body()
        hub.requests.append(f"POST {path}")
        if path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted.get('organization') or 'org'}/{wanted['name']}"
            known = name in hub.commits
            hub.commits.setdefault(name, [{}])
            hub.private.setdefault(name, wanted.get("visibility") == "private" or bool(wanted.get("private")))
            self.answer(409 if known else 200, {"url": f"{hub.url}/{name}", "id": name})
        elif path == "/api/validate-yaml":
            self.answer(200, {"errors": [], "warnings": []})
        elif re.fullmatch(r"/api/models/[^/]+/[^/]+/preupload/main", path):
            answers = []
            for file in json.loads(body)["files"]:
                mode = "lfs" if file["size"] > _LARGE else "regular"
                answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False})
            self.answer(200, {"files": answers})
        elif path.endswith(".git/info/lfs/objects/batch"):
            objects = []
            for item in json.loads(body)["objects"]:
                place = {"upload": {"href": f"{hub.url}/large/{item['oid']}"}}
                objects.append({"oid": item["oid"], "size": item["size"], "actions": place})
            self.answer(200, {"objects": objects, "transfer": "basic"}, Content_Type="application/vnd.git-lfs+json")
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", path):
            self._commit(match[1], [json.loads(line) for line in body.splitlines() if line.strip()])
        else:
            self.missing("RepoNotFound")

    def _commit(self, repository: str, lines: list[dict[str, dict[str, str]]]) -> None:
        hub, files = self.hub, dict(self.hub.files(repository))
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = hub.large[value["oid"]]
            elif line["key"] == "deletedFile":
                files.pop(value["path"], None)
        hub.commits[repository].append(files)
        sha = hub.sha(repository)
        self.answer(200, {"success": True, "commitUrl": f"{hub.url}/{repository}/commit/{sha}", "commitOid": sha})


def _git(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@contextmanager
def serving() -> Iterator[LocalHub]:
    """Run a server while the context lasts."""
    hub = LocalHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
