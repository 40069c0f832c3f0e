"""Measures a training step of the paper's ranker of two LSTMs on a processor: ours, and two plain ways through torch.

A step is forward and backward over a batch of contexts of MultiWOZ with twenty responses each, at the sizes of the
recipe. Ours reads parts of like length, padded, by torch's fused LSTM; the others read packed sequences, which is how
torch leaves padding out, or the whole batch padded to its longest text. All have the same weights and loss, and take
turns.

    python benchmarks/lstm_step.py --output lstm_step.json    # MultiWOZ from HF_DIALEMB_DATA; a minute or two
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
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.models import batching, dual_encoder, get_method
from hf_dialemb.models.layout import Truncation

PAIRS, EPOCHS = 32, 20
"""Contexts a step, and the recipe's epochs."""


def packed(tower: Any, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """The last states of a tower, by packed sequences."""
    lengths = attention_mask.sum(-1).clamp(min=1)
    sequences = pack_padded_sequence(tower.words(input_ids), lengths, batch_first=True, enforce_sorted=False)
    states: Tensor = tower.reader(sequences)[1][0][0]
    return states


WAYS: dict[str, tuple[Any, int]] = {
    "ours": (dual_encoder.WordTower.forward, batching.TOKENS),
    "packed sequences": (packed, 10**6),
    "padded to the longest": (dual_encoder.WordTower.forward, 10**6),
}
"""How a tower reads, and how many tokens a row of a part stands for."""


def main() -> None:
    """Measures, and prints and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8, help="of each way (default: 8)")
    parser.add_argument("--dialogues", type=int, default=1_000, help="of MultiWOZ's training split (default: 1000)")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    torch.manual_seed(0)
    method, whole = get_method("dual_encoder"), load_dialogues("multiwoz", split="train")
    model: Any
    model, tokenizer = method.model_class.build(None, whole, num_candidates=20)
    examples = method.examples(whole[: options.dialogues], model.config, 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    losses: dict[str, float] = {}
    last = [*WAYS][-1]
    for step in range(options.steps + 1):
        numbers = range(step * PAIRS, (step + 1) * PAIRS)
        batch = method.collate(
            [examples.example(0, number) for number in numbers], tokenizer, model.config, Truncation()
        )
        for way, (forward, tokens) in WAYS.items():
            dual_encoder.WordTower.forward, batching.TOKENS = forward, tokens  # type: ignore[method-assign]
            started = time.perf_counter()
            loss = model(**batch).loss
            loss.backward()
            seconds[way].append(time.perf_counter() - started)
            if way != last:
                optimizer.zero_grad()
            losses.setdefault(way, float(loss.detach()))
        optimizer.step()
        optimizer.zero_grad()
    turns = sum(turn.role == "assistant" for dialogue in whole for turn in dialogue.turns[1:])
    taken = {way: found[1:] for way, found in seconds.items()}  # the first step of each sets up
    hours = median(taken["ours"]) * turns / PAIRS * EPOCHS / 3600
    record = {"machine": describe_machine(), "seconds": taken, "losses": losses, "hours": hours}
    for way, found in taken.items():
        print(f"{way:22} {median(found):.2f} s a step, loss {losses[way]:.6f}")
    print(f"ours: {hours:.1f} hours for {EPOCHS} epochs of {turns:,} contexts")
    if options.output:
        options.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
