"""Captions of recorded calls: WebVTT of Teams, Zoom and YouTube, SRT of diarizers, and SBV."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..source import files_within
from .encoding import is_text, text_of
from .findings import Draft, Notes, Problem, message_of
from .transcripts import doubt, speaker_of, transcript

SPOKEN = (".txt", ".vtt", ".srt", ".sbv")
"""The endings of files that hold what was said in one conversation."""

_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]*)>")
_TAG = re.compile(r"</?(?:[bciuv]|ruby|rt|lang|font)(?:[.\s][^<>]*)?>|<[\d:.]+>|\{\\[^{}]*\}|^\s*>>+")
_Piece = tuple[str, str, str, str]  # place, time, speaker if one begins, text


def transcripts(path: Path, notes: Notes) -> Iterator[Draft]:
    """Read a transcript, or those of a folder, sorted by name, the files of a folder before its folders."""
    for file in files_within(path) if path.is_dir() else [path]:
        if (ending := file.suffix.lower()) in SPOKEN:
            inner = file.relative_to(path) if path.is_dir() else Path(file.name)
            id, domains = inner.with_suffix("").as_posix(), tuple(filter(None, [inner.parent.name]))
            draft = (transcript if ending == ".txt" else captions)(file, id, domains, notes)
            problem = Problem(draft.place, "got a file name that is not UTF-8, expected text; rename the file")
            yield draft if is_text(id) else replace(draft, problems=(*draft.problems, problem))


def captions(path: Path, id: str, domains: tuple[str, ...], notes: Notes) -> Draft:
    """Read a file of captions: those of one speaker in a row are a turn, and those of nobody go on with it."""
    messages: list[dict[str, Any]] = []
    problems: list[Problem] = []
    place = f"{path}:1"
    try:
        pieces = _with_speakers(list(_pieces(path, notes)))
    except InputError as error:
        return Draft(place, "", (), problems=(Problem(place, str(error).removeprefix(f"{path}: ")),))
    first = next((speaker for _, _, speaker, _ in pieces if speaker), "")
    if pieces and not first:
        sentence = "got captions without speakers, read as one turn of the user; take captions that say who speaks"
        notes.guess(sentence, place)
    for where, time, speaker, text in pieces:
        if not is_text(text):
            problems.append(Problem(where, "got bytes that are not UTF-8, expected text; save the file as UTF-8"))
        elif messages and speaker in ("", messages[-1]["role"]):
            messages[-1]["content"] += f" {text}"
        else:
            messages.append(message_of(where, speaker or first or "user", text) | {"time": time})
    if not messages and not problems:
        problems.append(Problem(place, "got no caption, expected at least one; remove the file or add its captions"))
    doubt(messages, notes)
    return Draft(place, id, messages, domains, tuple(problems))


def _with_speakers(pieces: list[_Piece]) -> list[_Piece]:
    """Find names in front of texts; who speaks once is a speaker only if most captions begin with one."""
    if any(speaker for _, _, speaker, _ in pieces):
        return pieces
    split = [speaker_of(text) for _, _, _, text in pieces]
    counts = Counter(speaker for speaker, _ in split if speaker)
    are_usual = counts.total() * 2 >= len(pieces)
    named = [
        (speaker, content) if speaker and (are_usual or counts[speaker] > 1) else ("", text)
        for (speaker, content), (_, _, _, text) in zip(split, pieces, strict=True)
    ]
    return [(place, time, *spoken) for (place, time, _, _), spoken in zip(pieces, named, strict=True)]


def _pieces(path: Path, notes: Notes) -> Iterator[_Piece]:
    """Yield the lines of captions, without markup, with their speakers as far as the format knows these."""
    from webvtt import WebVTT
    from webvtt.errors import MalformedCaptionError, MalformedFileError

    ending = path.suffix.lower().removeprefix(".")
    with text_of(path, notes) as stream:
        text = stream.read().lstrip("\ufeff").strip()
    try:
        cues = WebVTT.from_buffer(io.StringIO(text, newline=None), format=ending).captions
    except (MalformedCaptionError, MalformedFileError) as error:
        raise InputError(f"{path}: got no captions of the form {ending.upper()} ({error}); export them again") from None
    if missing := text.count("-->") - len(cues) if ending != "sbv" else 0:
        notes.add(f"left out {missing} captions without text, or whose times cannot be read", str(path))
    spoken = [list(_lines(cue.raw_text)) for cue in cues]
    repeated = [bool(before and lines and before[-1] == lines[0]) for before, lines in pairwise(spoken)]
    rolls = sum(repeated) * 2 > len(cues)  # as automatic captions do: a line moves up, and comes again
    if rolls:
        notes.add("left out lines that captions repeat from the one before", str(path))
    for cue, lines, again in zip(cues, spoken, [False, *repeated], strict=False):
        place = f"{path}:{cue.start}"
        yield from ((place, cue.start, speaker, line) for speaker, line in (lines[1:] if rolls and again else lines))


def _lines(markup: str) -> Iterator[tuple[str, str]]:
    before, *voices = _VOICE.split(markup)
    for speaker, text in [("", before), *zip(voices[::2], voices[1::2], strict=True)]:
        for line in text.split("\n"):
            if plain := " ".join(unescape(_TAG.sub("", line)).split()):
                yield unescape(speaker).strip(), plain
