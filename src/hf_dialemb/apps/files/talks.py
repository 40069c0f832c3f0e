"""Conversations as they lie in a file: their messages, and which are versions of one."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from .columns import name_rank
from .evidence import Layout, Record, is_transcript, words_of
from .inherited import fields_around, id_of
from .markup import has_markup, plain_text
from .message_parts import Message, called
from .transcripts import draft_of_text

_NOT_SAID = re.compile(
    r"(tags?|labels?|topics?|domains?|services?|urls?|ids?|models?|keywords?|categories|roles|"
    r"speakers|users|participants|languages?|personality|persona\w*|candidates)"
)


@dataclass
class Talk:
    """A conversation, or a part of one, as it lies in a file.

    Attributes:
        read: Gives what is said, and what is left out, when it is asked for.
        path: The path of its list.
        around: The fields of the objects around it, the innermost first.
        key: The name or id under which it lies.
        layout: The fields of its messages, if it is a list of them.
        more: Other versions of it beside it; they are left out.
    """

    read: Callable[[], Iterable[Message]]
    path: str
    around: dict[str, Any]
    key: str = ""
    layout: Layout = field(default_factory=Layout)
    home: int = 0  # the identity of the object that holds it
    items: Sequence[Any] = ()  # as they lie in the file
    more: list["Talk"] = field(default_factory=list)
    has_opening: bool = False

    @cached_property
    def messages(self) -> list[Message]:
        """The messages."""
        return list(self.read())

    @property
    def first_text(self) -> str:
        """The first text that somebody says, without regard to case and blanks."""
        texts = (str(message["content"]) for message in self.messages if "content" in message)
        return next(filter(None, map(folded, texts)), "")

    @property
    def voices(self) -> int:
        """How many speakers and channels its pieces tell apart."""
        return len({(m.get("role"), m.get("channel")) for m in self.messages})

    @property
    def letters(self) -> str:
        """The letters of a recording; empty for others."""
        if not self.layout.is_recording:
            return ""
        texts = (str(message.get("content", "")) for message in self.messages)
        return re.sub(r"\W", "", "".join(texts)).casefold()


def versions(talks: list[Talk]) -> list[Talk]:
    """Keep one of several versions of a conversation in a record, such as two answers.

    Of a recording, pieces in which nobody is told apart are a version of those that hold them.
    """
    if len(talks) < 2:
        return talks
    first: dict[Any, Talk] = {}
    for number, talk in enumerate(talks):
        opening = "".join(sorted(talk.letters)) or talk.first_text
        id = "" if talk.letters else str(id_of(talk.around, talk.key)[0]) or talk.home
        key = (opening, id) if opening else number
        kept = first.setdefault(key, talk)
        if kept is not talk:
            first[key], other = (kept, talk) if kept.voices >= talk.voices else (talk, kept)
            first[key].more.append(other)
    whole = [talk for talk in first.values() if talk.letters and talk.voices > 1]
    for key, talk in list(first.items()) if whole else ():
        holding = [other for other in whole if talk.letters in other.letters]
        if talk.letters and talk.voices == 1 and holding:
            holding[0].more.append(first.pop(key))
    return list(first.values())


def mail_of(value: Record) -> Message:
    """Return the description of a ticket as the first message of who opened it."""
    text = value.get("description_text") or value.get("description")
    is_ticket = isinstance(value.get("subject"), str) or "requester_id" in value
    if not is_ticket or not isinstance(text, str):
        return {}
    name = called(str(value.get("requester_name") or ""))
    message = {"role": "requester", "content": text, "name": name, "raw": [text]}
    return {**message, "time": value.get("created_at"), "markup": has_markup(text)}


def folded(text: str) -> str:
    """Return a text without regard to case and blanks."""
    return " ".join(text.casefold().split())[:200]


def texts_of(value: Record, path: str, inside: list[Record]) -> list[Talk]:
    """Return texts in turn, or a transcript in one text, of an object that has nothing better."""

    def talk(name: str, read: Callable[[], Iterable[Message]]) -> Talk:
        return Talk(read, f"{path}.{name}", fields_around(inside, {name}))

    for name, inner in value.items():
        if not isinstance(inner, list) or len(inner) < 2 or _NOT_SAID.fullmatch(str(name).lower()):
            continue
        if all(isinstance(text, str) for text in inner) and (
            sum(map(words_of, inner)) > 1.5 * len(inner)
            or name_rank("content", str(name)) is not None
        ):
            return [talk(name, partial(_in_turn, inner, value.get("speakers")))]
    talks = [
        talk(name, partial(_transcribed, inner))
        for name, inner in value.items()
        if isinstance(inner, str) and is_transcript(inner)
    ]
    for first in talks[:1]:
        first.more = talks[1:]
    return talks[:1]


def _in_turn(texts: list[str], speakers: Any) -> Iterator[Message]:
    """Yield texts that speakers say in turn, if they are not listed."""
    is_listed = isinstance(speakers, list) and len(speakers) == len(texts)
    for number, text in enumerate(texts):
        who = str(speakers[number]) if is_listed else ("first", "second")[number % 2]
        name = called(who) if is_listed else ""
        yield {"role": who, "content": text, "name": name, "raw": [text]}


def _transcribed(text: str) -> Iterator[Message]:
    lines = (plain_text(text) if "<" in text else text).splitlines()
    for message in draft_of_text("", lines).messages:
        inner = {field: value for field, value in message.items() if field != "place"}
        yield {**inner, "raw": [text]}
