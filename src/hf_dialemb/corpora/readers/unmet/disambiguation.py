"""Disambiguation: MultiWOZ 2.1 where a third of the dialogues ask which of several search results the user means.

Source: https://aclanthology.org/2022.naacl-main.85, as in https://github.com/salesforce/DialogStudio. Licence: MIT, as
listed there.
Layout: that of MultiWOZ 2.1 (see `multiwoz_original`), all in lower case.

The user's answer was put before what the user says in MultiWOZ, with ``<conj>`` between them. Nobody says that mark, so
it is left out. Ids are MultiWOZ's, and so is most of the text.
"""

from __future__ import annotations

from typing import Any

from ....models.dialogue import Dialogue, Turn
from ...corpus import Corpus
from ...records import field
from ..multiwoz import goal_and_log, text_and_acts
from ..multiwoz_original import FILES, split_records

_SOURCE = "https://aclanthology.org/2022.naacl-main.85"
_MARK = " <conj> "


def _dialogue(record: tuple[str, Any]) -> Dialogue:
    return goal_and_log(*record, _turn)


def _turn(spoken: tuple[str, Any]) -> Turn:
    role, raw = spoken
    text = field(raw, "text", str).replace(_MARK, " ")
    return text_and_acts((role, {**raw, "text": text}))


CORPORA = (Corpus("disambiguation", FILES, split_records, _dialogue, _SOURCE, "MIT", "permissive", real=False),)
