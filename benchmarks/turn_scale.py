"""Measures the time and memory of finding turns in long conversations.

    python benchmarks/turn_scale.py --output docs/results/turn_scale.json

The turns are those of Self-dialogue's train split, as if two people had said them in one
conversation, or in many of `SHORT` turns; where more are asked for, they come again. Questions name
a speaker and a month, which takes the longest. Seconds are those of the processor, of all threads,
so that other programs on the machine do not count; each side has a process of its own.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from hardware import describe_machine
from processes import answer_of, peak_bytes

CORPUS = "self_dialogue"
MODEL = "dialogue-static"
SIZES = (100_000, 1_000_000)
SHORT = 20
PLACES = {
    "memory": "in memory",
    "kept": "in a folder",
    "dialogues": f"in dialogues of {SHORT}, in memory",
}
QUESTIONS = [
    f"what did {name} say about {topic} in May?"
    for name in ("Anna", "Ben")
    for topic in ("a film", "music", "the weather", "a favourite team", "an actor")
]


def conversations(count: int, size: int) -> list[Any]:
    """Make conversations of a size, a turn a minute."""
    import hf_dialemb

    texts = [
        turn.content
        for dialogue in hf_dialemb.load_dialogues(CORPUS, split="train")
        for turn in dialogue.turns
    ]
    times = [datetime(2024, 1, 1) + timedelta(minutes=place) for place in range(count)]
    turns = [
        hf_dialemb.Turn(
            ("user", "assistant")[place % 2],
            texts[place % len(texts)],
            name=("Anna", "Ben")[place % 2],
            time=time.isoformat(),
        )
        for place, time in enumerate(times)
    ]
    return [
        hf_dialemb.Dialogue(tuple(turns[start : start + size]), f"d{start}")
        for start in range(0, count, size)
    ]


def spent(work: Callable[[], object]) -> float:
    """Return the processor's seconds for some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def measured(count: int, folder: str | None = None, size: int | None = None) -> dict[str, float]:
    """Index conversations in a folder or in memory, ask, add turns, and open it again.

    There is one, unless they have a size.
    """
    import hf_dialemb

    dialogues = conversations(count, size or count)
    path = Path(folder) / "long.memory" if folder else None
    index = hf_dialemb.TurnIndex(path, encoder=MODEL)
    times = {"building": spent(lambda: index.add(dialogues))}
    index.search(QUESTIONS[0])
    asked = [spent(lambda text=text: index.search(text)) for text in QUESTIONS]
    turns = [turn for dialogue in dialogues[:200] for turn in dialogue.turns][:200]
    added = [spent(lambda turn=turn: index.add_turn(turn, "d0")) for turn in turns]
    times |= {"query": median(asked), "adding": median(added)}
    if path:
        times["opening"] = spent(lambda: hf_dialemb.TurnIndex(path))
    return {**times, "peak_mib": peak_bytes() / 2**20}


def kept(count: int) -> dict[str, float]:
    """Measure an index in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        return measured(count, folder)


WORK: dict[str, Callable[[int], Any]] = {
    "memory": measured,
    "kept": kept,
    "dialogues": lambda count: measured(count, size=SHORT),
}


def table(sides: dict[str, Any]) -> list[str]:
    """Write the table of what is measured so far."""
    lines = [
        "| Turns | Indexing, s | Opening, s | A query, ms | Adding a turn, ms | Peak, MiB |",
        "| :-- | --: | --: | --: | --: | --: |",
    ]
    for name, side in sides.items():
        kind, count = name.split()
        opening = f"{side['opening']:.1f}" if "opening" in side else ""
        cells = [f"{int(count):,}, {PLACES[kind]}", f"{side['building']:,.0f}", opening]
        cells += [f"{1000 * side['query']:,.0f}", f"{1000 * side['adding']:.1f}"]
        lines.append(f"| {' | '.join(cells)} | {side['peak_mib']:,.0f} |")
    return lines


def main() -> None:
    """Measures, prints and writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of turns")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(WORK[options.work[0]](int(options.work[1]))))
        return
    sides = {
        f"{kind} {size}": answer_of(__file__, "--work", kind, str(size))
        for size in options.sizes
        for kind in WORK
    }
    record = {"machine": describe_machine(), "sides": sides, "table": table(sides)}
    print("\n".join(record["table"]))
    if options.output:
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
