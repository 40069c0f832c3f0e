"""Measures `dialemb embed` over ten thousand dialogues and more, and `dialemb flow`: pace, and the most memory taken.

Dialogues are those of SGD, again and again; in all but the first round a seed drops a tenth of the words. The run over
the corpus of middle size is killed half-way and given again; its rows are compared with those of a whole run.
The flow is of so many dialogues as have the utterances asked for.

    HF_DIALEMB_DATA=corpora python benchmarks/corpus_scale.py --output docs/results/corpus_scale.json   # 40 minutes
    HF_DIALEMB_DATA=corpora python benchmarks/corpus_scale.py --dialogues 10000 30000 --utterances 100000   # minutes
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, count, islice
from pathlib import Path

import pyarrow.parquet as pq
from hardware import describe_machine

import hf_dialemb
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.corpora.audit.histograms import check_drawing, new_figure
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.runs.files import write_json_atomically

MODEL = "dialogue-static"
SHARD = 2000
PACE, MEMORY = "dialogues a second of processor time", "peak memory, MiB"
PROGRAM = """
import re, sys, time
from hf_dialemb.cli import main
code = main(sys.argv[1:])
print(time.process_time())
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])  # of this program alone: Linux says it
sys.exit(code)
"""


def endless(dialogues: list[Dialogue]) -> Iterator[Dialogue]:
    """Gives the dialogues round after round, each round perturbed anew."""
    draw = random.Random(0)
    yield from dialogues
    for number in count(1):
        for dialogue in dialogues:
            turns = [(turn, [word for word in turn.content.split() if draw.random() > 0.1]) for turn in dialogue.turns]
            kept = tuple(replace(turn, content=" ".join(words)) if words else turn for turn, words in turns)
            yield replace(dialogue, turns=kept, id=f"{dialogue.id}-{number}")


def start(words: list[str | Path]) -> subprocess.Popen[bytes]:
    """Starts a command in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def embedding(source: Path, output: Path) -> list[str | Path]:
    """The words that embed a file."""
    return ["embed", "--model", MODEL, "--input", source, "--output", output, "--shard-size", str(SHARD)]


def measured(words: list[str | Path], count: int) -> dict[str, float]:
    """Runs a command over so many dialogues or utterances; returns its pace, start included, and its peak memory.

    The pace by processor time holds where other programs share the cores.
    """
    started = time.perf_counter()
    process = start(words)
    said, _ = process.communicate()
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"dialemb {words[0]}: exit code {process.returncode}")
    busy, kib = map(float, said.split()[-2:])
    pace = {"per_second": count / seconds, "per_processor_second": count / busy}
    return {"count": count, "seconds": seconds, "processor_seconds": busy, **pace, "mib": kib / 1024}


def killed_and_resumed(source: Path, output: Path, whole: Path, dialogues: int) -> dict[str, object]:
    """Kills an embedding when half of its shards are there and gives it again; says whether the rows are the same."""
    words = embedding(source, output)
    parts, process = output.with_name(f"{output.name}.parts"), start(words)
    while len(list(parts.glob("part-*.parquet"))) < dialogues // SHARD // 2 and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    kept = len(list(parts.glob("part-*.parquet")))
    measured(words, dialogues)
    files = pq.ParquetFile(output), pq.ParquetFile(whole)
    groups = range(files[0].num_row_groups)
    same = files[0].metadata.num_rows == files[1].metadata.num_rows == dialogues
    same = same and all(files[0].read_row_group(each).equals(files[1].read_row_group(each)) for each in groups)
    return {"dialogues": dialogues, "shards": -(-dialogues // SHARD), "kept": kept, "same_rows": same}


def flow_of(dialogues: list[Dialogue], utterances: int, place: Path) -> dict[str, float]:
    """Measures the flow of so many utterances and a few more."""
    counts = accumulate(len(dialogue.turns) for dialogue in endless(dialogues))
    size = 1 + next(number for number, count in enumerate(counts) if count >= utterances)
    said = write_jsonl(islice(endless(dialogues), size), place / "flow.jsonl")
    return {
        "dialogues": said,
        **measured(["flow", place / "flow.jsonl", "--model", MODEL, "--output", place / "flow"], utterances),
    }


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draws the pace and the memory, a panel each."""
    figure = new_figure(8, 3)
    sizes = [row["count"] for row in rows]
    for place, (name, title) in enumerate((("per_processor_second", PACE), ("mib", MEMORY))):
        axes = figure.add_subplot(1, 2, place + 1)
        values = [row[name] for row in rows]
        axes.plot(sizes, values, marker="o")
        axes.set(title=title, xlabel="dialogues", xscale="log", ylim=(0, 1.1 * max(values)))
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measures the sizes, and writes figures, their table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="ascending")
    parser.add_argument("--utterances", type=int, default=1_000_000, help="how many the flow is of; 0 for none")
    parser.add_argument("--data-dir", help="where SGD lies; by default what HF_DIALEMB_DATA names")
    parser.add_argument("--output", type=Path, default=Path("corpus_scale.json"))
    options = parser.parse_args()
    check_drawing()
    found = hf_dialemb.load_dialogues("sgd", data_dir=options.data_dir, split="all")
    rows = []
    with tempfile.TemporaryDirectory() as place:
        source, whole, resumed = (
            Path(place) / name for name in ("dialogues.jsonl", "whole.parquet", "resumed.parquet")
        )
        for size in options.dialogues:
            write_jsonl(islice(endless(found), size), source)
            rows.append(measured(embedding(source, whole), size))
            print(rows[-1], flush=True)
            if size == options.dialogues[len(options.dialogues) // 2]:
                kill = killed_and_resumed(source, resumed, whole, size)
                resumed.unlink()
        for file in (source, whole):
            file.unlink()
        flow = flow_of(found, options.utterances, Path(place)) if options.utterances else None
    lines = [f"| dialogues | dialogues a second | {PACE} | {MEMORY} |", "| --: | --: | --: | --: |"]
    for row in rows:
        figures = (row[name] for name in ("count", "per_second", "per_processor_second", "mib"))
        lines.append(f"| {' | '.join(f'{figure:,.0f}' for figure in figures)} |")
    told = "the same rows" if kill["same_rows"] else "OTHER ROWS"
    when = f"{kill['kept']} of {kill['shards']} shards of {kill['dialogues']:,} dialogues"
    lines += ["", f"Killed with {when} written, and run again: {told}."]
    if flow:
        told = f"{flow['count']:,} utterances of {flow['dialogues']:,} dialogues: {flow['seconds'] / 60:.1f} minutes"
        lines += ["", f"`dialemb flow` over {told}, {flow['mib']:,.0f} MiB at most."]
    machine = describe_machine()
    record = {"model": MODEL, "machine": machine, "rows": rows, "killed": kill, "flow": flow, "table": lines}
    write_json_atomically(options.output, record)
    draw(rows, options.output.with_suffix(".png"))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
