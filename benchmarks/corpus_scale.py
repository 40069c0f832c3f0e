"""Measure the pace and the memory of `embed`, `corpus leakage`, `corpus unify` and `flow` over
large corpora.

The dialogues of SGD are repeated; from the second round on, a seed drops a tenth of the words. The
embedding of the middle size is killed half-way and started again; its rows are compared with those
of a whole run. Leakage is measured against the test sets of SGD and CLINC150. `corpus unify` reads
the dialogues as SGD's train split, beside its test split. The output keeps its figures of other
sizes and commands.

    HF_DIALEMB_DATA=corpora python benchmarks/corpus_scale.py --output
    docs/results/corpus_scale.json   # hours HF_DIALEMB_DATA=corpora python
    benchmarks/corpus_scale.py --of embed leakage --dialogues 10000 30000   # minutes
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, count, islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hardware import describe_machine

import hf_dialemb
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.drawing import check_drawing, new_figure
from hf_dialemb.storage.files import write_json_atomically

MODEL = "dialogue-static"
CORPUS = "sgd"
SHARD = 2000
COMMANDS = ("embed", "leakage", "unify")
EVALUATION = ("sgd/test", "clinc150/test")
PACE, MEMORY = "dialogues a second of processor time", "peak memory, MiB"
PROGRAM = """
import re, sys, time
from hf_dialemb.apps.cli import main
code = main(sys.argv[1:])
print(time.process_time())
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])  # of this program alone, on Linux
sys.exit(code)
"""


def endless(dialogues: list[Dialogue]) -> Iterator[Dialogue]:
    """Yield the dialogues round after round, with other words dropped in each round."""
    draw = random.Random(0)
    yield from dialogues
    for number in count(1):
        for dialogue in dialogues:
            turns = [
                (turn, [word for word in turn.content.split() if draw.random() > 0.1])
                for turn in dialogue.turns
            ]
            kept = tuple(
                replace(turn, content=" ".join(words)) if words else turn for turn, words in turns
            )
            yield replace(dialogue, turns=kept, id=f"{dialogue.id}-{number}")


def start(words: list[str | Path]) -> subprocess.Popen[bytes]:
    """Start a command in a new process."""
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def embedding(source: Path, output: Path) -> list[str | Path]:
    """Return the words that embed a file."""
    return [
        "embed",
        "--model",
        MODEL,
        "--input",
        source,
        "--output",
        output,
        "--shard-size",
        str(SHARD),
    ]


def measured(words: list[str | Path], count: int) -> dict[str, float]:
    """Run a command over a number of dialogues or utterances.

    Return its pace, start included, and its peak memory.

    The pace by processor time holds where other programs share the cores.
    """
    started = time.perf_counter()
    process = start(words)
    printed, _ = process.communicate()
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"dialemb {words[0]}: exit code {process.returncode}")
    busy, kib = map(float, printed.split()[-2:])
    pace = {"per_second": count / seconds, "per_processor_second": count / busy}
    return {
        "count": count,
        "seconds": seconds,
        "processor_seconds": busy,
        **pace,
        "mib": kib / 1024,
    }


def killed_and_resumed(
    source: Path, output: Path, whole: Path, dialogues: int
) -> dict[str, object]:
    """Kill an embedding after half of its shards, run it again, and compare its rows with those of
    a whole run.
    """
    words = embedding(source, output)
    parts, process = output.with_name(f"{output.name}.parts"), start(words)
    while (
        len(list(parts.glob("part-*.parquet"))) < dialogues // SHARD // 2 and process.poll() is None
    ):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    kept = len(list(parts.glob("part-*.parquet")))
    measured(words, dialogues)
    files = pq.ParquetFile(output), pq.ParquetFile(whole)
    groups = range(files[0].num_row_groups)
    same = files[0].metadata.num_rows == files[1].metadata.num_rows == dialogues
    same = same and all(
        files[0].read_row_group(group).equals(files[1].read_row_group(group)) for group in groups
    )
    return {
        "dialogues": dialogues,
        "shards": -(-dialogues // SHARD),
        "kept": kept,
        "same_rows": same,
    }


def flow_of(dialogues: list[Dialogue], utterances: int, place: Path) -> dict[str, float]:
    """Measure the flow of at least this number of utterances."""
    counts = accumulate(len(dialogue.turns) for dialogue in endless(dialogues))
    size = 1 + next(number for number, count in enumerate(counts) if count >= utterances)
    written = write_jsonl(islice(endless(dialogues), size), place / "flow.jsonl")
    return {
        "dialogues": written,
        **measured(
            [
                "flow",
                place / "flow.jsonl",
                "--by",
                "all",
                "--model",
                MODEL,
                "--output",
                place / "flow",
            ],
            utterances,
        ),
    }


def unifying(data: Path, training: Iterator[Dialogue], test: list[Dialogue]) -> list[str | Path]:
    """Write dialogues in the layout of SGD, and return the words of the command that unifies them."""
    for split, dialogues in (("train", training), ("test", iter(test))):
        folder = data / "sgd" / split
        folder.mkdir(parents=True)
        for number in count(1):
            records = list(map(as_in_sgd, islice(dialogues, SHARD)))
            if not records:
                break
            (folder / f"dialogues_{number:03d}.json").write_text(
                json.dumps(records), encoding="utf-8"
            )
    return ["papers", "corpus", "unify", "sgd", "--data-dir", data, "--output", data / "unified"]


def as_in_sgd(dialogue: Dialogue) -> dict[str, object]:
    """Return a dialogue as an object of SGD's files, all labels in one frame."""
    turns = []
    for turn in dialogue.turns:
        actions = [{"act": act, "slot": "", "values": []} for act in turn.dialogue_acts]
        actions += [
            {"act": actions[0]["act"], "slot": name, "values": [value]}
            for name, value in turn.slots
        ]
        frame = {"actions": actions, "state": {"active_intent": next(iter(turn.intents), "NONE")}}
        speaker = "USER" if turn.role == "user" else "SYSTEM"
        turns.append({"speaker": speaker, "utterance": turn.content, "frames": [frame]})
    return {"dialogue_id": dialogue.id, "services": list(dialogue.domains), "turns": turns}


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw the pace and the memory in two panels."""
    figure = new_figure(8, 3)
    for place, (name, title) in enumerate((("per_processor_second", PACE), ("mib", MEMORY))):
        axes = figure.add_subplot(1, 2, place + 1)
        for command in COMMANDS:
            points = [(row["count"], row[name]) for row in rows if row["command"] == command]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", label=command)
        axes.set(
            title=title,
            xlabel="dialogues",
            xscale="log",
            ylim=(0, 1.1 * max(row[name] for row in rows)),
        )
        axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def table(record: dict[str, Any]) -> list[str]:
    """Return the lines of the page."""
    lines = [
        f"| | dialogues | dialogues a second | {PACE} | {MEMORY} |",
        "| :-- | --: | --: | --: | --: |",
    ]
    for row in record["rows"]:
        figures = (row[name] for name in ("count", "per_second", "per_processor_second", "mib"))
        lines.append(f"| {row['command']} | {' | '.join(f'{figure:,.0f}' for figure in figures)} |")
    if kill := record["killed"]:
        outcome = "the same rows" if kill["same_rows"] else "OTHER ROWS"
        when = f"{kill['kept']} of {kill['shards']} shards of {kill['dialogues']:,} dialogues"
        lines += ["", f"`dialemb embed` killed with {when} written, and run again: {outcome}."]
    if flow := record["flow"]:
        size = (
            f"{flow['count']:,} utterances of {flow['dialogues']:,} dialogues: "
            f"{flow['seconds'] / 60:.1f} minutes"
        )
        lines += ["", f"`dialemb flow` over {size}, {flow['mib']:,.0f} MiB at most."]
    return lines


def figures_of(
    options: argparse.Namespace, dialogues: list[Dialogue], place: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure the commands; yield the place in the record and the figures of each."""
    test = [dialogue for dialogue in dialogues if dialogue.id.startswith("test/")]
    source, whole, resumed = (
        place / name for name in ("dialogues.jsonl", "whole.parquet", "resumed.parquet")
    )
    leakage = ["corpus", "leakage", "--train", source, "--evaluation", *EVALUATION]
    leakage += ["--data-dir", options.data_dir] if options.data_dir else []
    for size in options.dialogues:
        if {"embed", "leakage"} & set(options.of):
            write_jsonl(islice(endless(dialogues), size), source)
        if "embed" in options.of:
            yield "rows", {"command": "embed", **measured(embedding(source, whole), size)}
            if size == options.dialogues[len(options.dialogues) // 2]:
                yield "killed", killed_and_resumed(source, resumed, whole, size)
                resumed.unlink()
        if "leakage" in options.of:
            yield "rows", {"command": "leakage", **measured(leakage, size)}
        if "unify" in options.of:
            with tempfile.TemporaryDirectory(dir=place) as data:
                words = unifying(Path(data), islice(endless(dialogues), size), test)
                yield "rows", {"command": "unify", **measured(words, size)}
    for file in (source, whole):
        file.unlink(missing_ok=True)
    if "flow" in options.of:
        yield "flow", flow_of(dialogues, options.utterances, place)


def main() -> None:
    """Measure the sizes, and write the figures, their table and the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of", nargs="+", choices=(*COMMANDS, "flow"), default=[*COMMANDS, "flow"])
    parser.add_argument(
        "--dialogues", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="ascending"
    )
    parser.add_argument(
        "--utterances", type=int, default=1_000_000, help="number of utterances of the flow"
    )
    parser.add_argument("--data-dir", help="folder of the corpora (default: HF_DIALEMB_DATA)")
    parser.add_argument("--output", type=Path, default=Path("corpus_scale.json"))
    options = parser.parse_args()
    check_drawing()
    dialogues = hf_dialemb.load_dialogues(CORPUS, data_dir=options.data_dir, split="all")
    record: dict[str, Any] = {"rows": [], "killed": None, "flow": None}
    if options.output.is_file():
        record = json.loads(options.output.read_text(encoding="utf-8"))
    rows = {(row["command"], row["count"]): row for row in record["rows"]}
    with tempfile.TemporaryDirectory() as place:
        for name, figures in figures_of(options, dialogues, Path(place)):
            print(figures, flush=True)
            figures["machine"] = describe_machine()
            if name == "rows":
                rows[figures["command"], figures["count"]] = figures
                record[name] = [rows[key] for key in sorted(rows)]
            else:
                record[name] = figures
            record.update(model=MODEL, table=table(record))
            # after every size, as the last takes long
            write_json_atomically(options.output, record)
    if record["rows"]:
        draw(record["rows"], options.output.with_suffix(".png"))
    print("\n".join(record["table"]))


if __name__ == "__main__":
    main()
