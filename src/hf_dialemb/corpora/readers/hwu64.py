"""HWU64: utterances to a home assistant, with 64 intents in 18 scenarios.

Sources: https://github.com/xliuhw/NLU-Evaluation-Data, split by https://github.com/jianguoz/Few-Shot-Intent-Detection.
Licence: CC BY 4.0 on its dataset card; none stated for the splits.
Layout: ``HWU64/{train,valid,test}/seq.in`` and ``label``, with one utterance and its label per line, as in the second
source. The domain is the scenario, which the label begins with: ``alarm`` for ``alarm_set``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...models.dialogue import Dialogue, Turn
from ...models.errors import InputError
from ..corpus import Corpus
from ..source.files import Source
from ..source.parsing import parallel_lines
from .few_shot_intent import files_of

_FILES = files_of("HWU64", "seq.in", "label")

_Record = tuple[str, tuple[str, ...]]


def _records(source: Source, split: str) -> Iterator[tuple[str, _Record]]:
    for number, (place, lines) in enumerate(parallel_lines(source, _FILES[split])):
        yield place, (f"{split}/{number}", lines)


def _dialogue(record: _Record) -> Dialogue:
    identifier, (text, label) = record
    scenario, mark, _ = label.partition("_")
    if not scenario or not mark:
        raise InputError(f"field label: got {label[:40]!r}, expected scenario_intent; repair the line")
    return Dialogue((Turn("user", text.strip(), intents=(label,)),), identifier, (scenario,))


CORPORA = (
    Corpus(
        "hwu64",
        _FILES,
        _records,
        _dialogue,
        source="https://github.com/xliuhw/NLU-Evaluation-Data",
        licence="CC BY 4.0 (dataset card); none stated for the splits",
        terms="research",
        kind="utterances",
        folder="few_shot_intent",
        real=False,
    ),
)
