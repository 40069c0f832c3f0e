"""Transcripts of recorded calls in JSON: rows of ``vendors.toml``, and what rows cannot say.

Where paths do not suffice, a function of this module makes pieces of a record: objects with
``text``, and with ``speaker``, ``channel`` and ``start`` where the transcript has them.
"""

from collections.abc import Iterable
from typing import Any

from .field_paths import Record, items_at, objects, value_at
from .joining import spaced
from .vendor_rows import forms_of

_SENTENCE_ENDS = tuple(".?!。？！")


def _sentences(
    words: Iterable[Record], text: str, speaker: str, start: str, channel: object = None
) -> list[Any]:
    """Join the words of a channel into sentences.

    ``text``, ``speaker`` and ``start`` are paths in a word.
    """
    pieces: list[dict[str, Any]] = []
    for item in words:
        word = str(value_at(item, text) or "")
        voice = value_at(item, speaker)
        last = pieces[-1]["text"] if pieces else ""
        if item.get("type") == "punctuation" and pieces:
            pieces[-1]["text"] += word
        elif last and pieces[-1]["speaker"] == voice and not last.endswith(_SENTENCE_ENDS):
            pieces[-1]["text"] = spaced(last, word)
        else:
            began = value_at(item, start)
            pieces.append({"text": word, "speaker": voice, "start": began, "channel": channel})
    return pieces


def _deepgram(record: Record) -> list[Any]:
    if utterances := items_at(record, "results/utterances"):
        return utterances
    pieces: list[Any] = []
    for number, channel in enumerate(items_at(record, "results/channels")):
        best = value_at(channel, "alternatives/0")
        parts = objects(value_at(best, "paragraphs/paragraphs"))
        for part in parts:
            sentences = map(str, items_at(part, "sentences/text"))
            pieces.append({**part, "text": " ".join(sentences), "channel": number})
        if not parts:
            words = objects(value_at(best, "words")) or [{"word": value_at(best, "transcript")}]
            pieces += _sentences(words, "punctuated_word word", "speaker", "start", number)
    return pieces


def _transcribe(record: Record) -> list[Any]:
    """Read Amazon's words; older files list the speakers apart from them, by start time."""
    results = record["results"]
    labels = items_at(results, "speaker_labels/segments/items")
    speakers = {item.get("start_time"): item.get("speaker_label") for item in objects(labels)}
    pieces: list[Any] = []
    for channel in objects(value_at(results, "channel_labels/channels")) or [results]:
        words = [
            {"speaker_label": speakers.get(item.get("start_time")), **item}
            for item in objects(channel["items"])
        ]
        label = channel.get("channel_label")
        pieces += _sentences(words, "alternatives/0/content", "speaker_label", "start_time", label)
    return pieces


def _google(record: Record) -> list[Any]:
    """Read Google's results.

    With diarization, the last one may repeat the words of all others, with speakers.
    """
    results = objects(value_at(record, "response/results results"))
    words = [objects(value_at(result, "alternatives/0/words")) for result in results]
    if value_at(words[-1], "speakerTag speakerLabel"):
        if len(words[-1]) >= sum(map(len, words[:-1])):
            words = words[-1:]
        spoken = [word for part in words for word in part]
        return _sentences(spoken, "word", "speakerLabel speakerTag", "startTime startOffset")
    return [
        {
            **result,
            "text": value_at(result, "alternatives/0/transcript"),
            "start": value_at(part, "startTime startOffset"),
        }
        for result, part in zip(results, words, strict=True)
    ]


def _speechmatics(record: Record) -> list[Any]:
    by_channel: dict[Any, list[Record]] = {}
    for item in objects(record["results"]):
        by_channel.setdefault(item.get("channel"), []).append(item)
    pieces: list[Any] = []
    for channel, words in by_channel.items():
        text, speaker = "alternatives/0/content", "alternatives/0/speaker"
        pieces += _sentences(words, text, speaker, "start_time", channel)
    return pieces


def _contact_lens(record: Record) -> list[Any]:
    """Add the roles of participants to the segments of Contact Lens, which have only their ids."""
    roles = {
        person.get("ParticipantId"): person.get("ParticipantRole")
        for person in objects(record.get("Participants"))
    }
    pieces = objects(items_at(record, "Transcript Segments/Transcript"))
    return [{"ParticipantRole": roles.get(piece.get("ParticipantId")), **piece} for piece in pieces]


CALLS = forms_of("calls", _deepgram, _transcribe, _google, _speechmatics, _contact_lens)
