"""Measures training steps of utterance encoders beside the nearest ones of sentence-transformers.

A step is all that a trainer does for one batch: read and tokenise the texts, forward, backward,
gradient clipping, AdamW. Ours runs in the trainer that ``dialemb train`` builds, the peer in its
own SentenceTransformerTrainer. Both start from all-MiniLM-L6-v2 and read the same texts of SGD in
the same order, cut to the same number of tokens, with the backbone's own dropout, in float32 or
under bfloat16 autocast. Each attends as its trainer does by default: on a CPU, ours with plain
attention and the peer with torch's fused kernel. Each side has a process of its own, so that its
peak memory is its own, and the sides take turns, never running at the same time. What is compared:

- DSE with plain weights, and MultipleNegativesRankingLoss over all four of its directions at DSE's
  temperature. Both compare every utterance of the batch with every other, and yet they are not one
  loss. With Z(q) and Z(r) the sums over what a query and its response are compared with, and s
  their own cosine over the temperature, a pair costs (log Z(q) + log Z(r)) / 2 - s in DSE, where
  both are anchors, and log(Z(q) + Z(r)) - s in the peer, which has one softmax for both; that is
  larger by log 2 or more. MultipleNegativesSymmetricRankingLoss is further off: it has both
  anchors, but compares queries with responses alone.
- Dialog2Flow, single target, hard contrast, and BatchAllTripletLoss. sentence-transformers has no
  supervised contrastive loss; of its losses of labelled utterances this alone takes, as that does,
  all utterances of a label as positives and all others as negatives, though with a margin instead
  of a softmax, and with one label an utterance. The peer reads the utterances of our pairs one by
  one, with the labels that they were drawn for.
- DialogueCSE, and MultipleNegativesRankingLoss over the same texts: of each example, the first turn
  of its context is the anchor, the response the positive, and what else ours reads, the other turns
  of the context and the utterances of other dialogues, are negatives. That is another objective
  over the same tokens. The peer sends all but the anchors through the backbone at once, padded to
  the longest, as is its default. A turn that the context lacks is an empty text to the peer, of two
  tokens, and nothing to ours.
- Gradient caching of DSE, and CachedMultipleNegativesRankingLoss over the same four directions, in
  parts of as many utterances; beside ours without caching, on as many pairs and on few.

Ours also trains its contrastive head, a Linear-ReLU-Linear over the embeddings, which the peer
lacks.

    python benchmarks/utterance_step.py --data-dir DATA --output utterance_step.json    # 12 GB of
    memory python benchmarks/utterance_step.py --data-dir DATA --only dse dialog2flow --precision
    float32 python benchmarks/utterance_step.py --small                                         # a
    smoke run, needs no data

Ratios of seconds are medians over rounds of a side's seconds divided by ours in the same round. The
peak of a process is more than what it uses, and grows over the steps: glibc keeps what is freed, in
a heap full of holes. So on a CPU the memory that steps need comes from two more steps of each side,
in processes that give freed tensors back at once, which is slower. Exit code 1: the sides do not
read the same, or gradient caching changes a gradient.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from hardware import describe_machine
from processes import Side, answer_of

WORKER = Path(__file__).with_name("utterance_step_worker.py")
OURS, PEER, BEFORE = "ours", "sentence-transformers", "ours, before"
PARTS = ("dse", "dialog2flow", "dialogue_cse", "caching")
PRECISIONS = ("float32", "bfloat16")
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072"}
"""Lets glibc give every freed tensor of 128 KiB or more back at once.

By default the bound rises to 32 MiB.
"""
MEMORY_STEPS = 2
"""Steps that show how much memory a step needs.

Before the second, the optimiser's state is there.
"""
SAME_COSINES = 1e-4
"""How far the cosines of the same pairs may be apart between sides, in float32 and without dropout.
"""
SAME_GRADIENTS = 1e-5
"""How far gradients with and without caching may be apart, relative to the largest."""


def list_parts(options: argparse.Namespace) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the sides of each part; others are compared with the first."""
    pairs, many, chunk = (8, 32, 8) if options.small else (64, options.many_pairs, 64)
    few = {"pairs": pairs, "chunk_size": None}
    examples = {"method": "dialogue_cse", "pairs": 4 if options.small else 20, "chunk_size": None}
    cached = {"method": "dse", "pairs": many, "chunk_size": chunk}
    parts: dict[str, dict[str, dict[str, Any]]] = {
        "dse": {
            OURS: {"program": "ours", "method": "dse", **few},
            PEER: {"program": "peer", "method": "dse", **few},
        },
        "dialog2flow": {
            OURS: {"program": "ours", "method": "dialog2flow", **few},
            PEER: {"program": "peer", "method": "dialog2flow", **few},
        },
        "dialogue_cse": {
            OURS: {"program": "ours", **examples},
            PEER: {"program": "peer", **examples},
        },
        "caching": {
            f"{OURS}, {many:,} pairs in chunks": {"program": "ours", **cached},
            f"{PEER}, the same": {"program": "peer", **cached},
            f"{OURS}, {many:,} pairs at once": {"program": "ours", **cached, "chunk_size": None},
            f"{OURS}, {pairs} pairs at once": {"program": "ours", "method": "dse", **few},
        },
    }
    if options.before:  # the same, by the package as another commit has it
        for sides in parts.values():
            ours = next(iter(sides.values()))
            sides[BEFORE] = {**ours, "source": str(options.before)}
    return {name: parts[name] for name in options.only}


def measure(
    folder: Path, sides: dict[str, dict[str, Any]], rounds: int, environment: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """Start the sides of one part, then let them take turns.

    Returns:
        What each side answered before its first step, and its answers to the steps.
    """
    running: list[Side] = []
    steps: dict[str, list[Any]] = {name: [] for name in sides}
    try:
        for name, settings in sides.items():
            source = {"PYTHONPATH": settings["source"]} if "source" in settings else {}
            words = (WORKER, "work", folder, json.dumps(settings))
            running.append(Side(name, *words, environment=environment | source))
        ready = {side.name: side.read() for side in running}
        for round_number in range(rounds):
            for side in running:
                answer = side.ask("step")
                print(
                    f"  round {round_number}: {side.name}: {answer['seconds']:.2f} s",
                    file=sys.stderr,
                )
                steps[side.name].append(answer)
    finally:
        for side in running:
            side.close()
    return {
        name: {**ready[name], "pairs": sides[name]["pairs"], "steps": steps[name]} for name in sides
    }


def measure_part(
    folder: Path, sides: dict[str, dict[str, Any]], options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Measures one part in one precision.

    Returns:
        Each side's seconds and memory, and how many times the first side's they are.
    """
    timed = measure(folder, sides, options.warm_up + options.steps, {})
    on_cpu = next(iter(sides.values()))["device"] == "cpu"
    frugal = measure(folder, sides, MEMORY_STEPS, GIVE_BACK) if on_cpu else timed
    result: dict[str, dict[str, Any]] = {}
    for name, side in timed.items():
        result[name] = {
            "pairs": side["pairs"],
            "chunk_size": sides[name]["chunk_size"],
            "attention": side["attention"],
            "seconds": [step["seconds"] for step in side["steps"][options.warm_up :]],
            "peak_mib": max(step["peak_bytes"] for step in side["steps"]) / 2**20,
            "resident_mib": frugal[name]["resident_bytes"] / 2**20,
            "needed_mib": max(step["peak_bytes"] for step in frugal[name]["steps"]) / 2**20,
            "cosine_difference": _difference(side, timed),
        }
    first = next(iter(result.values()))
    for row in result.values():
        row["median_seconds"] = statistics.median(row["seconds"])
        row["seconds_ratio"] = statistics.median(
            x / y for x, y in zip(row["seconds"], first["seconds"], strict=True)
        )
        row["peak_ratio"] = row["peak_mib"] / first["peak_mib"]
        row["step_mib"] = row["needed_mib"] - row["resident_mib"]
        row["step_ratio"] = row["step_mib"] / first["step_mib"]
    return result


def _difference(side: dict[str, Any], measured: dict[str, dict[str, Any]]) -> float:
    """Compare a side's cosines with those of the first side that has batches of the same size."""
    other = next(each for each in measured.values() if each["pairs"] == side["pairs"])
    return float(max(abs(x - y) for x, y in zip(side["cosines"], other["cosines"], strict=True)))


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """Measures every part in every precision; returns the figures."""
    parts = list_parts(options)
    batches = {
        (side["method"], side["pairs"]) for sides in parts.values() for side in sides.values()
    }
    # a trainer reads one batch ahead
    total = max(options.warm_up + options.steps, MEMORY_STEPS) + 1
    shared = {name: getattr(options, name) for name in ("data_dir", "small", "seed", "device")}
    figures: dict[str, Any] = {"timing": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = {**shared, "steps": total, "batches": sorted(batches)}
        inputs = answer_of(WORKER, "prepare", folder, json.dumps(wanted))
        device = "cuda" if inputs["accelerator"] else "cpu"
        more = {"device": device, "steps": total, "seed": options.seed}
        for precision, (part, sides) in product(options.precision, parts.items()):
            print(f"{part}, {precision}", file=sys.stderr)
            settings = {
                side: {**own, **more, "precision": precision} for side, own in sides.items()
            }
            figures["timing"][f"{part}, {precision}"] = measure_part(folder, settings, options)
        if "caching" in parts:
            cached = {**next(iter(parts["caching"].values())), **more, "precision": "float32"}
            figures["gradients"] = answer_of(WORKER, "gradients", folder, json.dumps(cached))
    machine = {
        **describe_machine(),
        "threads": inputs.pop("threads"),
        "accelerator": inputs.pop("accelerator"),
    }
    return {"machine": machine, "versions": inputs.pop("versions"), "inputs": inputs, **figures}


def tables(figures: dict[str, Any]) -> list[str]:
    """Render the figures as lines of text."""
    machine, inputs = figures["machine"], figures["inputs"]
    where = machine["accelerator"] or f"{machine['processor']}, {machine['threads']} threads"
    lines = [
        f"{where}; " + ", ".join(f"{name} {value}" for name, value in figures["versions"].items())
    ]
    for batch in inputs["batches"]:
        lines.append(
            f"{batch['method']}: {batch['pairs']:,} pairs a batch from {inputs['corpus']}, "
            f"{batch['mean_length']:.1f} "
            f"tokens an utterance, {batch['maximal_length']} at most, {batch['truncated']:.1%} cut"
        )
    for part, sides in figures["timing"].items():
        title = (
            f"{'seconds':>8} {'ratio':>6} {'peak MiB':>9} {'ratio':>6} {'for steps':>10} "
            f"{'ratio':>6}"
        )
        lines += ["", f"{part:<34} {title}"]
        for name, row in sides.items():
            lines.append(
                f"{name:<34} {row['median_seconds']:>8.2f} {row['seconds_ratio']:>6.2f} "
                f"{row['peak_mib']:>9,.0f} "
                f"{row['peak_ratio']:>6.2f} {row['step_mib']:>10,.0f} {row['step_ratio']:>6.2f}"
            )
    lines += [
        "",
        "peak: of the whole process; for steps: MiB beyond what it used before the first step, "
        "holes not counted",
    ]
    return lines


def judge(figures: dict[str, Any]) -> dict[str, bool]:
    """Says what holds of what must hold."""
    differences = [
        row["cosine_difference"] for sides in figures["timing"].values() for row in sides.values()
    ]
    largest = max(differences)
    verdicts = {
        f"cosines of the same pairs differ by less than {SAME_COSINES} ({largest:.1e})": largest
        < SAME_COSINES
    }
    if "gradients" in figures:
        found = figures["gradients"]
        share = found["largest_difference"] / found["largest_gradient"]
        verdicts[
            f"caching changes no gradient by more than {SAME_GRADIENTS} of the largest "
            f"({share:.1e})"
        ] = share <= SAME_GRADIENTS
    return verdicts


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data-dir", default=os.environ.get("HF_DIALEMB_DATA"), help="folder that holds sgd/"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts (default: all)")
    parser.add_argument(
        "--precision", nargs="+", choices=PRECISIONS, help="default: both; float32 if --small"
    )
    parser.add_argument(
        "--steps", type=int, default=5, help="measured steps of each side (default: 5)"
    )
    parser.add_argument("--warm-up", type=int, default=1, help="steps before those (default: 1)")
    parser.add_argument(
        "--many-pairs", type=int, default=1024, help="pairs with gradient caching (default: 1024)"
    )
    parser.add_argument(
        "--small", action="store_true", help="a tiny BERT, few pairs, a made-up corpus"
    )
    parser.add_argument(
        "--before", type=Path, help="the folder src of another commit, as a side of its own"
    )
    parser.add_argument(
        "--device", choices=("auto", "cpu"), default="auto", help="default: a GPU if any"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the batches and the heads (default: 0)"
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    options.only = options.only or list(PARTS)
    options.precision = options.precision or PRECISIONS[: 1 if options.small else 2]
    return options


def main() -> int:
    """Measures, prints the tables, and returns the exit code."""
    options = parse()
    figures = measure_all(options)
    figures["options"] = {
        key: value
        for key, value in vars(options).items()
        if key not in ("output", "data_dir", "before")
    }
    figures["verdicts"] = judge(figures)
    verdicts = [
        f"{'holds' if holds else 'FAILS'}: {sentence}"
        for sentence, holds in figures["verdicts"].items()
    ]
    figures["table"] = [*tables(figures), *verdicts]
    print("\n".join(figures["table"]))
    if options.output:
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if all(figures["verdicts"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
