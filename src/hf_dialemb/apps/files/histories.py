"""Histories: branches of a conversation, and messages that come again in later records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .evidence import Layout, Record, value_at
from .message_parts import Message

IDS = ("id", "uuid", "messageId", "message_id", "post/id")
"""Names of a message's id."""


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

    old, new = keys(before), keys(latest)
    if not old or not new:
        return before + latest
    if new == old[: len(new)]:
        return before
    sizes = range(min(len(old), len(new)), 0, -1)
    shared = next((size for size in sizes if old[-size:] == new[:size]), 0)
    places = [place for place, message in enumerate(latest) if "left_out" not in message]
    return before + latest[places[shared - 1] + 1 if shared else 0 :]
