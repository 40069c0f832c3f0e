"""Measures a dial2vec training step beside a restatement of the released program's step.

At the paper's shape, a step is forward, backward and optimiser, for 5 dialogues of 10 samples each,
BERT-base with random weights, the lower six layers frozen. The released program
(`official_dial2vec.py`) pads every sample to 512 tokens and materialises attention and interaction;
ours pads to what is there and computes the interaction in linear time. Both start from the same
weights and read the same batch; without dropout their losses, and the cosines that enter them, must
agree within 1e-4. Each side has a process of its own, so that its peak memory is its own, and the
sides take turns, never running at the same time. Speed-up is the median over rounds of the official
side's seconds divided by ours in the same round.

    python benchmarks/dial2vec_step.py --output step.json    # SGD from HF_DIALEMB_DATA; 8 GB
    python benchmarks/dial2vec_step.py --small               # a smoke run

The released program's dialogues go through one at a time, and their gradients are added up: the
same step in about the same time, with the memory of one dialogue. Exit code 1: the two do not
agree.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from hardware import describe_machine
from processes import Side, answer_of, answers_in_turn

WORKER = Path(__file__).with_name("dial2vec_step_worker.py")
OFFICIAL = "official"
SIDES: dict[str, dict[str, Any]] = {
    OFFICIAL: {"program": "official", "dropout": 0.1, "precision": "float32"},
    "ours fp32, dropout 0.1": {"program": "ours", "dropout": 0.1, "precision": "float32"},
    "ours fp32, dropout 0": {"program": "ours", "dropout": 0.0, "precision": "float32"},
    "ours bf16, dropout 0": {"program": "ours", "dropout": 0.0, "precision": "bfloat16"},
}
COMPARED = (OFFICIAL, "ours fp32, dropout 0", "ours bf16, dropout 0")
"""Without dropout there is no difference between the other side and one of these."""
TOLERANCE = 1e-4


def measure(folder: Path, rounds: int) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Start the sides one after another, then let them take turns.

    Returns:
        Of each side, its answer without dropout, and its answers to the measured steps.
    """
    sides: list[Side] = []
    compared: dict[str, Any] = {}
    try:
        for name, settings in SIDES.items():
            sides.append(Side(name, WORKER, "work", folder, json.dumps(settings)))
            sides[-1].read()
        for side in sides:
            if side.name in COMPARED:
                compared[side.name] = side.ask("compare")
                print(
                    f"without dropout: {side.name}: loss {compared[side.name]['loss']:.6f}",
                    file=sys.stderr,
                )
        return compared, answers_in_turn(sides, rounds)
    finally:
        for side in sides:
            side.close()


def agreement(compared: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Compare each side's loss, gradient norm and cosines with the official side's."""
    reference = compared[OFFICIAL]
    result = {}
    for name, answer in compared.items():
        differences = [
            abs(x - y)
            for x, y in zip(_flat(answer["cosines"]), _flat(reference["cosines"]), strict=True)
        ]
        result[name] = {
            "loss": answer["loss"],
            "loss_difference": abs(answer["loss"] - reference["loss"]),
            "largest_cosine_difference": max(differences),
            "cosine_range": [min(_flat(answer["cosines"])), max(_flat(answer["cosines"]))],
            "gradient_norm": answer["gradient_norm"],
        }
    return result


def _flat(cosines: list[list[list[float]]]) -> list[float]:
    return [value for dialogue in cosines for sample in dialogue for value in sample]


def timing(steps: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """Return each side's seconds and peak memory, and the official side's in proportion."""
    official = steps[OFFICIAL]
    peaks = {
        name: max(answer["peak_bytes"] for answer in answers) for name, answers in steps.items()
    }
    result = {}
    for name, answers in steps.items():
        paired = [
            theirs["seconds"] / own["seconds"]
            for theirs, own in zip(official, answers, strict=True)
        ]
        result[name] = {
            "seconds": [answer["seconds"] for answer in answers],
            "median_seconds": statistics.median(answer["seconds"] for answer in answers),
            "peak_gib": peaks[name] / 2**30,
            "speedup": statistics.median(paired),
            "memory_ratio": peaks[OFFICIAL] / peaks[name],
        }
    return result


def tables(figures: dict[str, Any]) -> list[str]:
    """Render the figures as lines of text."""
    batch = figures["batch"]
    machine = figures["machine"]
    extensions = (
        ", ".join(name for name, there in machine["extensions"].items() if there)
        or "no bfloat16 instructions"
    )
    where = f"{machine['processor']} ({machine['cores']} cores, {extensions})"
    lines = [
        f"{machine['accelerator'] or where}, torch {machine['torch']}",
        f"{batch['sequences']} sequences from {batch['corpus']}: {batch['mean_length']:.0f} tokens "
        "on average, "
        f"{batch['maximal_length']} at most, {batch['truncated']} truncated; official: 512 each",
        f"\n{'without dropout':<24} {'loss':>10} {'difference':>11} {'cosines':>17} "
        f"{'difference':>11} {'gradient':>10}",
    ]
    for name, row in figures["agreement"].items():
        low, high = row["cosine_range"]
        lines.append(
            f"{name:<24} {row['loss']:>10.6f} {row['loss_difference']:>11.1e} {low:>7.4f} to "
            f"{high:.4f} "
            f"{row['largest_cosine_difference']:>11.1e} {row['gradient_norm']:>10.6f}"
        )
    lines.append(
        f"\n{'training step':<24} {'seconds':>9} {'peak GiB':>9} {'speed-up':>9} "
        f"{'memory ratio':>13}"
    )
    for name, row in figures["timing"].items():
        lines.append(
            f"{name:<24} {row['median_seconds']:>9.2f} {row['peak_gib']:>9.2f} "
            f"{row['speedup']:>8.1f}x "
            f"{row['memory_ratio']:>12.1f}x"
        )
    lines.append("official: one dialogue per forward pass, so is its peak memory")
    return [line for text in lines for line in text.split("\n")]


def main() -> int:
    """Measures, prints the tables, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3, help="measured steps (default: 3)")
    parser.add_argument("--dialogues", type=int, default=5, help="in the batch (default: 5)")
    parser.add_argument("--small", action="store_true", help="2 layers of width 64, made-up data")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    wanted = {"small": options.small, "dialogues": options.dialogues}
    with tempfile.TemporaryDirectory() as name:
        batch = answer_of(WORKER, "prepare", name, json.dumps(wanted))
        compared, steps = measure(Path(name), options.steps)
    figures = {
        "machine": {
            **describe_machine(),
            "torch": batch["torch"],
            "accelerator": batch["accelerator"],
        },
        "batch": batch,
        "agreement": agreement(compared),
        "timing": timing(steps),
    }
    figures["table"] = tables(figures)
    print("\n".join(figures["table"]))
    ours = figures["agreement"]["ours fp32, dropout 0"]
    agrees = max(ours["loss_difference"], ours["largest_cosine_difference"]) < TOLERANCE
    print(
        f"{'holds' if agrees else 'FAILS'}: loss and cosines of ours in fp32 differ by less than "
        f"{TOLERANCE}"
    )
    if options.output:
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
