"""Speaker markers: how a rendered dialogue keeps its roles and turns in one token sequence.

The chat template writes a marker token of the speaker before each turn. ``forward`` reads roles and turns off the
markers, so that a stock tokenizer and any tool that passes ``(input_ids, attention_mask)`` serve a dialogue encoder.
"""

from collections.abc import Iterable

from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES

_TEXT_ALONE = (
    "{%- if message['content'] is not string -%}"
    "{{- raise_exception('Got a message whose content is no text, expected text; join its parts') -}}{%- endif -%}"
)
_SPACE = "{%- if not loop.last -%}{{- ' ' -}}{%- endif -%}"


def add_markers(tokenizer: PreTrainedTokenizerBase, num_roles: int) -> list[int]:
    """Add a special token for each of 1 to 5 roles, and as a 6th for responses; return the tokens' ids.

    Unused vocabulary entries are taken if they exist.
    """
    vocabulary = tokenizer.get_vocab()
    unused = [f"[unused{10 + role}]" for role in range(num_roles)]
    own = [f"<|{role}|>" for role in (*ROLES, "response")[:num_roles]]
    names = unused if all(name in vocabulary for name in unused) else own
    tokenizer.add_special_tokens({"extra_special_tokens": names})
    ids = tokenizer.convert_tokens_to_ids(names)
    assert isinstance(ids, list)
    return ids


def special_texts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return every text that the tokenizer would read as a control token, longest first."""
    return sorted(set(tokenizer.all_special_tokens), key=lambda text: (-len(text), text))


def escape(text: str, specials: Iterable[str]) -> str:
    """Break up control tokens in a user's text: ``[SEP]`` becomes ``[ SEP]``, which reads as plain words."""
    for special in specials:
        text = text.replace(special, f"{special[0]} {special[1:]}")
    return text


def chat_template(
    tokenizer: PreTrainedTokenizerBase, markers: list[int], end_of_utterance: str, wrapped: bool, max_turns: int | None
) -> str:
    """Return the Jinja template that renders messages as `tokenize` lays them out by a `DialogueConfig`.

    ``markers`` are the token ids of the roles' markers; ``end_of_utterance`` is a token's text, or empty.
    """
    start, end = wrapping(tokenizer) if wrapped else ("", "")
    turns = "messages" if max_turns is None else f"messages[-{max_turns}:]"
    hint = " ~ (' (a prompt has the role system; leave it out)' if message['role'] == 'system' else '')"
    return (
        f"{_set_markers(tokenizer, markers)}{start}{{%- for message in {turns} -%}}{_speaker(hint)}"
        f"{_content(tokenizer)}{end_of_utterance}{{%- endfor -%}}{end}"
    )


def utterance_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return the Jinja template that renders messages as one text: their contents, with a space between."""
    start, end = _texts_around(tokenizer)
    return f"{start}{{%- for message in messages -%}}{_TEXT_ALONE}{_content(tokenizer)}{_SPACE}{{%- endfor -%}}{end}"


def ranking_template(tokenizer: PreTrainedTokenizerBase, markers: list[int]) -> str:
    """Return the Jinja template that renders messages as a context or as a response.

    The marker of the speaker stands before each message of a context. A response begins with a message of the role
    ``response``, or with the system message ``response``, as sentence-transformers hands on a prompt. It is rendered as
    the last of the markers and all messages but the system's.
    """
    response = tokenizer.convert_ids_to_tokens(markers)[-1]
    start, end = _texts_around(tokenizer)
    return (
        f"{_set_markers(tokenizer, markers[:-1])}{start}"
        "{%- if messages[0]['role'] == 'response' or "
        "(messages[0]['role'] == 'system' and messages[0]['content'] == 'response') -%}"
        f"{response}{{%- for message in messages -%}}"
        f"{{%- if message['role'] != 'system' -%}}{_TEXT_ALONE}{_content(tokenizer)}{_SPACE}"
        "{%- endif -%}{%- endfor -%}{%- else -%}{%- for message in messages -%}"
        f"{_speaker()}{_content(tokenizer)}{{%- endfor -%}}{{%- endif -%}}{end}"
    )


def _set_markers(tokenizer: PreTrainedTokenizerBase, markers: list[int]) -> str:
    names = tokenizer.convert_ids_to_tokens(markers)
    roles = ", ".join(f"'{role}': '{name}'" for role, name in zip(ROLES, names, strict=False))
    return f"{{%- set markers = {{{roles}}} -%}}"


def _speaker(hint: str = "") -> str:
    """Return the template of a speaker's marker; its error ends in the hint."""
    return (
        "{%- if message['role'] not in markers -%}"
        "{{- raise_exception('Unknown role ' ~ message['role'] ~ ': expected one of ' ~ (markers | join(', '))"
        f"{hint}) -}}}}{{%- endif -%}}{_TEXT_ALONE}{{{{- markers[message['role']] -}}}}"
    )


def _content(tokenizer: PreTrainedTokenizerBase) -> str:
    escapes = "".join(f" | replace('{text}', '{text[0]} {text[1:]}')" for text in special_texts(tokenizer))
    return f"{{{{- message['content']{escapes} -}}}}"


def _texts_around(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    return ["".join(tokenizer.convert_ids_to_tokens(ids)) for ids in special_tokens_around(tokenizer)]


def special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Return the ids that the tokenizer puts before and after a text, by an example: tokenizers do not state them."""
    bare, full = (list(tokenizer("a", add_special_tokens=special)["input_ids"]) for special in (False, True))
    start = next(at for at in range(len(full)) if full[at : at + len(bare)] == bare)
    return full[:start], full[start + len(bare) :]


def wrapping(tokenizer: PreTrainedTokenizerBase) -> tuple[str, str]:
    """Return the texts of the tokens that open and close a sequence, such as ``("[CLS]", "[SEP]")``."""
    opening = tokenizer.cls_token or tokenizer.bos_token or ""
    closing = tokenizer.sep_token or tokenizer.eos_token or ""
    return str(opening), str(closing)
