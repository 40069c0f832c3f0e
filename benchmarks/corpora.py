"""Measure every corpus in HF_DIALEMB_DATA: its size, and the time and memory that reading it takes.

python benchmarks/corpora.py [CORPUS ...] --output docs/results/corpora.json

With names, these alone are measured, and the other figures of the file stay.
A process of its own reads all splits of a corpus, one after the other. It reads the files as they
are, packed or not, and then an unpacked copy.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from processes import answer_of
from published_counts import PUBLISHED

from hf_dialemb.data import MissingFilesError, find_source, get_corpus, iterate_examples
from hf_dialemb.data.corpus import Corpus
from hf_dialemb.data.published import sets_at_hand

GOAL = 100_000  # utterances per second
SMALL = 0.5  # seconds; below that, the start takes most of the time
KIB_PER_MIB = 1024


def main() -> int:
    """Measure every corpus, and write the figures and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="*")
    parser.add_argument("--output", type=Path)
    parser.add_argument(
        "--measure", help="measure this corpus in this process and print the figures"
    )
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(get_corpus(options.measure))))
        return 0
    figures = (
        json.loads(options.output.read_text(encoding="utf-8"))["figures"] if options.corpus else {}
    )
    for name in dict.fromkeys(
        place.partition("/")[0] for place in sets_at_hand(names=options.corpus)
    ):
        figures[name] = answer_of(__file__, "--measure", name)
        print(*rows(name, figures[name]), sep="\n", flush=True)
    record = {"figures": dict(sorted(figures.items())), **tables(dict(sorted(figures.items())))}
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(corpus: Corpus) -> dict[str, object]:
    """Read all splits of a corpus, and again from an unpacked copy."""
    figures = read(corpus, None)
    figures["peak_mib"] = (
        int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / KIB_PER_MIB
    )
    source = find_source(corpus)
    patterns = dict.fromkeys(
        pattern for split in figures["splits"] for pattern in corpus.files[split]
    )
    figures["shared"] = len(figures["splits"]) > 1 and len(set(corpus.files.values())) == 1
    figures["bytes"] = 0
    with tempfile.TemporaryDirectory() as folder:
        for pattern in patterns:
            for place, stream in source.files(pattern):
                path = Path(folder, place.removeprefix(str(source.path)).lstrip(":/"))
                path.parent.mkdir(parents=True, exist_ok=True)
                figures["bytes"] += path.write_bytes(stream.read())
        figures["unpacked_seconds"] = read(corpus, folder)["seconds"]
    return figures


def read(corpus: Corpus, data_dir: str | None) -> dict[str, object]:
    """Read all splits: items and utterances by split, and the seconds that one core took."""
    started, splits = time.process_time(), {}
    for split in corpus.splits:
        items = utterances = 0
        try:
            for item in iterate_examples(corpus.name, data_dir, split):
                items += 1
                utterances += len(getattr(item, "turns", (item,)))
        except MissingFilesError:
            continue
        splits[split] = {"items": items, "utterances": utterances}
    return {"splits": splits, "seconds": time.process_time() - started}


def rows(name: str, figure: dict) -> tuple[str, str]:
    """Return a row of each table."""
    ours = " / ".join(
        f"{split['items']:,} ({split['utterances']:,})" for split in figure["splits"].values()
    )
    published = PUBLISHED.get(name, {})
    theirs = " / ".join(
        f"{items:,} ({utterances:,})" if utterances else f"{items:,}"
        for items, utterances in published.get("splits", ())
    )
    utterances = sum(split["utterances"] for split in figure["splits"].values())
    packed, unpacked = utterances / figure["seconds"], utterances / figure["unpacked_seconds"]
    why = "" if unpacked >= GOAL else reason(figure, utterances)
    note = published.get("note", "")
    speed = f"{packed:,.0f} | {unpacked:,.0f} | {figure['peak_mib']:,.0f} | {why}"
    return f"| {name} | {ours} | {theirs} | {note} |", f"| {name} | {speed} |"


def reason(figure: dict, utterances: int) -> str:
    """Say why a corpus reads more slowly than the goal."""
    if figure["unpacked_seconds"] < SMALL:
        return f"small: {figure['unpacked_seconds']:.2f} s in all"
    shared = ", of files that serve every split" if figure["shared"] else ""
    return f"{figure['bytes'] / utterances:,.0f} bytes an utterance{shared}"


def tables(figures: dict[str, dict]) -> dict[str, list[str]]:
    """Return the Markdown tables of all corpora: what they hold, and how fast they read."""
    sizes, speeds = zip(*(rows(name, figure) for name, figure in figures.items()), strict=True)
    return {
        "table": [
            "| corpus | dialogues (utterances) by split | published | why they differ |",
            "|:--|:--|:--|:--|",
            *sizes,
            "",
            "Splits in the order train, dev, test, as far as the corpus has them.",
        ],
        "speed": [
            "| corpus | utterances/s, packed | unpacked | peak MiB | why below 100,000 |",
            "|:--|--:|--:|--:|:--|",
            *speeds,
            "",
            "Utterances a second of one core: from the packed form, which is unpacked once to list "
            "it and once for "
            "every split, and from a folder. The memory is that of the whole process, reading the "
            "packed form.",
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
