"""Your own transcripts: lines ``SPEAKER: Text``, or as messengers export them.

A time may stand before the speaker. Which shape the rest of a line has, of a speaker, a mark, a
time in brackets and a text, most lines of the file decide. Other lines go on with the turn before.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import regex

from .cleaning import MARK
from .findings import Draft, Notes, Problem, message_of
from .text_encoding import NOT_TEXT, encoding_of, is_text, text_of

_DIRECTIONS = regex.compile("[\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_DAY = (
    r"(?:\d{1,4}(?:\s?[./년年]\s?|-)\d{1,2}(?:\s?[./월月]\s?|-)\d{1,4}(?!\d)[.日일]?(?:\sг\.)?"
    r"|(?:[^\W\d_]{2,9}\.?,?\s)?[^\W\d_]{3,9}\.?\s\d{1,2},?\s\d{4}"
    r"|\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,12}\.?\s(?:de\s)?\d{4})"
)
_PARTS = r"(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"  # of a second, and a zone
_CLOCK = rf"\d{{1,2}}(?:[:.٫]|\s?h\s?)\d\d(?:[:.]\d\d)?{_PARTS}"
_SHORT = rf"[午上下前後오전후]{{0,2}}\s?\d{{1,2}}:\d\d(?::\d\d)?{_PARTS}(?:\s?[AaPp]\.?\s?[Mm]\.?)?"
_HALF = r"(?:[^\S\n]?[^\d\s:;,\[\]()–—-][^\d:;,\[\]()\n–—-]{0,14})??"  # a.m. in any language
_MOMENT = rf"(?:{_DAY}[^\d:\[\]()]{{0,20}}{_CLOCK}|{_CLOCK},?\s{_DAY})"
_STAMP = regex.compile(  # only messengers write the second
    rf"[\[(]\s?(?P<time>[^\[\]()]{{0,30}}\d[:.]\d\d[^\[\]()]{{0,20}}|{_DAY}|(?:\d+[hms]\s?)+)"
    rf"\s?[\])](?:\s-)?\s*"
    rf"|(?P<time>{_MOMENT}(?:{_HALF}(?=\s*[–—;-]\s|,\s)|(?=:\s)))(?P<mark>\s*[–—;:,-]\s+)"
    rf"|(?P<time>{_DAY}(?:(?:,\s?|\s|T){_SHORT})?|{_SHORT})(?:\s-)?\s+"
)
# a line with a day alone, or with a time alone, or what Zendesk notes
_HEADING = regex.compile(
    rf"[^\w\[]*(?:[^\W\d_]+[,.]?\s)?(?P<day>{_DAY})[^:]{{0,24}}(?:{_CLOCK})?\W*"
)
_ASIDE = regex.compile(rf"\d\d?:\d\d:\d\d|[\[(]{_SHORT}[\])]\s*\*{{3}}.*\*{{3}}")
# a time above its speaker
_BLOCK = regex.compile(rf"^({_MOMENT}{_HALF})(?:\s\(.*\))?\s*?\n(\S.*?)\s*$", regex.MULTILINE)
_HAS_DAY = regex.compile(_DAY)
# a name without marks, brackets around it, and ``~`` before who is no contact
_NAME = regex.compile(rf"^[\s{MARK}]*(?:~\s*)?(?:[\[(【](.+)[\])】]|(.+?))[\s{MARK}]*$")
# so that neither 10:30 nor https://... begins a turn, nor a notice with a group's name
_COLON = r"(?::(?=\s|$|[\u3040-\u9fff\uac00-\ud7af])|：)"
_NO_QUOTATION = r'(?![^":：]*"[^":：]*[:：]|[^:：]*[“„«][^”“»:：]*[:：])'
_LABEL = r"(?:【[^】]{1,40}】|[\[(](?:SPEAKER|[Ss]peaker)[ _]\d+[\])])"
_LATER = r"[\[(](?P<time>[^\[\]()]*\d:\d\d[^\[\]()]*)[\])]:?"
_BARE = r"(?P<speaker>[^\s\[\]()<>|:–—-][^\t<>\[\]()|:–—]{0,60}?)"
_INSIDE = r"(?P<speaker>[^\s<>*#:\[\]][^<>*#:\[\]]{0,38}?):?"
_SHAPES = [
    regex.compile(rf"(?!{_DAY}|{_CLOCK}){shape}\s*(?P<content>.*)", regex.DOTALL)
    for shape in (
        rf"(?:(?P<speaker>{_LABEL})\s?[:：]?"
        r"|(?P<speaker>[^\s:：\[(][^:：\[(]{0,39})[\[(](?P<time>\d+:[\d:.,]+)[\])]\s?[:：]"
        rf"|{_NO_QUOTATION}(?P<speaker>[^\s:：][^:：]{{0,39}}){_COLON})",
        *(
            rf"{left}{_INSIDE}{right}{later}"
            for later in (rf"\s*{_LATER}", "")
            for left, right in (
                ("<", ">"),
                (r"\*\*", r"\*\*:?"),
                (r"\[", r"\]:?"),
                ("#{1,6} ", "$"),
            )
        ),
        *(f"{_BARE}{mark}" for mark in (r"\t", r"\s*(?:>>+|->|\|)", r"\s+[–—-]\s")),
        rf"{_BARE},? {_LATER}$",
        rf"{_BARE}(?:\s{{2,}}|\t)(?P<time>{_SHORT})$",
        r"From\s+(?P<speaker>\S.*?)(?:\s+to\s+[^:]+?)?\s*:",  # of Zoom
    )
]
_LOOKED_AT = 500  # lines that show the shape of a file


class Line(NamedTuple):
    """A line of text: its time, what stands behind it, and in the file's shape who says what."""

    place: str
    text: str  # whole
    rest: str  # behind the time
    time: str = ""
    mark: str = ""  # between the time and the rest
    speaker: str = ""
    content: str = ""


def transcript(path: Path, notes: Notes) -> Draft:
    """Read a file that holds one conversation."""
    with text_of(path, encoding_of(path, notes)) as stream:
        lines = _with_times_behind(stream.read()).splitlines() or [""]
    draft = _draft([(f"{path}:{number}", line) for number, line in enumerate(lines, start=1)])
    doubt(draft.messages, notes)
    return replace(draft, place=f"{path}:1")


def draft_of_text(place: str, text: str) -> Draft:
    """Read a text that holds one conversation, such as a cell of a table."""
    return _draft([(place, line) for line in _with_times_behind(text).splitlines()])


def _with_times_behind(text: str) -> str:
    """Put times that stand above the lines of speakers behind them, where names come again."""
    speakers = [speaker for _, speaker in _BLOCK.findall(text)]
    return _BLOCK.sub(r"\n\2 [\1]", text) if len(set(speakers)) < len(speakers) else text


def lines_of(texts: Iterable[tuple[str, str]]) -> tuple[list[Line], bool]:
    """Find who says what in lines with their places, and whether in the usual shape."""
    lines = [_line(place, text) for place, text in texts]
    shape = max(_SHAPES, key=partial(_score, lines[:_LOOKED_AT]))
    if shape is _SHAPES[0]:
        return lines, True
    day = ""
    for at, line in enumerate(lines):
        lines[at] = _spoken(line, shape, day)
        if not lines[at].speaker and (heading := _HEADING.fullmatch(line.text)):
            day = regex.sub(r"[^\d./-]+", "-", heading["day"]).strip("-")
    return lines, False


def _line(place: str, text: str) -> Line:
    text = (text if text.isascii() else _DIRECTIONS.sub("", text)).strip().lstrip(MARK)
    line = Line(place, text, text)
    if stamp := _STAMP.match(text):
        time = " ".join(stamp["time"].split())
        mark = text[stamp.end("time") : stamp.end()]
        line = Line(place, text, text[stamp.end() :].lstrip(MARK), time, mark)
    return _spoken(line, _SHAPES[0])


def _spoken(line: Line, shape: Any, day: str = "") -> Line:
    turn = shape.fullmatch(line.rest)
    if turn is None:
        return line._replace(speaker="", content="")
    time = f"{day} {turn.groupdict().get('time') or line.time}".strip()
    speaker = _NAME.sub(r"\1\2", turn["speaker"])
    return line._replace(time=time, speaker=speaker, content=turn["content"])


def _score(lines: Sequence[Line], shape: Any) -> float:
    """Return how many lines more have a shape than have only the usual one.

    Its names come again, or have times.
    """
    filled = [line for line in lines if line.text]
    read = [_spoken(line, shape) for line in filled]
    spoken = [line for line in read if line.speaker]
    speakers = {line.speaker for line in spoken}
    again = 1 < len(speakers) <= (len(spoken) + 1) // 2 and 5 * len(spoken) >= 2 * len(read)
    if shape is _SHAPES[0] or not (again or all(line.time for line in spoken)):
        return 0
    others = sum(not new.speaker for old, new in zip(filled, read, strict=True) if old.speaker)
    return len(spoken) + 0.5 - others


def _draft(texts: Sequence[tuple[str, str]]) -> Draft:
    lines, is_usual = lines_of(texts)
    place = texts[0][0] if texts else ""
    spoken = [line for line in lines if line.speaker]
    dated = {line for line in spoken if _HAS_DAY.search(line.time)}
    is_chat = bool(spoken) and (not is_usual or 2 * len(dated) >= len(spoken))
    # In a chat, other lines with a colon go on with what somebody says.
    timed = {line.speaker for line in (dated if is_chat else spoken) if line.time}
    are_timed = 2 * sum(line.speaker in timed for line in spoken) >= len(spoken)
    marks = {line.mark for line in spoken}
    are_marked = is_chat and all(line.content.startswith(MARK) for line in spoken)
    messages: list[dict[str, Any]] = []
    latest: dict[str, Any] = {}
    for line in lines:
        is_notice = is_chat and (line.mark in marks if line.time else _HEADING.fullmatch(line.text))
        is_open = not (is_chat and dated) and (latest or not are_timed)
        if line.speaker in timed or (line.speaker and is_open):
            content = line.content.lstrip(MARK) if are_marked else line.content
            latest = message_of(line.place, line.speaker, content)
            # other times count from the start of a recording
            latest["time"] = line.time if line in dated else ""
            latest["form"] = "chat" if is_chat else "transcript"
            messages.append(latest)
        elif is_notice or _ASIDE.fullmatch(line.text) or (line.text and spoken and not latest):
            left_out = {"left_out": "a line that nobody says", "place": line.place}
            messages.append({**left_out, "raw": line.text})
        elif line.text and latest:
            latest["content"] += f"\n{line.rest if line.text[:1] == '[' else line.text}"
    problems = [Problem(line.place, NOT_TEXT) for line in lines if not is_text(line.text)]
    if not latest and not problems:
        first = next((line for line in lines if line.text), Line(place, "no turn", ""))
        fault = f"got {first.text[:60]!r}, expected 'SPEAKER: text'; add who says it"
        problems.append(Problem(first.place, fault))
    return Draft(place, "", messages, problems=tuple(problems))


def doubt(messages: Sequence[Mapping[str, Any]], notes: Notes) -> None:
    """Warn of who speaks once beside two or more others: it may be the beginning of a sentence."""
    speakers = Counter(message["role"] for message in messages if message.get("content"))
    for message in messages:
        is_rare = len(speakers) > 2 and speakers[message.get("role")] == 1
        if is_rare and message.get("form") != "chat":
            sentence = (
                f"got a turn of {message['role']!r}, who speaks once beside {len(speakers) - 1} "
                "others; if that is no speaker, put the line behind the one before it"
            )
            notes.put(Problem(message["place"], sentence, "warning"))
