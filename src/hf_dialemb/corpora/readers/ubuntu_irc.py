"""Ubuntu IRC: help with Ubuntu on its chat channel, where people marked which message replies to which.

Layout: ``{train,dev,test}/<log>.ascii.txt``, one message per line, and ``<log>.annotation.txt`` beside it, whose lines
``i j -`` say that message j replies to message i (``i i -``: it opens a conversation).

A conversation is a connected component of the replies. Those between exactly two nicks with at least three messages are
the dialogues: 1,631, 69 and 122. Who opens one is the user, the other the assistant; consecutive messages of a nick
stay apart. Actions (``* nick waves``) are messages too. Notices of the system (``=== nick has left``) and messages
without text are left out.
"""

import re
from itertools import groupby

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ..corpus import SPLITS, Records, Source, catalogued
from ..parsing import text_lines

_LINKS, _MESSAGES = ".annotation.txt", ".ascii.txt"
_FILES = {split: (f"{split}/*{_LINKS}", f"{split}/*{_MESSAGES}") for split in SPLITS}
_MESSAGE = re.compile(r"\[\d\d:\d\d\] (?:<([^>]+)>| \* (\S+)) +(.*\S)")
_LINK = re.compile(r"(\d{1,9}) (\d{1,9}) -\s*", re.ASCII)
_FEWEST_MESSAGES = 3


def _records(source: Source, split: str) -> Records:
    # Sorted by path, the replies of a log come right before its messages.
    log, links = "", [(0, 0)]
    for name, lines in groupby(text_lines(source, f"{split}/*.a*.txt"), key=lambda line: line[0].rpartition(":")[0]):
        if log and name != log + _MESSAGES:
            raise InputError(f"{log}{_LINKS}: got replies without {_MESSAGES[1:]} beside it; add the messages")
        if name.endswith(_LINKS):
            log, links = name.removesuffix(_LINKS), [_link(*line) for line in lines]
        elif name.endswith(_MESSAGES):
            if not log:
                raise InputError(f"{name}: got messages without {_LINKS[1:]} beside it; add the replies")
            yield from _conversations(name, f"{split}/{log.rpartition('/')[2]}", [text for _, text in lines], links)
            log = ""
    if log:
        raise InputError(f"{log}{_LINKS}: got replies without {_MESSAGES[1:]} beside it; add the messages")


def _link(place: str, text: str) -> tuple[int, int]:
    match = _LINK.fullmatch(text)
    if not match:
        raise InputError(f"{place}: got {text[:40]!r}, expected two numbers of messages and '-'; get the file again")
    return int(match[1]), int(match[2])


def _conversations(name: str, log: str, lines: list[str], links: list[tuple[int, int]]) -> Records:
    import networkx

    last = max(map(max, links), default=0)
    if last >= len(lines):
        raise InputError(f"{name}: got {len(lines)} messages, expected message {last} too; get the file again")
    for numbers in sorted(map(sorted, networkx.connected_components(networkx.Graph(links)))):
        messages = list(filter(None, (_message(f"{name}:{number + 1}", lines[number]) for number in numbers)))
        if len(messages) >= _FEWEST_MESSAGES and len({nick for nick, _ in messages}) == 2:
            yield f"{name}:{numbers[0] + 1}", (f"{log}/{numbers[0]}", messages)


def _message(place: str, line: str) -> tuple[str, str] | None:
    match = _MESSAGE.match(line)
    if match:
        return match[1] or match[2], match[3]
    if line.startswith(("===", "[")):
        return None
    raise InputError(f"{place}: got {line[:40]!r}, expected '[HH:MM] <nick> text'; get the file again")


def _dialogue(identifier: str, messages: list[tuple[str, str]]) -> Dialogue:
    opener = messages[0][0]
    turns = tuple(Turn("user" if nick == opener else "assistant", text) for nick, text in messages)
    return Dialogue(turns, identifier)


CORPORA = catalogued({"ubuntu_irc": (_FILES, _records, _dialogue)})
