"""Times all-MiniLM-L6-v2's layers with plain attention and with torch's fused kernel, by the length
of texts.

Batches of every length hold as many tokens. Both ways take turns; a ratio is the kernel's seconds
divided by those of plain attention in the same round, so that above one plain attention is quicker.
Its median is told. There is no dropout, which the fused kernel does not have on processors.

    python benchmarks/attention.py --output docs/results/attention.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import torch
from hardware import describe_machine
from transformers import AutoModel

from hf_dialemb.drawing import table_lines
from hf_dialemb.storage.pretrained import MINILM, resolve_backbone

LENGTHS = (16, 32, 64, 128, 256, 384, 512)
TOKENS = 4096
NUMBERS = ("float32", "bfloat16")
PHASES = ("forward", "forward and backward")


def step(model: Any, length: int, numbers: str, phase: str) -> Callable[[], None]:
    """Make what is timed: one batch of texts without padding through the layers."""
    ids = torch.randint(
        1000, 20_000, (TOKENS // length, length), generator=torch.Generator().manual_seed(0)
    )
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def work() -> None:
        with torch.autocast("cpu") if numbers == "bfloat16" else nullcontext():
            if phase == "forward":
                with torch.inference_mode():
                    model(**given)
                return
            states = model(**given).last_hidden_state
        states.float().square().mean().backward()
        model.zero_grad(set_to_none=True)

    return work


def seconds(work: Callable[[], None]) -> float:
    """Time it once."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Draws a row for each length."""
    heads = [f"{phase}, {numbers}" for numbers in NUMBERS for phase in PHASES]
    # as the heads
    found = (
        [f"{row['ratio']:.2f}" for row in rows if row["length"] == length] for length in LENGTHS
    )
    return table_lines(
        (),
        ["tokens", *heads],
        ([str(length), *each] for length, each in zip(LENGTHS, found, strict=True)),
    )


def main() -> None:
    """Measure, print the table, and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    folder = resolve_backbone(MINILM)
    models = {
        kind: AutoModel.from_pretrained(
            folder, attn_implementation=kind, add_pooling_layer=False
        ).eval()
        for kind in ("eager", "sdpa")
    }
    rows = []
    for numbers in NUMBERS:
        for phase in PHASES:
            for length in LENGTHS:
                works = {
                    kind: step(model, length, numbers, phase) for kind, model in models.items()
                }
                for work in works.values():
                    work()
                rounds = [
                    {kind: seconds(work) for kind, work in works.items()}
                    for _ in range(options.rounds)
                ]
                row: dict[str, Any] = {
                    "numbers": numbers,
                    "phase": phase,
                    "length": length,
                    "seconds": rounds,
                }
                row["ratio"] = median(each["sdpa"] / each["eager"] for each in rounds)
                rows.append(row)
    lines = table(rows)
    print("\n".join(lines))
    if options.output:
        threads = torch.get_num_threads()
        record = {
            "machine": {**describe_machine(), "threads": threads},
            "tokens": TOKENS,
            "rows": rows,
            "table": lines,
        }
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
