"""Measures finding turns.

Time and memory of long conversations, of the command line, and of LanceDB's own ways.

    python benchmarks/turn_scale.py --output docs/results/turn_scale.json

The turns are those of Self-dialogue's train split, as if two people had said them in one
conversation; where more are asked for, they come again. Questions name a speaker and a month, which
takes the longest. Seconds are those of the processor, of all threads, so that other programs on the
machine do not count; each side has a process of its own. LoCoMo's conversations are read as by
turn_retrieval.py. The same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from hardware import describe_machine
from processes import answer_of, peak_bytes

CORPUS = "self_dialogue"
MODEL = "dialogue-static"
SIZES = (100_000, 1_000_000)
CONVERSATIONS = 1_000
REPEATS, READ, EVERY = 3, 60, 1
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


def command(count: int) -> dict[str, float]:
    """Search conversations of a file from the command line, its start included."""
    import hf_dialemb
    from hf_dialemb.data import write_jsonl

    dialogues = hf_dialemb.load_dialogues(CORPUS, split="train")[:count]
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(dialogues, Path(folder) / "calls.jsonl")
        words = [
            "-m",
            "hf_dialemb.apps.cli",
            "search",
            f"{folder}/calls.jsonl",
            "--model",
            MODEL,
            "--query",
            QUESTIONS[0],
        ]
        for _ in range(REPEATS + 1):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    return {"seconds": median(seconds[1:]), "turns": turns}  # the first fills the file cache


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


def joined(every: int) -> dict[str, list[float]]:
    """Ask LoCoMo's questions of LanceDB: joined as here, and by its own hybrid search.

    NDCG@10 and recall@10.
    """
    import os

    from lancedb.rerankers import LinearCombinationReranker, RRFReranker
    from turn_retrieval import locomo

    import hf_dialemb
    from hf_dialemb.apps.search.turn_task import _figures, questions_of
    from hf_dialemb.apps.search.word_index import words_of

    encoder, figures = hf_dialemb.load_encoder(MODEL), {}

    def ways(index: Any, text: str) -> Iterator[tuple[str, list[int]]]:
        yield "joined here", [hit.turn for hit in index.search(text, 10)]
        for name, reranker in {
            "LanceDB, ranks": RRFReranker(),
            "LanceDB, scores": LinearCombinationReranker(),
        }.items():
            asked = index._table.search(query_type="hybrid").vector(
                encoder.encode_utterances([text])[0]
            )
            asked = (
                asked.text(" ".join(words_of(text)) or text)
                .distance_type("cosine")
                .rerank(reranker)
                .limit(50)
            )
            yield name, [row["turn"] for row in asked.to_list()][:10]

    with tempfile.TemporaryDirectory() as folder:
        for dialogue in locomo(Path(os.environ["HF_DIALEMB_DATA"])):
            index = hf_dialemb.DialogueIndex(Path(folder) / f"{dialogue.id}.lance", MODEL, "turns")
            index.add([hf_dialemb.Dialogue(dialogue.turns, dialogue.id)])
            for question in list(questions_of(dialogue))[::every]:
                for name, places in ways(index, question.text):
                    scores = np.zeros(len(dialogue.turns))
                    scores[places] = np.arange(len(places), 0, -1)
                    found = _figures(scores, question.turns)
                    figures.setdefault(name, []).append([found["ndcg10"], found["recall10"]])
    return {name: (100 * np.mean(rows, axis=0)).tolist() for name, rows in figures.items()}


WORK: dict[str, Callable[[int], Any]] = {
    "command": command,
    "memory": in_memory,
    "kept": kept,
    "reading": reading,
    "joined": joined,
}


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
        elif kind == "joined":
            rows = [
                f"| {way} | {first:.1f} / {second:.1f} |" for way, (first, second) in side.items()
            ]
            record[kind] = ["| Words and vectors | nDCG@10 / recall@10 |", "| :-- | --: |", *rows]
        else:
            place = f"`dialemb search`, {int(count):,} conversations ({side['turns']:,} turns)"
            record[kind] = [
                "| | Seconds |",
                "| :-- | --: |",
                f"| {place} | {side['seconds']:.1f} |",
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
    asked = [
        ("command", CONVERSATIONS),
        ("memory", SIZES[0]),
        ("kept", SIZES[0]),
        ("reading", READ),
        ("joined", EVERY),
    ]
    before = options.output and options.output.exists()
    sides: dict[str, Any] = (
        json.loads(options.output.read_text(encoding="utf-8"))["sides"] if before else {}
    )
    for kind, count in [*asked, *(("memory", size) for size in SIZES[1:])]:
        name = f"{kind} {count}"
        sides[name] = (
            sides[name] if name in sides else answer_of(__file__, "--work", kind, str(count))
        )
        record = tables(sides)
        print("\n".join(line for lines in record.values() for line in lines), flush=True)
        if options.output:
            record = {"machine": describe_machine(), "sides": sides, **record}
            options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
