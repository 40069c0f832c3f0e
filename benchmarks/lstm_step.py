"""Measures a training step of the paper's ranker of two LSTMs on a processor.

Ours, and two plain ways through torch.

A step is forward and backward over a batch of contexts of MultiWOZ with twenty responses each, at
the sizes of the recipe. Ours reads parts of like length, padded, by torch's fused LSTM; the others
read packed sequences, which is how torch leaves padding out, or the whole batch padded to its
longest text. All have the same weights and loss, and take turns; the peak memory of each comes from
one step in a process of its own.

    python benchmarks/lstm_step.py --output lstm_step.json    # MultiWOZ from HF_DIALEMB_DATA; a
    minute or two
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from hardware import describe_machine
from processes import answer_of, peak_bytes
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from hf_dialemb.data import load_dialogues
from hf_dialemb.methods import batching, get_method
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.modeling.modeling_dual_encoder import WordTower

PAIRS, EPOCHS = 32, 20
"""Contexts a step, and the recipe's epochs."""


def packed(tower: Any, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Return the last states of a tower, by packed sequences."""
    lengths = attention_mask.sum(-1).clamp(min=1)
    sequences = pack_padded_sequence(
        tower.words(input_ids), lengths, batch_first=True, enforce_sorted=False
    )
    states: Tensor = tower.reader(sequences)[1][0][0]
    return states


WAYS: dict[str, tuple[Any, int]] = {
    "ours": (WordTower.forward, batching.TOKENS),
    "packed sequences": (packed, 10**6),
    "padded to the longest": (WordTower.forward, 10**6),
}
"""How a tower reads, and how many tokens a row of a part stands for."""


def prepare(dialogues: int, steps: int) -> tuple[Any, list[dict[str, Tensor]], int]:
    """Build the model and several batches; also count the responses of the whole corpus."""
    torch.manual_seed(0)
    method, whole = get_method("dual_encoder"), load_dialogues("multiwoz", split="train")
    model, tokenizer = method.model_class.build(None, whole, num_candidates=20)
    examples, count = method.examples(whole[:dialogues], model.config, 0), Truncation()
    rows = [examples.example(0, number) for number in range(steps * PAIRS)]
    parts = (rows[start : start + PAIRS] for start in range(0, len(rows), PAIRS))
    batches = [method.collate(part, tokenizer, model.config, count) for part in parts]
    return (
        model,
        batches,
        sum(turn.role == "assistant" for each in whole for turn in each.turns[1:]),
    )


def forward_backward(way: str, model: Any, batch: dict[str, Tensor]) -> float:
    """Compute the gradients in one way; return the loss."""
    WordTower.forward, batching.TOKENS = WAYS[way]  # type: ignore[method-assign]
    loss = model(**batch).loss
    loss.backward()
    return float(loss.detach())


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Lets the ways take turns, a step each."""
    # the peaks first: a child's starts from its parent's
    words = ("--dialogues", str(options.dialogues))
    peaks = {way: answer_of(__file__, "--peak", way, *words) for way in WAYS}
    model, batches, turns = prepare(options.dialogues, options.steps + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    losses: dict[str, float] = {}
    for batch in batches:
        for way in WAYS:
            optimizer.zero_grad()
            started = time.perf_counter()
            loss = forward_backward(way, model, batch)
            seconds[way].append(time.perf_counter() - started)
            losses.setdefault(way, loss)
        optimizer.step()
    taken = {way: found[1:] for way, found in seconds.items()}  # the first step of each sets up
    tokens = [
        int(batch["attention_mask"].sum() + batch["candidate_mask"].sum()) for batch in batches[1:]
    ]
    weights = (
        sum(value.numel() for name, value in model.named_parameters() if ".reader.weight" in name)
        // 2
    )
    hours = median(taken["ours"]) * turns / PAIRS * EPOCHS / 3600
    return {
        "machine": describe_machine(),
        "seconds": taken,
        "peak_mib": peaks,
        "tokens": tokens,
        "weights": weights,
        "losses": losses,
        "hours": hours,
        "contexts": turns,
        "epochs": EPOCHS,
    }


def main() -> None:
    """Measures, and prints and writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=8, help="of each way (default: 8)")
    parser.add_argument(
        "--dialogues", type=int, default=1_000, help="of MultiWOZ's training split (default: 1000)"
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--peak", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        model, batches, _ = prepare(options.dialogues, 1)
        forward_backward(options.peak, model, batches[0])
        print(peak_bytes() / 2**20)
        return
    record = measure(options)
    for way, found in record["seconds"].items():
        peak, loss = record["peak_mib"][way], record["losses"][way]
        print(f"{way:22} {median(found):.2f} s a step, {peak:,.0f} MiB, loss {loss:.6f}")
    print(
        f"ours: {record['hours']:.1f} hours for {EPOCHS} epochs of {record['contexts']:,} contexts"
    )
    if options.output:
        options.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
