"""The dial2vec benchmark.

Six corpora, each in train, dev and test, with the paper's filters (section 4.2, Table 1).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from ...data import iterate_dialogues
from ...data.corpus import SPLITS
from ...data.jsonl import write_jsonl
from ...data.source import MissingFilesError
from ...dialogue import Dialogue
from ...drawing import table_lines
from ...storage.files import write_json_atomically

# which the paper counts; cdccov19 came with a later release
DOC2DIAL_DOMAINS = ("dmv", "ssa", "va", "studentaid")
PAPER = json.loads(Path(__file__).with_name("dial2vec_table1.json").read_text(encoding="utf-8"))
"""The paper's Table 1: dialogues, mean turns and mean words of train, dev and test.

And the number of domains.
"""


def build_benchmark(
    data_dir: str | Path | None, output: Path, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Write the parts of the benchmark at hand, ``<output>/<corpus>/<split>.jsonl``, and the table
    of their sizes.

    Training keeps all dialogues; dev and test those of exactly one domain. The table names the
    parts whose files are missing. Returns what ``table.json`` holds: counts by corpus and split,
    domains by corpus, missing parts, and lines.
    """
    result: dict[str, Any] = {"counts": {}, "domains": {}, "missing": []}
    reason = ""
    for name, split in ((name, split) for name in PAPER for split in SPLITS):
        try:
            dialogues = iterate_dialogues(name, data_dir, split)
            first = next(dialogues)  # before any file is written
        except MissingFilesError as error:
            result["missing"].append(f"{name}/{split}")
            reason = reason or str(error)
            continue
        path = output / name / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        kept, labels = Counter[str](), result["domains"].setdefault(name, set())
        write_jsonl(_counted(filtered(name, split, chain((first,), dialogues)), kept, labels), path)
        count = kept["dialogues"]
        means = {unit: kept[unit] / count if count else None for unit in ("turns", "words")}
        result["counts"].setdefault(name, {})[split] = {"dialogues": count, **means}
        report(f"Wrote {path}")
    if not result["counts"]:
        raise MissingFilesError(f"None of {', '.join(PAPER)} is at hand: {reason}")
    result["domains"] = {name: len(labels) for name, labels in result["domains"].items() if labels}
    result["table"] = benchmark_table(result).splitlines()
    write_json_atomically(output / "table.json", result)
    return result


def filtered(name: str, split: str, dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    """Keep the dialogues that the paper keeps of a corpus."""
    for dialogue in dialogues:
        if name == "doc2dial" and not set(dialogue.domains) <= set(DOC2DIAL_DOMAINS):
            continue
        if split == "train" or len(dialogue.domains) == 1:
            yield dialogue


def benchmark_table(result: dict[str, Any]) -> str:
    """Return Table 1 with the paper's figures beside ours."""
    rows = []
    for name, (cells, labels) in PAPER.items():
        for split, (dialogues, turns, words) in zip(SPLITS, cells, strict=True):
            ours = result["counts"].get(name, {}).get(split)
            counted = (
                (f"{ours['dialogues']:,}", f"{ours['turns']:.1f}", f"{ours['words']:.1f}")
                if ours
                else ("-",) * 3
            )
            quoted = (f"{dialogues:,}", str(turns), str(words))
            pairs = [" / ".join(pair) for pair in zip(counted, quoted, strict=True)]
            known = f"{result['domains'].get(name, '-')} / {labels}" if split == "test" else ""
            rows.append((name, split, *pairs, known))
    note = (
        "Ours / the paper's: dial2vec, Table 1, quoted (whole numbers, cut off); a dash: the files "
        "are not at hand. "
        "Turns and words are means of a dialogue. Domains: labels of the dialogues of one domain, "
        "over the splits."
    )
    return "\n".join(
        [
            *table_lines(("corpus", "split"), ("dialogues", "turns", "words", "domains"), rows),
            "",
            note,
        ]
    )


def _counted(
    dialogues: Iterable[Dialogue], kept: Counter[str], labels: set[str]
) -> Iterator[Dialogue]:
    for dialogue in dialogues:
        words = sum(len(turn.content.split()) for turn in dialogue.turns)
        kept.update(dialogues=1, turns=len(dialogue.turns), words=words)
        labels.update(dialogue.domains if len(dialogue.domains) == 1 else ())
        yield dialogue
