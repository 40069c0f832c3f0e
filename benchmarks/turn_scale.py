"""Measures the time and memory of finding turns in long conversations, and of reading them.

    python benchmarks/turn_scale.py --output docs/results/turn_scale.json

The turns are those of Self-dialogue's train split, as if two people had said them in one
conversation; where more are asked for, they come again. Questions name a speaker and a month, which
takes the longest. Seconds are those of the processor, of all threads, so that other programs on the
machine do not count; each side has a process of its own.
"""

from __future__ import annotations

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
READ = 60
QUESTIONS = [
    f"what did {name} say about {topic} in May?"
    for name in ("Anna", "Ben")
    for topic in ("a film", "music", "the weather", "a favourite team", "an actor")
]


def conversation(count: int) -> Any:
    """Make one long conversation, a turn a minute."""
    import hf_dialemb

    texts = [
        turn.content
        for dialogue in hf_dialemb.load_dialogues(CORPUS, split="train")
        for turn in dialogue.turns
    ]
    begun = datetime(2024, 1, 1)
    turns = []
    for place in range(count):
        time, name = (begun + timedelta(minutes=place)).isoformat(), ("Anna", "Ben")[place % 2]
        turns.append(
            hf_dialemb.Turn(
                ("user", "assistant")[place % 2], texts[place % len(texts)], name=name, time=time
            )
        )
    return hf_dialemb.Dialogue(tuple(turns), "long")


def spent(work: Callable[[], object]) -> float:
    """Return the processor's seconds for some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def in_memory(count: int) -> dict[str, float]:
    """Index a conversation in memory, ask, and add turns."""
    import hf_dialemb

    dialogue, index = conversation(count), hf_dialemb.TurnIndex(MODEL)
    building = spent(lambda: index.add([dialogue]))
    index.search(QUESTIONS[0])
    asked = [spent(lambda text=text: index.search(text)) for text in QUESTIONS]
    added = [spent(lambda turn=turn: index.add_turn(turn, "long")) for turn in dialogue.turns[:200]]
    times = {
        "building": building,
        "query": median(asked),
        "slowest_query": max(asked),
        "adding": median(added),
    }
    return {**times, "slowest_adding": max(added), "peak_mib": peak_bytes() / 2**20}


def kept(count: int) -> dict[str, float]:
    """Keep a conversation in LanceDB, and ask."""
    import hf_dialemb

    dialogue = conversation(count)
    with tempfile.TemporaryDirectory() as folder:
        index = hf_dialemb.DialogueIndex(Path(folder) / "long.lance", MODEL, "turns")
        building = spent(lambda: index.add([dialogue]))
        index.search(QUESTIONS[0])
        asked = [spent(lambda text=text: index.search(text)) for text in QUESTIONS]
    return {
        "building": building,
        "query": median(asked),
        "slowest_query": max(asked),
        "peak_mib": peak_bytes() / 2**20,
    }


def reading(count: int) -> dict[str, dict[str, float]]:
    """Read turns alone, and in their surroundings."""
    import hf_dialemb
    from hf_dialemb.methods.sessions import spoken

    dialogues, figures = hf_dialemb.load_dialogues(CORPUS, split="train")[:count], {}
    texts = [[spoken(turn) for turn in dialogue.turns] for dialogue in dialogues]
    flat = [text for part in texts for text in part]
    for model in (MODEL, "dialogue-minilm"):
        encoder = hf_dialemb.load_encoder(model)
        encoder.encode_turns(dialogues[:2])
        alone = spent(lambda encoder=encoder: encoder.encode_utterances(flat))
        both = spent(lambda encoder=encoder: encoder.encode_turns(dialogues))
        figures[model] = {"alone": alone, "turns": both, "ratio": both / alone}
    return figures


WORK: dict[str, Callable[[int], Any]] = {"memory": in_memory, "kept": kept, "reading": reading}


def tables(sides: dict[str, Any]) -> dict[str, list[str]]:
    """Write the tables of what is measured so far."""
    head = [
        "| Turns of one conversation | Indexing, s | A query, ms | Adding a turn, ms | Peak, MiB |"
    ]
    record = {"table": [*head, "| :-- | --: | --: | --: | --: |"]}
    for name, side in sides.items():
        kind, count = name.split()
        if kind in ("memory", "kept"):
            place = f"{int(count):,}{', in LanceDB' if kind == 'kept' else ''}"
            record["table"].append(row_of(place, side, 1))
            if name == f"memory {max(SIZES)}":
                record["table"].append(row_of(f"{10 * int(count):,}, computed", side, 10))
        elif kind == "reading":
            rows = [
                f"| {model} | {times['alone']:.2f} | {times['turns']:.2f} | {times['ratio']:.1f} |"
                for model, times in side.items()
            ]
            record[kind] = [
                "| | Alone, s | `encode_turns`, s | Times as long |",
                "| :-- | --: | --: | --: |",
                *rows,
            ]
    return record


def row_of(place: str, side: dict[str, float], factor: int) -> str:
    """Write the row of a long conversation, or of one so many times as long."""
    adding = f"{1000 * side['adding']:.1f}" if "adding" in side else ""
    times = f"{factor * side['building']:,.0f} | {1000 * factor * side['query']:,.0f} | {adding}"
    return f"| {place} | {times} | {factor * side['peak_mib']:,.0f} |"


def main() -> None:
    """Measures, prints and writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(WORK[options.work[0]](int(options.work[1]))))
        return
    asked = [("memory", SIZES[0]), ("kept", SIZES[0]), ("reading", READ)]
    asked += [("memory", size) for size in SIZES[1:]]
    sides = {
        f"{kind} {count}": answer_of(__file__, "--work", kind, str(count)) for kind, count in asked
    }
    record = tables(sides)
    print("\n".join(line for lines in record.values() for line in lines))
    if options.output:
        record = {"machine": describe_machine(), "sides": sides, **record}
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
