"""Forms as data.

``vendors.toml`` says where each system's JSON has its conversations, and what its fields mean.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from .findings import Draft, Notes
from .form import Form, Message, Record

Read = Callable[[Any], list[Any]]
Row = Mapping[str, Any]  # of ``vendors.toml``
_LOOKED_AT = 20  # items of a list that show what it is a list of
# Chinese and Japanese characters stand without spaces
_FULL = re.compile("[\u3000-\u9fff\uff00-\uffef]")


def pick(value: Any, paths: str) -> Any:
    """Return what the first path leads to that is there, or None; see ``vendors.toml``."""
    for path in paths.split("|"):
        inner = value
        for key in path.split("."):
            if isinstance(inner, list) and key.isdecimal():
                inner = inner[int(key)] if int(key) < len(inner) else None
            elif isinstance(inner, list):
                values = [item.get(key) for item in objects(inner)]
                inner = [
                    deep
                    for value in values
                    for deep in (value if isinstance(value, list) else [value])
                ]
                inner = [value for value in inner if value not in (None, "")]
            elif isinstance(inner, Mapping):
                inner = list(inner.values()) if key == "*" else inner.get(key)
            else:
                inner = None
        if inner not in (None, "", []):
            return inner
    return None


def objects(value: Any) -> list[Record]:
    """Return the objects of a list, without anything else in it."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def spaced(first: str, second: str) -> str:
    """Join two pieces of a text by a space, except between Chinese or Japanese characters."""
    first, second = first.rstrip(), second.strip()
    full = first and second and _FULL.match(first[-1]) and _FULL.match(second[0])
    return first + second if full or not (first and second) else f"{first} {second}"


def forms_of(family: str, *functions: Read) -> tuple[Form, ...]:
    """Return the forms of a family of ``vendors.toml``.

    Its `read` names a function, without the underscore.
    """
    reads = {function.__name__.removeprefix("_"): function for function in functions}
    rows: list[Row] = [{**_vendors()["defaults"], **row} for row in _vendors()[family]]
    known = ("name", "vendor", "export", "dialogue", "speakers", "left_out")
    return tuple(
        Form(
            **{field: row[field] for field in known},
            accepts=partial(
                _fits,
                [[path.split(".") for path in paths.split("|")] for paths in row["has"].split()],
            ),
            drafts=partial(_drafts, row, reads.get(row["read"])),
        )
        for row in rows
    )


@cache
def _vendors() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("vendors.toml").read_text(encoding="utf-8"))


def _fits(paths: list[list[list[str]]], record: Any) -> bool:
    return all(any(_leads(record, steps) for steps in several) for several in paths)


def _leads(value: Any, steps: list[str], place: int = 0) -> bool:
    """Return whether a path leads to something, through any of a list's first objects."""
    for number, step in enumerate(steps[place:], start=place):
        if isinstance(value, list):
            return any(
                isinstance(item, Mapping) and _leads(item, steps, number)
                for item in value[:_LOOKED_AT]
            )
        if not isinstance(value, Mapping):
            return False
        value = list(value.values()) if step == "*" else value.get(step)
    return value not in (None, "", [])


def _drafts(
    row: Row, read: Read | None, place: str, record: Record, notes: Notes
) -> Iterator[Draft]:
    """Read the conversations of a record.

    What nobody says to the other side is left out and noted.
    """
    items = read(record) if read else pick(record, row["messages"])
    keys = [str(pick(item, row["group"]) or "") for item in items]
    sizes, groups = Counter(keys), dict[str, list[Message]]()
    for number, (key, item) in enumerate(zip(keys, items, strict=True), start=1):
        where = f"{place}: message {number}"
        message = (
            _message(row, item)
            if isinstance(item, Mapping)
            else {"left_out": "a message that is no object"}
        )
        if reason := message.get("left_out"):
            notes.add(f"left out {reason}", where)
        else:
            groups.setdefault("" if row["pause"] and sizes[key] == 1 else key, []).append(
                {**message, "place": where}
            )
        if "noted" in message:
            notes.add(message["noted"], where)
    if not groups:
        notes.add("left out a dialogue in which nobody says anything", place)
    name, began = pick(record, f"{row['id']}|id"), pick(record, row["began"]) or ""
    metadata = _metadata(
        record, row["metadata"] if row["start"] else row["common"] + row["metadata"]
    )
    for key, messages in groups.items():
        turns = joined(place, messages, notes) if row["start"] else messages
        pause = (
            timedelta(hours=row["pause"])
            if row["pause"] and not key and not _meets(record, row["whole"])
            else None
        )
        identifier = key or (name if isinstance(name, str | int) else "")
        # of Front's and Google's addresses
        identifier = str(identifier).rpartition("/conversations/")[2]
        yield Draft(
            place, identifier, turns, time=began, metadata=metadata, mail=row["mail"], pause=pause
        )


def _meets(item: Record, conditions: str) -> bool:
    pairs = (condition.split("=") for condition in conditions.split())
    return any(
        str(pick(item, field)).lower() in values.lower().split(",") for field, values in pairs
    )


def _message(row: Row, item: Record) -> Message:
    if _meets(item, row["hidden"]):
        return {"left_out": "a private note"}
    for field, _, values in (condition.partition("=") for condition in row["kinds"].split()):
        if (kind := pick(item, field)) is not None and str(kind) not in values.split(","):
            return {"left_out": f"a message whose {field} is {str(kind)[:40]!r}"}
    speaker, text = pick(item, row["speaker"]), _text(pick(item, row["text"]))
    content = text or _text(pick(item, row["markup"]))
    if not row["start"] and content and not isinstance(speaker, str | int):
        return {"left_out": "a message without a speaker"}
    message = {"role": row["roles"].get(str(speaker).lower(), str(speaker)), "content": content}
    message |= {key: item[key] for key in ("intents", "slots", "noted") if item.get(key)}
    if row["start"]:
        message |= {key: pick(item, row[key]) for key in ("speaker", "channel", "start")}
    if content and not text:
        message["markup"] = True
    for key, value in (("name", pick(item, row["called"])), ("time", pick(item, row["time"]))):
        if isinstance(value, str | int | float):
            message[key] = value
    return message


def _text(value: Any) -> str:
    """Return a text: a string, several with spaces between them, or the texts of parts."""
    if isinstance(value, list) and not all(isinstance(part, str) for part in value):
        return "".join(
            part if isinstance(part, str) else _text(pick(part, "text|value")) for part in value
        )
    return " ".join(value) if isinstance(value, list) else value if isinstance(value, str) else ""


def _metadata(record: Record, fields: str) -> dict[str, Any]:
    """Return fields ``name=path`` of a record, as far as they are texts, numbers or lists of texts."""
    values: dict[str, Any] = {}
    for name, _, path in (text.rpartition("=") for text in fields.split()):
        value = pick(record, path)
        members = (
            value
            if name == "*" and isinstance(value, Mapping)
            else {name or path.split("|")[0]: value}
        )
        for key, member in members.items():
            if isinstance(member, list):
                member = [str(item) for item in member if isinstance(item, str | int)]
            if isinstance(member, str | int | float | list) and member not in ("", []):
                values[key] = member
    return values


def joined(place: str, pieces: Iterable[Message], notes: Notes) -> list[Message]:
    """Make turns of the pieces of a recording; a piece of nobody belongs to its neighbour."""
    pieces = list(pieces)
    counts = {key: len({piece[key] for piece in pieces} - {None}) for key in ("channel", "speaker")}
    voices = len({(piece["channel"], piece["speaker"]) for piece in pieces})
    keys = [key for key, count in counts.items() if count > 1] or ["speaker"]
    if voices == counts["speaker"] > 1:  # nobody speaks on two channels
        keys = ["speaker"]
    if all(piece[key] is None for piece in pieces for key in keys):
        sentence = (
            "no piece of the recording has a speaker: took all as turns of one person; to "
            "tell people apart"
        )
        notes.guess(f"{sentence}, transcribe it with diarization (whisperx --diarize)", place)
        return [
            {**piece, "role": "speaker", "content": piece["content"].strip()} for piece in pieces
        ]
    if counts["channel"] > 1 and all(
        re.fullmatch(r"[\d.]+s?", str(piece["start"])) for piece in pieces
    ):
        # often one channel is behind the other
        pieces.sort(key=lambda piece: float(str(piece["start"]).rstrip("s")))
    turns: list[Message] = []
    for piece in pieces:
        labels = [(key, str(piece[key])) for key in keys if piece[key] is not None]
        names = (f"{key} {label}" if label.isdecimal() else label for key, label in labels)
        role = " ".join(names) if piece["role"] == str(piece["speaker"]) else piece["role"]
        if turns and (not labels or turns[-1]["role"] in ("", role)):
            turns[-1] |= {
                "content": spaced(turns[-1]["content"], piece["content"]),
                "role": role or turns[-1]["role"],
            }
        else:
            turns.append({**piece, "role": role, "content": piece["content"].strip()})
    return turns
