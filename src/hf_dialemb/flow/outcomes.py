"""What an utterance says of how things went: that something failed, that it is done, or that the conversation is over.

English words alone tell, so that an utterance in another language says nothing of it. They were chosen on the
development splits of SGD, MultiWOZ and STAR, whose annotations tell what succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from .clustering import Clustering

_FAILED = re.compile(
    r"\b(?:unfortunately|regret\w*|apologi[sz]e|sorry(?! to hear| for| about)|unable|unsuccessful\w*|fail(?:s|ed|ure)?"
    r"|unavailable|declined|rejected|denied|(?:fully|already|completely) booked|(?:booked|sold) (?:out|up|solid)"
    r"|can ?not|ca ?n['’]t|could ?n['’]t|could not|no longer"
    r"|(?:no|not|none|nothing|\w*n['’]t)(?: [\w'’]+){0,4}? (?:availab\w+|success\w+|pos+ible|able|any\w*|find|found"
    r"|made|match\w*|meets?|works?|serves?|go through))\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:success\w*|confirmed|booked|reserved|scheduled|rented|ordered|purchased|initiated|submitted|approved|all set"
    r"|done|on (?:its|it['’]s|the|their) way|reference number|(?:have|has|been|was|is|are|i['’ ]+ve)(?: \w+){0,2} "
    r"(?:made|set|placed|paid|sent|added|transferred|processed|completed?))\b",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:thank\w*|thx|bye|goodbye|cheers|appreciate|take care|you['’ ]+re welcome|welcome|see you|all i need\w*"
    r"|(?:that['’ ]+s|that is|that will be|that would be) (?:all|it|everything)"
    r"|(?:have|enjoy) (?:a|the|your) (?:\w+ ){0,4}(?:day|one|time|evening|night|weekend|trip|ride|meal|stay))\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[^.!?]*\?")


@lru_cache(1 << 16)
def says_failed(text: str) -> bool:
    """Says whether a text tells that something did not work, or is not there."""
    return _FAILED.search(text) is not None


@lru_cache(1 << 16)
def says_outcome(text: str) -> bool:
    """Says whether a text tells that something failed, or was done, outside of questions."""
    return says_failed(text) or _DONE.search(_QUESTION.sub("", text)) is not None


def says_over(text: str) -> bool:
    """Says whether a text thanks or takes leave."""
    return _OVER.search(text) is not None


def outcomes_apart(clusterings: Mapping[str, Clustering], texts: Mapping[str, Sequence[str]]) -> dict[str, Clustering]:
    """Splits clusters in which some utterances say that something failed and others do not; by role.

    A role whose number of clusters or distance was asked for keeps its clusters.
    """
    found = {}
    for role, one in clusterings.items():
        numbers: dict[tuple[int, bool], int] = {}
        kinds = zip(one.labels.tolist(), map(says_failed, texts[role]), strict=True)
        labels = np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int32)
        if more := len(numbers) - one.choice.count if one.choice.kind == "chosen" else 0:
            told = f"{one.choice.sentence} {more} more: what failed is kept apart from what did not."
            one = replace(one, labels=labels, choice=replace(one.choice, sentence=told))
        found[role] = one
    return found
