"""Measures training and encoding on all cores while another process keeps one of them busy, beside the idle machine.

Each way of waiting is a process of its own: torch's default, where threads that wait for one another spin for long;
ours, where they spin for short and then sleep; sleeping at once (``OMP_WAIT_POLICY=passive``); and one thread less. The
load is a loop that this program starts and ends.
The rate that is kept is the idle seconds of torch's default divided by the seconds under load.

    python benchmarks/under_load.py --output under_load.json    # a few minutes on all cores
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

from hf_dialemb.runs.hardware import SPINS

BUSY = "while True: sum(range(1000))"
WAYS: dict[str, dict[str, str]] = {
    "as it comes": {},
    "ours": {"GOMP_SPINCOUNT": str(SPINS)},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "one thread less": {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 2) - 1))},
}


def work(kind: str, seconds: float) -> float:
    """Encodes, or takes training steps over, the package's own sample again and again; returns its median seconds."""
    import torch

    import hf_dialemb
    from hf_dialemb.models import get_method
    from hf_dialemb.models.backbones import MINILM, resolve_backbone
    from hf_dialemb.models.layout import Truncation

    dialogues = hf_dialemb.load_dialogues("sample")
    texts = list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))[:64]
    if kind == "encoding":
        encoder = hf_dialemb.load_encoder("all-MiniLM-L6-v2")

        def step() -> None:
            encoder.encode_utterances(texts)
    else:
        method = get_method("dse")
        model: Any
        model, tokenizer = method.model_class.build(resolve_backbone(MINILM), dialogues, 0.0, max_tokens=32)
        model.train(True).set_attn_implementation("eager")
        batch = method.collate(list(zip(texts[::2], texts[1::2], strict=True)), tokenizer, model.config, Truncation())
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
    return median(found)


def timed(kind: str, way: str, loaded: bool, seconds: float) -> float:
    """Lets a process of its own work, perhaps beside a busy one."""
    load = subprocess.Popen([sys.executable, "-c", BUSY]) if loaded else None
    try:
        command = [sys.executable, __file__, "--work", kind, "--seconds", str(seconds)]
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **WAYS[way]})
    finally:
        if load is not None:
            load.kill()
            load.wait()
    return float(run.stdout)


def main() -> None:
    """Measures, and prints or writes the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8, help="that each process works (default: 8)")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", choices=("encoding", "training"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(work(options.work, options.seconds))
        return
    rows = []
    for kind in ("encoding", "training"):
        idle = {way: timed(kind, way, False, options.seconds) for way in WAYS}
        for way in WAYS:
            loaded = timed(kind, way, True, options.seconds)
            row = {"work": kind, "way": way, "idle_seconds": idle[way], "loaded_seconds": loaded}
            rows.append({**row, "kept": idle["as it comes"] / loaded})
            print(json.dumps(rows[-1]), file=sys.stderr)
    if options.output:
        options.output.write_text(json.dumps({"machine": describe_machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
