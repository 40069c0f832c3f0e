"""Check data before hours are spent on it: every problem of a corpus, with its place and its remedy."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...dialogue import Dialogue
from ...errors import InputError
from ..audit.statistics import content_hash
from ..corpus import ALL, Corpus, get_corpus
from ..loading import OWN, REGISTERED, check_no_split, form_of, with_split
from ..published import find_source
from ..records import converted
from .findings import Finding, Problem, distinct
from .hub_dataset import find_in_hub_dataset
from .reading import find_own

__all__ = ["Problem", "check"]

LONGEST_TURN = 2000  # words without a warning


def check(
    corpus: str | Path,
    data_dir: str | Path | None = None,
    split: str = ALL,
    *,
    columns: str | None = None,
    roles: str | None = None,
    counts: Counter[str] | None = None,
) -> Iterator[Problem]:
    """List every problem of a corpus, not only the first; a corpus without an error can be read.

    Only hashes of the dialogues are kept in memory. In ``counts``, readable dialogues or items are counted, and turns
    by their role.
    """
    counts = Counter() if counts is None else counts
    name, part = with_split(str(corpus), None if split == ALL else split)
    split, conversations = part or ALL, True
    form = form_of(name, columns, roles)
    if form == REGISTERED:
        known = get_corpus(name)
        findings, conversations = _find_registered(known, data_dir, split), known.kind == "dialogues"
    elif form == OWN:
        check_no_split(name, split)
        findings = find_own(name, columns=columns, roles=roles)
    else:
        findings = find_in_hub_dataset(name, split, roles)
    places: dict[bytes, str] = {}
    before: tuple[Problem, ...] = ()
    try:
        for finding in findings:
            # A row may be of two dialogues.
            yield from (problem for problem in finding.problems if problem not in before)
            before = finding.problems
            yield from finding.remarks
            if isinstance(finding.dialogue, Dialogue):
                counts.update(["dialogue", *(turn.role for turn in finding.dialogue.turns)])
                warnings = _warnings(finding, places, conversations)
                yield from (Problem(finding.place, sentence, "warning") for sentence in warnings)
            elif finding.dialogue is not None:
                counts["item"] += 1
    except InputError as error:
        match = re.match(rf"({re.escape(name)}(?::\d+)?): ", str(error))
        yield Problem(match[1], str(error)[match.end() :]) if match else Problem(name, str(error))


def _find_registered(corpus: Corpus, data_dir: str | Path | None, split: str) -> Iterator[Finding]:
    splits = corpus.chosen(split)
    source = find_source(corpus, data_dir)

    def find() -> Iterator[Finding]:
        for name in splits:
            try:
                for place, record in corpus.records(source, name):  # type: ignore[arg-type]
                    yield _converted(corpus, place, record)
            except InputError as error:  # a damaged file; the other splits may be whole
                yield Finding(corpus.name, problems=(Problem(f"{corpus.name}/{name}", str(error)),))

    return distinct(find(), corpus.name, f"the records of split {split} in its files")


def _converted(corpus: Corpus, place: str, record: Any) -> Finding:  # noqa: ANN401 - whatever the file holds
    try:
        item = converted(record, corpus.convert)
    except InputError as error:
        return Finding(place, problems=(Problem(place, str(error)),))
    return Finding(place, item, item.id)


def _warnings(finding: Finding, places: dict[bytes, str], conversations: bool) -> Iterator[str]:
    turns = finding.dialogue.turns
    first = places.setdefault(content_hash(finding.dialogue), finding.place)
    if first != finding.place:
        yield f"got the same turns as {first}; delete one of the two, unless both took place"
    if conversations and len(turns) == 1:
        yield "got a single turn, expected a conversation; look whether turns are missing or joined"
    elif conversations and len(finding.dialogue.roles) == 1:
        yield f"got one speaker only ({turns[0].role}), expected two; look whether the speakers' names are right"
    for number, turn in enumerate(turns, start=1):
        words = len(turn.content.split())
        if words > LONGEST_TURN:
            most = f"{LONGEST_TURN:,}"
            yield f"turn {number}: got {words:,} words, expected at most {most}; look whether turns are joined"
        if "\ufffd" in turn.content:
            yield f"turn {number}: got the character U+FFFD, which stands for what was lost; convert the original again"
