"""The dial2vec benchmark: six corpora, each in train, dev and test, with the paper's filters (section 4.2, Table 1)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ...corpora import iterate_dialogues
from ...corpora.audit.statistics import Statistics
from ...corpora.corpus import SPLITS
from ...corpora.own.jsonl import write_jsonl
from ...corpora.source.files import MissingFilesError
from ...dialogue import Dialogue
from ...runs.files import write_json_atomically

DOC2DIAL_DOMAINS = ("dmv", "ssa", "va", "studentaid")  # which the paper counts; cdccov19 came with a later release


class Count(NamedTuple):
    """A cell of Table 1: dialogues, their mean turns and their mean words."""

    dialogues: int
    turns: float
    words: float


PAPER = {
    "bitod": ((Count(2952, 19, 217), Count(70, 11, 109), Count(106, 10, 106)), 6),
    "doc2dial": ((Count(3474, 11, 187), Count(661, 12, 182), Count(661, 12, 182)), 4),
    "metalwoz": ((Count(30307, 11, 83), Count(3788, 11, 82), Count(3789, 11, 82)), 47),
    "multiwoz": ((Count(8437, 13, 177), Count(1077, 9, 110), Count(1084, 9, 110)), 7),
    "self_dialogue": ((Count(19331, 15, 151), Count(2416, 15, 151), Count(2417, 15, 152)), 28),
    "sgd": ((Count(16142, 20, 199), Count(836, 14, 140), Count(1331, 12, 124)), 45),
}
"""The paper's Table 1: train, dev and test of each corpus, and the number of its domains."""


def build_benchmark(
    data_dir: str | Path | None, output: Path, report: Callable[[str], None] = lambda line: None
) -> dict[str, object]:
    """Write the parts of the benchmark at hand, ``<output>/<corpus>/<split>.jsonl``, and the table of their sizes.

    Training keeps all dialogues; dev and test those of exactly one domain. A corpus or a split whose files are not at
    hand is left out, and the table says so.

    Returns the counts by corpus and split, the domains by corpus, and what is missing; it lies in ``table.json`` too.
    """
    counts: dict[str, dict[str, object]] = {}
    domains: dict[str, int] = {}
    missing: list[str] = []
    reason = ""
    for name in PAPER:
        labels: set[str] = set()
        for split in SPLITS:
            try:
                # Reading the first dialogue before any file is written tells whether there is any.
                dialogues = iterate_dialogues(name, data_dir, split)
                first = next(dialogues)
            except MissingFilesError as error:
                missing.append(f"{name}/{split}")
                reason = reason or str(error)
                continue
            path = output / name / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = Statistics()
            write_jsonl(_counted(filtered(name, split, chain((first,), dialogues)), kept, labels), path)
            means = kept.turns_per_dialogue.mean, kept.words_per_dialogue.mean
            counts.setdefault(name, {})[split] = dict(zip(Count._fields, (kept.dialogues, *means), strict=True))
            report(f"Wrote {path}")
        if labels:
            domains[name] = len(labels)
    if not counts:
        raise MissingFilesError(f"None of {', '.join(PAPER)} is at hand: {reason}")
    result: dict[str, object] = {"counts": counts, "domains": domains, "missing": missing}
    record = {**result, "table": benchmark_table(result).splitlines()}
    write_json_atomically(output / "table.json", record)
    return result


def filtered(name: str, split: str, dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    """Keep the dialogues that the paper keeps of a corpus."""
    for dialogue in dialogues:
        if name == "doc2dial" and not set(dialogue.domains) <= set(DOC2DIAL_DOMAINS):
            continue
        if split == "train" or len(dialogue.domains) == 1:
            yield dialogue


def benchmark_table(result: dict[str, object]) -> str:
    """Draw Table 1 with the paper's figures beside ours."""
    counts: dict[str, dict[str, dict[str, float]]] = result["counts"]  # type: ignore[assignment]
    domains: dict[str, int] = result["domains"]  # type: ignore[assignment]
    lines = ["| corpus | split | dialogues | turns | words | domains |", "|:--|:--|--:|--:|--:|--:|"]
    for name, (cells, labels) in PAPER.items():
        for split, paper in zip(SPLITS, cells, strict=True):
            ours = counts.get(name, {}).get(split)
            counted = (f"{ours['dialogues']:,}", f"{ours['turns']:.1f}", f"{ours['words']:.1f}") if ours else ("-",) * 3
            quoted = (f"{paper.dialogues:,}", f"{paper.turns:.0f}", f"{paper.words:.0f}")
            pairs = [" / ".join(pair) for pair in zip(counted, quoted, strict=True)]
            known = f"{domains.get(name, '-')} / {labels}" if split == "test" else ""
            lines.append(f"| {' | '.join((name, split, *pairs, known))} |")
    lines += [
        "",
        "Ours / the paper's: dial2vec, Table 1, quoted (whole numbers, cut off); a dash: the files are not at hand. "
        "Turns and words are means of a dialogue. Domains: labels of the dialogues of one domain, over the splits.",
    ]
    return "\n".join(lines)


def _counted(dialogues: Iterable[Dialogue], kept: Statistics, labels: set[str]) -> Iterator[Dialogue]:
    for dialogue in dialogues:
        kept.add(dialogue)
        labels.update(dialogue.domains if len(dialogue.domains) == 1 else ())
        yield dialogue
