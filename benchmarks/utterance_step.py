"""Measures training steps of utterance encoders beside the nearest ones of sentence-transformers.

A step is all that a trainer does for one batch: read and tokenise the texts, forward, backward,
gradient clipping, AdamW. Ours runs in the trainer that ``dialemb train`` builds, the peer in its
own SentenceTransformerTrainer. Both start from all-MiniLM-L6-v2 and read the same texts of SGD in
the same order, cut to the same number of tokens, with the backbone's own dropout, in float32 or
under bfloat16 autocast. Each side has a process of its own, so that its peak memory is its own, and
the sides take turns, never running at the same time. What is compared:

- DSE with plain weights, and MultipleNegativesRankingLoss over all four of its directions at DSE's
  temperature. Both compare every utterance of the batch with every other, and yet they are not one
  loss. With Z(q) and Z(r) the sums over what a query and its response are compared with, and s
  their own cosine over the temperature, a pair costs (log Z(q) + log Z(r)) / 2 - s in DSE, where
  both are anchors, and log(Z(q) + Z(r)) - s in the peer, which has one softmax for both.
- Dialog2Flow, single target, hard contrast, and BatchAllTripletLoss. sentence-transformers has no
  supervised contrastive loss; of its losses of labelled utterances this alone takes, as that does,
  all utterances of a label as positives and all others as negatives, though with a margin instead
  of a softmax. The peer reads the utterances of our pairs one by one, with their labels.
- DialogueCSE, and MultipleNegativesRankingLoss over the same texts: of each example, the first turn
  of its context is the anchor, the response the positive, and what else ours reads are negatives.
  That is another objective over the same tokens. The peer sends all but the anchors through the
  backbone at once, padded to the longest, as is its default.

Ours also trains its contrastive head, a Linear-ReLU-Linear over the embeddings, which the peer
lacks.

    python benchmarks/utterance_step.py --output utterance_step.json    # SGD from HF_DIALEMB_DATA
    python benchmarks/utterance_step.py --small                         # a smoke run, needs no data

Ratios of seconds are medians over rounds of a side's seconds divided by ours in the same round.
Exit code 1: the sides do not read the same.
"""

import argparse
import json
import statistics
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from hardware import describe_machine
from processes import Side, answer_of, answers_in_turn

WORKER = Path(__file__).with_name("utterance_step_worker.py")
OURS = "ours"
PEER = "sentence-transformers"
PAIRS = {"dse": 64, "dialog2flow": 64, "dialogue_cse": 20}
"""The methods, and how many examples a batch has."""
PRECISIONS = ("float32", "bfloat16")
SAME_COSINES = 1e-4
"""How far the cosines of the same pairs may be apart between sides, without dropout."""


def measure(folder: Path, settings: dict[str, Any], rounds: int) -> dict[str, dict[str, Any]]:
    """Start both sides, then let them take turns.

    Returns:
        Each side's seconds and memory, and how many times ours they are.
    """
    sides = []
    try:
        for name in (OURS, PEER):
            words = (WORKER, "work", folder, json.dumps({**settings, "side": name}))
            sides.append(Side(name, *words))
        ready = {side.name: side.read() for side in sides}
        steps = answers_in_turn(sides, rounds)
    finally:
        for side in sides:
            side.close()
    own = ready[OURS]["cosines"]
    result: dict[str, dict[str, Any]] = {}
    for name, answers in steps.items():
        apart = [abs(x - y) for x, y in zip(ready[name]["cosines"], own, strict=True)]
        seconds = [answer["seconds"] for answer in answers]
        result[name] = {
            "attention": ready[name]["attention"],
            "seconds": seconds,
            "median_seconds": statistics.median(seconds),
            "peak_mib": max(answer["peak_bytes"] for answer in answers) / 2**20,
            "cosine_difference": max(apart),
        }
    for row in result.values():
        ours = result[OURS]
        ratios = [x / y for x, y in zip(row["seconds"], ours["seconds"], strict=True)]
        row["seconds_ratio"] = statistics.median(ratios)
        row["peak_ratio"] = row["peak_mib"] / ours["peak_mib"]
    return result


def tables(figures: dict[str, Any]) -> list[str]:
    """Render the figures as lines of text."""
    machine = figures["machine"]
    inputs = figures["inputs"]
    where = machine["accelerator"] or f"{machine['processor']}, {machine['threads']} threads"
    versions = ", ".join(f"{name} {value}" for name, value in figures["versions"].items())
    lines = [f"{where}; {versions}"]
    for batch in inputs["batches"]:
        lines.append(
            f"{batch['method']}: {batch['pairs']:,} pairs a batch from {inputs['corpus']}, "
            f"{batch['mean_length']:.1f} tokens an utterance, {batch['maximal_length']} at most, "
            f"{batch['truncated']:.1%} cut"
        )
    for part, sides in figures["timing"].items():
        lines += ["", f"{part:<24} {'seconds':>8} {'ratio':>6} {'peak MiB':>9} {'ratio':>6}"]
        for name, row in sides.items():
            lines.append(
                f"{name:<24} {row['median_seconds']:>8.2f} {row['seconds_ratio']:>6.2f} "
                f"{row['peak_mib']:>9,.0f} {row['peak_ratio']:>6.2f}"
            )
    return lines


def main() -> int:
    """Measures, prints the tables, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PAIRS, default=PAIRS, help="default: all")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--steps", type=int, default=5, help="measured steps (default: 5)")
    parser.add_argument("--small", action="store_true", help="a tiny BERT, a made-up corpus")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    pairs = {method: 4 if options.small else PAIRS[method] for method in options.only}
    total = 1 + options.steps + 1  # one warms up, and a trainer reads one batch ahead
    timing: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = {"small": options.small, "steps": total, "batches": list(pairs.items())}
        inputs = answer_of(WORKER, "prepare", folder, json.dumps(wanted))
        for precision, method in product(options.precision, pairs):
            print(f"{method}, {precision}", file=sys.stderr)
            settings = {"method": method, "pairs": pairs[method], "precision": precision}
            timing[f"{method}, {precision}"] = measure(
                folder, {**settings, "steps": total}, options.steps
            )
    machine = {name: inputs.pop(name) for name in ("threads", "accelerator")}
    figures = {
        "machine": {**describe_machine(), **machine},
        "versions": inputs.pop("versions"),
        "inputs": inputs,
        "timing": timing,
    }
    figures["table"] = tables(figures)
    largest = max(row["cosine_difference"] for sides in timing.values() for row in sides.values())
    same = largest < SAME_COSINES
    print("\n".join(figures["table"]))
    print(
        f"{'holds' if same else 'FAILS'}: cosines of the same pairs differ by less than "
        f"{SAME_COSINES} ({largest:.1e})"
    )
    if options.output:
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
