"""Measures training and encoding on all cores while another process keeps one of them busy, beside
the idle machine.

Each way of waiting is a process of its own: torch's default, where threads that wait for one
another spin for long; ours, where they spin for short and then sleep; sleeping at once
(``OMP_WAIT_POLICY=passive``); and one thread less. The load is a loop that this program starts and
ends. The ways take turns. The rate that is kept is the idle seconds of torch's default divided by
the seconds under load in the same round.

    python benchmarks/under_load.py --output under_load.json    # ten minutes on all cores
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from hardware import describe_machine
from processes import answer_of, peak_bytes

from hf_dialemb.storage.hardware import SPINS

TEXTS = 64
BUSY = "while True: sum(range(1000))"
WAYS: dict[str, dict[str, str]] = {
    "as it comes": {},
    "ours": {"GOMP_SPINCOUNT": str(SPINS)},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "one thread less": {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 2) - 1))},
}


def work(kind: str, seconds: float) -> dict[str, float]:
    """Encode, or take training steps over, the package's own sample again and again.

    Returns:
        The median seconds, and the peak memory of this process.
    """
    import torch

    import hf_dialemb
    from hf_dialemb.methods import get_method
    from hf_dialemb.methods.layout import Truncation
    from hf_dialemb.storage.pretrained import MINILM, resolve_backbone

    dialogues = hf_dialemb.load_dialogues("sample")
    texts = list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))[
        :TEXTS
    ]
    if kind == "encoding":
        encoder = hf_dialemb.load_encoder("all-MiniLM-L6-v2")

        def step() -> None:
            encoder.encode_utterances(texts)
    else:
        method = get_method("dse")
        model: Any
        model, tokenizer = method.model_class.build(
            resolve_backbone(MINILM), dialogues, 0.0, max_tokens=32
        )
        model.train(True).set_attn_implementation("eager")
        batch = method.collate(
            list(zip(texts[::2], texts[1::2], strict=True)), tokenizer, model.config, Truncation()
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

        def step() -> None:
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    found, ends = [], time.perf_counter() + seconds
    step()
    while time.perf_counter() < ends or len(found) < 3:
        started = time.perf_counter()
        step()
        found.append(time.perf_counter() - started)
    return {"seconds": median(found), "peak_mib": peak_bytes() / 2**20}


def timed(kind: str, way: str, loaded: bool, seconds: float) -> dict[str, float]:
    """Lets a process of its own work, perhaps beside a busy one."""
    load = subprocess.Popen([sys.executable, "-c", BUSY]) if loaded else None
    try:
        return answer_of(__file__, "--work", kind, "--seconds", str(seconds), environment=WAYS[way])
    finally:
        if load is not None:
            load.kill()
            load.wait()


def measure(kind: str, ways: list[str], rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Lets the ways take turns, the first being torch's default, alone and then beside a busy
    process.

    Returns:
        A row for each way, with its seconds and the rate that it kept in every round.
    """
    found: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, runs in found.items():
            runs.append((timed(kind, way, False, seconds), timed(kind, way, True, seconds)))
    default = [idle["seconds"] for idle, _ in found[ways[0]]]
    rows = []
    for way, runs in found.items():
        idle, loaded = ([run[at]["seconds"] for run in runs] for at in (0, 1))
        kept = [usual / own for usual, own in zip(default, loaded, strict=True)]
        row = {
            "work": kind,
            "way": way,
            "idle_seconds": idle,
            "loaded_seconds": loaded,
            "kept": kept,
        }
        rows.append({**row, "peak_mib": max(run["peak_mib"] for both in runs for run in both)})
        print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def main() -> None:
    """Measures, and prints or writes the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=8, help="that each process works (default: 8)"
    )
    parser.add_argument(
        "--way", nargs="+", choices=WAYS, default=list(WAYS), help="beside torch's (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of each way (default: 3)")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", choices=("encoding", "training"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(options.work, options.seconds)))
        return
    kinds, ways = ("encoding", "training"), list(dict.fromkeys(["as it comes", *options.way]))
    rows = [row for kind in kinds for row in measure(kind, ways, options.rounds, options.seconds)]
    if options.output:
        options.output.write_text(
            json.dumps({"machine": describe_machine(), "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
