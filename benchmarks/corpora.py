"""Every corpus at hand: what it holds, how fast it reads, how much memory that takes. Found through HF_DIALEMB_DATA.

python benchmarks/corpora.py --output docs/results/corpora.json

Each corpus is read in a process of its own, from the form in which it lies there (packed or not), all splits one after
the other. Reading the bytes alone, without parsing, is timed beside it: it shows what unpacking takes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

from published_counts import PUBLISHED

from hf_dialemb.corpora import MissingFilesError, find_source, get_corpus, iterate_examples
from hf_dialemb.corpora.at_hand import sets_at_hand
from hf_dialemb.corpora.corpus import Corpus

GOAL = 100_000  # utterances per second
SMALL = 0.5  # seconds; below, opening and listing the archive is what takes the time
KIB_PER_MIB = 1024


def main() -> int:
    """Measures every corpus and writes figures and table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--measure", help="measure this corpus in this process and print the figures")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(get_corpus(options.measure))))
        return 0
    figures = {}
    for name in dict.fromkeys(each.partition("/")[0] for each in sets_at_hand()):
        command = [sys.executable, __file__, "--measure", name]
        figures[name] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(row(name, figures[name]), flush=True)
    lines = table(figures)
    options.output.write_text(json.dumps({"figures": figures, "table": lines}, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(corpus: Corpus) -> dict[str, object]:
    """Reads all splits of a corpus: items and utterances by split, seconds, bytes and peak memory."""
    started, splits = time.process_time(), {}
    for split in corpus.splits:
        items = utterances = 0
        try:
            for item in iterate_examples(corpus.name, None, split):
                items += 1
                utterances += len(getattr(item, "turns", (item,)))
        except MissingFilesError:
            continue
        splits[split] = {"items": items, "utterances": utterances}
    seconds = time.process_time() - started
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / KIB_PER_MIB
    started, size = time.process_time(), 0
    source = find_source(corpus)
    for split in splits:
        for pattern in dict.fromkeys(corpus.files[split]):
            for _, stream in source.files(pattern):
                while content := stream.read(1 << 20):
                    size += len(content)
    return {
        "splits": splits,
        "seconds": seconds,
        "bytes": size,
        "unpacking_seconds": time.process_time() - started,
        "peak_mib": peak,
    }


def row(name: str, figure: dict) -> str:
    """A row of the table."""
    ours = " / ".join(f"{split['items']:,} ({split['utterances']:,})" for split in figure["splits"].values())
    published = PUBLISHED.get(name, {})
    theirs = " / ".join(
        f"{items:,} ({utterances:,})" if utterances else f"{items:,}"
        for items, utterances in published.get("splits", ())
    )
    utterances = sum(split["utterances"] for split in figure["splits"].values())
    packed = utterances / figure["seconds"]
    alone = utterances / max(figure["seconds"] - figure["unpacking_seconds"], 1e-9)
    why = "" if packed >= GOAL else reason(figure, alone, utterances)
    note = published.get("note", "")
    figures = f"{packed:,.0f} | {alone:,.0f} | {why} | {figure['peak_mib']:,.0f}"
    return f"| {name} | {ours} | {theirs} | {note} | {figures} |"


def reason(figure: dict, alone: float, utterances: int) -> str:
    """Why a corpus reads more slowly than the goal."""
    if figure["seconds"] < SMALL:
        return f"small: {figure['seconds']:.2f} s in all"
    if alone >= GOAL:
        return "unpacking"
    size = figure["bytes"] / utterances
    rate = figure["bytes"] / (figure["seconds"] - figure["unpacking_seconds"]) / 1e6
    return f"{size:,.0f} bytes an utterance, read at {rate:,.0f} MB/s"


def table(figures: dict[str, dict]) -> list[str]:
    """The Markdown table of all corpora."""
    return [
        "| corpus | dialogues (utterances) by split | published | why they differ | utterances/s | reader alone "
        "| why below 100,000 | peak MiB |",
        "|:--|:--|:--|:--|--:|--:|:--|--:|",
        *(row(name, figure) for name, figure in figures.items()),
        "",
        "Splits in the order train, dev, test, as far as the corpus has them. Utterances a second of one core: "
        "from the packed form, which is unpacked once to list it and once for every split, and for the reader alone. "
        "The memory is that of the whole process.",
    ]


if __name__ == "__main__":
    sys.exit(main())
