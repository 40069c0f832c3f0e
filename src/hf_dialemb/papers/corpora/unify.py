"""Many corpora in one form and one folder.

A dataset with a card, and the JSON files of Dialog2Flow (appendix A).

``<split>/<corpus>.parquet`` has one row per dialogue, all turns and labels kept; ``json/<corpus>/``
has the paper's ``data.json`` and ``stats.json``, labelled turns alone. Corpora are streamed; the
folder appears only when it is whole. What is made of a shard is kept beside it until then, so that
a killed run goes on with the shards that are missing.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pyarrow
from datasets import Features, List, Value
from pyarrow.parquet import ParquetWriter, read_table
from tqdm.auto import tqdm

from ...data import CORPORA, MissingFilesError, find_source, get_corpus, iterate_dialogues
from ...data.audit.leakage import EvaluationIndex, build_index, check_apart
from ...data.audit.leakage_report import Cleaning
from ...data.corpus import ALL, SPLITS, TERMS, Corpus
from ...data.labels import UnifiedTurn, clean_label, unified_turn
from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ...storage.files import check_writable, working_folder
from ...storage.shards import in_parts, in_shards, named_by_content, parts_beside
from .dataset_card import Tally, dataset_card, figures_table, statistics

_ROWS = (
    1000  # dialogues that are cleaned together, and of one row group at most: all that is in memory
)
_LOOKED_AT = 200  # dialogues of a split that tell whether a corpus has acts or slots
# what a part has beside its rows: counts, and each dialogue in the paper's form
_COUNTS, _PAPER = (b"unify", "paper")
_Read = Callable[..., Iterator[Dialogue]]
_Chosen = tuple[Corpus, tuple[str, ...]]  # and its splits that are at hand
_Shard = tuple[str, str, list[Dialogue]]  # of which corpus and split, and they
_Part = tuple[dict[str, Any], pyarrow.Table]  # what is counted of a shard, and its rows


def unify(
    names: Sequence[str],
    data_dir: str | Path | None,
    output: str | Path,
    *,
    terms: str = "share-alike",
    strict: bool = False,
    evaluation: Sequence[str] = (),
) -> dict[str, Any]:
    """Write corpora in the unified form."""
    output = Path(output).expanduser().resolve()
    _check_free(output)
    read = partial(iterate_dialogues, data_dir=data_dir, strict=strict)
    left_out: dict[str, str] = {}
    whole = list(names) == [ALL]
    chosen = (
        _choose_from_all(read, terms, left_out)
        if whole
        else _choose_named(names, read, data_dir, terms)
    )
    check_writable(output / "README.md")
    splits = [(corpus.name, split) for corpus, present in chosen for split in present]
    held_out = [f"{name}/{split}" for name, split in splits if split != SPLITS[0]]
    check_apart([f"{name}/{split}" for name, split in splits if split == SPLITS[0]], evaluation)
    with parts_beside(output) as parts, working_folder(output) as temporary:
        _check_free(output)  # another run may have ended meanwhile
        index = build_index([*held_out, *evaluation], data_dir, strict=strict)
        made = groupby(_parts(splits, read, index, parts), key=lambda part: part[0]["corpus"])
        of_corpora = zip(chosen, made, strict=True)
        stats = {
            "terms": terms,
            **statistics(
                (corpus, _write_corpus(corpus, ready, temporary))
                for (corpus, _), (_, ready) in of_corpora
            ),
            "left_out": left_out,
            "evaluation": [*held_out, *evaluation],
        }
        _describe(stats, temporary)
        if output.exists():
            output.rmdir()  # it is empty
        temporary.replace(output)
    return stats


def _check_free(output: Path) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(
            f"output '{output}': exists and is no empty folder; choose another one or remove it"
        )


def _describe(stats: dict[str, Any], folder: Path) -> None:
    stats["table"] = figures_table(stats).split("\n")
    (folder / "stats.json").write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(dataset_card(stats), encoding="utf-8")


def unified_features() -> Features:
    """Return the features of the Parquet files.

    Those of a dataset of dialogues, and those of the unified form.
    """
    text = Value("string")
    labels = dict.fromkeys(("dialogue_acts", "main_acts", "original_acts"), List(text))
    slots = List({"name": text, "value": text})
    message = {
        "role": text,
        "content": text,
        **labels,
        "slots": slots,
        "intents": List(text),
        "action": text,
    }
    return Features({"id": text, "corpus": text, "domains": List(text), "messages": List(message)})


def _choose_named(
    names: Sequence[str], read: _Read, data_dir: str | Path | None, terms: str
) -> list[_Chosen]:
    chosen = []
    for name in dict.fromkeys(names):
        corpus = get_corpus(name)
        if not _allowed(corpus, terms):
            raise InputError(
                f"Corpus {name}: its licence ({corpus.licence}) counts as '{corpus.terms}', "
                "expected at most "
                f"'{terms}'; leave it out or, where your use of it is allowed, give --licence "
                f"{corpus.terms}"
            )
        present = _look(corpus, read)
        if not present:
            find_source(corpus, data_dir)  # says what is missing, if it is the whole corpus
            raise MissingFilesError(
                f"Corpus {name}: got no dialogue of {' or '.join(SPLITS)} in the data folder; add "
                "its files or leave "
                "it out"
            )
        chosen.append((corpus, tuple(present)))
    return chosen


def _choose_from_all(read: _Read, terms: str, left_out: dict[str, str]) -> list[_Chosen]:
    """Return the corpora that can enter; put the reasons of the others into ``left_out``."""
    chosen = []
    held: dict[str, str] = {}
    for name in sorted(CORPORA):
        corpus = get_corpus(name)
        if corpus.kind != "dialogues" or not corpus.patterns:  # one without files is invented
            continue
        present = _look(corpus, read)
        if not present:
            left_out[name] = "its files are not at hand"
        elif (holder := _holder(corpus, present, read, held)) not in ("", name):
            held[name] = holder
            left_out[name] = f"{holder} holds its dialogues"
        elif not any(present.values()):
            left_out[name] = "it has neither dialogue acts nor slots"
        elif not _allowed(corpus, terms):
            left_out[name] = f"its licence ({corpus.licence}) counts as '{corpus.terms}'"
        else:
            chosen.append((corpus, tuple(present)))
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise InputError(
            f"There is nothing to unify ({reasons}); put corpora with acts or slots into the data "
            "folder"
        )
    return chosen


def _holder(corpus: Corpus, present: Iterable[str], read: _Read, held: dict[str, str]) -> str:
    """Return the corpus that holds all files at hand of this corpus, directly or through another.

    Or "".
    """
    if not corpus.part_of:
        return ""
    there = _look(get_corpus(corpus.part_of), read)
    return (
        held.get(corpus.part_of, corpus.part_of)
        if set(present) <= set(corpus.shared) & set(there)
        else ""
    )


def _allowed(corpus: Corpus, terms: str) -> bool:
    return TERMS.index(corpus.terms) <= TERMS.index(terms)


def _look(corpus: Corpus, read: _Read) -> dict[str, bool]:
    """Map the splits at hand to whether their first dialogues have acts or slots."""
    present = {}
    for split in corpus.splits:
        with suppress(MissingFilesError):
            dialogues = islice(read(corpus.name, split=split), _LOOKED_AT)
            turns = (turn for dialogue in dialogues for turn in dialogue.turns)
            present[split] = any(turn.dialogue_acts or turn.slots for turn in turns)
    return present


def _parts(
    splits: list[tuple[str, str]], read: _Read, index: EvaluationIndex, folder: Path
) -> Iterator[_Part]:
    """Make the parts of all corpora and read them one after another."""

    def shards() -> Iterator[_Shard]:
        for name, split in splits:
            progress.set_postfix_str(f"{name} {split}", refresh=False)
            for dialogues in in_shards(read(name, split=split), _ROWS):
                yield name, split, dialogues

    work = partial(_unified, index)
    with tqdm(desc="unify", unit=" dialogues") as progress:
        named = named_by_content(work, shards())
        files = in_parts(work, named, folder, progress, count=lambda shard: len(shard[-1]))
    for file in tqdm(files, desc="write", unit=" parts"):
        table = read_table(file)
        yield json.loads(table.schema.metadata[_COUNTS]), table


def _unified(index: EvaluationIndex, shard: _Shard) -> pyarrow.Table:
    """Clean dialogues of train, count the rest and make their rows."""
    name, split, dialogues = shard
    cleaning, tally, rows = Cleaning(), Tally(), []
    for dialogue in index.clean(dialogues, cleaning) if split == SPLITS[0] else dialogues:
        domains = list(filter(None, dict.fromkeys(map(clean_label, dialogue.domains))))
        turns = [unified_turn(turn) for turn in dialogue.turns]
        utterances = tally.take(split, len(turns), list(_labelled(turns, domains)))
        messages = list(map(_message, dialogue.turns, turns))
        row = {"id": dialogue.id, "corpus": name, "domains": domains, "messages": messages}
        rows.append({**row, _PAPER: json.dumps(utterances) if utterances else None})
    tally.counters["counts"].update(
        excluded_dialogues=cleaning.removed_dialogues, excluded_turns=cleaning.removed_turns
    )
    schema = unified_features().arrow_schema.append(pyarrow.field(_PAPER, pyarrow.string()))
    record = {"corpus": name, "split": split, "counters": tally.counters}
    return pyarrow.Table.from_pylist(
        rows, schema=schema.with_metadata({_COUNTS: json.dumps(record)})
    )


def _write_corpus(corpus: Corpus, parts: Iterable[_Part], folder: Path) -> Tally:
    """Write the rows of each split, a row group for each part, and the paper's files.

    Count what they hold.
    """
    tally, paper, separator = Tally(), folder / "json" / corpus.name, ""
    paper.mkdir(parents=True)
    with ExitStack() as stack:
        stream = stack.enter_context((paper / "data.json").open("w", encoding="utf-8"))
        stream.write('{"dialogs": {')
        for split, of_split in groupby(parts, key=lambda part: part[0]["split"]):
            number, writer = 0, None
            for record, table in of_split:
                tally.add(record["counters"])
                names = [
                    name or f"{split}/{place}"
                    for place, name in enumerate(table["id"].to_pylist(), number)
                ]
                number += len(names)
                for name, utterances in zip(names, table[_PAPER].to_pylist(), strict=True):
                    if utterances:
                        stream.write(f"{separator}{json.dumps(name)}: {utterances}")
                        separator = ", "
                if not names:
                    continue
                if writer is None:
                    (folder / split).mkdir(exist_ok=True)
                    file = folder / split / f"{corpus.name}.parquet"
                    writer = stack.enter_context(
                        ParquetWriter(file, unified_features().arrow_schema)
                    )
                writer.write_table(
                    table.drop_columns(_PAPER).set_column(0, "id", pyarrow.array(names, "string"))
                )
        stream.write(f'}}, "stats": {json.dumps(tally.stats)}}}\n')
    (paper / "stats.json").write_text(json.dumps(tally.stats, indent=2) + "\n", encoding="utf-8")
    return tally


def _message(turn: Turn, unified: UnifiedTurn) -> dict[str, Any]:
    kinds = {
        "dialogue_acts": unified.acts,
        "main_acts": unified.main_acts,
        "original_acts": unified.original_acts,
    }
    slots = [{"name": name, "value": value} for name, value in unified.values]
    more = {"slots": slots, "intents": unified.intents, "action": unified.action}
    return {"role": turn.role, "content": turn.content, **kinds, **more}


def _labelled(turns: Iterable[UnifiedTurn], domains: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the labelled turns of a dialogue in the paper's form.

    Intents that were just named are no label.
    """
    previous: tuple[str, ...] = ()
    for turn in turns:
        labels: dict[str, Any] = {}
        if turn.acts:
            kinds = ("acts", "main_acts", "original_acts")
            labels["dialog_acts"] = {kind: list(getattr(turn, kind)) for kind in kinds}
        if turn.slots:
            labels["slots"] = list(turn.slots)
        if turn.intents and turn.intents != previous:
            labels["intents"] = list(turn.intents)
            previous = turn.intents
        if labels:
            speaker = "user" if turn.role == "user" else "system"
            yield {"speaker": speaker, "text": turn.text, "domains": domains, "labels": labels}
