"""Leakage: find the parts of evaluation sets that training sets hold, and leave them out.

The kind of an evaluation set decides what counts; `near_duplicates` says how texts are compared.

- Dialogues: a training dialogue that equals one of them, or nearly does, leaks and is removed
  whole. A training set of utterances can leak only dialogues of one turn. An utterance that equals
  a turn of an evaluation dialogue gives nothing of the dialogue away, since short phrases are
  common property.
- Utterances: a training turn that equals one of them, or nearly does, leaks and is removed from its
  dialogue. A dialogue with no turn left is removed. The sentences of pairs, the queries and their
  relevant sentences count as utterances too.

Training sets are read as streams, and only counts and examples stay in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from ...dialogue import Dialogue
from ...errors import InputError
from ..corpus import ALL, CORPORA, KINDS, SPLITS, get_corpus
from ..corpus_names import has_tables, is_own, with_split
from ..loading import iterate_dialogues
from ..published import iterate_examples, sets_at_hand
from .leakage_report import Cleaning, LeakageReport, Row
from .near_duplicates import DIALOGUE, UTTERANCE, Dialogues, Leak, Utterances, comparable


class EvaluationIndex:
    """Evaluation sets, in which training data are looked up.

    The order in which sets and dialogues are added changes nothing.
    """

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}  # from each evaluation set to "dialogues" or "utterances"
        self._dialogues = Dialogues()
        self._utterances = Utterances()

    def add(self, name: str, dialogues: Iterable[Dialogue], kind: str = "dialogues") -> None:
        """Add an evaluation set of ``"dialogues"``, or of ``"utterances"`` by themselves.

        A dialogue without an id is called by its position, such as ``"#3"``.
        """
        self.kinds[name] = kind
        named = [
            (dialogue.id or f"#{number}", dialogue)
            for number, dialogue in enumerate(dialogues, start=1)
        ]
        if kind == "dialogues":
            texts = [(identifier, _comparable_text(dialogue)) for identifier, dialogue in named]
            self._dialogues.add(name, texts)
            return
        for identifier, dialogue in named:
            for turn in dialogue.turns:
                self._utterances.add(name, identifier, comparable(turn.content))

    def leaks(self, dialogue: Dialogue) -> list[Leak]:
        """Return the parts of evaluation sets that a training dialogue holds.

        They are the best match in each set of dialogues, and the best match of each turn in each
        set of utterances, sorted by evaluation set and turn.
        """
        leaks = self._leaks_of_dialogues(dialogue)
        if self._utterances:  # with nothing to look up, no text need be normalised
            for position, turn in enumerate(dialogue.turns):
                matches = self._utterances.find(comparable(turn.content))
                leaks += [leak._replace(turn=position) for leak in matches]
        return sorted(leaks, key=lambda leak: (leak.evaluation, leak.level, leak.turn or 0))

    def clean(
        self, dialogues: Iterable[Dialogue], cleaning: Cleaning | None = None
    ) -> Iterator[Dialogue]:
        """Yield training data without what leaks."""
        for dialogue in dialogues:
            left = self.without(dialogue, self.leaks(dialogue))
            if cleaning:
                cleaning.count(dialogue, left)
            if left:
                yield left

    def pieces(self, dialogues: Iterable[Dialogue], cleaning: Cleaning) -> Iterator[Dialogue]:
        """Leave out what leaks, as `clean` does, and cut dialogues in pieces there.

        Methods learn from turns that follow each other, so those of a piece must have done so in
        the conversation. A piece has no metadata, which may name places of turns.
        """
        for dialogue in dialogues:
            leaks = self.leaks(dialogue)
            left = self.without(dialogue, leaks)
            cleaning.count(dialogue, left)
            removed = {leak.turn for leak in leaks if leak.level == UTTERANCE}
            for gap, run in groupby(enumerate(dialogue.turns), key=lambda item: item[0] in removed):
                if left and not gap:
                    turns = tuple(turn for _, turn in run)
                    yield replace(dialogue, turns=turns, metadata={}) if removed else dialogue

    def without(self, dialogue: Dialogue, leaks: Iterable[Leak]) -> Dialogue | None:
        """Return a dialogue without its leaks; None if all of it leaks."""
        levels = {leak.turn: leak.level for leak in leaks}
        if DIALOGUE in levels.values():
            return None
        if not levels:
            return dialogue
        turns = tuple(
            turn for position, turn in enumerate(dialogue.turns) if position not in levels
        )
        left = replace(dialogue, turns=turns) if turns else None
        # What is left may be near an evaluation dialogue even though the whole was not.
        return left if left and not self._leaks_of_dialogues(left) else None

    def _leaks_of_dialogues(self, dialogue: Dialogue) -> list[Leak]:
        # A single utterance counts as a leak only if it equals a whole evaluation dialogue.
        if not self._dialogues:
            return []
        return self._dialogues.find(_comparable_text(dialogue), near=len(dialogue.turns) > 1)


def find_leakage(
    training: Sequence[str],
    evaluation: Sequence[str],
    data_dir: str | Path | None = None,
    **how: Any,
) -> LeakageReport:
    """Find the parts of evaluation sets that training sets hold.

    ``all`` stands for every set at hand. Files are read as ``how`` says, by the keywords of
    `ReadingOptions`.
    """
    if [ALL] in (list(training), list(evaluation)):
        at_hand = [name.partition("/") for name in sets_at_hand(data_dir)]
        if list(training) == [ALL]:
            training = [
                f"{name}/{split}"
                for name, _, split in at_hand
                if split == SPLITS[0] and get_corpus(name).kind in KINDS[:2]
            ]
        if list(evaluation) == [ALL]:
            evaluation = [f"{name}/{split}" for name, _, split in at_hand if split != SPLITS[0]]
    check_apart(training, evaluation)
    sets = {name: _corpus_and_split(name, SPLITS[0]) for name in training}
    index = build_index(evaluation, data_dir, **how)
    streams = (
        (name, iterate_dialogues(corpus, data_dir, split, **_for(corpus, how)))
        for name, (corpus, split) in sets.items()
    )
    return leakage_table(streams, index)


def build_index(
    evaluation: Sequence[str], data_dir: str | Path | None = None, **how: Any
) -> EvaluationIndex:
    """Read evaluation sets and index them; ``how`` are the keywords of `ReadingOptions`."""
    index = EvaluationIndex()
    for name in dict.fromkeys(evaluation):
        corpus, split = _corpus_and_split(name)
        if split:
            # pairs of sentences and queries are compared as utterances
            kind = KINDS[get_corpus(corpus).kind != KINDS[0]]
            items = iterate_examples(corpus, data_dir, split, strict=how.get("strict", False))
            index.add(name, map(_as_dialogue, items), kind)
        else:
            dialogues = list(iterate_dialogues(corpus, **_for(corpus, how)))
            index.add(
                name, dialogues, KINDS[all(len(dialogue.turns) == 1 for dialogue in dialogues)]
            )
    return index


def _for(corpus: str, how: dict[str, Any]) -> dict[str, Any]:
    """Return the options of reading that a corpus among several takes."""
    if not is_own(corpus):
        return {"strict": how.get("strict", False)}
    return {**how, "columns": how.get("columns") if has_tables(Path(corpus)) else None}


def check_apart(training: Iterable[str], evaluation: Iterable[str]) -> None:
    """Refuse a set that is named both for training and for evaluation."""
    others = {name: _corpus_and_split(name) for name in evaluation}
    for name in training:
        for other, corpus_and_split in others.items():
            if _overlap(_corpus_and_split(name, SPLITS[0]), corpus_and_split):
                raise InputError(
                    f"training set {name}: got the same set as evaluation set {other}; leave one "
                    "out"
                )


def leakage_table(
    training: Iterable[tuple[str, Iterable[Dialogue]]], index: EvaluationIndex
) -> LeakageReport:
    """Count leaks of evaluation sets in training sets, and what cleaning removes."""
    from tqdm.auto import tqdm

    rows: list[Row] = []
    cleanings: dict[str, Cleaning] = {}
    for name, dialogues in training:
        cleaning = cleanings[name] = Cleaning()
        counted = {
            evaluation: Row(name, evaluation, kind.removesuffix("s"))
            for evaluation, kind in index.kinds.items()
        }
        progress = tqdm(dialogues, desc=f"leakage: {name}", unit=" dialogues")
        for number, dialogue in enumerate(progress, start=1):
            leaks = index.leaks(dialogue)
            for leak in leaks:
                counted[leak.evaluation].count(dialogue.id or f"#{number}", leak)
            cleaning.count(dialogue, index.without(dialogue, leaks))
        for row in counted.values():
            row.items = cleaning.dialogues if row.level == DIALOGUE else cleaning.turns
        rows += counted.values()
    return LeakageReport(tuple(rows), cleanings)


def _corpus_and_split(item: str, default: str = "") -> tuple[str, str]:
    """Return the corpus and the split of ``"sgd/test"``; the split of a path is empty."""
    corpus, split = with_split(item)
    if corpus not in CORPORA and is_own(item):
        return item, ""
    known = get_corpus(corpus.partition("/")[0])
    if not split and not default:
        example = f"{corpus}/{known.splits[0]}"
        raise InputError(
            f"evaluation set {item}: got no split, expected one, as in '{example}'; add it"
        )
    return corpus, split or default


def _overlap(first: tuple[str, str], second: tuple[str, str]) -> bool:
    """Return whether two pairs of corpus and split have dialogues in common."""
    if not first[1] or not second[1]:
        return first[1] == second[1] and Path(first[0]).resolve() == Path(second[0]).resolve()
    return first[0] == second[0] and (first[1] == second[1] or ALL in (first[1], second[1]))


def _as_dialogue(item: Any) -> Dialogue:
    """Return a dialogue whose turns are the evaluated texts of an item."""
    return item if isinstance(item, Dialogue) else item.as_dialogue()


def _comparable_text(dialogue: Dialogue) -> str:
    return comparable(" ".join(turn.content for turn in dialogue.turns))
