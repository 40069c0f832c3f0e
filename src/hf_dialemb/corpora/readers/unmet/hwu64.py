"""HWU64: utterances to a home assistant, with 64 intents in 18 scenarios.

Sources: https://github.com/xliuhw/NLU-Evaluation-Data, split by https://github.com/jianguoz/Few-Shot-Intent-Detection.
Licence: CC BY 4.0 on its dataset card; none stated for the splits.
Layout: ``HWU64/{train,valid,test}/seq.in`` and ``label``, with one utterance and its label per line, as in the second
source. The domain is the scenario, which the label begins with: ``alarm`` for ``alarm_set``.
"""

from __future__ import annotations

from ....models.dialogue import Dialogue, Turn
from ....models.errors import InputError
from ...corpus import Corpus
from ..few_shot_intent import FOLDER, reading

_SOURCE = "https://github.com/xliuhw/NLU-Evaluation-Data"
_LICENCE = "CC BY 4.0 (dataset card); none stated for the splits"


def _dialogue(record: tuple[str, tuple[str, ...]]) -> Dialogue:
    identifier, (text, label) = record
    scenario, mark, _ = label.partition("_")
    if not scenario or not mark:
        raise InputError(f"field label: got {label[:40]!r}, expected scenario_intent; repair the line")
    return Dialogue((Turn("user", text.strip(), intents=(label,)),), identifier, (scenario,))


_READING = (*reading("HWU64", "seq.in", "label"), _dialogue)
CORPORA = (Corpus("hwu64", *_READING, _SOURCE, _LICENCE, "research", "utterances", FOLDER, real=False),)
