"""Calls as speech recognition writes them: rows of ``vendors.toml``, and functions that join words into pieces.

A piece is a message with ``text``, and with ``speaker``, ``channel`` and ``start`` where the transcript has them.
`joined` makes turns of pieces.
"""

from collections.abc import Iterable
from typing import Any

from .form import Record
from .layouts import forms_of, objects, pick, spaced

_SENTENCE_ENDS = tuple(".?!。？！")


def _sentences(words: Iterable[Record], text: str, speaker: str, start: str, channel: object = None) -> list[Any]:
    """Join the words of a channel into sentences; ``text``, ``speaker`` and ``start`` are paths in a word."""
    pieces: list[dict[str, Any]] = []
    for item in words:
        word, voice = str(pick(item, text) or ""), pick(item, speaker)
        last: dict[str, Any] = pieces[-1] if pieces else {"speaker": None, "text": ""}
        if item.get("type") == "punctuation":
            last["text"] += word
        elif last["speaker"] == voice and last["text"] and not last["text"].endswith(_SENTENCE_ENDS):
            last["text"] = spaced(last["text"], word)
        else:
            pieces.append({"text": word, "speaker": voice, "start": pick(item, start), "channel": channel})
    return pieces


def _deepgram(record: Record) -> list[Any]:
    if utterances := pick(record, "results.utterances"):
        return list(utterances)
    pieces: list[Any] = []
    for number, channel in enumerate(pick(record, "results.channels")):
        best = pick(channel, "alternatives.0")
        if parts := objects(pick(best, "paragraphs.paragraphs")):
            pieces += ({**part, "text": pick(part, "sentences.text"), "channel": number} for part in parts)
        else:
            words = objects(pick(best, "words")) or [{"word": pick(best, "transcript")}]
            pieces += _sentences(words, "punctuated_word|word", "speaker", "start", number)
    return pieces


def _transcribe(record: Record) -> list[Any]:
    """Read Amazon's words; older files list the speakers apart from them, by start time."""
    results = record["results"]
    labels = objects(pick(results, "speaker_labels.segments.items"))
    speakers = {item.get("start_time"): item.get("speaker_label") for item in labels}
    pieces: list[Any] = []
    for channel in objects(pick(results, "channel_labels.channels")) or [results]:
        words = [{"speaker_label": speakers.get(item.get("start_time")), **item} for item in objects(channel["items"])]
        label = channel.get("channel_label")
        pieces += _sentences(words, "alternatives.0.content", "speaker_label", "start_time", label)
    return pieces


def _google(record: Record) -> list[Any]:
    """Read Google's results; with diarization, the last one may repeat the words of all others, with speakers."""
    results = objects(pick(record, "response.results|results"))
    words = [objects(pick(result, "alternatives.0.words")) for result in results]
    if pick(words[-1], "speakerTag|speakerLabel"):
        repeated = len(words[-1]) >= sum(map(len, words[:-1]))
        spoken = [word for part in (words[-1:] if repeated else words) for word in part]
        return _sentences(spoken, "word", "speakerLabel|speakerTag", "startTime|startOffset")
    return [
        {**result, "text": pick(result, "alternatives.0.transcript"), "start": pick(part, "0.startTime|0.startOffset")}
        for result, part in zip(results, words, strict=True)
    ]


def _speechmatics(record: Record) -> list[Any]:
    pieces: list[Any] = []
    for channel in dict.fromkeys(item.get("channel") for item in objects(record["results"])):
        words = [item for item in objects(record["results"]) if item.get("channel") == channel]
        pieces += _sentences(words, "alternatives.0.content", "alternatives.0.speaker", "start_time", channel)
    return pieces


def _contact_lens(record: Record) -> list[Any]:
    """Add the roles of participants to the segments of Contact Lens, which have only their ids."""
    roles = {
        person.get("ParticipantId"): person.get("ParticipantRole") for person in objects(record.get("Participants"))
    }
    pieces = objects(pick(record, "Transcript|Segments.Transcript"))
    return [{"ParticipantRole": roles.get(piece.get("ParticipantId")), **piece} for piece in pieces]


CALLS = forms_of("calls", _deepgram, _transcribe, _google, _speechmatics, _contact_lens)
