"""The one stage of cleaning, after reading: what nobody says leaves, whatever the form.

What messengers write into texts themselves, ``messengers.toml`` has by kind and language.
"""

import re
import tomllib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ...display import counted
from .markup import QUOTING, filled_lines, plain_text, unquoted, unsigned
from .roles import WELL_KNOWN

Message = Mapping[str, Any]
_LONGEST_ENDING = 15  # lines
_OFTEN = 3  # messages of a speaker that end alike, and at least half of theirs
NOTICE = "a notice, or what was sent without words or deleted"

MARK = "\u200e"
"""Stands before what a messenger says itself."""

_LONGEST_NOTICE = 60  # characters, except in chats
RULES = tomllib.loads(Path(__file__).with_name("messengers.toml").read_text(encoding="utf-8"))
"""Texts that are left out or cut."""

_WHOLE, _WHOLE_IN_CHATS, _PART = (
    re.compile(
        "|".join(pattern for kind in RULES[field].values() for pattern in kind.values()), flags
    )
    for field, flags in (("left_out", 0), ("left_out_of_chats", 0), ("cut", re.IGNORECASE))
)


_LONGEST_TEXT = 160  # characters of a notice in a message
_REACTION = re.compile(
    '(?:Liked|Loved|Disliked|Laughed at|Emphasi[sz]ed|Questioned|Reacted .{1,8} to) [“"](.*)[”"]',
    re.DOTALL,
)
_NOTICE = re.compile(
    "|".join(
        pattern
        for kind in (*RULES["left_out"].values(), RULES["left_out_of_chats"]["notices"])
        for pattern in kind.values()
    )
)


class Cleaning:
    """Cleans the texts of a source; sees all before it cleans any, for what speakers repeat.

    ``raw`` keeps markup, quotes and signatures.
    """

    def __init__(self, raw: bool = False) -> None:
        self._raw = raw
        self._hashes = array("q")  # of the endings of all messages
        self._often: dict[int, int] | None = None  # those that are frequent, with their numbers
        self._counts: Counter[str] = Counter()  # turns by what left them

    def see(self, message: Message, mail: bool) -> None:
        """Count how a message of a mail ends."""
        if mail and not self._raw:
            self._often = None
            self._hashes.extend(_endings(message, unquoted(_text(message))))

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
            elif (text := self._said(message, mail, texts)).strip():
                yield {**message, "content": text}
            else:
                leave(NOTICE, message["place"])

    def _said(self, message: Message, mail: bool, texts: set[str]) -> str:
        """Return what a message says; empty if a program wrote it."""
        if form := message.get("form"):
            return spoken(message["content"], form == "chat")
        text = self.text(message, mail)
        return "" if is_notice(str(message["role"]), text, texts) else text

    def text(self, message: Message, mail: bool) -> str:
        """Return the text of a message.

        Markup loses its quotes, mail its signature too, but never all.
        """
        if self._raw or not (mail or message.get("markup")):
            return str(message["content"])
        text = _text(message)
        kept = unquoted(text) if mail or QUOTING.search(message["content"]) else text
        if not kept.strip():
            self._counts["nothing but quoted mail stays in"] += bool(text.strip())
            return "\n".join(line.lstrip("> ") for line in text.splitlines()).strip()
        self._counts["quoted earlier mail left"] += kept != text
        if not mail:
            return kept
        shorter = self._unrepeated(message, kept)
        self._counts["repeated endings left"] += shorter != kept
        kept = unsigned(shorter)
        self._counts["signatures left"] += shorter != kept
        return kept

    def remarks(self) -> list[str]:
        """Return a sentence for each kind of thing that was removed, with the number of turns."""
        return [
            f"{what} {counted(count, 'turn')} (corpus show --raw shows it)"
            for what, count in self._counts.items()
            if count
        ]

    def _unrepeated(self, message: Mapping[str, Any], text: str) -> str:
        if self._often is None:
            import numpy as np

            hashes, counts = np.unique(np.frombuffer(self._hashes, np.int64), return_counts=True)
            often = counts >= _OFTEN
            self._often = dict(zip(hashes[often].tolist(), counts[often].tolist(), strict=True))
        messages, *endings = (self._often.get(ending, 0) for ending in _endings(message, text))
        length = max(
            (i for i, count in enumerate(endings, 1) if count >= max(_OFTEN, messages / 2)),
            default=0,
        )
        spoken = [place for place, line in enumerate(text.splitlines()) if line.strip()]
        return "\n".join(text.splitlines()[: spoken[-length]]).strip() if length else text


def _text(message: Message) -> str:
    content = str(message["content"])
    return plain_text(content) if message.get("markup") else content


def _endings(message: Message, text: str) -> list[int]:
    """Hash the speaker, and the speaker with each ending of the text but the whole."""
    ending = str(message.get("name") or message["role"])
    hashes = [hash(ending)]
    for line in islice(reversed(filled_lines(text)[1:]), _LONGEST_ENDING):
        ending += f"\n{line.casefold()}"
        hashes.append(hash(ending))
    return hashes


def spoken(text: str, is_chat: bool) -> str:
    """Return what the lines of a message say.

    Empty where a messenger says that a picture was there, or that somebody called.
    """
    # Telephone numbers that somebody pasted have such a mark too.
    if is_chat and text[:1] == MARK and not re.fullmatch(r"[\d\s+()./-]*", text[1:]):
        return ""
    lines = text.partition("\nTapbacks:")[0].split("\n")
    return " ".join(filter(None, (_spoken(line, is_chat) for line in lines)))


def _spoken(text: str, is_chat: bool) -> str:
    def is_whole(text: str) -> bool:
        if not is_chat and len(text) > _LONGEST_NOTICE:
            return False
        words = text.rpartition("•")[2].strip(" .").lower()
        return bool(_WHOLE.fullmatch(words) or (is_chat and _WHOLE_IN_CHATS.fullmatch(words)))

    if "<" in text or ")" in text or "-WA" in text or text[:9].lower() == "replying ":
        text = _PART.sub("", text)
    whole = text.replace(MARK, "")
    pieces = [whole] if whole == text or is_whole(whole) else text.split(MARK)
    return "".join(piece for piece in pieces if not is_whole(piece)).strip()


def is_notice(speaker: str, text: str, texts: set[str]) -> bool:
    """Return whether a messenger wrote a text itself, in the name of a person.

    A reaction is a notice if it quotes one of the ``texts`` of its conversation.
    """
    if speaker.casefold() in WELL_KNOWN or not text.strip():
        return False
    if reaction := _REACTION.fullmatch(text.strip()):
        return reaction[1] in texts or reaction[1].rstrip("…") in " ".join(texts)
    return len(text) < _LONGEST_TEXT and _NOTICE.fullmatch(text.strip(" .").lower()) is not None
