"""What a local Hub keeps in memory: repositories whose commits appear whole or not at all."""

import base64
import hashlib
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
LARGE = (".bin", ".npz", ".onnx", ".parquet", ".safetensors", ".zip")
LARGEST_REGULAR = 10_000_000


class RefusalError(Exception):
    """What the Hub answers instead: a status, a code for machines and a sentence."""

    def __init__(self, status: int, code: str, sentence: str = ""):
        super().__init__(status, code, sentence)
        self.status, self.code, self.sentence = status, code, sentence or code


@dataclass(frozen=True)
class Entry:
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
        large = {"lfs": {"oid": self.sha256, "size": len(self.content), "pointerSize": 130}} if self.large else {}
        return {"type": "file", "path": path, "size": len(self.content), "oid": self.blob, **large}


@dataclass(frozen=True)
class Commit:
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

    def history(self, branch: str = "main") -> list[Commit]:
        """Newest first."""
        found, oid = [], self.branches[branch]
        while oid:
            found.append(self.commits[oid])
            oid = found[-1].parent
        return found

    def add(self, branch: str, summary: str, files: dict[str, Entry]) -> Commit:
        parent = self.branches.get(branch)
        oid = hashlib.sha1(f"{self.name} {len(self.commits)} {parent} {summary}".encode()).hexdigest()
        self.commits[oid] = Commit(oid, parent, summary, files)
        self.branches[branch] = oid
        return self.commits[oid]

    def rows(self, revision: str, folder: str, deep: bool) -> list[dict]:
        """What lies in a folder."""
        start = f"{folder}/" if folder else ""
        inside = {path: entry for path, entry in self.at(revision).files.items() if path.startswith(start)}
        if folder and not inside:
            raise RefusalError(404, "EntryNotFound")
        folders = {str(parent) for path in inside for parent in Path(path).parents} - {".", folder}
        folders -= {str(parent) for parent in Path(folder).parents}
        rows = [{"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in sorted(folders)]
        rows += [entry.row(path) for path, entry in inside.items()]
        return [row for row in rows if deep or "/" not in row["path"].removeprefix(start)]


class Store:
    """All repositories by kind (``models``, ``datasets``, ``spaces``) and name, and large files on their way."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def get(self, kind: str, name: str) -> Repository:
        if (kind, name) not in self.repositories:
            raise RefusalError(404, "RepoNotFound")
        return self.repositories[kind, name]

    def create(self, kind: str, name: str, private: bool = False) -> Repository:
        if (kind, name) in self.repositories:
            raise RefusalError(409, "RepoExists", "You already created this repo")
        repository = self.repositories[kind, name] = Repository(name, private)
        repository.add("main", "initial commit", {".gitattributes": Entry(ATTRIBUTES, False)})
        return repository

    def fill(self, kind: str, name: str, folder: Path) -> None:
        """Makes a repository of a folder."""
        entries = {
            file.relative_to(folder).as_posix(): Entry(file.read_bytes(), file.suffix in LARGE)
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }
        self.create(kind, name).add("main", "fill", entries)

    def modes(self, repository: Repository, revision: str, files: list[dict], ignore: str | None) -> list[dict]:
        """What the Hub says before files come: how each is to be sent, and what it has under that path."""
        present = repository.at(revision).files
        if ignore is None:
            ignore = present[".gitignore"].content.decode() if ".gitignore" in present else ""
        answers = []
        for file in files:
            path, large = file["path"], file["path"].endswith(LARGE) or file["size"] > LARGEST_REGULAR
            answer = {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": path in ignore.split()}
            answers.append({**answer, "oid": present[path].oid} if path in present else answer)
        return answers

    def commit(self, repository: Repository, branch: str, lines: bytes) -> Commit:
        """Takes the lines of a commit; nothing of it is seen unless all of it holds."""
        with self.lock:
            header, *records = [json.loads(line) for line in lines.splitlines()]
            latest = repository.at(branch)
            if header["value"].get("parentCommit", latest.oid) != latest.oid:
                raise RefusalError(412, "ParentCommit", "A commit has happened since. Please refresh and try again.")
            files = dict(latest.files)
            for record in records:
                path = record["value"]["path"]
                if record["key"] == "file":
                    files[path] = Entry(base64.b64decode(record["value"]["content"]), False)
                elif record["key"] == "lfsFile":
                    files[path] = Entry(self.large[record["value"]["oid"]], True)
                else:
                    assert record["key"] == "deletedFile"
                    del files[path]
            return repository.add(branch, header["value"]["summary"], files)
