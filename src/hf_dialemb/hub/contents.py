"""Find what no published file may hold.

Pickles, secrets, and absolute paths of the machine that wrote it.
"""

import gzip
import json
import mmap
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import yaml

PICKLE_SUFFIXES = {".bin", ".ckpt", ".dill", ".joblib", ".pickle", ".pkl", ".pt", ".pth"}
"""Suffixes of files that loaders unpickle, whatever they hold."""

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
# 7z, rar, zstd, bzip2, xz
_UNREADABLE = (b"7z\xbc\xaf\x27\x1c", b"Rar!", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\x00")
_MAX_HEADER = 100_000_000  # bytes; safetensors reads no longer header

_SECRETS = [  # each begins with plain letters, which makes the search fast
    (rb"hf_(?<![\w-]hf_)(?:oauth_)?[A-Za-z0-9]{20,}", "a Hugging Face token"),
    (rb"api_org_[A-Za-z0-9]{20,}", "a Hugging Face token"),
    (
        rb"sk-(?<![\w-]sk-)(?:[A-Za-z0-9]{20,}|(?=[\w-]*[0-9])[\w-]{20,})",
        "a key that begins with sk-",
    ),
    (rb"A[KS]IA(?<![A-Z0-9]A[KS]IA)[A-Z0-9]{16}(?![A-Z0-9])", "an AWS key"),
    (
        rb"(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY)[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9/+]{40}",
        "an AWS key",
    ),
    (rb"gh[oprsu]_[A-Za-z0-9]{36}", "a GitHub token"),
    (rb"github_pat_\w{22,}", "a GitHub token"),
    (rb"AIza(?<![\w-]AIza)[\w-]{35}", "a Google key"),
    (rb"xox[abprs]-[\w-]{10,}", "a Slack token"),
    (rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY", "a private key"),
]

_ROOTS = (
    "home|Users|Volumes|root|work|workspace|tmp|var|mnt|media|opt|data|scratch|private|srv|content|kaggle|gpfs|lustre"
    "|nfs"
)
_PATH_IN_TEXT = re.compile(
    rf"(?<![\w./\\~}}>*-])(?:/(?:{_ROOTS})/[\w.@+~-][^\s\"'`)>\]]*|[A-Zcd]:[\\/](?![\\/])\w[^\s\"'`]*"
    r"|\\\\\w[\w.-]*\\\w[^\s\"'`]*|file://\S+)"
)
_PATH_ALONE = re.compile(
    rf"/(?:(?:{_ROOTS})/?|[\w.@+-]+/[^\n]*)|[A-Za-z]:[\\/][^\n]*|\\\\[^\n]+|file://[^\n]+"
)
# where a node of an ONNX graph was traced
_TRACE = re.compile(rb'File "((?:/|[A-Za-z]:[\\/])[^"\n]{1,400})", line')
_VOCABULARY = {"vocab", "merges"}  # of tokenizer.json, where '/home' may be a word like others


def pickle_in(file: Path) -> str | None:
    """Return why a file may hold a pickle, which runs code when it is loaded.

    None if it holds none.
    """
    if file.suffix.lower() in PICKLE_SUFFIXES:
        return f"'{file.suffix}' is a suffix of pickles"
    with file.open("rb") as stream:
        return _pickle_in_stream(stream)


def _pickle_in_stream(stream: IO[bytes] | gzip.GzipFile, in_archive: bool = False) -> str | None:
    head = stream.read(1024)
    stream.seek(0)
    if _header(stream) is not None:
        return None
    if re.match(rb"\x80[\x02-\x05]", head):
        return "it is a pickle"
    if head.startswith(b"\x93NUMPY"):
        return "it is a pickled array" if re.search(rb"'descr':.*\bO\b|\|O", head) else None
    if (
        head.startswith((*_UNREADABLE, _GZIP, _ZIP) if in_archive else _UNREADABLE)
        or head[257:262] == b"ustar"
    ):  # tar
        return "it is an archive of a kind that cannot be checked"
    try:
        if head.startswith(_GZIP):
            with gzip.open(stream) as unpacked:
                return _pickle_in_stream(unpacked, in_archive=True)
        if head.startswith(_ZIP):
            with zipfile.ZipFile(stream) as archive:
                for name in archive.namelist():
                    with archive.open(name) as member:
                        if Path(name).suffix.lower() in PICKLE_SUFFIXES or _pickle_in_stream(
                            member, in_archive=True
                        ):
                            return f"'{name}' in it is or may be a pickle"
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return "it is an archive that cannot be read"
    return None


def _header(stream: IO[bytes] | gzip.GzipFile) -> bytes | None:
    """Return the header of a safetensors file, whose first bytes may look like a pickle's.

    None for other files.
    """
    length = int.from_bytes(stream.read(8), "little")
    header = stream.read(length) if length <= _MAX_HEADER else b""
    stream.seek(0)
    with suppress(ValueError):
        return header if len(header) == length and isinstance(json.loads(header), dict) else None
    return None


def secrets_in(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the kind of the first secret of each kind, in a text or a header of
    safetensors.
    """
    if not file.stat().st_size:
        return
    with (
        file.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        header = _header(stream)
        text = content if header is None else header
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16
            text = content[:].replace(b"\0", b"")
        if b"\0" in text[:8192]:
            return
        seen = set()
        for pattern, kind in _SECRETS:
            match = re.search(pattern, text)
            if match and kind not in seen:
                seen.add(kind)
                yield text[: match.start()].count(b"\n") + 1, kind


def machine_paths_in(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each absolute path in an ONNX graph, a JSON or YAML record,
    or a Markdown text.

    A ValueError or RecursionError says that a record cannot be parsed.
    """
    text = "" if file.suffix == ".onnx" else file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".onnx":
        with (
            file.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as graph,
        ):
            for trace in _TRACE.finditer(graph):
                yield "a node", trace[1].decode("utf-8", errors="replace")
    elif file.suffix == ".json" and file.name != "vocab.json":
        yield from _in_record(json.loads(text), (), file.name == "tokenizer.json")
    elif file.suffix in (".yaml", ".yml"):
        try:
            yield from _in_record(list(yaml.safe_load_all(text)), (), False)
        except yaml.YAMLError as error:
            raise ValueError(" ".join(str(error).split())) from None
    elif file.suffix == ".md":
        for match in _PATH_IN_TEXT.finditer(text):
            yield f"line {text.count(chr(10), 0, match.start()) + 1}", match[0]


def _in_record(
    record: Any, place: tuple[str, ...], is_tokenizer: bool
) -> Iterator[tuple[str, str]]:
    if isinstance(record, str):
        if match := _PATH_ALONE.fullmatch(record) or _PATH_IN_TEXT.search(record):
            yield f"field {'.'.join(place)}", match[0]
        return
    parts = (
        record.items()
        if isinstance(record, dict)
        else enumerate(record)
        if isinstance(record, list)
        else ()
    )
    for key, part in parts:
        if isinstance(key, str):
            yield from _in_record(key, place, is_tokenizer)
        if not (is_tokenizer and key in _VOCABULARY):
            yield from _in_record(part, (*place, str(key)), is_tokenizer)
