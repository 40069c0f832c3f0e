"""What no file of a publication may hold: pickles, secrets, and paths of the machine that it was made on."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickletools
import re
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import yaml

PICKLE_SUFFIXES = {".bin", ".ckpt", ".dill", ".joblib", ".pickle", ".pkl", ".pt", ".pth"}
"""Names under which loaders expect pickles, and unpickle what they find."""

_DEPTH = 4  # archives within archives that are looked into
_CLOSED = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "rar", b"\x28\xb5\x2f\xfd": "zstd"}
_PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_SMALL = 1 << 24  # bytes of a pickle of old, which is text and has to be parsed
_HEADER = 100_000_000  # bytes of a header that safetensors reads at most
_CALLS = {"REDUCE", "INST", "OBJ", "BUILD"}

_AWS = rb"[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9/+]{40}"
_SECRETS = [  # each begins with letters as they are: only so are they found fast
    (rb"hf_(?<![\w-]hf_)(?:oauth_)?[A-Za-z0-9]{20,}", "a Hugging Face token"),
    (rb"api_org_[A-Za-z0-9]{20,}", "a Hugging Face token"),
    (rb"sk-(?<![\w-]sk-)(?:[A-Za-z0-9]{20,}|(?=[\w-]*[0-9])[\w-]{20,})", "a key that begins with sk-"),
    (rb"AKIA(?<![A-Z0-9]AKIA)[A-Z0-9]{16}(?![A-Z0-9])", "an AWS key"),
    (rb"ASIA(?<![A-Z0-9]ASIA)[A-Z0-9]{16}(?![A-Z0-9])", "an AWS key"),
    (rb"aws_secret_access_key" + _AWS, "an AWS key"),
    (rb"AWS_SECRET_ACCESS_KEY" + _AWS, "an AWS key"),
    (rb"SecretAccessKey" + _AWS, "an AWS key"),
    (rb"gh[oprsu]_[A-Za-z0-9]{36}", "a GitHub token"),
    (rb"github_pat_\w{22,}", "a GitHub token"),
    (rb"AIza(?<![\w-]AIza)[\w-]{35}", "a Google key"),
    (rb"xox[abprs]-[\w-]{10,}", "a Slack token"),
    (rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY", "a private key"),
]
_CHUNK, _OVERLAP = 1 << 20, 1 << 10

_ROOTS = (
    "home|Users|Volumes|root|work|workspace|tmp|var|mnt|media|opt|data|scratch|private|srv|content|kaggle|gpfs|lustre"
    "|nfs"
)
_WITHIN = re.compile(
    rf"(?<![\w./\\~}}>*-])(?:/(?:{_ROOTS})/[\w.@+~-][^\s\"'`)>\]]*|[A-Zcd]:[\\/](?![\\/])\w[^\s\"'`]*"
    r"|\\\\\w[\w.-]*\\\w[^\s\"'`]*|file://\S+)"
)
_WHOLE = re.compile(rf"/(?:(?:{_ROOTS})/?|[\w.@+-]+/[^\n]*)|[A-Za-z]:[\\/][^\n]*|\\\\[^\n]+|file://[^\n]+")
_TRACE = re.compile(rb'File "((?:/|[A-Za-z]:[\\/])[^"\n]{1,400})", line')
_LONGEST_TRACE = 500
_VOCABULARY = {"vocab", "merges"}  # of tokenizer.json, where '/home' may be a word like others


def pickle_in(file: Path) -> str | None:
    """Says where a file can hold a pickle, whatever its name; loading one runs what it says."""
    if file.suffix.lower() in PICKLE_SUFFIXES:
        return f"'{file.suffix}' is a name of pickles"
    with file.open("rb") as stream:
        return _pickle(stream, _DEPTH)


def _pickle(stream: BinaryIO, depth: int) -> str | None:
    head = stream.read(1024)
    stream.seek(0)
    if _header(stream) is not None:
        return None
    if re.match(rb"\x80[\x02-\x05]", head):
        return "it is a pickle"
    if head.startswith(b"\x93NUMPY"):
        return "it is a pickled array" if re.search(rb"'descr':.*\bO\b|\|O", head) else None
    for magic, name in _CLOSED.items():
        if head.startswith(magic):
            return f"it is a {name} archive, which cannot be looked into"
    if head.startswith(b"PK\x03\x04") or head[257:262] == b"ustar" or any(map(head.startswith, _PACKED)):
        return _archived(stream, head, depth)
    return "it is a pickle" if _is_old_pickle(stream) else None


def _header(stream: BinaryIO) -> bytes | None:
    """Returns the header of a safetensors file, and None of another; its length may begin as a pickle does."""
    length = int.from_bytes(stream.read(8), "little")
    header = stream.read(length) if length <= _HEADER else b""
    stream.seek(0)
    with suppress(ValueError):
        return header if len(header) == length and isinstance(json.loads(header), dict) else None
    return None


def _archived(stream: BinaryIO, head: bytes, depth: int) -> str | None:
    if not depth:
        return "its archives are nested too deeply to be looked into"
    try:
        for name, member in _members(stream, head):
            if Path(name).suffix.lower() in PICKLE_SUFFIXES:
                return f"'{name}' in it is a pickle"
            if found := _pickle(member, depth - 1):
                return f"{found}, packed" if name == "" else f"'{name}' in it: {found}"
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError):
        return "it is an archive that cannot be read"
    return None


def _members(stream: BinaryIO, head: bytes) -> Iterator[tuple[str, BinaryIO]]:
    if head.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(stream) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as member:
                        yield entry.filename, cast(BinaryIO, member)
    elif head[257:262] == b"ustar":
        with tarfile.open(fileobj=stream) as tape:
            for part in tape:
                if member_file := tape.extractfile(part):
                    yield part.name, cast(BinaryIO, member_file)
    else:
        unpack = next(unpack for magic, unpack in _PACKED.items() if head.startswith(magic))
        with unpack(stream) as unpacked:  # type: ignore[operator]
            yield "", unpacked


def _is_old_pickle(stream: BinaryIO) -> bool:
    """Tells the text form of pickles, which has no mark: it parses up to its end and calls something."""
    names = set()
    with suppress(Exception):  # whatever the parser makes of a file that is something else
        for opcode, _, _ in pickletools.genops(stream.read(_SMALL)):
            names.add(opcode.name)
            if opcode.name == "STOP":
                return bool(names & _CALLS)
    return False


def secrets_in(file: Path) -> Iterator[tuple[int, str]]:
    """Finds what looks like a password for machines."""
    seen: set[str] = set()
    for line, chunk in _text_of(file):
        for pattern, kind in _SECRETS:
            if kind not in seen and (found := re.search(pattern, chunk)):
                seen.add(kind)
                yield line + chunk.count(b"\n", 0, found.start()), kind


def _text_of(file: Path) -> Iterator[tuple[int, bytes]]:
    """Reads text in chunks that overlap, each with the number of its first line."""
    with file.open("rb") as stream:
        if (header := _header(stream)) is not None:
            yield 1, header
            return
        chunk = stream.read(_CHUNK)
        if chunk.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16
            chunk = chunk.replace(b"\0", b"")
        if b"\0" in chunk[:8192]:
            return
        line = 1
        while chunk:
            yield line, chunk
            rest = chunk[-_OVERLAP:]
            line += chunk.count(b"\n") - rest.count(b"\n")
            more = stream.read(_CHUNK)
            chunk = rest + more if more else b""


def machine_paths_in(file: Path) -> Iterator[tuple[str, str]]:
    """Finds absolute paths: they say nothing to anyone else, and tell whose machine it was."""
    if file.suffix == ".onnx":
        with file.open("rb") as stream:
            before = b""
            while chunk := stream.read(_CHUNK):
                for trace in _TRACE.finditer(before + chunk):
                    yield "a node", trace[1].decode("utf-8", errors="replace")
                before = chunk[-_LONGEST_TRACE:]
        return
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".json" and file.name != "vocab.json":
        yield from _in_record(json.loads(text), (), file.name == "tokenizer.json")
    elif file.suffix in (".yaml", ".yml"):
        try:
            yield from _in_record(list(yaml.safe_load_all(text)), (), False)
        except yaml.YAMLError as error:
            raise ValueError(" ".join(str(error).split())) from None
    elif file.suffix == ".md":
        for found in _WITHIN.finditer(text):
            yield f"line {text.count(chr(10), 0, found.start()) + 1}", found[0]


def _in_record(record: Any, place: tuple[str, ...], tokenizer: bool) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    if isinstance(record, str):
        if found := _WHOLE.fullmatch(record) or _WITHIN.search(record):
            yield f"field {'.'.join(place)}", found[0]
        return
    parts = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, part in parts:
        if isinstance(key, str):
            yield from _in_record(key, place, tokenizer)
        if not (tokenizer and key in _VOCABULARY):
            yield from _in_record(part, (*place, str(key)), tokenizer)
