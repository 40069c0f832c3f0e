"""Turns of the pieces of a recording."""

import re
from collections.abc import Iterable
from typing import Any

from .findings import Notes

# Chinese and Japanese characters stand without spaces
_FULL = re.compile("[\u3000-\u9fff\uff00-\uffef]")
_MARKS = re.compile(r"[.,;:!?…。？！]+")
_SECONDS = re.compile(r"[\d.]+s?")


def spaced(first: str, second: str) -> str:
    """Join two pieces of a text by a space, except between Chinese or Japanese characters."""
    first = first.rstrip()
    second = second.strip()
    is_full = _FULL.match(first[-1:]) and _FULL.match(second[:1])
    is_whole = not first or not second or is_full or _MARKS.fullmatch(second)
    return first + second if is_whole else f"{first} {second}"


def joined(place: str, pieces: Iterable[dict[str, Any]], notes: Notes) -> list[dict[str, Any]]:
    """Join neighbouring pieces of one speaker; a piece of nobody belongs to its neighbour.

    A piece is a message that may have ``speaker``, ``channel`` and ``start``.
    """
    pieces = list(pieces)
    keys = _telling(pieces)
    if all(piece.get(key) is None for piece in pieces for key in keys):
        notes.guess(
            "no piece of the recording has a speaker: took all as turns of one person; to tell "
            "people apart, transcribe it with diarization (whisperx --diarize)",
            place,
        )
        return [
            {**piece, "role": "speaker", "content": piece["content"].strip()} for piece in pieces
        ]
    if "channel" in keys and all(_SECONDS.fullmatch(str(piece.get("start"))) for piece in pieces):
        # often one channel is behind the other
        pieces.sort(key=lambda piece: float(str(piece["start"]).rstrip("s")))
    turns: list[dict[str, Any]] = []
    for piece in pieces:
        role = _role(piece, keys)
        before = turns[-1] if turns else {}
        if turns and ("" in (role, before["role"]) or role == before["role"]):
            before["content"] = spaced(before["content"], piece["content"])
            before["role"] = before["role"] or role
        else:
            turns.append({**piece, "role": role, "content": piece["content"].strip()})
    return turns


def _telling(pieces: list[dict[str, Any]]) -> list[str]:
    """Return the fields that tell speakers apart: channels, voices, or both."""
    channels = {piece.get("channel") for piece in pieces}
    speakers = {piece.get("speaker") for piece in pieces}
    pairs = {(piece.get("channel"), piece.get("speaker")) for piece in pieces}
    if len(channels - {None}) < 2 or len(pairs) == len(speakers - {None}) > 1:
        return ["speaker"]  # nobody speaks on two channels
    return ["channel", "speaker"] if len(speakers - {None}) > 1 else ["channel"]


def _role(piece: dict[str, Any], keys: list[str]) -> str:
    labels = [(key, str(piece[key])) for key in keys if piece.get(key) is not None]
    if not labels:
        return ""
    if piece["role"] != str(piece.get("speaker")):
        return str(piece["role"])
    return " ".join(f"{key} {label}" if label.isdecimal() else label for key, label in labels)
