"""What is put together: pieces of a recording, branches, and histories that come again."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .evidence import Layout, value_at
from .findings import Notes
from .json_values import Record

Message = dict[str, Any]

# Chinese and Japanese characters stand without spaces
_FULL = re.compile("[\u3000-\u9fff\uff00-\uffef]")
_MARKS = re.compile(r"[.,;:!?…。？！]+")
_ENDS = tuple(".?!。？！")
_SECONDS = re.compile(r"[\d.]+s?")

IDS = ("id", "uuid", "messageId", "message_id", "post/id")
"""Names of a message's id."""


def spaced(first: str, second: str) -> str:
    """Join two pieces of a text by a space, except between Chinese or Japanese characters."""
    first = first.rstrip()
    second = second.strip()
    is_full = _FULL.match(first[-1:]) and _FULL.match(second[:1])
    is_whole = not first or not second or is_full or _MARKS.fullmatch(second)
    return first + second if is_whole else f"{first} {second}"


def joined(place: str, pieces: Iterable[Message], notes: Notes) -> list[Message]:
    """Join neighbouring pieces of one speaker; a piece of nobody belongs to its neighbour.

    A piece is a message that may have ``speaker``, ``channel`` and ``start``.
    """
    pieces = list(pieces)
    keys = _telling(pieces)
    is_one = all(piece.get(key) is None for piece in pieces for key in keys)
    are_words = not any(" " in piece["content"].strip() for piece in pieces)
    if is_one:
        sentence = "no piece of the recording has a speaker: took all as turns of one person; to "
        sentence += "tell people apart, transcribe it with diarization (whisperx --diarize)"
        notes.add(sentence, place, "guess")
    elif "channel" in keys:
        begun = 0.0
        for piece in pieces:  # often one channel is behind the other
            if _SECONDS.fullmatch(str(piece.get("start"))):
                begun = float(str(piece["start"]).rstrip("s"))
            piece["start"] = begun
        pieces.sort(key=lambda piece: float(piece["start"]))
    turns: list[Message] = []
    for piece in pieces:
        role = "speaker" if is_one else _role(piece, keys)
        before: Message = turns[-1] if turns else {"role": None, "content": "."}
        goes_on = "" in (role, before["role"]) or role == before["role"]
        if (
            turns
            and goes_on
            and not (is_one and (not are_words or before["content"].endswith(_ENDS)))
        ):
            before["content"] = spaced(before["content"], piece["content"])
            before["role"] = before["role"] or role
        else:
            turns.append({**piece, "role": role, "content": piece["content"].strip()})
    return turns


def _telling(pieces: list[Message]) -> list[str]:
    """Return the fields that tell speakers apart: channels, voices, or both."""
    voices = [(piece.get("channel"), piece.get("speaker")) for piece in pieces]
    channels, speakers = ({*values} - {None} for values in zip(*voices, strict=True))
    if len(channels) < 2 or len(set(voices)) == len(speakers) > 1:
        return ["speaker"]  # nobody speaks on two channels
    return ["channel", "speaker"] if len(speakers) > 1 else ["channel"]


def _role(piece: Message, keys: list[str]) -> str:
    labels = [(key, str(piece[key])) for key in keys if piece.get(key) is not None]
    return " ".join(f"{key} {label}" if label.isdecimal() else label for key, label in labels)


def on_path(items: Sequence[Record], layout: Layout, last: Any = None) -> Iterator[Record]:
    """Yield the messages that lead to the last one where there are branches, else all of them."""
    nodes = {str(value_at(item, IDS)): item for item in items} if layout.parent else {}
    parents = {name: str(item.get(layout.parent)) for name, item in nodes.items()}
    children = Counter(parent for parent in parents.values() if parent in nodes)
    has_branches = last is not None or max(children.values(), default=0) > 1
    if not has_branches or "None" in nodes or len(nodes) < len(items):
        yield from items
        return
    place = str(last) if last else next(reversed(nodes))
    path: list[str] = []
    while place in nodes and place not in path:
        path.append(place)
        place = parents[place]
    yield from (nodes[name] for name in reversed(path))
    for name in nodes.keys() - set(path):
        yield {"left_out": "a message of a branch that was abandoned", "raw": nodes[name]}


def continued(before: list[Message], latest: list[Message]) -> list[Message]:
    """Return messages and those after them, which may begin with a history of earlier ones."""

    def keys(messages: list[Message]) -> list[Any]:
        spoken = (message for message in messages if "left_out" not in message)
        return [(str(message["role"]), message["content"]) for message in spoken]

    old = keys(before)
    new = keys(latest)
    if new and new == old[: len(new)]:
        return before
    sizes = range(min(len(old), len(new)), 0, -1)
    shared = next((size for size in sizes if old[-size:] == new[:size]), 0)
    places = [place for place, message in enumerate(latest) if "left_out" not in message]
    return before + latest[places[shared - 1] + 1 if shared else 0 :]
