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

from ...data.corpus_names import TRANSCRIPTS
from ...data.source import files_within
from ...errors import InputError
from .findings import Draft, Notes, Problem, message_of
from .joining import joined
from .text_encoding import is_text, text_of
from .transcripts import NOT_TEXT, doubt, line_of, transcript

Message = dict[str, Any]
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]*)>")
_TAG = re.compile(
    r"</?(?:[bciuv]|ruby|rt|lang|font)(?:[.\s][^<>]*)?>|<[\d:.]+>|\{\\[^{}]*\}|^\s*>>+"
)


def transcripts(path: Path, notes: Notes) -> Iterator[Draft]:
    """Read a transcript, or those of a folder in the order of names, files before folders."""
    is_folder = path.is_dir()
    for file in files_within(path) if is_folder else [path]:
        if file.suffix.lower() not in TRANSCRIPTS:
            continue
        inner = file.relative_to(path if is_folder else path.parent)
        read = transcript if file.suffix.lower() == ".txt" else _captions
        try:
            draft = read(file, notes)
        except InputError as error:
            sentence = str(error).removeprefix(f"{file}: ")
            draft = Draft(f"{file}:1", "", (), problems=(Problem(f"{file}:1", sentence),))
        domains = (inner.parent.name,) if inner.parent.name else ()
        yield replace(draft, id=inner.with_suffix("").as_posix(), domains=domains)


def _captions(path: Path, notes: Notes) -> Draft:
    place = f"{path}:1"
    pieces = list(_pieces(path, notes))
    if not pieces:
        fault = "got no caption, expected at least one; remove the file or add its captions"
        return Draft(place, "", (), problems=(Problem(place, fault),))
    broken = (piece["place"] for piece in pieces if not is_text(piece["content"]))
    problems = tuple(Problem(where, NOT_TEXT) for where in broken)
    if not any(piece["speaker"] for piece in pieces):
        _find_names(pieces)
    turns = joined(place, pieces, notes)
    messages = [message_of(turn["place"], turn["role"], turn["content"]) for turn in turns]
    doubt(messages, notes)
    return Draft(place, "", messages, problems=problems)


def _find_names(pieces: list[Message]) -> None:
    """Find names in front of texts.

    One that comes once is a speaker if the first caption and most have one.
    """
    lines = [line_of("", piece["content"]) for piece in pieces]
    counts = Counter(line.speaker for line in lines if line.speaker)
    least = 1 if lines and lines[0].speaker and counts.total() * 2 >= len(lines) else 2
    for piece, line in zip(pieces, lines, strict=True):
        if counts[line.speaker] >= least:
            piece |= {"speaker": line.speaker, "role": line.speaker, "content": line.content}


def _pieces(path: Path, notes: Notes) -> Iterator[Message]:
    """Yield the lines of captions without markup, with the speakers whom the format knows."""
    from webvtt import WebVTT
    from webvtt.errors import MalformedCaptionError, MalformedFileError

    ending = path.suffix.lower().removeprefix(".")
    with text_of(path, notes) as stream:
        captions = stream.read().lstrip("\ufeff").strip()
    try:
        cues = WebVTT.from_buffer(io.StringIO(captions, newline=None), format=ending).captions
    except (MalformedCaptionError, MalformedFileError) as error:
        raise InputError(
            f"{path}: got no captions of the form {ending.upper()} ({error}); export them again"
        ) from None
    missing = captions.count("-->") - len(cues)
    if missing > 0:  # captions of SBV have no such arrows
        sentence = f"left out {missing} captions without text, or whose times cannot be read"
        notes.add(sentence, str(path))
    spoken = [list(_voices(cue.raw_text)) for cue in cues]
    again = [False, *(bool(old and new and old[-1] == new[0]) for old, new in pairwise(spoken))]
    # as automatic captions do: a line moves up, and comes again
    rolls = sum(again) * 2 > len(cues)
    for cue, voices, repeats in zip(cues, spoken, again, strict=False):
        for speaker, text in voices[rolls and repeats :]:
            known = {"role": str(speaker), "speaker": speaker, "channel": None, "start": cue.start}
            yield {**known, "content": text, "place": f"{path}:{cue.start}"}


def _voices(markup: str) -> Iterator[tuple[str | None, str]]:
    """Yield the lines of a caption with the speakers whom its markup names."""
    before, *voices = _VOICE.split(markup)
    for speaker, text in [("", before), *zip(voices[::2], voices[1::2], strict=True)]:
        for line in text.split("\n"):
            if plain := " ".join(unescape(_TAG.sub("", line)).split()):
                yield unescape(speaker).strip() or None, plain
