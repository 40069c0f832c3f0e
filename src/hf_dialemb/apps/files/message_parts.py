"""What a message says, of texts, parts and objects; calls of tools, thoughts and files are named."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from .evidence import Record

_TEXTS = (
    "text", "input_text", "output_text", "multimodal_text", "refusal", "message",
    "audio_transcription", "plain", "link", "mention", "text_link", "bold", "italic", "code_block",
    "hashtag", "email", "phone", "pre", "spoiler", "punct", "punctuation", "pronunciation", "custom_emoji", "blockquote",
)  # types of what is said
_WITHIN = (
    "text", "content", "value", "parts", "transcript", "refusal", "message", "body", "title",
    "data",
)
_KINDS = (  # from words in the type of a part to what it is, the first that fits
    (r"result|tool.?resp|call.?output|function.?resp|execution", "a result of a tool"),
    (r"tool|function|call|code|action", "a call of a tool"),
    (r"think|thought|reason", "a thought of a model"),
    (r"image|picture|inline|sticker", "a picture"),
    (r"audio|video|file|document|attachment", "a file"),
    (r"context|instruction", "instructions for a model"),
    (r"step|source|data-", "a step of a model"),
)
_BESIDE = {  # fields beside the text of a message
    "tool_calls": "a call of a tool",
    "function_call": "a call of a tool",
    "toolCalls": "a call of a tool",
    "reasoning_content": "a thought of a model",
    "attachments": "a file",
    "files": "a file",
    "images": "a picture",
}


def parts(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the parts of a content: of each what it is if it is left out, and its text."""
    if isinstance(content, str):
        yield "", content
    elif isinstance(content, list):
        for part in content:
            yield from parts(part)
    elif isinstance(content, Mapping):
        name = content.get("type") or content.get("content_type")
        if content.get("thought") is True:  # of Gemini
            name = "thought"
        inner = next((content[key] for key in _WITHIN if content.get(key) is not None), None)
        if name is None and inner is None:
            name = next(iter(content), "")
        if name is None or name in _TEXTS:
            yield from parts(inner)
        elif name:
            yield kind_of(str(name)) or f"a part of the type {name}", ""


def beside(item: Record) -> list[str]:
    """Return what a message has beside its text."""
    return [kind for field, kind in _BESIDE.items() if item.get(field)]


@cache
def kind_of(name: str) -> str:
    """Return what a part of a type is; empty for what is said."""
    if name not in _TEXTS:
        for words, kind in _KINDS:
            if re.search(words, name, re.IGNORECASE):
                return kind
    return ""
