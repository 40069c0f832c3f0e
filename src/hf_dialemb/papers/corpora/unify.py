"""Many corpora in one form and one folder: Parquet, and the JSON files of Dialog2Flow (appendix A).

``<split>/<corpus>.parquet`` has one row per dialogue, all turns and labels kept; ``json/<corpus>/``
has the paper's ``data.json`` and ``stats.json``, labelled turns alone. Corpora are streamed; the
folder appears only when it is whole.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow
from datasets import Features, List, Value
from pyarrow.parquet import ParquetWriter
from tqdm.auto import tqdm

from ...data import MissingFilesError, find_source, get_corpus, iterate_dialogues
from ...data.corpus import SPLITS, TERMS, Corpus
from ...data.labels import UnifiedTurn, clean_label, unified_turn
from ...data.leakage import EvaluationIndex, build_index
from ...data.published import splits_at_hand
from ...dialogue import Dialogue, Turn
from ...errors import InputError
from ...storage.files import check_writable, working_folder
from .unified_counts import Tally, figures_table, statistics

_ROWS = 1000  # dialogues of one row group at most, which is all that is in memory


def unify(
    names: Sequence[str],
    data_dir: str | Path | None,
    output: str | Path,
    *,
    terms: str = "share-alike",
    strict: bool = False,
) -> dict[str, Any]:
    """Write corpora in the unified form, and return their figures.

    Training splits lose what the other splits hold too.
    """
    output = Path(output).expanduser().resolve()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(
            f"output '{output}': exists and is no empty folder; choose another one or remove it"
        )
    read = partial(iterate_dialogues, data_dir=data_dir, strict=strict)
    chosen = _chosen(names, data_dir, terms)
    check_writable(output / "stats.json")
    splits = [(corpus.name, split) for corpus, present in chosen for split in present]
    held_out = [f"{name}/{split}" for name, split in splits if split != SPLITS[0]]
    with working_folder(output) as temporary:
        index = build_index(held_out, data_dir, strict=strict)
        progress = tqdm(chosen, desc="unify", unit="corpus")
        tallies = [
            (corpus, _write_corpus(corpus, present, read, index, temporary))
            for corpus, present in progress
        ]
        stats = {"terms": terms, **statistics(tallies), "evaluation": held_out}
        stats["table"] = figures_table(stats).split("\n")
        (temporary / "stats.json").write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
        if output.exists():
            output.rmdir()  # it is empty
        temporary.replace(output)
    return stats


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


def _chosen(
    names: Sequence[str], data_dir: str | Path | None, terms: str
) -> list[tuple[Corpus, list[str]]]:
    """Return the corpora and their splits at hand; refuse one of stricter terms or without any."""
    chosen = []
    for name in dict.fromkeys(names):
        corpus = get_corpus(name)
        if TERMS.index(corpus.terms) > TERMS.index(terms):
            raise InputError(
                f"Corpus {name}: its licence ({corpus.licence}) counts as '{corpus.terms}', "
                f"expected at most '{terms}'; leave it out or, where your use of it is allowed, "
                f"give --licence {corpus.terms}"
            )
        present = list(splits_at_hand(corpus, data_dir))
        if not present:
            find_source(corpus, data_dir)  # says what is missing, if it is the whole corpus
            raise MissingFilesError(
                f"Corpus {name}: got no dialogue of {' or '.join(SPLITS)} in the data folder; add "
                "its files or leave it out"
            )
        chosen.append((corpus, present))
    return chosen


def _write_corpus(
    corpus: Corpus,
    splits: Iterable[str],
    read: Callable[..., Iterator[Dialogue]],
    index: EvaluationIndex,
    folder: Path,
) -> Tally:
    """Write the rows of each split and the paper's files, and count what they hold."""
    tally = Tally()
    left_out: Counter[str] = Counter()
    paper = folder / "json" / corpus.name
    paper.mkdir(parents=True)
    with (paper / "data.json").open("w", encoding="utf-8") as stream:
        stream.write('{"dialogs": {')
        for split in splits:
            dialogues = read(corpus.name, split=split)
            if split == SPLITS[0]:
                dialogues = index.clean(dialogues, left_out)
            rows = _rows(corpus.name, split, dialogues, tally, stream)
            _write_rows(rows, folder / split / f"{corpus.name}.parquet")
        stream.write(f'}}, "stats": {json.dumps(tally.stats)}}}\n')
    tally.counters["counts"].update(
        excluded_dialogues=left_out["dialogues"], excluded_turns=left_out["turns"]
    )
    (paper / "stats.json").write_text(json.dumps(tally.stats, indent=2) + "\n", encoding="utf-8")
    return tally


def _rows(
    corpus: str, split: str, dialogues: Iterable[Dialogue], tally: Tally, stream: IO[str]
) -> Iterator[dict[str, Any]]:
    """Yield the row of each dialogue, count it, and write its utterances in the paper's form."""
    for number, dialogue in enumerate(dialogues):
        name = dialogue.id or f"{split}/{number}"
        domains = list(filter(None, dict.fromkeys(map(clean_label, dialogue.domains))))
        turns = [unified_turn(turn) for turn in dialogue.turns]
        started = bool(tally.counters["counts"]["utterances"])
        utterances = tally.take(split, len(turns), list(_labelled(turns, domains)))
        if utterances:
            separator = ", " if started else ""
            stream.write(f"{separator}{json.dumps(name)}: {json.dumps(utterances)}")
        messages = list(map(_message, dialogue.turns, turns))
        yield {"id": name, "corpus": corpus, "domains": domains, "messages": messages}


def _write_rows(rows: Iterator[dict[str, Any]], file: Path) -> None:
    """Write rows as they come; without any there is no file."""
    schema = unified_features().arrow_schema
    block = list(islice(rows, _ROWS))
    if not block:
        return
    file.parent.mkdir(exist_ok=True)
    with ParquetWriter(file, schema) as writer:
        while block:
            writer.write_table(pyarrow.Table.from_pylist(block, schema=schema))
            block = list(islice(rows, _ROWS))


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
