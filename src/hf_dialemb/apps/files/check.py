"""Check data before hours are spent on it.

Every problem of your own conversations, with its place and its remedy.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...data.corpus import ALL
from ...data.corpus_names import OWN, REGISTERED, check_no_split, form_of
from ...data.reading_options import ReadingOptions
from ...dialogue import Dialogue, plain
from ...errors import InputError
from .account import Account
from .findings import Notes, Problem
from .reading import find_in_hub_dataset, find_own

SHOWN = 10  # turns that a person is shown


def check(
    corpus: str | Path,
    split: str = ALL,
    *,
    counts: Counter[str] | None = None,
    first: list[Dialogue] | None = None,
    account: Account | None = None,
    **reading: Any,
) -> Iterator[Problem]:
    """List every problem of a file, a folder or a dataset on the Hub.

    What has no error can be read.

    Only hashes of the dialogues are kept in memory. In ``counts``, readable dialogues are counted,
    and turns by their role; ``first`` takes dialogues until they have `SHOWN` turns, and
    ``account`` where the words are. ``reading`` are the options of `load_dialogues`.
    """
    notes = Notes(ReadingOptions(**reading))
    notes.account = account or notes.account
    counts = Counter() if counts is None else counts
    shown = [] if first is None else first
    name = str(corpus)
    form = form_of(name, notes.options)
    if form == REGISTERED:
        raise InputError(
            f"corpus {name}: got a published corpus, expected conversations of your own"
        )
    if form == OWN:
        check_no_split(name, split)
        findings = find_own(name, notes)
    else:
        findings = find_in_hub_dataset(name, split, notes)
    places: dict[int, str] = {}
    before: tuple[Problem, ...] = ()
    try:
        for finding in findings:
            # A row may be of two dialogues.
            yield from (problem for problem in finding.problems if problem not in before)
            before = finding.problems
            if finding.dialogue is not None:
                if sum(len(dialogue.turns) for dialogue in shown) < SHOWN:
                    shown.append(finding.dialogue)
                counts.update(["dialogue", *(turn.role for turn in finding.dialogue.turns)])
                if sentence := _warning(finding.dialogue, finding.place, places):
                    yield Problem(finding.place, sentence, "warning")
    except InputError as error:
        match = re.match(rf"({re.escape(name)}(?::\d+)?): ", str(error))
        yield Problem(match[1], str(error)[match.end() :]) if match else Problem(name, str(error))


def _warning(dialogue: Dialogue, place: str, places: dict[int, str]) -> str:
    """Return what may be wrong with a dialogue; empty for most."""
    turns = dialogue.turns
    spoken = tuple((turn.role, plain(turn.content)) for turn in turns)
    first = places.setdefault(hash(spoken), place)
    if first != place:
        return f"got the same turns as {first}; delete one of the two, unless both took place"
    if len(turns) == 1:
        return (
            "got a single turn, expected a conversation; look whether turns are missing or joined"
        )
    if len(dialogue.roles) == 1:
        return (
            f"got one speaker only ({turns[0].role}), expected two; look whether the speakers' "
            "names are right"
        )
    return ""
