"""Measures the methods' training steps and encoding on one GPU; where there is none, it says so and ends.

The backbone has BERT-base's sizes and random weights, which are as fast as trained ones. Seconds of a step are those of
a longer run less those of a shorter one, divided by the steps between. "Of the card" is the share of its measured rate
of bfloat16 products that the layers reach, at 2 operations for a weight and a token, three times that in training.

    python benchmarks/gpu.py --output docs/results/gpu.json             # SGD from HF_DIALEMB_DATA; ten minutes
    python benchmarks/gpu.py --device cpu --corpus sample --layers 4    # a smoke run
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from encoding import Tokens
from hardware import describe_machine
from transformers import AutoTokenizer, BertConfig, BertModel

import hf_dialemb
from hf_dialemb.models.backbones import MINILM, resolve_backbone

METHODS = {"dial2vec": 16, "dse": 256, "dialogue_cse": 64, "dialog2flow": 256}
"""The methods, and how many examples a step of each has."""
SHORT, LONG = 10, 40


def product_rate(device: str) -> float:
    """Measures operations a second of large bfloat16 products."""
    size = 8192 if device == "cuda" else 1024
    left, right = (torch.randn(size, size, device=device).bfloat16() for _ in range(2))
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    rates = []
    for _ in range(10):
        wait()
        started = time.perf_counter()
        left @ right
        wait()
        rates.append(2 * size**3 / (time.perf_counter() - started))
    return max(rates)


def backbone(folder: Path, layers: int) -> int:
    """Writes the backbone; returns how many weights of its layers a token is multiplied with."""
    tokenizer = AutoTokenizer.from_pretrained(resolve_backbone(MINILM))
    config = BertConfig(vocab_size=len(tokenizer), num_hidden_layers=layers)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return layers * (4 * config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size)


def trained(method: str, size: int, dialogues: list[Any], folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measures steps of a method, on the GPU in bfloat16."""
    spent, tokens = {}, Tokens()
    recipe = f"{method}_single_minilm" if method == "dialog2flow" else f"{method}_minilm"
    settings = {
        "recipe": recipe,
        "per_device_train_batch_size": size,
        "save_strategy": "no",
        "disable_tqdm": True,
        "exclude": ["none"],
    }
    settings |= {"bf16": options.device == "cuda", "use_cpu": options.device == "cpu"}
    for steps in (SHORT, SHORT, LONG) if options.device == "cuda" else (1, 3):  # the first warms
        output, started = folder / "run", time.perf_counter()
        hf_dialemb.train(
            method, dialogues, backbone=str(folder / "bert"), output_dir=output, max_steps=steps, **settings
        )
        spent[steps] = time.perf_counter() - started, tokens.taken()[0]
        shutil.rmtree(output)
    (short, few), (long, many) = (spent[steps] for steps in (min(spent), max(spent)))
    steps = max(spent) - min(spent)
    return {"step_seconds": (long - short) / steps, "step_tokens": (many - few) / steps, "batch": size}


def encoded(dialogues: list[Any], folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Measures encoding beside sentence-transformers, taking turns."""
    from sentence_transformers import SentenceTransformer

    said = list(dict.fromkeys(turn.content for each in dialogues for turn in each.turns))[
        : 20_000 if device == "cuda" else 50
    ]
    tokens, peer = Tokens(), SentenceTransformer(str(folder / "bert"), device=device)
    for spec in (f"{folder / 'bert'}@utterances", f"{folder / 'bert'}@utterances,bfloat16"):
        ways = hf_dialemb.load_encoder(spec).encode_utterances, partial(peer.encode, batch_size=256)
        ratios = []
        for _ in range(4):
            seconds, padding = [], []
            for encode in ways:
                started = time.perf_counter()
                encode(said)
                seconds.append(time.perf_counter() - started)
                read, places = tokens.taken()
                padding.append(1 - read / places)
            ratios.append(seconds[1] / seconds[0])
        kind = "bfloat16" if "bfloat16" in spec else "float32"
        yield {
            "kind": kind,
            "per_second": len(said) / seconds[0],
            "tokens": read,
            "seconds": seconds[0],
            "ratios": ratios[1:],
            "padding": {"ours": padding[0], "sentence-transformers": padding[1]},
        }


def main() -> None:
    """Measures, prints the table, and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--corpus", default="sgd")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("There is no GPU here: nothing is measured")
        return
    dialogues = hf_dialemb.load_dialogues(options.corpus, split="train")
    rate = product_rate(options.device)
    lines = ["| | Tokens a second | Of the card | Beside sentence-transformers |", "| :-- | --: | --: | --: |"]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        weights = backbone(Path(name) / "bert", options.layers)
        for method, size in METHODS.items():
            found = trained(method, size if options.device == "cuda" else 4, dialogues, Path(name), options)
            pace = found["step_tokens"] / found["step_seconds"]
            rows.append({"method": method, **found, "of_card": 6 * weights * pace / rate})
            lines.append(f"| train {method} | {pace:,.0f} | {rows[-1]['of_card']:.0%} | |")
        for found in encoded(dialogues, Path(name), options.device):
            pace = found["tokens"] / found["seconds"]
            rows.append({**found, "of_card": 2 * weights * pace / rate})
            ratio = sorted(found["ratios"])[len(found["ratios"]) // 2]
            lines.append(
                f"| encode utterances, {found['kind']} | {pace:,.0f} | {rows[-1]['of_card']:.0%} | {ratio:.2f} |"
            )
    print("\n".join(lines))
    card = torch.cuda.get_device_name() if options.device == "cuda" else "none"
    record = {"machine": describe_machine(), "card": card, "operations_per_second": rate, "rows": rows, "table": lines}
    if options.output:
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
