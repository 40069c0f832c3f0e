"""Transcribed calls in JSON."""

from collections.abc import Iterable, Iterator

from .form import Form, Message, Record


def joined(pieces: Iterable[Record]) -> Iterator[Message]:
    """Make turns of a transcript's pieces: those of one speaker in a row, or of nobody, are one turn."""
    message: Message = {}
    for piece in pieces:
        speaker = str(piece.get("speaker", "") if message else piece["speaker"])
        speaker = f"speaker {speaker}" if speaker.isdecimal() else speaker
        text = str(piece.get("text") or piece.get("transcript") or "").strip()
        if message and speaker in ("", message["role"]):
            message["content"] += f" {text}"
        else:
            if message:
                yield message
            message = {"role": speaker, "content": text}
    if message:
        yield message


def _deepgram(record: Record) -> Iterator[Message]:
    results = record["results"]
    if results.get("utterances"):
        yield from joined(results["utterances"])
        return
    paragraphs = results["channels"][0]["alternatives"][0]["paragraphs"]["paragraphs"]
    yield from joined(
        {"speaker": paragraph["speaker"], "text": " ".join(part["text"] for part in paragraph["sentences"])}
        for paragraph in paragraphs
    )


CALLS = (
    Form(
        "WhisperX, segments with speakers",
        "WhisperX",
        "Run `whisperx --diarize --output_format json`.",
        lambda record: joined(record["segments"]),
        ("segments",),
        dialogue="a file",
        speakers="by their voices",
    ),
    Form(
        "utterances of a transcribed call",
        "AssemblyAI, Rev and others",
        "Fetch the transcript with speaker labels.",
        lambda record: joined(record["utterances"]),
        ("utterances",),
        dialogue="a call",
        speakers="by their voices or channels",
    ),
    Form(
        "Deepgram, results",
        "Deepgram",
        "Transcribe with `diarize=true&utterances=true`.",
        _deepgram,
        ("results",),
        accepts=lambda record: (
            isinstance(record["results"], dict) and bool({"utterances", "channels"} & set(record["results"]))
        ),
        dialogue="a call",
        speakers="by their voices",
    ),
)
