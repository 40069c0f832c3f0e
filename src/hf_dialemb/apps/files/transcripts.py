"""Your own transcripts: a text file per dialogue, with lines ``SPEAKER.

Text``, or as messengers export them.

A line that begins with a speaker (at most 40 characters), a colon and a blank begins a turn; any
other line goes on with the turn before it, joined by a space. A time before the speaker, such as
``[00:07]``, is that of the turn. What messengers themselves write into their exports is in
``messengers.toml``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from .findings import Draft, Notes, Problem, message_of
from .messengers import MARK, RULES, spoken
from .text_encoding import is_text, text_of

NOT_TEXT = "got bytes that are not UTF-8, expected text; save the file as UTF-8"
_DIRECTIONS = re.compile("[\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_DAY = (
    r"(?:\d{1,4}(?:\s?[./년年]\s?|-)\d{1,2}(?:\s?[./월月]\s?|-)\d{1,4}(?!\d)[.日일]?(?:\sг\.)?"
    r"|(?:[^\W\d_]{2,9}\.?,?\s)?[^\W\d_]{3,9}\.?\s\d{1,2},?\s\d{4}"
    r"|\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,12}\.?\s(?:de\s)?\d{4})"
)
_PARTS = r"(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"  # of a second, and a zone
_CLOCK = rf"\d{{1,2}}(?:[:.٫]|\s?h\s?)\d\d(?:[:.]\d\d)?{_PARTS}"
_SHORT = rf"\d{{1,2}}:\d\d(?::\d\d)?{_PARTS}(?:\s?[AaPp]\.?\s?[Mm]\.?)?"
_HALF = r"(?:\s?[^\d\s:;,\[\]()–—-][^\d:;,\[\]()–—-]{0,14})??"  # a.m. in any language
_MOMENT = rf"(?:{_DAY}[^\d:\[\]()]{{0,20}}{_CLOCK}|{_CLOCK},?\s{_DAY})"
_SPEAKER = r"[^\s:：][^:：]{0,39}"
# so that neither 10:30 nor https://... begins a turn
_COLON = r"(?::(?=\s|$|[\u3040-\u9fff\uac00-\ud7af])|：)"
_STAMP = re.compile(
    rf"[\[(]\s?(?P<inside>[^\[\]()]{{0,30}}\d[:.]\d\d[^\[\]()]{{0,20}}|{_DAY})\s?[\])](?:\s-)?\s*"
    rf"|(?P<sure>{_MOMENT}(?:{_HALF}(?=\s*[–—;-]\s|,\s)|(?=:\s)))\s*[–—;:,-]\s+"
    rf"|(?P<unsure>{_DAY}(?:(?:,\s?|\s|T){_SHORT})?|{_SHORT})(?:\s-)?\s+(?={_SPEAKER}{_COLON})"
)
_TURN = re.compile(
    rf"(?!{_DAY}|{_CLOCK})(?:(?P<label>【[^】]{{1,40}}】|[\[(](?:SPEAKER|[Ss]peaker)[ "
    r"_]\d+[\])])\s?[:：]?"
    rf"|(?P<timed>[^\s:：\[(][^:：\[(]{{0,39}})[\[(](?P<time>\d+:[\d:.,]+)[\])]\s?[:：]|(?P<speaker>{_SPEAKER}){_COLON})"
    r"\s*(?P<content>.*)",
    re.DOTALL,
)
_HAS_DAY = re.compile(_DAY)
_DATED = re.compile(_MOMENT)
# a group's name with a colon, in a notice
_OPEN_QUOTATION = re.compile('^[^"]*"[^"]*$|[“„«][^”“»]*$')
_BLOCK = re.compile(rf"(?P<time>{_MOMENT}(?:{_HALF}))(?:\s\(.*\))?")
_HEADING = re.compile(rf"[^\w\[]*(?:[^\W\d_]+[,.]?\s)?(?P<day>{_DAY})[^:]{{0,24}}(?:{_CLOCK})?\W*")
# of Google Meet, of Zendesk
_ASIDE = re.compile(rf"\d\d?:\d\d:\d\d|[\[(]{_SHORT}[\])]\s*\*{{3}}.*\*{{3}}")
_LOOKED_AT = 500  # lines that show the layout of a file
_ANY_TIME = rf"(?:[\[(]?\s?(?P<time>{_MOMENT}|{_DAY}|{_SHORT})\s?[\])]?[\s,–—-]*)?"
_LAYOUTS = [re.compile(pattern) for pattern in RULES["layouts"].values()]
_SHAPES = [re.compile(shape.replace("TIME", _ANY_TIME)) for shape in RULES["shapes"].values()]


class Line(NamedTuple):
    """A line of text: who begins to speak, when, and what follows the time and the speaker."""

    place: str
    text: str  # whole
    time: str = ""
    is_sure: bool = False  # whether only a messenger writes such a time
    speaker: str = ""
    content: str = ""


def transcript(path: Path, notes: Notes) -> Draft:
    """Read a file that holds one conversation."""
    with text_of(path, notes) as text:
        lines = [line_of(f"{path}:{number}", line) for number, line in enumerate(text, start=1)]
    return _draft(f"{path}:1", lines, notes)


def draft_of_text(place: str, lines: Iterable[str], notes: Notes) -> Draft:
    """Read the lines of a text that holds one conversation, such as a cell of a table.

    All are at one place.
    """
    return _draft(place, [line_of(place, line) for line in lines], notes)


@lru_cache(1000)
def _name(speaker: str) -> str:
    """Return a speaker without brackets and marks; ``~`` stands before who is no contact."""
    bare = speaker.strip(f" {MARK}").removeprefix("~")
    if bare[:1] + bare[-1:] in ("[]", "()", "【】"):
        bare = bare[1:-1]
    return bare.strip() or speaker


def line_of(place: str, line: str) -> Line:
    """Find the time and the speaker in front of a line, if they are there."""
    text = (line if line.isascii() else _DIRECTIONS.sub("", line)).strip().lstrip(MARK)
    rest = text
    time = ""
    is_sure = False
    begins = text and (text[0] in "[(" or text[0].isdecimal() or _HAS_DAY.match(text))
    if begins and (stamp := _STAMP.match(text)):
        rest = text[stamp.end() :].lstrip(MARK)
        time = " ".join(next(filter(None, stamp.groups())).split())
        is_sure = bool(stamp["sure"] or (stamp["inside"] and _DATED.search(time)))
    turn = _TURN.match(rest)
    speaker = _name(turn["label"] or turn["timed"] or turn["speaker"]) if turn else ""
    if not turn or (is_sure and _OPEN_QUOTATION.search(speaker)):
        content = rest if is_sure or text[:1] == "[" else text
        return Line(place, text, time, is_sure, content=content)
    return Line(place, text, turn["time"] or time, is_sure, speaker, turn["content"])


def _laid_out(lines: list[Line]) -> list[Line]:
    """Read lines again in the layout of a program, if more have it than others have a speaker."""
    if blocks := _in_blocks(lines):
        return blocks
    probed = lines[:_LOOKED_AT]
    first = next((line.text for line in lines if line.text), "")
    most = 0
    layout = None
    for pattern in _LAYOUTS:
        matching = [line for line in probed if pattern.fullmatch(line.text)]
        others = [line for line in probed if line.speaker and not pattern.fullmatch(line.text)]
        score = len(matching) + bool(pattern.fullmatch(first))
        if matching and score > max(most, len(others)):
            most = len(matching)
            layout = pattern
    layout = layout or _shape_of(probed)
    if layout is None:
        return lines
    day = ""
    read = []
    for line in lines:
        if match := layout.fullmatch(line.text):
            time = f"{day} {match.groupdict().get('time') or ''}".strip()
            read.append(
                Line(line.place, line.text, time, True, match["speaker"] or "", match["content"])
            )
        elif heading := _HEADING.fullmatch(line.text):
            day = re.sub(r"[^\d./-]+", "-", heading["day"]).strip("-")
        else:
            read.append(Line(line.place, line.text, content=line.text))
    return read


def _shape_of(lines: list[Line]) -> re.Pattern[str] | None:
    """Return the shape that most lines have, and whose speakers come again, if no colon tells."""
    filled = [line for line in lines if line.text]
    for shape in _SHAPES:
        matches = (shape.fullmatch(line.text) for line in filled)
        speakers = Counter(match["speaker"] for match in matches if match)
        others = sum(bool(line.speaker) for line in filled)
        is_usual = 5 * speakers.total() >= 2 * len(filled) and speakers.total() > 2 * others
        if is_usual and 2 * len(speakers) <= speakers.total() + 1 and len(speakers) > 1:
            return shape
    return None


def _in_blocks(lines: list[Line]) -> list[Line]:
    """Read blocks of a time, a speaker and what is said, each on lines of its own."""
    starts = [
        (place, match)
        for place, line in enumerate(lines[:-1])
        if (match := _BLOCK.fullmatch(" ".join(line.text.split())))
    ]
    names = Counter(lines[place + 1].text for place, _ in starts)
    if len(starts) < 2 or names.total() - len(names) < 1 or max(map(len, names)) > 60:
        return []
    read: list[Line] = []
    ends = [*(place for place, _ in starts[1:]), len(lines)]
    for (start, match), end in zip(starts, ends, strict=True):
        speaker = lines[start + 1]
        if names[speaker.text] < 2 and spoken(speaker.text, True) == "":
            continue
        texts = [line for line in lines[start + 2 : end] if line.text]
        read.append(Line(speaker.place, speaker.text, match["time"], True, speaker.text))
        for line in texts:
            if line.text == "Tapbacks:":
                break
            read.append(Line(line.place, line.text, content=line.text))
    return read


def _draft(place: str, lines: list[Line], notes: Notes) -> Draft:
    lines = _laid_out(lines)
    sure = Counter(line.speaker for line in lines if line.speaker and line.is_sure)
    # In a chat, other lines with a colon go on with what somebody says.
    is_chat = bool(sure) and sure.total() * 2 >= sum(bool(line.speaker) for line in lines)
    turns: list[tuple[Line, list[str]]] = []
    problems: list[Problem] = []
    for line in lines:
        if not is_text(line.text):
            problems.append(Problem(line.place, NOT_TEXT))
        elif line.speaker and (line.is_sure or not is_chat or line.speaker in sure):
            turns.append((line, [line.content]))
        elif _ASIDE.fullmatch(line.text) or (is_chat and _is_notice(line)):
            notes.add("left out a line with a time but no speaker", line.place)
        elif line.text and turns:
            turns[-1][1].append(line.text if is_chat or line.is_sure else line.content)
        elif line.text and is_chat:
            notes.add("left out a line before the first message", line.place)
        elif line.text and not problems:
            sentence = (
                f"got {line.text[:60]!r} before any speaker, expected 'SPEAKER: text'; add "
                "who says it"
            )
            problems.append(Problem(line.place, sentence))
    if not turns and not problems:
        sentence = "got no turn, expected at least one; remove the dialogue or add its turns"
        problems.append(Problem(place, sentence))
    messages = list(_messages(turns, is_chat, notes))
    if not is_chat:
        doubt(messages, notes)
    return Draft(place, "", messages, problems=tuple(problems))


def _is_notice(line: Line) -> bool:
    return line.is_sure or _HEADING.fullmatch(line.text) is not None


def _messages(
    turns: list[tuple[Line, list[str]]], is_chat: bool, notes: Notes
) -> Iterator[dict[str, Any]]:
    """Yield what was said, without what a messenger says itself."""
    marked = is_chat and not all(line.content.startswith(MARK) for line, _ in turns)
    for line, parts in turns:
        # Telephone numbers that somebody pasted have such a mark too.
        is_number = re.fullmatch(rf"{MARK}[\d\s+()./-]*", line.content)
        content = ""
        if not marked or line.content[:1] != MARK or is_number:
            content = " ".join(filter(None, (spoken(part, is_chat) for part in parts)))
        if content or not "".join(parts):
            # others count from the start of a recording
            time = line.time if _HAS_DAY.search(line.time) else ""
            yield message_of(line.place, line.speaker, content) | {"time": time}
        else:
            notes.add("left out a notice, or what was sent without words or deleted", line.place)


def doubt(messages: list[dict[str, Any]], notes: Notes) -> None:
    """Warn of who speaks once beside two or more others: it may be the beginning of a sentence."""
    speakers = Counter(message["role"] for message in messages if message["content"])
    for message in messages:
        if len(speakers) > 2 and speakers[message["role"]] == 1 and message["content"]:
            sentence = (
                f"got a turn of {message['role']!r}, who speaks once beside {len(speakers) - 1} "
                "others; if that is no speaker, put the line behind the one before it"
            )
            notes.put(Problem(message["place"], sentence, "warning"))
