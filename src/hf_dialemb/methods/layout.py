"""From dialogues to token ids: order, truncation and padding, and the same as a chat template.

The chat template writes a marker token of the speaker before each turn. ``forward`` reads roles and
turns off the markers, so that a stock tokenizer and any tool that passes ``(input_ids,
attention_mask)`` serve a dialogue encoder.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..dialogue import ROLES, UNSPOKEN, Dialogue
from ..errors import InputError
from .config import DialogueConfig

UNLIMITED = 1_000_000  # length limit of the tokenizer of a model that cuts by itself
CHARACTERS = 256  # more than any token has

_MARGIN = 128  # tokens beside a cut that may differ from those of the whole text
_TEXTS = 2_000  # texts that are tokenised at once
# as `load_dialogues` reads messages: parts are joined, and what nobody says is left out
_SPOKEN = (
    "{%- set spoken = namespace(turns=[]) -%}{%- for message in messages -%}"
    "{%- set content = message['content'] | default(none) -%}{%- if content is sequence and "
    "content is not string -%}"
    "{%- set content = content | selectattr('text') | map(attribute='text') | join(' ') -%}{%- "
    "endif -%}"
    f"{{%- if messages | length == 1 or message['role'] not in {list(UNSPOKEN)} -%}}"
    "{%- if content is not string and not (message['tool_calls'] or message['function_call']) -%}"
    "{{- raise_exception('Got a message whose content is no text, expected text or parts of text') "
    "-}}{%- endif -%}"
    "{%- if content and (content | trim or messages | length == 1) -%}"
    "{%- set spoken.turns = spoken.turns + [{'role': message['role'], 'content': content}] -%}"
    "{%- endif -%}{%- endif -%}{%- endfor -%}"
)
_SPEAKER = (
    "{%- if message['role'] not in markers -%}"
    "{{- raise_exception('Unknown role ' ~ message['role'] ~ ': expected one of ' ~ (markers | "
    "join(', '))) -}}"
    "{%- endif -%}{{- markers[message['role']] -}}"
)
_SPACE = "{%- if not loop.last -%}{{- ' ' -}}{%- endif -%}"


@dataclass
class Truncation:
    """Counts of tokens that did not fit, so that nothing is dropped silently."""

    dialogues: int = 0  # laid out so far
    truncated: int = 0  # that lost a token or a turn
    tokens: int = 0  # before the cut
    dropped_tokens: int = 0
    unit: str = "dialogues"  # what reports call the sequences

    def add(self, before: int, after: int) -> None:
        """Count a sequence by its tokens before and after the cut."""
        self.dialogues += 1
        self.tokens += before
        self.dropped_tokens += before - after
        self.truncated += before > after

    def __str__(self) -> str:
        return (
            f"{self.truncated:,} of {self.dialogues:,} {self.unit} were truncated "
            f"({self.dropped_tokens:,} of {self.tokens:,} tokens dropped)"
        )


def tokenize(
    dialogues: Sequence[Dialogue],
    tokenizer: PreTrainedTokenizerBase,
    config: DialogueConfig,
    count: Truncation,
) -> dict[str, Tensor]:
    """Lay out B dialogues with explicit roles and turns, and count what was dropped.

    Return ``input_ids``, ``attention_mask``, ``role_ids``, ``turn_ids``, each (B, L) int64, padded
    on the right. Raise InputError if the model has no vector for a role.
    """
    texts = list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))
    tokens = dict(
        zip(texts, token_ids(texts, tokenizer, config.max_tokens, config.keep), strict=True)
    )
    around = wrapping(tokenizer) if config.wrapped else ("", "")
    ending, opening, closing = (
        list(tokenizer.convert_tokens_to_ids([text])) if text else []  # type: ignore[arg-type]
        for text in (config.end_of_utterance, *around)
    )
    known = ROLES[: config.num_roles]
    rows = []
    for dialogue in dialogues:
        kept = dialogue.turns[-config.max_turns :] if config.max_turns else dialogue.turns
        if unknown := [turn.role for turn in kept if turn.role not in known]:
            raise InputError(
                f"dialogue '{dialogue.id}' has the role '{unknown[0]}', but the model knows "
                f"{config.num_roles} "
                f"({', '.join(known)}); train with a larger num_roles or merge speakers"
            )
        pieces = [tokens[turn.content] + ending for turn in kept]
        cut = _truncate(
            pieces, config.max_tokens - len(opening) - len(closing), config.keep, config.whole_turns
        )
        total = sum(len(tokens[turn.content]) + len(ending) for turn in dialogue.turns)
        count.add(total, sum(map(len, cut)))
        rows.append(_row(cut, [known.index(turn.role) for turn in kept], opening, closing))
    tokens_of, roles_of, turns_of = zip(*rows, strict=True)
    batch = pad_right(tokens_of, tokenizer.pad_token_id or 0)
    return {
        **batch,
        "role_ids": pad_right(roles_of, 0)["input_ids"],
        "turn_ids": pad_right(turns_of, 0)["input_ids"],
    }


def _truncate(
    pieces: list[list[int]], budget: int, keep: str, whole_turns: bool
) -> list[list[int]]:
    """Cut turns to a budget of tokens, at the end that is not kept; dropped turns become empty."""
    step = 1 if keep == "start" else -1
    result: list[list[int]] = []
    left = budget
    for piece in pieces[::step]:
        if len(piece) > left and (
            not whole_turns or left == budget
        ):  # a single turn is cut, not lost
            piece = piece[:left] if keep == "start" else piece[len(piece) - left :]
        result.append(piece if len(piece) <= left else [])
        left = left - len(piece) if len(piece) <= left else 0
    return result[::step]


def _row(
    pieces: list[list[int]], roles: list[int], opening: list[int], closing: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return the tokens of a sequence with their roles and turns.

    The frame belongs to the speakers beside it.
    """
    spoken = [(piece, role) for piece, role in zip(pieces, roles, strict=True) if piece] or [
        ([], roles[0])
    ]
    lengths = [len(piece) for piece, _ in spoken]
    lengths[0] += len(opening)
    lengths[-1] += len(closing)
    tokens = [*opening, *chain.from_iterable(piece for piece, _ in spoken), *closing]
    speakers = np.repeat([role for _, role in spoken], lengths)
    return tokens, speakers.tolist(), np.arange(len(spoken)).repeat(lengths).tolist()


def tokenize_utterances(
    utterances: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    count: Truncation,
    prompt: str = "",
) -> dict[str, Tensor]:
    """Lay out N utterances, each after a prompt, as a padded batch with special tokens around each.

    See `framed`.
    """
    count.unit = "utterances"
    ids = text_ids([prompt + text for text in utterances], tokenizer, max_tokens)
    return framed(ids, tokenizer, max_tokens, count, "start")


def token_ids(
    texts: Sequence[str], tokenizer: Any, most: int = UNLIMITED, keep: str = "start"
) -> list[list[int]]:
    """Return the ids of each text as `text_ids` does; control tokens in a text are broken up."""
    specials = special_texts(tokenizer)
    short = shortened(texts, tokenizer, most, keep)
    return text_ids([escape(text, specials) for text in short], tokenizer, most, keep)


def text_ids(
    texts: Sequence[str], tokenizer: Any, most: int = UNLIMITED, keep: str = "start"
) -> list[list[int]]:
    """Return the ids of each text as the tokenizer reads it, without special tokens around it.

    Of a huge text, only ``most`` tokens and some more are certain, at its ``start`` or ``end``.
    """
    short = shortened(texts, tokenizer, most, keep)
    # The library below transformers, whose own objects take most of the time.
    backend: Any = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = tokenizer.split_special_tokens
    ids: list[list[int]] = []
    for start in range(0, len(short), _TEXTS):
        part = short[start : start + _TEXTS]
        encodings = backend.encode_batch_fast(part, add_special_tokens=False)
        ids += [encoding.ids for encoding in encodings]
    return ids


def shortened(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, most: int, keep: str = "start"
) -> list[str]:
    """Cut huge texts before they are tokenised, which takes 280 bytes a character.

    ``most`` tokens stay the same.
    """
    room = CHARACTERS * (most + _MARGIN)
    cut = list(texts)
    for place, text in enumerate(texts):
        part = text[:room] if keep == "start" else text[-room:]
        if len(part) < len(text):
            ids = tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
            cut[place] = part if len(ids) >= most + _MARGIN else text  # blanks, words without end
    return cut


def framed(
    rows: Sequence[list[int]],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    count: Truncation,
    keep: str,
) -> dict[str, Tensor]:
    """Cut N sequences of token ids, count that, and put the tokenizer's special tokens around each.

    ``max_tokens`` counts the special tokens too; the ``start`` or the ``end`` stays.
    Return ``input_ids`` and ``attention_mask``, each (N, L) int64.
    """
    before, after = special_tokens_around(tokenizer)
    budget = max_tokens - len(before) - len(after)
    padded = []
    for row in rows:
        cut = row[:budget] if keep == "start" else row[max(0, len(row) - budget) :]
        count.add(len(row), len(cut))
        padded.append(before + cut + after)
    return pad_right(padded, tokenizer.pad_token_id or 0)


def pad_right(rows: Sequence[list[int]], pad: int) -> dict[str, Tensor]:
    """Pad N rows of token ids to the longest.

    ``input_ids``, ``attention_mask``, each (N, L) int64, L at least 1.
    """
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    mask = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]  # (N, L)
    ids = np.full(mask.shape, pad, dtype=np.int64)
    ids[mask] = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
    }


def spread(
    batch: dict[str, Tensor],
    rows: list[int],
    count: int,
    width: int,
    tokenizer: PreTrainedTokenizerBase,
) -> dict[str, Tensor]:
    """Place N laid-out texts (N, L) in B x W rows, (B, W, L); other rows are masked."""
    places = {}
    for name, fill in (("input_ids", tokenizer.pad_token_id or 0), ("attention_mask", 0)):
        table = torch.full((count * width, batch[name].shape[1]), fill)
        table[rows] = batch[name]
        places[name] = table.unflatten(0, (count, width))
    return places


def add_markers(tokenizer: PreTrainedTokenizerBase, num_roles: int) -> list[int]:
    """Add a special token for each of 1 to 5 roles, and as a 6th for responses.

    Return the tokens' ids.

    Unused vocabulary entries are taken if they exist.
    """
    unused = [f"[unused{10 + role}]" for role in range(num_roles)]
    own = [f"<|{role}|>" for role in (*ROLES, "response")[:num_roles]]
    names = unused if set(unused) <= tokenizer.get_vocab().keys() else own
    tokenizer.add_special_tokens({"extra_special_tokens": names})
    return [int(number) for number in tokenizer.convert_tokens_to_ids(names)]  # type: ignore[union-attr]


def special_texts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return every text that the tokenizer would read as a control token, longest first."""
    return sorted(set(tokenizer.all_special_tokens), key=lambda text: (-len(text), text))


def escape(text: str, specials: Iterable[str]) -> str:
    """Break up control tokens in a user's text.

    ``[SEP]`` becomes ``[ SEP]``, which reads as plain words.
    """
    for special in specials:
        text = text.replace(special, f"{special[0]} {special[1:]}")
    return text


def chat_template(tokenizer: PreTrainedTokenizerBase, config: DialogueConfig) -> str:
    """Return the Jinja template that renders messages as `tokenize` lays them out."""
    start, end = wrapping(tokenizer) if config.wrapped else ("", "")
    turns = "spoken.turns" if config.max_turns is None else f"spoken.turns[-{config.max_turns}:]"
    return (
        f"{_set_markers(tokenizer, config.marker_ids or [])}{_SPOKEN}{start}{{%- for message in "
        f"{turns} -%}}{_SPEAKER}"
        f"{_content(tokenizer)}{config.end_of_utterance or ''}{{%- endfor -%}}{end}"
    )


def utterance_template(
    tokenizer: PreTrainedTokenizerBase, prompts: Iterable[str] = (), default: str = ""
) -> str:
    """Return the Jinja template that renders messages as one text.

    Their contents, with a space between.

    A prompt stands before them: the default, or another that the first message, a system message,
    consists of.
    """
    start, end = _texts_around(tokenizer)
    chosen = (
        f"messages[0]['content'] if messages and messages[0]['content'] in {list(prompts)} "
        f"else {default!r}"
    )
    prompt = f"{{{{- {chosen} -}}}}" if prompts else ""
    content = "{{- message['content'] -}}"  # control tokens are read as in a text by itself
    turns = f"{{%- for message in spoken.turns -%}}{content}{_SPACE}{{%- endfor -%}}"
    return f"{_SPOKEN}{start}{prompt}{turns}{end}"


def ranking_template(tokenizer: PreTrainedTokenizerBase, markers: list[int]) -> str:
    """Return the Jinja template that renders messages as a context or as a response.

    The marker of the speaker stands before each message of a context. A response begins with a
    message of the role ``response``, or with the system message ``response``, as
    sentence-transformers hands on a prompt. It is rendered as the last of the markers and all
    messages but the system's.
    """
    response = tokenizer.convert_ids_to_tokens(markers)[-1]
    start, end = _texts_around(tokenizer)
    return (
        f"{_set_markers(tokenizer, markers[:-1])}{_SPOKEN}{start}"
        "{%- if messages[0]['role'] == 'response' or "
        "(messages[0]['role'] == 'system' and messages[0]['content'] == 'response') -%}"
        f"{response}{{%- for message in spoken.turns -%}}{_content(tokenizer)}{_SPACE}{{%- endfor "
        f"-%}}"
        f"{{%- else -%}}{{%- for message in spoken.turns -%}}"
        f"{_SPEAKER}{_content(tokenizer)}{{%- endfor -%}}{{%- endif -%}}{end}"
    )


def _set_markers(tokenizer: PreTrainedTokenizerBase, markers: list[int]) -> str:
    names = dict(zip(ROLES, tokenizer.convert_ids_to_tokens(markers), strict=False))
    return f"{{%- set markers = {names} -%}}"


def _content(tokenizer: PreTrainedTokenizerBase) -> str:
    escapes = "".join(
        f" | replace('{text}', '{text[0]} {text[1:]}')" for text in special_texts(tokenizer)
    )
    return f"{{{{- message['content']{escapes} -}}}}"


def _texts_around(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    return [
        "".join(tokenizer.convert_ids_to_tokens(ids)) for ids in special_tokens_around(tokenizer)
    ]


def special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Return the ids that the tokenizer puts before and after a text, by an example.

    Tokenizers do not state them.
    """
    bare, full = (
        list(tokenizer("a", add_special_tokens=special)["input_ids"]) for special in (False, True)
    )
    start = next(at for at in range(len(full)) if full[at : at + len(bare)] == bare)
    return full[:start], full[start + len(bare) :]


def wrapping(tokenizer: PreTrainedTokenizerBase) -> tuple[str, str]:
    """Return the texts of the tokens around a sequence, such as ``("[CLS]", "[SEP]")``."""
    opening = tokenizer.cls_token or tokenizer.bos_token or ""
    closing = tokenizer.sep_token or tokenizer.eos_token or ""
    return str(opening), str(closing)
