"""Forms of help desks, messengers and bots in JSON.

Rows of ``vendors.toml``, and what rows cannot say: where paths do not suffice, a function of this
module turns a record into a list of messages that have the fields of the row.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any

from .field_paths import Record, items_at, objects, value_at
from .findings import Draft, Notes, Problem
from .form import FOLDER, Form, drafts_of
from .vendor_rows import forms_of

_DAY_FILE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].json"
_DAYS_PROBED = 3  # files that are opened to tell whether a folder is Slack's
# Slack's <@U01>, <#C01|general>, <!here>, <http://x|label>
_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
# what a button of Rasa sends: /intent{"entity": "value"}
_PAYLOAD = re.compile(r"/([\w.+-]+)(\{.*\})?", re.DOTALL)


def _zendesk(record: Record) -> list[Any]:
    """Add the authors of comments from the record's users.

    Whoever opened the ticket has the role requester.
    """
    people = {person.get("id"): person for person in objects(record.get("users"))}
    requester = value_at(record, "ticket/requester_id requester_id requester/id")
    comments = []
    for comment in _zendesk_comments(record):
        if not isinstance(comment, dict):
            comments.append(comment)
            continue
        key = value_at(comment, "author_id author/id")
        known = [people.get(key), comment.get("author")]
        name = value_at(known, "name")
        role = value_at(known, "role")
        if not role and key == requester:
            role = "requester"
        elif not role and key is None:
            role = name
        elif not role:
            role = f"{'author' if requester is None else 'agent'} {key}"
        comments.append({**comment, "speaker": name, "role": role})
    return comments


def _zendesk_comments(record: Record) -> list[Any]:
    """Return the comments of a ticket or of its audits; without any, its description."""
    if comments := items_at(record, "comments ticket/comments"):
        return comments
    for audit in objects(record.get("audits")):
        events = objects(audit.get("events"))
        comments += [{**audit, **event} for event in events if event.get("type") == "Comment"]
    if not comments:
        description = value_at(record, "ticket/description description")
        created = value_at(record, "ticket/created_at created_at")
        author = value_at(record, "ticket/requester_id requester_id")
        noted = "read only a ticket's description, as its comments are missing"
        comments = [
            {"body": description, "created_at": created, "author_id": author, "noted": noted}
        ]
    return comments


def _intercom(record: Record) -> list[Any]:
    first = {"created_at": record.get("created_at"), **(record.get("source") or {})}
    return [first, *items_at(record, "conversation_parts/conversation_parts conversation_parts")]


def _freshdesk(record: Record) -> list[Any]:
    """Put the ticket's description before its replies.

    It is HTML, except in exports of the account.
    """
    ticket = record.get("helpdesk_ticket") or record
    plain = ticket.get("description_text")
    markup = ticket.get("description")
    if ticket.get("description_html"):
        plain, markup = markup, ticket["description_html"]
    opening = {
        "body_text": plain,
        "body": markup,
        "incoming": True,
        "user": {"name": ticket.get("requester_name")},
        "created_at": ticket.get("created_at"),
    }
    replies = items_at(ticket, "conversations notes")
    return [opening, *(value_at(reply, "helpdesk_note") or reply for reply in replies)]


def _livechat(record: Record) -> list[Any]:
    users = {user.get("id"): user for user in objects(record.get("users"))}
    messages = []
    for thread in objects(record.get("threads") or [record.get("thread")]):
        for event in objects(thread.get("events")):
            user = users.get(event.get("author_id"), {})
            role = user.get("type") or event.get("author_id")
            beside = {"thread": thread.get("id"), "role": role, "speaker": user.get("name")}
            messages.append({**beside, **event})
    return messages


def _slack(record: Record) -> list[Any]:
    """Replace ids of users by names, links by their labels, and entities by characters."""
    names = _slack_names(record)

    def shown(mark: re.Match[str]) -> str:
        kind, target, text = mark.groups()
        if kind == "@":
            return str(names.get(target) or text or target)
        return text or f"{kind.strip('!')}{target}"

    messages = []
    for message in record["messages"]:
        if isinstance(message, dict):
            kind = "bot_message" if message.get("bot_id") else message.get("subtype")
            text = unescape(_MARK.sub(shown, str(message.get("text") or "")))
            speaker = names.get(message.get("user"))
            message = {**message, "subtype": kind, "text": text, "speaker": speaker}
        messages.append(message)
    return messages


def _slack_names(record: Record) -> dict[Any, Any]:
    """Return the names of users by their ids, which stay beside a name that several have."""
    profiles = [{"id": message.get("user"), **message} for message in objects(record["messages"])]
    names: dict[Any, Any] = {}
    for person in [*profiles, *objects(record.get("users"))]:
        key = person.get("id")
        paths = "profile/real_name user_profile/real_name real_name profile/display_name name"
        names[key] = value_at(person, paths) or names.get(key) or key
    counts = Counter(map(str, names.values()))
    return {
        key: f"{name} ({key})" if counts[str(name)] > 1 else name for key, name in names.items()
    }


def _slack_folder(folder: Path, notes: Notes) -> Iterator[Draft]:
    """Read each channel as one record of all its days, as threads go on from day to day."""
    lists = (_json(path / "users.json") for path in (folder, folder.parent))
    people: list[Any] = next(filter(None, lists), [])
    for channel in sorted({file.parent for file in _days(folder)}):
        messages = []
        for file in sorted(channel.glob(_DAY_FILE)):
            day = _json(file)
            messages += day if isinstance(day, list) else []
            if day is None:
                sentence = "is not JSON, and was left out; export it again"
                notes.put(Problem(str(file), sentence, "warning"))
        record = {"channel": channel.name, "users": people, "messages": messages}
        yield from drafts_of(_SLACK_DAY, [(str(channel), record)], notes)


def _days(folder: Path) -> list[Path]:
    return sorted([*folder.glob(_DAY_FILE), *folder.glob(f"*/{_DAY_FILE}")])


def _json(path: Path) -> Any:
    with suppress(ValueError, OSError):
        return json.loads(path.read_bytes())
    return None


def _is_slack_folder(folder: Path) -> bool:
    return any(_SLACK_DAY.has({"messages": _json(file)}) for file in _days(folder)[:_DAYS_PROBED])


def _teams(record: Record) -> list[Any]:
    """Put replies after what they answer, and texts under their type, ``text`` or ``html``."""
    messages = []
    for root in objects(items_at(record, "value messages")):
        messages += [root, *objects(root.get("replies"))]
    return [
        {**message, str(value_at(message, "body/contentType")): value_at(message, "body/content")}
        for message in messages
    ]


def _whatsapp(record: Record) -> list[Any]:
    other = record.get("name") or "contact"
    messages = []
    for item in objects(items_at(record, "messages/*")):
        speaker = "me" if item.get("from_me") else item.get("sender") or other
        messages.append({**item, "speaker": speaker})
    return messages


def _meta(record: Record) -> list[Any]:
    """Repair older exports, whose UTF-8 was read as Latin-1, unless one message was not."""
    repaired = []
    for message in objects(record["messages"]):
        texts = {name: message.get(name) for name in ("content", "sender_name")}
        try:
            texts = {
                name: text.encode("latin-1").decode()
                for name, text in texts.items()
                if isinstance(text, str)
            }
        except UnicodeError:
            return list(record["messages"])
        repaired.append({**message, **texts})
    return repaired


def _rasa(record: Record) -> list[Any]:
    """Read what users and bots say.

    A button's payload becomes the button's title, or the values that it sends.
    """
    session = sender = str(value_at(record, "sender_id tracker/sender_id"))
    sessions: set[str] = set()
    titles: dict[Any, Any] = {}
    items: list[Any] = []
    for event in objects(items_at(record, "events tracker/events")):
        kind = event.get("event")
        if kind in ("session_started", "restart") and session in sessions:
            session = f"{sender}#{len(sessions) + 1}"
        for button in objects(items_at(event, "data/buttons")):
            titles[button.get("payload")] = button.get("title")
        if kind in ("user", "bot"):
            sessions.add(session)
            items.append({**event, **_rasa_labels(event, titles), "session": session})
    return items


def _rasa_labels(event: Record, titles: Record) -> dict[str, Any]:
    text = str(event.get("text") or "")
    entities = objects(items_at(event, "parse_data/entities"))
    slots = [{"name": str(slot.get("entity")), "value": slot.get("value")} for slot in entities]
    intent = value_at(event, "parse_data/intent/name")
    labels = {"slots": slots, "intents": [intent] if intent else []}
    payload = _PAYLOAD.fullmatch(text) if event["event"] == "user" else None
    if not payload:
        return labels
    values = ", ".join(str(slot["value"]) for slot in slots if slot["value"] is not None)
    words = titles.get(text) or values or payload[1].replace("_", " ")
    return {**labels, "text": words, "noted": "read a button's payload as its title or values"}


def _dialogflow(record: Record) -> list[Any]:
    path = "response/queryResult/match/intent/displayName response/queryResult/intent/displayName"
    messages = []
    for item in objects(record["interactions"]):
        intent = value_at(item, path)
        intents = [intent] if intent else []
        asked, answered = item.get("requestUtterances"), item.get("responseUtterances")
        messages.append({**item, "role": "user", "text": asked, "intents": intents})
        messages.append({**item, "role": "bot", "text": answered})
    return messages


_RECORDS = forms_of(
    "desks",
    _zendesk,
    _intercom,
    _freshdesk,
    _livechat,
    _slack,
    _teams,
    _whatsapp,
    _meta,
    _rasa,
    _dialogflow,
)
_SLACK_DAY = next(form for form in _RECORDS if form.name == "Slack, a day of a channel")
_SLACK_FOLDER = Form(
    "Slack, an export",
    "Slack",
    "Export the workspace (settings, Import/Export Data), and unpack it.",
    accepts=_is_slack_folder,
    dialogue="a thread; outside threads, what is said between pauses of 4 hours",
    speakers="whoever is named",
    left_out="joins and other notices, messages of bots",
    container=FOLDER,
    drafts=_slack_folder,
)
DESKS = (*_RECORDS, _SLACK_FOLDER)
