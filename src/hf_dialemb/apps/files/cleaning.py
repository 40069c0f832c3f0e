"""The one stage of cleaning, after reading: what nobody says leaves, whatever the form.

What messengers write into texts themselves, ``messengers.toml`` has by kind and language.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...display import counted
from .markup import QUOTING, filled_lines, plain_text, unquoted, unsigned
from .roles import WELL_KNOWN

Message = Mapping[str, Any]
_LONGEST_ENDING = 15  # lines
_OFTEN = 3  # mails of a speaker that end alike, and at least half of theirs
_MOST_LINES = 1 << 20  # of the ends of mails that are counted
NOTICE = "a notice, or what was sent without words or deleted"

MARK = "\u200e"
"""Stands before what a messenger says itself."""

_RULES = tomllib.loads(Path(__file__).with_name("messengers.toml").read_text(encoding="utf-8"))


def _pattern(*kinds: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(rule for kind in kinds for rule in kind.values()), re.IGNORECASE)


_ALWAYS = _RULES["left_out"].values()
_OF_CHATS = _RULES["left_out_of_chats"]
_NOTICES = {  # whole texts by where they stand, and how long they are at most
    "chat": (_pattern(*_ALWAYS, *_OF_CHATS.values()), 1 << 30),
    "transcript": (_pattern(*_ALWAYS), 60),
    "": (_pattern(*_ALWAYS, _OF_CHATS["notices"]), 160),
}
_PART = _pattern(*_RULES["cut"].values())
_REACTION = re.compile(
    '(?:Liked|Loved|Disliked|Laughed at|Emphasi[sz]ed|Questioned|Reacted .{1,8} to) [“"](.*)[”"]',
    re.DOTALL,
)


class Cleaning:
    """Cleans the texts of a source; sees all before it cleans any, for what speakers repeat.

    ``raw`` keeps markup, quotes and signatures.
    """

    def __init__(self, raw: bool = False) -> None:
        self._raw = raw
        self._lines = Counter[int]()  # hashes of who writes mails, with the last lines of these
        self._counts = Counter[str]()  # turns by what left them

    def see(self, message: Message, mail: bool) -> None:
        """Count how a message of a mail ends."""
        if mail and not self._raw and len(self._lines) < _MOST_LINES:
            ending = filled_lines(unquoted(_text(message)))[1:][-_LONGEST_ENDING:]
            self._lines.update(_mark(message, line) for line in ["", *ending])

    def turns(
        self, messages: Sequence[Message], mail: bool, leave: Callable[[str, str], None]
    ) -> Iterator[dict[str, Any]]:
        """Yield the messages of a dialogue that say something.

        ``leave`` takes what the others are, and their places.
        """
        texts = {str(message["content"]) for message in messages if "content" in message}
        for message in messages:
            content = message.get("content")
            if "left_out" in message:
                leave(message["left_out"], message["place"])
            elif not isinstance(content, str):
                yield dict(message)  # which no dialogue takes
            elif not content.strip():
                leave("a turn without text", message["place"])
            elif text := self._said(message, mail, texts):
                yield {**message, "content": text}
            else:
                leave(NOTICE, message["place"])

    def _said(self, message: Message, mail: bool, texts: set[str]) -> str:
        """Return what a message says; empty if a program wrote it."""
        if form := message.get("form"):
            return spoken(message["content"], form)
        text = self.text(message, mail)
        is_person = message["role"].casefold() not in WELL_KNOWN
        is_unsaid = is_person and (is_notice(text) or _is_reaction(text, texts))
        return text if text.strip() and not is_unsaid else ""

    def text(self, message: Message, mail: bool) -> str:
        """Return the text of a message.

        Markup loses its quotes, mail its signature too, but never all.
        """
        content = str(message["content"])
        if self._raw or not (mail or message.get("markup")):
            return content
        text = _text(message)
        if mail or QUOTING.search(content):
            text = self._left("quoted earlier mail", text, unquoted(text))
        if mail:
            text = self._left("repeated endings", text, self._unrepeated(message, text))
            text = self._left("signatures", text, unsigned(text))
        return text

    def _left(self, what: str, text: str, rest: str) -> str:
        self._counts[what] += rest != text
        return rest

    def remarks(self) -> list[str]:
        """Return a sentence for each kind of thing that was removed, with the number of turns."""
        return [
            f"{what} left {counted(count, 'turn')} (corpus show --raw shows it)"
            for what, count in self._counts.items()
            if count
        ]

    def _unrepeated(self, message: Message, text: str) -> str:
        """Return a mail without the last lines that its speaker often ends with."""
        often = max(_OFTEN, self._lines[_mark(message, "")] / 2)
        lines = text.rstrip().splitlines()
        count = len(lines)
        while len(lines) > 1 and self._lines[_mark(message, lines[-1])] >= often:
            lines.pop()
        return text if len(lines) == count else "\n".join(lines).strip()


def _text(message: Message) -> str:
    content = str(message["content"])
    return plain_text(content) if message.get("markup") else content


def _mark(message: Message, line: str) -> int:
    return hash((message.get("name") or message["role"], line.strip().casefold()))


def is_notice(text: str, form: str = "") -> bool:
    """Return whether a messenger wrote a text itself."""
    notices, longest = _NOTICES[form]
    words = text.rpartition("•")[2].strip(" .").lower()
    return len(text) < longest and notices.fullmatch(words) is not None


def _is_reaction(text: str, texts: set[str]) -> bool:
    """Return whether a text reacts to one of the texts of its conversation, which it quotes."""
    reaction = _REACTION.fullmatch(text.strip())
    quoted = reaction[1] if reaction else ""
    return bool(quoted) and (quoted in texts or quoted.rstrip("…") in " ".join(texts))


def spoken(text: str, form: str) -> str:
    """Return what the lines of a message say.

    Empty where a messenger says that a picture was there, or that somebody called.
    """
    # Telephone numbers that somebody pasted have such a mark too.
    if form == "chat" and text[:1] == MARK and not re.fullmatch(r"[\d\s+()./-]*", text[1:]):
        return ""
    lines = text.partition("\nTapbacks:")[0].split("\n")
    return " ".join(filter(None, (_spoken(line, form) for line in lines)))


def _spoken(text: str, form: str) -> str:
    if "<" in text or ")" in text or "-WA" in text or text[:9].lower() == "replying ":
        text = _PART.sub("", text)
    whole = text.replace(MARK, "")
    pieces = [whole] if whole == text or is_notice(whole, form) else text.split(MARK)
    return "".join(piece for piece in pieces if not is_notice(piece, form)).strip()
