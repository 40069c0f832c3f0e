"""Leakage: leave out of training data what evaluation sets hold too.

The kind of an evaluation set decides what counts; `near_duplicates` says how texts are compared.

- Dialogues: a training dialogue that equals one of them, or nearly does, leaks and is removed
  whole. A training set of utterances can leak only dialogues of one turn. An utterance that equals
  a turn of an evaluation dialogue gives nothing of the dialogue away, since short phrases are
  common property.
- Utterances: a training turn that equals one of them, or nearly does, leaks and is removed from its
  dialogue. A dialogue with no turn left is removed. The sentences of pairs, the queries and their
  relevant sentences count as utterances too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue, Turn
from ..errors import InputError
from .corpus import CORPORA, KINDS, get_corpus
from .corpus_names import has_tables, is_own, with_split
from .loading import iterate_dialogues
from .near_duplicates import Dialogues, Utterances, comparable
from .published import iterate_examples


class EvaluationIndex:
    """Evaluation sets, in which training data are looked up."""

    def __init__(self) -> None:
        self._dialogues = Dialogues()
        self._utterances = Utterances()

    def add(self, dialogues: Iterable[Dialogue], as_dialogues: bool = True) -> None:
        """Add an evaluation set of dialogues, or else of utterances by themselves."""
        if as_dialogues:
            self._dialogues.add(_comparable_text(dialogue.turns) for dialogue in dialogues)
            return
        for dialogue in dialogues:
            for turn in dialogue.turns:
                self._utterances.add(comparable(turn.content))

    def clean(
        self, dialogues: Iterable[Dialogue], left_out: Counter[str], cut: bool = False
    ) -> Iterator[Dialogue]:
        """Yield training data without what leaks, and count the dialogues and turns left out.

        With ``cut``, a dialogue is cut in pieces where a turn leaks: methods learn from turns that
        follow each other, so those of a piece must have done so in the conversation. A piece has no
        metadata, which may name places of turns.
        """
        for dialogue in dialogues:
            places = self._places_left(dialogue.turns)
            left_out["dialogues"] += not places
            left_out["turns"] += len(dialogue.turns) - len(places)
            if len(places) == len(dialogue.turns):
                yield dialogue
            elif cut:
                runs = groupby(enumerate(places), key=lambda item: item[1] - item[0])
                for _, run in runs:
                    turns = tuple(dialogue.turns[place] for _, place in run)
                    yield replace(dialogue, turns=turns, metadata={})
            elif places:
                yield replace(dialogue, turns=tuple(dialogue.turns[place] for place in places))

    def _places_left(self, turns: Sequence[Turn]) -> list[int]:
        """Return the places of the turns that do not leak."""
        places = list(range(len(turns)))
        if self._leaks(turns):
            return []
        if self._utterances:  # with nothing to look up, no text need be normalised
            holds = self._utterances.holds
            places = [place for place in places if not holds(comparable(turns[place].content))]
        # What is left may be near an evaluation dialogue even though the whole was not.
        left = [turns[place] for place in places]
        return [] if len(left) < len(turns) and self._leaks(left) else places

    def _leaks(self, turns: Sequence[Turn]) -> bool:
        if not self._dialogues or not turns:
            return False
        # A single utterance counts as a leak only if it equals a whole evaluation dialogue.
        return self._dialogues.holds(_comparable_text(turns), near=len(turns) > 1)


def build_index(
    evaluation: Sequence[str], data_dir: str | Path | None = None, **how: Any
) -> EvaluationIndex:
    """Read evaluation sets and index them; ``how`` are the keywords of `ReadingOptions`."""
    index = EvaluationIndex()
    strict = how.get("strict", False)
    for name in dict.fromkeys(evaluation):
        corpus, split = with_split(name)
        if corpus in CORPORA and not is_own(name):
            if not split:
                raise InputError(
                    f"evaluation set {name}: got no split, expected one, as in '{corpus}/test'; "
                    "add it"
                )
            items = iterate_examples(corpus, data_dir, split, strict=strict)
            # pairs of sentences and queries are compared as utterances
            are_dialogues = get_corpus(corpus).kind == KINDS[0]
            index.add(map(_as_dialogue, items), are_dialogues)
        else:
            options: dict[str, Any] = {"strict": strict}
            if is_own(name):
                options = {**how, "columns": how.get("columns") if has_tables(Path(name)) else None}
            dialogues = list(iterate_dialogues(name, **options))
            index.add(dialogues, any(len(dialogue.turns) > 1 for dialogue in dialogues))
    return index


def _as_dialogue(item: Any) -> Dialogue:
    """Return a dialogue whose turns are the evaluated texts of an item."""
    return item if isinstance(item, Dialogue) else item.as_dialogue()


def _comparable_text(turns: Iterable[Turn]) -> str:
    return comparable(" ".join(turn.content for turn in turns))
