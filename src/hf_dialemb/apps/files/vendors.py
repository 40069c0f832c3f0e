"""Forms of help desks, messengers, bots and calls in JSON.

Rows of ``vendors.toml``, and what rows cannot say.

A row names the paths of a message's fields (see `pick`). Where paths do not suffice, a function of
this module turns a record into a list of messages that have these fields. Of a call it makes
pieces: messages with ``text``, and with ``speaker``, ``channel`` and ``start`` where the transcript
has them; `joined` makes turns of pieces.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any

from ...data.parsing import parse_json
from ...errors import InputError
from .findings import Draft, Notes, Problem
from .form import FOLDER, Form, Record
from .layouts import forms_of, objects, pick, spaced

_SENTENCE_ENDS = tuple(".?!。？！")
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
    requester = pick(record, "ticket.requester_id|requester_id|requester.id")
    audits = [
        (audit, event)
        for audit in objects(record.get("audits"))
        for event in objects(audit.get("events"))
    ]
    comments = pick(record, "comments|ticket.comments")
    comments = comments or [
        {**audit, **event} for audit, event in audits if event.get("type") == "Comment"
    ]
    if not comments:  # without comments, the description is the first of them
        fields = {"body": "description", "created_at": "created_at", "author_id": "requester_id"}
        comments = [
            {name: pick(record, f"ticket.{field}|{field}") for name, field in fields.items()}
        ]
        comments[0]["noted"] = "read only a ticket's description, as its comments are missing"

    def with_author(comment: Record) -> Record:
        key = pick(comment, "author_id|author.id")
        name, role = (
            pick([people.get(key), comment.get("author")], f"{field}.0")
            for field in ("name", "role")
        )
        unknown = name if key is None else f"{'author' if requester is None else 'agent'} {key}"
        return {
            **comment,
            "speaker": name,
            "role": role or ("requester" if key == requester else unknown),
        }

    return [with_author(comment) if isinstance(comment, dict) else comment for comment in comments]


def _intercom(record: Record) -> list[Any]:
    first = {"created_at": record.get("created_at"), **(record.get("source") or {})}
    return [
        first,
        *(pick(record, "conversation_parts.conversation_parts|conversation_parts") or []),
    ]


def _freshdesk(record: Record) -> list[Any]:
    """Put the ticket's description before its replies.

    It is HTML, except in exports of the account.
    """
    ticket = record.get("helpdesk_ticket") or record
    plain, markup = pick(ticket, "description_text"), pick(ticket, "description_html|description")
    if markup != ticket.get(
        "description"
    ):  # an export of the account, with the HTML in description_html
        plain = ticket.get("description")
    opening = {
        "body_text": plain,
        "body": markup,
        "incoming": True,
        "user": {"name": pick(ticket, "requester_name")},
    }
    replies = [
        pick(reply, "helpdesk_note") or reply for reply in pick(ticket, "conversations|notes") or []
    ]
    return [{**opening, "created_at": ticket.get("created_at")}, *replies]


def _livechat(record: Record) -> list[Any]:
    users = {user.get("id"): user for user in objects(record.get("users"))}
    threads = objects(record.get("threads") or [record.get("thread")])
    events = [
        {"thread": thread.get("id"), **event}
        for thread in threads
        for event in objects(thread.get("events"))
    ]
    authors = [users.get(event.get("author_id"), {}) for event in events]
    return [
        {"role": user.get("type") or event.get("author_id"), "speaker": user.get("name"), **event}
        for user, event in zip(authors, events, strict=True)
    ]


def _slack(record: Record) -> list[Any]:
    """Replace user ids by names, links by their labels, and entities such as ``&amp;`` by
    characters.
    """
    profiles = [{"id": message.get("user"), **message} for message in objects(record["messages"])]
    people: dict[Any, Any] = {}
    for person in [*profiles, *objects(record.get("users"))]:
        name = pick(
            person, "profile.real_name|user_profile.real_name|real_name|profile.display_name|name"
        )
        people[person.get("id")] = name or people.get(person.get("id")) or person.get("id")
    counts = Counter(map(str, people.values()))
    people = {
        key: f"{name} ({key})" if counts[str(name)] > 1 else name for key, name in people.items()
    }

    def shown(mark: re.Match[str]) -> str:
        kind, target, text = mark.groups()
        return (
            str(people.get(target) or text or target)
            if kind == "@"
            else text or f"{kind.strip('!')}{target}"
        )

    def readable(message: Record) -> Record:
        kind = "bot_message" if message.get("bot_id") else message.get("subtype")
        text = unescape(_MARK.sub(shown, str(message.get("text") or "")))
        return {
            **message,
            "subtype": kind,
            "text": text,
            "speaker": people.get(message.get("user")),
        }

    return [
        readable(message) if isinstance(message, dict) else message
        for message in record["messages"]
    ]


def _slack_folder(place: str, folder: Path, notes: Notes) -> Iterator[Draft]:
    """Read each channel as one record of all its days, as threads go on from day to day."""
    people: list[Any] = next(
        filter(None, (_json(path / "users.json") for path in (folder, folder.parent))), []
    )
    for channel in sorted({file.parent for file in _days(folder)}):
        messages = []
        for file in sorted(channel.glob(_DAY_FILE)):
            day = _json(file)
            messages += day if isinstance(day, list) else []
            if day is None:
                notes.put(
                    Problem(str(file), "is not JSON, and was left out; export it again", "warning")
                )
        record = {"channel": channel.name, "users": people, "messages": messages}
        assert _SLACK_DAY.drafts is not None, "a row of vendors.toml reads records"
        yield from _SLACK_DAY.drafts(str(channel), record, notes)


def _days(folder: Path) -> list[Path]:
    return sorted([*folder.glob(_DAY_FILE), *folder.glob(f"*/{_DAY_FILE}")])


def _json(path: Path) -> Any:
    with suppress(InputError):
        return parse_json("", path.read_bytes(), "") if path.is_file() else None


def _is_slack_folder(folder: Path) -> bool:
    return any(_SLACK_DAY.has({"messages": _json(file)}) for file in _days(folder)[:_DAYS_PROBED])


def _teams(record: Record) -> list[Any]:
    """Put replies after the message that they answer, and texts under their content type, ``text``
    or ``html``.
    """
    roots = objects(pick(record, "value|messages"))
    messages = [message for root in roots for message in (root, *objects(root.get("replies")))]
    return [
        {**message, str(pick(message, "body.contentType")): pick(message, "body.content")}
        for message in messages
    ]


def _whatsapp(record: Record) -> list[Any]:
    other = record.get("name") or "contact"
    messages = objects(pick(record, "messages.*"))
    return [
        {**item, "speaker": "me" if item.get("from_me") else item.get("sender") or other}
        for item in messages
    ]


def _meta(record: Record) -> list[Any]:
    """Repair older exports, whose UTF-8 was read as Latin-1.

    One message that was not leaves all as they are.
    """
    messages, repaired = objects(record["messages"]), []
    for message in messages:
        texts = {
            name: text
            for name in ("content", "sender_name")
            if isinstance(text := message.get(name), str)
        }
        try:
            repaired.append(
                {
                    **message,
                    **{name: text.encode("latin-1").decode() for name, text in texts.items()},
                }
            )
        except UnicodeError:
            return list(messages)
    return repaired


def _rasa(record: Record) -> list[Any]:
    """Read what users and bots say.

    A button's payload becomes the button's title, or the values that it sends.
    """
    session = sender = str(pick(record, "sender_id|tracker.sender_id"))
    items: list[Any] = []
    titles: dict[Any, Any] = {}
    for event in objects(pick(record, "events|tracker.events")):
        kind, text = event.get("event"), str(event.get("text") or "")
        if kind in ("session_started", "restart") and any(
            item["session"] == session for item in items
        ):
            session = f"{sender}#{len({item['session'] for item in items}) + 1}"
        titles |= {
            button.get("payload"): button.get("title")
            for button in objects(pick(event, "data.buttons"))
        }
        intent, entities = (
            pick(event, "parse_data.intent.name"),
            objects(pick(event, "parse_data.entities")),
        )
        slots = [{"name": str(slot.get("entity")), "value": slot.get("value")} for slot in entities]
        item = {**event, "session": session, "slots": slots, "intents": [intent] if intent else []}
        if kind == "user" and (payload := _PAYLOAD.fullmatch(text)):
            values = ", ".join(str(slot["value"]) for slot in slots if slot["value"] is not None)
            words = titles.get(text) or values or payload[1].replace("_", " ")
            item |= {"text": words, "noted": "read a button's payload as its title or values"}
        items += [item] if kind in ("user", "bot") else []
    return items


def _dialogflow(record: Record) -> list[Any]:
    sides = {"user": "requestUtterances", "bot": "responseUtterances"}
    intent = "response.queryResult.match.intent.displayName|response.queryResult.intent.displayName"
    return [
        {
            **item,
            "role": role,
            "text": item.get(field),
            "intents": [name] if role == "user" and name else [],
        }
        for item in objects(record["interactions"])
        for name in [pick(item, intent)]
        for role, field in sides.items()
    ]


_FUNCTIONS = (
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
_RECORDS = forms_of("desks", *_FUNCTIONS)
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


def _sentences(
    words: Iterable[Record], text: str, speaker: str, start: str, channel: object = None
) -> list[Any]:
    """Join the words of a channel into sentences.

    ``text``, ``speaker`` and ``start`` are paths in a word.
    """
    pieces: list[dict[str, Any]] = []
    for item in words:
        word, voice = str(pick(item, text) or ""), pick(item, speaker)
        last: dict[str, Any] = pieces[-1] if pieces else {"speaker": None, "text": ""}
        if item.get("type") == "punctuation":
            last["text"] += word
        elif (
            last["speaker"] == voice and last["text"] and not last["text"].endswith(_SENTENCE_ENDS)
        ):
            last["text"] = spaced(last["text"], word)
        else:
            pieces.append(
                {"text": word, "speaker": voice, "start": pick(item, start), "channel": channel}
            )
    return pieces


def _deepgram(record: Record) -> list[Any]:
    if utterances := pick(record, "results.utterances"):
        return list(utterances)
    pieces: list[Any] = []
    for number, channel in enumerate(pick(record, "results.channels")):
        best = pick(channel, "alternatives.0")
        if parts := objects(pick(best, "paragraphs.paragraphs")):
            pieces += (
                {**part, "text": pick(part, "sentences.text"), "channel": number} for part in parts
            )
        else:
            words = objects(pick(best, "words")) or [{"word": pick(best, "transcript")}]
            pieces += _sentences(words, "punctuated_word|word", "speaker", "start", number)
    return pieces


def _transcribe(record: Record) -> list[Any]:
    """Read Amazon's words; older files list the speakers apart from them, by start time."""
    results = record["results"]
    labels = objects(pick(results, "speaker_labels.segments.items"))
    speakers = {item.get("start_time"): item.get("speaker_label") for item in labels}
    pieces: list[Any] = []
    for channel in objects(pick(results, "channel_labels.channels")) or [results]:
        words = [
            {"speaker_label": speakers.get(item.get("start_time")), **item}
            for item in objects(channel["items"])
        ]
        label = channel.get("channel_label")
        pieces += _sentences(words, "alternatives.0.content", "speaker_label", "start_time", label)
    return pieces


def _google(record: Record) -> list[Any]:
    """Read Google's results.

    With diarization, the last one may repeat the words of all others, with speakers.
    """
    results = objects(pick(record, "response.results|results"))
    words = [objects(pick(result, "alternatives.0.words")) for result in results]
    if pick(words[-1], "speakerTag|speakerLabel"):
        repeated = len(words[-1]) >= sum(map(len, words[:-1]))
        spoken = [word for part in (words[-1:] if repeated else words) for word in part]
        return _sentences(spoken, "word", "speakerLabel|speakerTag", "startTime|startOffset")
    return [
        {
            **result,
            "text": pick(result, "alternatives.0.transcript"),
            "start": pick(part, "0.startTime|0.startOffset"),
        }
        for result, part in zip(results, words, strict=True)
    ]


def _speechmatics(record: Record) -> list[Any]:
    pieces: list[Any] = []
    for channel in dict.fromkeys(item.get("channel") for item in objects(record["results"])):
        words = [item for item in objects(record["results"]) if item.get("channel") == channel]
        pieces += _sentences(
            words, "alternatives.0.content", "alternatives.0.speaker", "start_time", channel
        )
    return pieces


def _contact_lens(record: Record) -> list[Any]:
    """Add the roles of participants to the segments of Contact Lens, which have only their ids."""
    roles = {
        person.get("ParticipantId"): person.get("ParticipantRole")
        for person in objects(record.get("Participants"))
    }
    pieces = objects(pick(record, "Transcript|Segments.Transcript"))
    return [{"ParticipantRole": roles.get(piece.get("ParticipantId")), **piece} for piece in pieces]


CALLS = forms_of("calls", _deepgram, _transcribe, _google, _speechmatics, _contact_lens)
