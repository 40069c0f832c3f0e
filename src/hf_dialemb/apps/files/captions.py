"""Captions of recorded calls: WebVTT of Teams, Zoom and YouTube, SRT of diarizers, and SBV."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

from ...data.corpus_names import TRANSCRIPTS
from ...data.source import files_within
from ...errors import InputError
from .findings import Draft, Notes, Problem, message_of
from .joining import joined
from .text_encoding import NOT_TEXT, encoding_of, is_text, text_of
from .transcripts import doubt, lines_of, transcript

_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]*)>")
_TAG = re.compile(
    r"</?(?:[bciuv]|ruby|rt|lang|font)(?:[.\s][^<>]*)?>|<[\d:.]+>|\{\\[^{}]*\}|^\s*>>+"
)


def transcripts(path: Path, notes: Notes) -> Iterator[Draft]:
    """Read a transcript, or those of a folder in the order of names, files before folders."""
    folder = path if path.is_dir() else path.parent
    files = files_within(path) if path.is_dir() else [path]
    for file in (file for file in files if file.suffix.lower() in TRANSCRIPTS):
        inner = file.relative_to(folder)
        try:
            is_plain = file.suffix.lower() == ".txt"
            draft = (transcript if is_plain else _captions)(file, notes)
        except InputError as error:
            problem = Problem(f"{file}:1", str(error).removeprefix(f"{file}: "))
            draft = Draft(problem.place, "", (), problems=(problem,))
        domains = (inner.parent.name,) if inner.parent.name else ()
        yield replace(draft, id=inner.with_suffix("").as_posix(), domains=domains)


def _captions(path: Path, notes: Notes) -> Draft:
    place = f"{path}:1"
    pieces = list(_pieces(path, notes))
    if not any(piece["speaker"] for piece in pieces):
        lines, _ = lines_of((piece["place"], piece["content"]) for piece in pieces)
        # A name that comes once is a speaker if the first caption and most have one.
        counts = Counter(line.speaker for line in lines if line.speaker)
        least = 1 if lines and lines[0].speaker and counts.total() * 2 >= len(lines) else 2
        for piece, line in zip(pieces, lines, strict=True):
            if counts[line.speaker] >= least:
                piece |= {"speaker": line.speaker, "role": line.speaker, "content": line.content}
    turns = joined(place, pieces, notes) if pieces else []
    messages = [message_of(turn["place"], turn["role"], turn["content"]) for turn in turns]
    doubt(messages, notes)
    broken = [piece["place"] for piece in pieces if not is_text(piece["content"])]
    return Draft(place, "", messages, problems=tuple(Problem(at, NOT_TEXT) for at in broken))


def _pieces(path: Path, notes: Notes) -> Iterator[dict[str, Any]]:
    """Yield the lines of captions without markup, with the speakers whom the format knows."""
    from webvtt import WebVTT
    from webvtt.errors import MalformedCaptionError, MalformedFileError

    ending = path.suffix.lower().removeprefix(".")
    with text_of(path, encoding_of(path, notes)) as stream:
        captions = stream.read().lstrip("\ufeff").strip()
    try:
        cues = WebVTT.from_buffer(io.StringIO(captions, newline=None), format=ending).captions
    except (MalformedCaptionError, MalformedFileError) as error:
        raise InputError(
            f"{path}: got no captions of the form {ending.upper()} ({error}); export them again"
        ) from None
    if not cues:
        raise InputError(f"{path}: got no caption, expected at least one; remove the file")
    if (missing := captions.count("-->") - len(cues)) > 0:  # captions of SBV have no such arrows
        notes.add(f"left out {missing} captions without text or with odd times", str(path))
    spoken = [[pair for pair in _voices(cue.raw_text) if pair[1]] for cue in cues]
    pairs = zip([[], *spoken], spoken, strict=False)
    again = [bool(old and new and old[-1][1] == new[0][1]) for old, new in pairs]
    # as automatic captions do: a line moves up, and comes again
    rolls = sum(again) * 2 > len(cues)
    for cue, voices, repeats in zip(cues, spoken, again, strict=True):
        for speaker, text in voices[rolls and repeats :]:
            known = {"role": str(speaker), "speaker": speaker, "channel": None, "start": cue.start}
            yield {**known, "content": text, "place": f"{path}:{cue.start}"}


def _voices(markup: str) -> Iterator[tuple[str | None, str]]:
    """Yield the lines of a caption with the speakers whom its markup names."""
    for line in _VOICE.sub("\n\\1\t", markup.replace("\t", " ")).split("\n"):
        speaker, _, text = unescape(_TAG.sub("", line)).rpartition("\t")
        yield speaker.strip() or None, " ".join(text.split())
