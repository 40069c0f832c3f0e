"""Leakage: the parts of evaluation sets that stand in training sets, exactly or nearly, and training sets without them.

The kind of an evaluation set decides what counts; `near_duplicates` says how texts are compared.

- Dialogues: a training dialogue that equals one of them, or nearly does, leaks and is removed whole. A training set of
  utterances leaks nothing but dialogues of one turn. An utterance that equals a turn of an evaluation dialogue gives
  nothing of the dialogue away, since short phrases are common property. Such utterances are counted and kept.
- Utterances: a training turn that equals one of them, or nearly does, leaks and is removed from its dialogue. A
  dialogue without any turn left is removed. The sentences of pairs, the queries and their relevant sentences count as
  utterances too.

Training sets are read a thousand dialogues at a time, and only counts and examples stay in memory. While a report is
written, the counts are kept beside it: a killed run goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ...runs.files import check_writable, write_json_atomically
from ...runs.shards import in_parts, in_shards, metadata_of, named_by_content, parts_beside
from ..corpus import ALL, CORPORA, KINDS, SPLITS, get_corpus
from ..examples import ResponseSelection, RetrievalQuery, SentencePair
from ..loading import iterate_dialogues, with_split
from ..own import reading
from ..published import iterate_examples, sets_at_hand
from .leakage_report import Cleaning, LeakageReport, Row
from .near_duplicates import DIALOGUE, TURN, UTTERANCE, Dialogues, Leak, Utterances, comparable

if TYPE_CHECKING:
    import pyarrow

_SHARD = 1000  # dialogues that are looked up together
_COUNTS = b"leakage"  # the key of the counts in a file's metadata
_Shard = tuple[str, int, list[Dialogue]]  # a training set, the position of the first dialogue, the dialogues
_Rows = dict[tuple[str, str], Row]  # by evaluation set and level


class EvaluationIndex:
    """The evaluation sets, to look up training data in.

    The order in which sets and dialogues are added changes nothing. With ``turns``, training dialogues of one turn are
    also looked up among the turns of evaluation dialogues.
    """

    def __init__(self, *, turns: bool = False) -> None:
        self.kinds: dict[str, str] = {}  # from each evaluation set to "dialogues" or "utterances"
        self.with_turns = turns
        self._dialogues, self._utterances, self._turns = Dialogues(), Utterances(), Utterances(TURN)

    def add(self, name: str, dialogues: Iterable[Dialogue], kind: str = "dialogues") -> None:
        """Add an evaluation set of ``"dialogues"``, or of ``"utterances"`` if each turn is evaluated by itself.

        A dialogue without an id is called by its position, such as ``"#3"``.
        """
        self.kinds[name] = kind
        named = [(dialogue.id or f"#{number}", dialogue) for number, dialogue in enumerate(dialogues, start=1)]
        if kind == "dialogues":
            self._dialogues.add(name, ((identifier, _text(dialogue)) for identifier, dialogue in named))
        if kind == "utterances" or self.with_turns:
            utterances = self._utterances if kind == "utterances" else self._turns
            for identifier, dialogue in named:
                for turn in dialogue.turns:
                    utterances.add(name, identifier, comparable(turn.content))

    def leaks(self, dialogue: Dialogue) -> list[Leak]:
        """Return what of the evaluation sets stands in a training dialogue, sorted by evaluation set and turn.

        Of each evaluation set of dialogues that is the best match; of each set of utterances, the best of each turn.
        """
        leaks = self._dialogue_leaks(dialogue)
        sets = [self._utterances, *([self._turns] if len(dialogue.turns) == 1 else [])]
        sets = list(filter(None, sets))
        for position, turn in enumerate(dialogue.turns) if sets else ():
            text = comparable(turn.content)
            leaks += [leak._replace(turn=position) for utterances in sets for leak in utterances.find(text)]
        return sorted(leaks, key=lambda leak: (leak.evaluation, leak.level, leak.turn or 0))

    def clean(self, dialogues: Iterable[Dialogue], cleaning: Cleaning | None = None) -> Iterator[Dialogue]:
        """Leave out of training data what leaks."""
        for dialogue in dialogues:
            left = self.without(dialogue, self.leaks(dialogue))
            if cleaning:
                cleaning.count(dialogue, left)
            if left:
                yield left

    def pieces(self, dialogues: Iterable[Dialogue], cleaning: Cleaning) -> Iterator[Dialogue]:
        """Leave out what leaks, as `clean` does, and cut dialogues there.

        So turns that follow each other also did in the conversation, which methods learn from.
        """
        for dialogue in dialogues:
            leaks = self.leaks(dialogue)
            left = self.without(dialogue, leaks)
            cleaning.count(dialogue, left)
            removed = {leak.turn for leak in leaks if leak.level == UTTERANCE}
            for gap, run in groupby(enumerate(dialogue.turns), key=lambda item: item[0] in removed):
                if left and not gap:
                    yield replace(dialogue, turns=tuple(turn for _, turn in run))

    def without(self, dialogue: Dialogue, leaks: Iterable[Leak]) -> Dialogue | None:
        """Leave out of a dialogue what leaks."""
        levels = {leak.turn: leak.level for leak in leaks if leak.level != TURN}
        if DIALOGUE in levels.values():
            return None
        if not levels:
            return dialogue
        turns = tuple(turn for position, turn in enumerate(dialogue.turns) if position not in levels)
        left = replace(dialogue, turns=turns) if turns else None
        # The rest may be near an evaluation dialogue although the whole was not.
        return left if left and not self._dialogue_leaks(left) else None

    def _dialogue_leaks(self, dialogue: Dialogue) -> list[Leak]:
        # One utterance gives no dialogue away, unless it is the whole dialogue.
        return self._dialogues.find(_text(dialogue), near=len(dialogue.turns) > 1) if self._dialogues else []


def leakage_table(
    training: Iterable[tuple[str, Iterable[Dialogue]]], index: EvaluationIndex, output: Path | None = None
) -> LeakageReport:
    """Count what of the evaluation sets stands in training sets, before and after cleaning; write it to ``output``."""
    from tqdm.auto import tqdm

    rows: dict[str, _Rows] = {}
    cleanings: dict[str, Cleaning] = {}

    def shards() -> Iterator[_Shard]:
        for name, dialogues in training:
            progress.set_postfix_str(name, refresh=False)
            rows[name], cleanings[name] = _count(index, (name, 1, []))
            for number, shard in enumerate(in_shards(dialogues, _SHARD)):
                yield name, 1 + number * _SHARD, shard

    with parts_beside(output) as parts, tqdm(desc="leakage", unit=" dialogues") as progress:
        work = partial(_counted, index)
        named = named_by_content(work, shards())
        for file in in_parts(work, named, parts, progress, count=lambda shard: len(shard[-1])):
            counts = json.loads(metadata_of(file)[_COUNTS])
            cleanings[counts["training"]].add(Cleaning(**counts["cleaning"]))
            for row in counts["rows"]:
                rows[counts["training"]][row["evaluation"], row["level"]].add(Row(**row))
        reported = (row for name, counted in rows.items() for row in _reported(counted, cleanings[name], index))
        report = LeakageReport(tuple(reported), cleanings)
        if output:
            write_json_atomically(output, report.to_json())
    return report


def _counted(index: EvaluationIndex, shard: _Shard) -> pyarrow.Table:
    """Count as `_count` does, into the metadata of a table without columns."""
    import pyarrow

    rows, cleaning = _count(index, shard)
    record = {"training": shard[0], "cleaning": asdict(cleaning), "rows": list(map(asdict, rows.values()))}
    return pyarrow.table({}).replace_schema_metadata({_COUNTS: json.dumps(record)})


def _count(index: EvaluationIndex, shard: _Shard) -> tuple[_Rows, Cleaning]:
    """Count what stands in a part of a training set; the sum does not depend on how the set is cut."""
    training, first, dialogues = shard
    rows = {(name, level): Row(training, name, level) for name in index.kinds for level in (DIALOGUE, UTTERANCE, TURN)}
    cleaning = Cleaning()
    for number, dialogue in enumerate(dialogues, start=first):
        leaks = index.leaks(dialogue)
        for leak in leaks:
            rows[leak.evaluation, leak.level].count(dialogue.id or f"#{number}", leak)
        left = index.without(dialogue, leaks)
        cleaning.count(dialogue, left)
        if left is not None:
            for leak in leaks if left is dialogue else index.leaks(left):
                rows[leak.evaluation, leak.level].after += 1
    return rows, cleaning


def _reported(rows: _Rows, cleaning: Cleaning, index: EvaluationIndex) -> list[Row]:
    """Return the rows of a training set that a report has, one for each evaluation set."""
    only_utterances = index.with_turns and cleaning.turns == cleaning.dialogues
    levels = {"utterances": UTTERANCE, "dialogues": TURN if only_utterances else DIALOGUE}
    reported = [rows[name, levels[kind]] for name, kind in index.kinds.items()]
    for row in reported:
        row.items = cleaning.dialogues if row.level == DIALOGUE else cleaning.turns
    return reported


def build_index(
    evaluation: Sequence[str],
    data_dir: str | Path | None = None,
    *,
    skip_invalid: bool = False,
    turns: bool = False,
    columns: str | None = None,
    roles: str | None = None,
) -> EvaluationIndex:
    """Read evaluation sets and index them; ``columns`` are those of your own tables."""
    index = EvaluationIndex(turns=turns)
    for name in dict.fromkeys(evaluation):
        corpus, split = _parse(name)
        if split:
            kind = get_corpus(corpus).kind
            items = iterate_examples(corpus, data_dir, split, skip_invalid=skip_invalid)
            index.add(name, map(_as_dialogue, items), _KINDS.get(kind, kind))
        else:
            of_table = columns if reading.has_tables(Path(corpus)) else None
            dialogues = list(iterate_dialogues(corpus, skip_invalid=skip_invalid, columns=of_table, roles=roles))
            index.add(name, dialogues, KINDS[all(len(dialogue.turns) == 1 for dialogue in dialogues)])
    return index


def find_leakage(
    training: Sequence[str],
    evaluation: Sequence[str],
    data_dir: str | Path | None = None,
    *,
    skip_invalid: bool = False,
    output: Path | None = None,
) -> LeakageReport:
    """Find what of evaluation sets stands in training sets; ``all`` names the sets at hand."""
    if [ALL] in (list(training), list(evaluation)):
        at_hand = [name.partition("/") for name in sets_at_hand(data_dir, skip_invalid=skip_invalid)]
        learnt = [name for name, _, split in at_hand if split == SPLITS[0] and get_corpus(name).kind in KINDS[:2]]
        held_out = [f"{name}/{split}" for name, _, split in at_hand if split != SPLITS[0]]
        training = [f"{name}/{SPLITS[0]}" for name in learnt] if list(training) == [ALL] else training
        evaluation = held_out if list(evaluation) == [ALL] else evaluation
    sets = {name: _parse(name, SPLITS[0]) for name in training}
    check_apart(sets, evaluation)
    if output:
        check_writable(Path(output), *training, *evaluation)
    some_utterances = any(not split or get_corpus(corpus).kind == "utterances" for corpus, split in sets.values())
    index = build_index(evaluation, data_dir, skip_invalid=skip_invalid, turns=some_utterances)
    read = partial(iterate_dialogues, data_dir=data_dir, skip_invalid=skip_invalid)
    streams = ((name, read(corpus, split=split)) for name, (corpus, split) in sets.items())
    return leakage_table(streams, index, output and Path(output))


def check_apart(training: Iterable[str], evaluation: Iterable[str]) -> None:
    """Refuse a set that is named both for training and for evaluation."""
    others = {name: _parse(name) for name in evaluation}
    for name in training:
        for other, parts in others.items():
            if _overlap(_parse(name, SPLITS[0]), parts):
                raise InputError(f"training set {name}: got the same set as evaluation set {other}; leave one out")


def _parse(item: str, default: str = "") -> tuple[str, str]:
    """Split ``"sgd/test"`` into corpus and split; a path has no split."""
    corpus, split = with_split(item)
    if corpus not in CORPORA and reading.is_own(item):
        return item, ""
    known = get_corpus(corpus.partition("/")[0])
    if not split and not default:
        example = f"{corpus}/{known.splits[0]}"
        raise InputError(f"evaluation set {item}: got no split, expected one, as in '{example}'; add it")
    return corpus, split or default


def _overlap(first: tuple[str, str], second: tuple[str, str]) -> bool:
    if not first[1] or not second[1]:
        return first[1] == second[1] and Path(first[0]).resolve() == Path(second[0]).resolve()
    return first[0] == second[0] and (first[1] == second[1] or ALL in (first[1], second[1]))


_KINDS = {"sentence-pairs": "utterances", "retrieval": "utterances", "response-selection": "dialogues"}


def _as_dialogue(item: Any) -> Dialogue:  # noqa: ANN401 - of the corpus's kind
    """Return the evaluated texts of an item as turns; their roles do not matter here."""
    match item:
        case SentencePair():
            texts: tuple[str, ...] = (item.first, item.second)
        case RetrievalQuery():
            texts = (item.text, *item.relevant)
        case ResponseSelection():
            texts = (*(turn.content for turn in item.context), *(item.responses[place] for place in item.correct))
        case _:
            return item  # type: ignore[no-any-return]
    return Dialogue(tuple(Turn("user", text) for text in texts), item.id)


def _text(dialogue: Dialogue) -> str:
    return comparable(" ".join(turn.content for turn in dialogue.turns))
