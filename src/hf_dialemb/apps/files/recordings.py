"""Records that need more than paths: word lists of recorders, and sessions of Rasa's trackers."""

import re
from collections.abc import Iterable
from typing import Any

from .evidence import Record
from .joining import spaced

_PAYLOAD = re.compile(r"/([\w.+-]+)(\{.*\})?", re.DOTALL)  # of a button of Rasa
_SENTENCE_ENDS = tuple(".?!。？！")


def with_pieces(record: Record) -> Record:
    """Return a record of a recorder with ``pieces`` instead of words; another as it is."""
    answer = record.get("response")
    results = record.get("results", answer.get("results") if isinstance(answer, dict) else None)
    pieces: list[Any] = []
    if isinstance(results, dict) and "channels" in results and "utterances" not in results:
        pieces = _deepgram(results)
    elif isinstance(results, dict) and "items" in results:
        pieces = _transcribe(results)
    elif isinstance(results, list) and "channelTag" in str(results):
        pieces = [
            {
                "text": best["transcript"],
                "start": best["words"][0].get("startTime"),
                "channel": result["channelTag"],
            }
            for result in results
            for best in result["alternatives"][:1]
        ]
    if not pieces:
        return record
    beside = {name: value for name, value in record.items() if name not in ("results", "response")}
    if isinstance(results, dict):
        beside["language_code"] = results.get("language_code")
    return {**beside, "pieces": pieces}


def with_sessions(record: Record) -> Record:
    """Return a tracker of Rasa with what people and bots say, by session; another as it is.

    A button's payload becomes the button's title, or the values that it sends.
    """
    tracker = record.get("tracker", record)
    if not isinstance(tracker, dict) or "sender_id" not in tracker or "events" not in tracker:
        return record
    session = sender = str(tracker["sender_id"])
    titles: dict[Any, Any] = {}
    messages: list[dict[str, Any]] = []
    count = 0
    for event in tracker["events"]:
        kind = event.get("event")
        if kind in ("session_started", "restart") and any(
            m["conversation_id"] == session for m in messages
        ):
            count += 1
            session = f"{sender}#{count + 1}"
        for button in (event.get("data") or {}).get("buttons") or ():
            titles[button.get("payload")] = button.get("title")
        if kind in ("user", "bot"):
            words, labels = _rasa_words(event, titles)
            spoken = {"event": kind, "text": words, "timestamp": event.get("timestamp"), **labels}
            messages.append({**spoken, "conversation_id": session})
    slots = {
        name: value for name, value in (tracker.get("slots") or {}).items() if value is not None
    }
    return {"sender_id": sender, **slots, "messages": messages}


def _rasa_words(event: Record, titles: Record) -> tuple[str, dict[str, Any]]:
    text = str(event.get("text") or "")
    data = event.get("parse_data") or {}
    entities = data.get("entities") or []
    slots = [{"name": str(slot.get("entity")), "value": slot.get("value")} for slot in entities]
    intent = (data.get("intent") or {}).get("name")
    payload = _PAYLOAD.fullmatch(text) if event["event"] == "user" else None
    if payload:
        values = ", ".join(str(slot["value"]) for slot in slots if slot["value"] is not None)
        text = titles.get(text) or values or payload[1].replace("_", " ")
    return text, {"slots": slots, "intents": [intent] if intent else []}


def _sentences(
    words: Iterable[Record], text: str, speaker: str, start: str, channel: object = None
) -> list[Any]:
    """Join the words of a channel into sentences."""
    pieces: list[dict[str, Any]] = []
    for item in words:
        best = {**item, **(item.get("alternatives") or [{}])[0]}
        word = str(best.get(text) or best.get("word") or "")
        voice = best.get(speaker)
        last = pieces[-1]["text"] if pieces else ""
        is_mark = item.get("type") == "punctuation"
        if pieces and (
            is_mark or (pieces[-1]["speaker"] == voice and not last.endswith(_SENTENCE_ENDS))
        ):
            pieces[-1]["text"] = spaced(last, word)
        else:
            began = item.get(start, item.get("startOffset"))
            pieces.append({"text": word, "speaker": voice, "start": began, "channel": channel})
    return pieces


def _deepgram(results: Record) -> list[Any]:
    pieces: list[Any] = []
    for number, channel in enumerate(results["channels"]):
        best = channel["alternatives"][0]
        words = best.get("words") or [{"word": best.get("transcript"), "start": 0}]
        parts = (best.get("paragraphs") or {}).get("paragraphs") or []
        for part in parts:
            text = " ".join(str(sentence["text"]) for sentence in part["sentences"])
            pieces.append(
                {
                    "text": text,
                    "speaker": part.get("speaker"),
                    "start": part.get("start"),
                    "channel": number,
                }
            )
        if not parts:
            pieces += _sentences(words, "punctuated_word", "speaker", "start", number)
    return pieces


def _transcribe(results: Record) -> list[Any]:
    """Read Amazon's words; older files list the speakers apart from them, by start time."""
    labels = (results.get("speaker_labels") or {}).get("segments") or []
    speakers = {
        item.get("start_time"): item.get("speaker_label")
        for segment in labels
        for item in segment.get("items", ())
    }
    pieces: list[Any] = []
    for channel in (results.get("channel_labels") or {}).get("channels") or [results]:
        words = [
            {"speaker_label": speakers.get(item.get("start_time")), **item}
            for item in channel["items"]
        ]
        label = channel.get("channel_label")
        pieces += _sentences(words, "content", "speaker_label", "start_time", label)
    return pieces
