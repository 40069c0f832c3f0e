"""What messengers write into texts themselves: ``messengers.toml`` by kind and language."""

import re
import tomllib
from pathlib import Path

from .roles import WELL_KNOWN

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
