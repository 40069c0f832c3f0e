"""Your own transcripts: lines ``SPEAKER: Text``, or as messengers export them.

A line that begins with a speaker (at most 40 characters), a colon and a blank begins a turn; any
other line goes on with the turn before it. A time before the speaker, such as ``[00:07]``, is that
of the turn. If more lines have another shape, of a time, a speaker in brackets and a mark in any
order, that shape is the file's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .cleaning import MARK
from .findings import Draft, Notes, Problem, message_of
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
    rf"[\[(]\s?(?P<inside>[^\[\]()]{{0,30}}\d[:.]\d\d[^\[\]()]{{0,20}}|{_DAY}|(?:\d+[hms]\s?)+)"
    r"\s?[\])](?:\s-)?\s*"
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
# a name without marks, brackets around it, and ``~`` before who is no contact
_NAME = re.compile(rf"^[\s{MARK}]*(?:~\s*)?(?:[\[(【](.+)[\])】]|(.+?))[\s{MARK}]*$")
_HAS_DAY = re.compile(_DAY)
_DATED = re.compile(_MOMENT)
# a group's name with a colon, in a notice
_OPEN_QUOTATION = re.compile('^[^"]*"[^"]*$|[“„«][^”“»]*$')
_BLOCK = re.compile(rf"(?P<time>{_MOMENT}(?:{_HALF}))(?:\s\(.*\))?")
_HEADING = re.compile(rf"[^\w\[]*(?:[^\W\d_]+[,.]?\s)?(?P<day>{_DAY})[^:]{{0,24}}(?:{_CLOCK})?\W*")
# of Google Meet, of Zendesk
_ASIDE = re.compile(rf"\d\d?:\d\d:\d\d|[\[(]{_SHORT}[\])]\s*\*{{3}}.*\*{{3}}")
_LOOKED_AT = 500  # lines that show the shape of a file
_FRONT = rf"[\[(]?\s?(?P<time>{_MOMENT}|{_DAY}|[^\W\d_]{{0,3}}\s?{_SHORT})\s?[\])]?[\s,–—-]*"
_LATER = r"[\[(](?P<later>[^\[\]()]*\d:\d\d[^\[\]()]*)[\])]:?"
_BARE = r"(?P<speaker>[^\s\[\]()<>|:–—-][^\t<>\[\]()|:–—]{0,60}?)"
_INSIDE = r"(?P<speaker>[^\s<>*#:\[\]][^<>*#:\[\]]{0,38}?):?"
_SHAPES = [
    re.compile(rf"(?:{_FRONT})?(?!{_DAY}|{_CLOCK}){shape}\s*(?P<content>.*)")
    for shape in (
        *(
            rf"{left}{_INSIDE}{right}{later}"
            for later in (rf"\s*{_LATER}", "")
            for left, right in (("<", ">"), (r"\*\*", r"\*\*:?"), (r"\[", r"\]"), ("#{1,6} ", "$"))
        ),
        *(f"{_BARE}{mark}" for mark in (r"\t", r"\s*(?:>>+|->|\|)", r"\s+[–—-]\s")),
        rf"{_BARE},? {_LATER}$",
        rf"{_BARE}(?:\s{{2,}}|\t)(?P<later>{_SHORT})$",
        r"From\s+(?P<speaker>\S.*?)(?:\s+to\s+[^:]+?)?\s*:",  # of Zoom
    )
]


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
    draft = _draft(f"{path}:1", lines)
    if not any(message.get("form") == "chat" for message in draft.messages):
        doubt(draft.messages, notes)
    return draft


def draft_of_text(place: str, lines: Iterable[str]) -> Draft:
    """Read the lines of a text that holds one conversation, such as a cell of a table.

    All are at one place.
    """
    return _draft(place, [line_of(place, line) for line in lines])


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
    marked = (turn["label"] or turn["timed"] or turn["speaker"]) if turn else ""
    speaker = _NAME.sub(r"\1\2", marked)
    if not turn or (is_sure and _OPEN_QUOTATION.search(speaker)):
        content = rest if is_sure or text[:1] == "[" else text
        return Line(place, text, time, is_sure, content=content)
    return Line(place, text, turn["time"] or time, is_sure, speaker, turn["content"])


def _shape_of(lines: list[Line]) -> re.Pattern[str] | None:
    """Return the shape that most lines have; None if that is a speaker and a colon.

    Without times, it is one only if its speakers come again.
    """
    filled = [line for line in lines[:_LOOKED_AT] if line.text]
    most = 0
    best = None
    for shape in _SHAPES:
        matches = [shape.fullmatch(line.text) for line in filled]
        fitting = [match.groupdict() for match in matches if match]
        count = len(fitting)
        others = sum(
            bool(line.speaker) and (line.is_sure or match is None)
            for line, match in zip(filled, matches, strict=True)
        )
        speakers = len({parts["speaker"] for parts in fitting})
        comes_again = 1 < speakers <= (count + 1) // 2 and 5 * count >= 2 * len(filled)
        has_times = all(parts["time"] or parts.get("later") for parts in fitting)
        count += bool(matches and matches[0] and not filled[0].speaker)
        if count > max(most, others) and (comes_again or has_times):
            most = count
            best = shape
    return best


def _in_shape(lines: list[Line]) -> list[Line]:
    """Read lines again as their shape says; a line with a day alone dates those below it."""
    shape = _shape_of(lines)
    if shape is None:
        return lines
    read = []
    day = ""
    for line in lines:
        if match := shape.fullmatch(line.text):
            parts = match.groupdict()
            time = f"{day} {parts['time'] or parts.get('later') or ''}".strip()
            read.append(Line(line.place, line.text, time, True, parts["speaker"], parts["content"]))
        elif heading := _HEADING.fullmatch(line.text):
            day = re.sub(r"[^\d./-]+", "-", heading["day"]).strip("-")
        else:
            timed = re.match(_FRONT, line.text)
            content = line.text[timed.end() :] if timed else line.text
            read.append(
                line._replace(time="", is_sure=timed is not None, speaker="", content=content)
            )
    return read


def _joined_blocks(lines: list[Line]) -> list[Line]:
    """Put a speaker's line and the line of a time above it together, where names come again."""
    starts = {
        place: match["time"]
        for place, line in enumerate(lines[:-1])
        if (match := _BLOCK.fullmatch(" ".join(line.text.split())))
    }
    if len({lines[place + 1].text for place in starts}) >= len(starts):
        return lines
    read = []
    for place, line in enumerate(lines):
        if place in starts:
            read.append(line._replace(text=f"{lines[place + 1].text} [{starts[place]}]"))
        elif place - 1 not in starts:
            read.append(line)
    return read


def _draft(place: str, lines: list[Line]) -> Draft:
    lines = _in_shape(_joined_blocks(lines))
    spoken = [line for line in lines if line.speaker]
    # In a chat, other lines with a colon go on with what somebody says.
    is_chat = bool(spoken) and 2 * sum(line.is_sure for line in spoken) >= len(spoken)
    timed = {line.speaker for line in spoken if (line.is_sure if is_chat else line.time)}
    is_timed = 2 * sum(line.speaker in timed for line in spoken) >= len(spoken)
    messages: list[dict[str, Any]] = []
    latest: dict[str, Any] = {}
    problems = [Problem(line.place, NOT_TEXT) for line in lines if not is_text(line.text)]
    for line in lines:
        is_known = line.speaker in timed or not (is_chat or (is_timed and timed and not latest))
        left_out = ""
        if line.speaker and is_known:
            latest = _message(line, is_chat)
            messages.append(latest)
        elif _ASIDE.fullmatch(line.text) or (
            is_chat and (line.is_sure or _HEADING.fullmatch(line.text))
        ):
            left_out = "a line with a time but no speaker"
        elif line.text and latest:
            latest["content"] += f"\n{line.text if is_chat or line.is_sure else line.content}"
        elif line.text and spoken:
            left_out = "a line before the first message"
        if left_out:
            messages.append({"left_out": left_out, "place": line.place, "raw": line.text})
    if not latest and not problems:
        problems.append(_without_turns(place, lines))
    filled = [message for message in messages if "content" in message]
    if is_chat and all(message["content"].startswith(MARK) for message in filled):
        for message in filled:
            message["content"] = message["content"].replace(MARK, "")
    return Draft(place, "", messages, problems=tuple(problems))


def _without_turns(place: str, lines: list[Line]) -> Problem:
    for line in filter(lambda line: line.text, lines):
        what = f"got {line.text[:60]!r} before any speaker, expected 'SPEAKER: text'"
        return Problem(line.place, f"{what}; add who says it")
    return Problem(
        place, "got no turn, expected at least one; remove the dialogue or add its turns"
    )


def _message(line: Line, is_chat: bool) -> dict[str, Any]:
    message = message_of(line.place, line.speaker, line.content)
    # others count from the start of a recording
    time = line.time if _HAS_DAY.search(line.time) else ""
    return message | {"time": time, "form": "chat" if is_chat else "transcript"}


def doubt(messages: Iterable[Mapping[str, Any]], notes: Notes) -> None:
    """Warn of who speaks once beside two or more others: it may be the beginning of a sentence."""
    filled = [message for message in messages if message.get("content")]
    speakers = Counter(message["role"] for message in filled)
    for message in filled:
        if len(speakers) > 2 and speakers[message["role"]] == 1:
            sentence = (
                f"got a turn of {message['role']!r}, who speaks once beside {len(speakers) - 1} "
                "others; if that is no speaker, put the line behind the one before it"
            )
            notes.put(Problem(message["place"], sentence, "warning"))
