"""Help desks, messengers and bots in JSON: tickets, threads and trackers."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

from .form import Form, Message, Record


def _intercom(record: Record) -> Iterator[Message]:
    parts = record["conversation_parts"]
    rest = parts["conversation_parts"] if isinstance(parts, Mapping) else parts
    for turn in [*([record["source"]] if record.get("source") else []), *rest]:
        yield {"role": str(turn["author"]["type"]), "content": _plain(turn.get("body"))}


def _zendesk(record: Record) -> Iterator[Message]:
    requester = (record.get("ticket") or record).get("requester_id")
    for comment in record["comments"]:
        author = comment.get("author") or {}
        speaker = author.get("role") or author.get("name")
        if not speaker:
            is_user = requester is None or comment["author_id"] == requester
            speaker = "user" if is_user else f"agent {comment['author_id']}"
        yield {"role": str(speaker), "content": _plain(comment.get("plain_body") or comment.get("body"))}


def _plain(markup: Any) -> str:  # noqa: ANN401
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup or "")).split())


DESKS = (
    Form(
        "Intercom, conversations",
        "Intercom",
        "Fetch `GET /conversations/{id}` of the API.",
        _intercom,
        ("conversation_parts",),
        dialogue="a conversation",
        speakers="contacts, admins and bots",
    ),
    Form(
        "Zendesk, tickets with comments",
        "Zendesk",
        "Fetch `GET /tickets/{id}/comments` of the API, and put the comments into their ticket.",
        _zendesk,
        ("comments",),
        dialogue="a ticket",
        speakers="the requester and agents",
    ),
)
