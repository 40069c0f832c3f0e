"""The one table of forms, and how the form of a file is recognised.

`FORMS` has a row for each form, most specific first; rows of families are in the modules beside this one, and others
hang in by entry points of the group ``hf_dialemb.forms``, each a mapping from names to forms.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...errors import InputError
from ...hooks import Registry
from .calls import CALLS
from .chats import CHATS, LISTS
from .desks import DESKS
from .findings import Draft, Finding, Notes, Problem, from_draft, from_record
from .form import RECORD, Form, Message, value_at

FORMS = Registry("forms", {form.name: form for form in (*DESKS, *CALLS, *CHATS)})
"""All forms by name; those of other packages stand first."""

PAIR = ("prompt", "completion")  # fields of two turns, or of the messages before and after
_ID = "id|uuid|conversation_id|conversationId|ticket_id|session_id|sessionId|conversation_hash|thread_id"
_TIME = "time|created_at|create_time|timestamp|createdAt|created|date"
_WRAPPERS = (
    "conversations|data|items|results|tickets|chats|threads|records|rows|dialogues|resourceSpans|scopeSpans|spans"
)
_DEEPEST = 4  # wrappers around a conversation
_MALFORMED = (AttributeError, LookupError, TypeError, ValueError)


def known_forms() -> list[Form]:
    """Return all forms of records in the order in which they are tried."""
    own = set(FORMS.own)
    outside = [form for name, form in FORMS.items() if name not in own]
    return [form for form in (*outside, *(FORMS[name] for name in FORMS.own)) if form.container == RECORD]


def form_of_record(record: Any, forms: Iterable[Form]) -> Form | None:  # noqa: ANN401
    """Return the first form that a record has; None if it has none."""
    return next((form for form in forms if form.has(record)), None)


def from_records(records: Iterable[tuple[str, Any]], notes: Notes) -> Iterator[Finding]:
    """Read conversations of any known form, each with its place; an `InputError` in place of a record is a problem."""
    groups: dict[tuple[str, Any], list[tuple[str, Any]]] = {}
    forms, current = known_forms(), None
    for place, value in records:
        if isinstance(value, InputError):
            yield Finding(place, problems=(Problem(place, str(value)),))
            continue
        record = {"messages": value} if isinstance(value, list) else value
        form = form_of_record(record, forms)
        if form is None:
            yield from_record(place, value)
        elif form.group:
            key = value_at(record, *form.group)
            current = (form.name, key) if key is not None or current is None else current
            groups.setdefault(current, []).append((place, record))
        else:
            yield from _findings(form, [(place, record)], notes)
    for (name, _), members in groups.items():
        yield from _findings(FORMS[name], members, notes)


def _findings(form: Form, records: list[tuple[str, Any]], notes: Notes) -> Iterator[Finding]:
    try:
        draft = _draft(form, records, notes)
    except _MALFORMED:
        place, record = records[0]
        name = next((name for name in LISTS.split("|") if isinstance(record.get(name), list)), "messages")
        yield from_record(place, {**record, "messages": record.get(name)})
    else:
        yield from from_draft(draft, notes)


def _draft(form: Form, records: list[tuple[str, Any]], notes: Notes) -> Draft:
    """Make one dialogue of the records that belong to it."""
    place, first = records[0]
    messages: list[Message] = []
    for where, record in records:
        assert form.messages is not None, "a form of records reads messages"
        latest = [{"place": where, **message} for message in form.messages(record)]
        messages = continued(messages, latest) if form.group else latest
    for message in messages:
        if "left_out" in message:
            notes.add(f"left out {message['left_out']}", message["place"])
        elif "guess" in message:
            notes.guess(message["guess"], message["place"])
    spoken = [message for message in messages if "left_out" not in message]
    if spoken and not any(message["content"] for message in spoken):
        raise ValueError  # all texts are missing: their field may have another name
    named = [record for _, record in records if value_at(record, *form.id, _ID) is not None]
    identifier = value_at(named[0], *form.id, _ID) if named else ""
    return Draft(
        place,
        identifier,
        spoken,
        first.get("domains"),
        time=value_at(first, *form.time, _TIME) or "",
        metadata=first.get("metadata") or {},
        mail=form.mail,
        pause=form.pause,
    )


def continued(before: list[Message], latest: list[Message]) -> list[Message]:
    """Return messages and those after them, which may begin with a history of earlier ones."""

    def keys(messages: list[Message]) -> list[Any]:
        return [tuple(map(str, map(message.get, ("role", "content", "left_out")))) for message in messages]

    old, new = keys(before), keys(latest)
    if new == old[: len(new)]:
        return before
    for shared in range(min(len(old), len(new)), 0, -1):
        if old[-shared:] == new[:shared]:
            return before + latest[shared:]
    return before + latest


def conversations_of(value: Any) -> list[Any]:  # noqa: ANN401
    """Return the conversations of a JSON file: one, a list of them, those in a wrapper, or those that ids lead to."""
    return list(_conversations(value, known_forms(), _DEEPEST))


def _conversations(value: Any, forms: list[Form], depth: int) -> Iterator[Any]:  # noqa: ANN401
    record = {"messages": value} if isinstance(value, list) else value
    if not depth or not value or form_of_record(record, forms) is not None:
        yield from value if not depth and isinstance(value, list) else [value]
    elif isinstance(value, list):
        yield from value
    elif isinstance(value, Mapping):
        name = next((name for name in _WRAPPERS.split("|") if isinstance(value.get(name), list | Mapping)), "")
        if name:
            yield from _conversations(value[name], forms, depth - 1)
        elif all(form_of_record(_listed(inner), forms) is not None for inner in value.values()):
            for key, inner in value.items():
                yield {"id": key, **_listed(inner)}
        else:
            yield value
    else:
        yield value


def _listed(value: Any) -> Any:  # noqa: ANN401
    return {"messages": value} if isinstance(value, list) else value


def turn_fields(names: Iterable[str]) -> tuple[str, ...]:
    """Return which of a row's fields hold its turns; empty without any."""
    present = set(names)
    chat = tuple(name for name in LISTS.split("|") if name in present)[:1]
    return chat or (PAIR if present >= set(PAIR) else ())
