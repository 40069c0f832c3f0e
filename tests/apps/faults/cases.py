"""The faults: what may be wrong with a file, a field, an output or the moment.

And cases of them, drawn by a seed.

A case is a line, such as ``embed | file | dse/config.json | deep``, which says all that there is to
repeat it.
"""

import json
import random
import shutil
import zlib
from functools import cache
from importlib import import_module
from pathlib import Path

import yaml
from healthy import COMMANDS, LONG, inputs

MORE = ("rights", "weights")
"""Kinds of faults in modules of the same name."""

DAMAGES = {
    "empty": lambda content, draw: b"",
    "cut": lambda content, draw: content[: int(len(content) * draw.random())],
    "random": lambda content, draw: draw.randbytes(200),
    "flipped": lambda content, draw: (
        content[: len(content) // 2] + draw.randbytes(9) + content[len(content) // 2 + 9 :]
    ),
    "null": lambda content, draw: b"null",
    "list": lambda content, draw: b"[]",
    "object": lambda content, draw: b"{}",
    "number": lambda content, draw: b"7",
    "deep": lambda content, draw: b"[" * 100_000,
    "utf-16": lambda content, draw: content.decode("utf-8", "replace").encode("utf-16"),
    "latin-1": lambda content, draw: b"\xe9" + content,
    "nul": lambda content, draw: content[:40] + b"\0\0" + content[40:],
    "pickle": lambda content, draw: b"cos\nsystem\n(S'touch ran'\ntR.",
}
VALUES = [None, -1, 0, 2**60, 1e308, "x", [], {}, True, "removed"]
OUTPUTS = (
    "under a file",
    "in proc",
    "a folder",
    "a model",
    "closed",
    "full 0",
    "full 1000",
    "full 30000",
)
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
STOPPED = (
    "train",
    "train: resumed",
    "embed",
    "export",
    "papers corpus unify",
    "flow",
    "evaluate",
    "model distil",
)
PARSED = {
    ".json": json.loads,
    ".yaml": yaml.safe_load,
    ".jsonl": lambda text: json.loads(text.splitlines()[0]),
}


def draw(count: int, seed: int) -> list[str]:
    """Draws cases: first the command and the kind of fault, then which."""
    generator, drawn = random.Random(seed), {}
    for _ in range(20 * count):
        name = generator.choice([*COMMANDS])
        kind = generator.choice(
            ["file", "file", "field", "field", "field", "output", "signal", *MORE]
        )
        place, fault = (
            import_module(kind).draw(name, generator)
            if kind in MORE
            else _drawn(name, kind, generator)
        ) or ("", "")
        if place and len(drawn) < count:
            drawn[f"{name} | {kind} | {place} | {fault}"] = None
    return [*drawn]


def _drawn(name: str, kind: str, draw: random.Random) -> tuple[str, str] | None:
    if kind == "output":
        return (
            ("out", draw.choice(OUTPUTS[:2] if name in LONG else OUTPUTS))
            if "out/" in COMMANDS[name]
            else None
        )
    if kind == "signal":
        return (draw.choice(SIGNALS), f"{draw.random():.3f}") if name in STOPPED else None
    files = [] if name in LONG else files_of(name)
    files = [file for file in files if kind == "file" or file.suffix in PARSED]
    if not files:
        return None
    file = draw.choice(files)
    if kind == "file":
        return str(file), draw.choice([*DAMAGES, "removed", "a folder"])
    fields = _fields_of(file)
    return str(
        file
    ), f"{draw.choice(fields)} = {json.dumps(draw.choice(VALUES))}" if fields else "fields = null"


@cache
def _fields_of(file: Path) -> list[str]:
    return [*_fields(PARSED[file.suffix](file.read_text(encoding="utf-8-sig")))]


def files_of(name: str) -> list[Path]:
    """The files that a command reads."""
    roots = [path for path in inputs(COMMANDS[name]) if path.exists()]
    return sorted(
        file
        for root in roots
        for file in ([root] if root.is_file() else root.rglob("*"))
        if file.is_file()
    )


def _fields(record: object, path: tuple = ()):
    """The paths to the values of a record; of long lists and vocabularies, to the first alone."""
    items = (
        record.items()
        if isinstance(record, dict)
        else enumerate(record)
        if isinstance(record, list)
        else ()
    )
    for key, value in list(items)[: 40 if isinstance(record, dict) else 2]:
        yield json.dumps([*path, key])
        yield from _fields(value, (*path, key))


def apply(kind: str, place: str, fault: str) -> None:
    """Does the damage of a case, in the working folder."""
    file = Path(place)
    if kind == "file" and fault in ("removed", "a folder"):
        file.unlink()
        if fault == "a folder":
            file.mkdir()
    elif kind == "file":
        file.write_bytes(
            DAMAGES[fault](file.read_bytes(), random.Random(zlib.crc32(f"{place}{fault}".encode())))
        )
    elif kind == "field":
        path, value = fault.rsplit(" = ", 1)
        text = file.read_text(encoding="utf-8-sig")
        record = PARSED[file.suffix](text)
        if path == "fields":
            record = None
        else:
            *outer, last = json.loads(path)
            inner = record
            for key in outer:
                inner = inner[key]
            if value == '"removed"':
                del inner[last]
            else:
                inner[last] = json.loads(value)
        rest = text.splitlines()[1:] if file.suffix == ".jsonl" else []
        file.write_text("\n".join([json.dumps(record), *rest]) + "\n", encoding="utf-8")


def words_of(name: str, kind: str, fault: str) -> list[str]:
    """The words of a command, whose output may be where nothing can be written."""
    words = COMMANDS[name].split()
    if kind != "output":
        return words
    place = {"under a file": "calls.jsonl/", "in proc": "/proc/nothing/"}.get(fault)
    for number, word in enumerate(words):
        if word.startswith("out/"):
            if place:
                words[number] = word.replace("out/", place)
            elif fault == "a folder":
                Path(word, "kept").mkdir(parents=True, exist_ok=True)
            elif fault == "a model":
                shutil.copytree("bert", word, dirs_exist_ok=True)
    return words
