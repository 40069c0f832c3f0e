"""Measures the methods' training steps and encoding on one GPU.

Where there is none, it says so and ends.

The backbone has BERT-base's sizes and random weights, which are as fast as trained ones. "Of the
card" is the share of its measured rate of bfloat16 products that the layers reach, at 2 operations
for a weight and a token, three times that in training. The rest of a row says where the time goes,
by the kernels of a profile; "waiting" is when none ran. Steps are timed after a few that are not;
ratios are of rounds in which both sides took turns.

    python benchmarks/gpu.py --output docs/results/gpu.json             # some minutes
    python benchmarks/gpu.py --device cpu --corpus sample --layers 2    # a smoke run
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from encoding import Tokens
from hardware import describe_machine
from torch.profiler import ProfilerActivity, profile
from transformers import AutoTokenizer, BertConfig, BertModel

import hf_dialemb
from hf_dialemb.encoders.encoder import dialogue_texts
from hf_dialemb.training.trainer import DialogueTrainer

METHODS = {
    "dial2vec": ("dial2vec_minilm", 32),
    "dse": ("dse_minilm", 2048),
    "dialogue_cse": ("dialogue_cse_minilm", 256),
    "dialog2flow": ("dialog2flow_single_minilm", 2048),
}
"""The methods, the recipe of each, and how many examples a step has."""
WARM = 5
STEPS = 20
PROFILED = 3
ROUNDS = 3
PRODUCTS = "products, attention"
REST = "other kernels"
WAITING = "waiting"
KERNELS = {
    PRODUCTS: (
        "gemm",
        "nvjet",
        "cutlass",
        "xmma",
        "splitk",
        "fmha",
        "flash",
        "attention",
        "softmax",
    ),
    "normalisation": ("layer_norm", "layernorm"),
    "activation": ("gelu",),
    "optimiser": ("multi_tensor", "adam"),
    "copies, casts": ("memcpy", "memset", "copy", "catarray"),
}
"""What is told of kernels, and what their names have within; the first that fits."""


def product_rate(device: str) -> float:
    """Measures operations a second of large bfloat16 products."""
    size = 8192 if device == "cuda" else 1024
    left, right = (torch.randn(size, size, device=device).bfloat16() for _ in range(2))
    rates = []
    for _ in range(20):
        wait(device)
        started = time.perf_counter()
        left @ right
        wait(device)
        rates.append(2 * size**3 / (time.perf_counter() - started))
    return median(rates[5:])


def wait(device: str) -> None:
    """Wait until an accelerator has done all that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def backbone(folder: Path, layers: int) -> int:
    """Write the backbone; return how many weights of its layers a token is multiplied with."""
    tokenizer = AutoTokenizer.from_pretrained(
        Path(hf_dialemb.__file__).parent / "weights" / "dialogue-minilm"
    )
    config = BertConfig(vocab_size=len(tokenizer), num_hidden_layers=layers)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return layers * (4 * config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size)


class Clock:
    """Times the steps of a training from within, then profiles some more."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.count = 0
        self.tokens = Tokens()
        self.found: dict[str, Any] = {}
        self.profile = profile(activities=[ProfilerActivity.CUDA])

    def __call__(self) -> None:
        """Note that a step begins."""
        if self.count == WARM:
            wait(self.device)
            self.tokens.taken()
            self.started = time.perf_counter()
        if self.count == WARM + STEPS:
            wait(self.device)
            read, places = self.tokens.taken()
            spent = time.perf_counter() - self.started
            self.found = {
                "step_seconds": spent / STEPS,
                "step_tokens": read / STEPS,
                "pace": read / spent,
            }
            self.found["padding"] = 1 - read / places
            if self.device == "cuda":
                self.profile.start()
        if self.count == WARM + STEPS + PROFILED and self.device == "cuda":
            wait(self.device)
            self.profile.stop()
            self.found["parts"] = parts(self.profile, PROFILED * self.found["step_seconds"])
        self.count += 1


def parts(found: profile, seconds: float) -> dict[str, float]:
    """Says what share of some seconds each kind of kernel takes."""
    spent: Counter[str] = Counter()
    for event in found.key_averages():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            name = event.key.lower()
            kind = next(
                (kind for kind, words in KERNELS.items() if any(word in name for word in words)),
                REST,
            )
            spent[kind] += event.self_device_time_total / 1e6
    told = {kind: spent[kind] / seconds for kind in (*KERNELS, REST)}
    return told | {WAITING: 1 - sum(told.values())}


def trained(
    method: str, dialogues: list[Any], folder: Path, device: str, **more: Any
) -> dict[str, Any]:
    """Measures steps of a method, on the GPU in bfloat16."""
    recipe, size = METHODS[method]
    settings = {
        "backbone": str(folder / "bert"),
        "recipe": recipe,
        "per_device_train_batch_size": size if device == "cuda" else 4,
        "frozen_layers": 0,
        "save_strategy": "no",
        "average_with_backbone": 0,
        "disable_tqdm": True,
        "bf16": device == "cuda",
        "use_cpu": device == "cpu",
        "dataloader_num_workers": 4 if device == "cuda" else 0,
        "max_steps": WARM + STEPS + PROFILED + 1,
        "resume": False,
        "max_grad_norm": 1.0,
        **({"center": False} if method == "dial2vec" else {}),
        **({"label_encoder": str(folder / "bert")} if method == "dialog2flow" else {}),
        **more,
    }
    clock = Clock(device)
    step = DialogueTrainer.training_step

    def timed(trainer: DialogueTrainer, *given: Any, **other: Any) -> Any:
        clock()
        return step(trainer, *given, **other)

    with patch.object(DialogueTrainer, "training_step", timed):
        hf_dialemb.train(method, dialogues, output_dir=folder / f"run-{method}", **settings)
    return {"batch": settings["per_device_train_batch_size"], **clock.found}


def encoded(dialogues: list[Any], folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Measures encoding beside sentence-transformers in the same precision, taking turns."""
    from sentence_transformers import SentenceTransformer

    said = list(dict.fromkeys(turn.content for each in dialogues for turn in each.turns))
    texts = {"utterances": said, "dialogues": dialogue_texts(dialogues[:1000])}
    tokens = Tokens()
    for kind in ("float32", "bfloat16"):
        peer = SentenceTransformer(
            str(folder / "bert"), device=device, model_kwargs={"dtype": getattr(torch, kind)}
        )
        encoder = hf_dialemb.load_encoder(folder / "bert", level="utterances", dtype=kind)
        ours = encoder.encode_utterances
        for name, given in texts.items():
            sizes = {
                size: seconds(partial(peer.encode, batch_size=size), given[: len(given) // 8])
                for size in (32, 128, 512)
            }
            best = partial(peer.encode, batch_size=min(sizes, key=lambda size: sizes[size]))
            ours(given[:100])
            tokens.taken()
            rounds = []
            for _ in range(ROUNDS):
                own = seconds(ours, given)
                read, places = tokens.taken()
                rounds.append((own, seconds(best, given)))
                _, others = tokens.taken()
            row = {
                "kind": kind,
                "reads": name,
                "texts": len(given),
                "tokens": read,
                "peer_batch": best.keywords,
            }
            row |= {
                "seconds": median(own for own, _ in rounds),
                "ratios": [other / own for own, other in rounds],
            }
            row["pace"] = read / row["seconds"]
            row["padding"] = {"ours": 1 - read / places, "sentence-transformers": 1 - read / others}
            if device == "cuda":
                with profile(activities=[ProfilerActivity.CUDA]) as found:
                    ours(given)
                row["parts"] = parts(found, row["seconds"])
            yield row


def seconds(work: Callable[[list[str]], Any], given: list[str]) -> float:
    """Time some work whose result is on the processor."""
    started = time.perf_counter()
    work(given)
    return time.perf_counter() - started


def titles(training: bool) -> list[str]:
    """Write the head of a table."""
    told = [
        "",
        "Tokens a second",
        "Of the card",
        "Padding" if training else "Beside sentence-transformers",
    ]
    told += [PRODUCTS.capitalize(), "Other kernels", "Waiting"]
    return ["| " + " | ".join(told) + " |", "| :-- " + "| --: " * (len(told) - 1) + "|"]


def line(row: dict[str, Any]) -> str:
    """Write a row of a table."""
    cells = [
        row.get("method") or f"{row['reads']}, {row['kind']}",
        f"{row['pace']:,.0f}",
        f"{row['of_card']:.0%}",
    ]
    cells.append(f"{row['padding']:.0%}" if "method" in row else f"{median(row['ratios']):.2f}")
    if "parts" in row:
        products = row["parts"][PRODUCTS]
        waiting = row["parts"][WAITING]
        cells += [f"{share:.0%}" for share in (products, 1 - products - waiting, waiting)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measures, prints the table, and writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--corpus", default="sgd")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--dialogues", type=int, default=2000)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("There is no GPU here: nothing is measured")
        return
    dialogues = list(hf_dialemb.load_dialogues(options.corpus, split="train"))[: options.dialogues]
    rate = product_rate(options.device)
    rows: list[dict[str, Any]] = []
    card = torch.cuda.get_device_name() if options.device == "cuda" else "none"
    record = {
        "machine": describe_machine(),
        "card": card,
        "operations_per_second": rate,
        "rows": rows,
    }
    record |= {"training": titles(training=True), "encoding": titles(training=False)}

    def tell(work: int, found: dict[str, Any]) -> None:
        rows.append({**found, "of_card": work * found["pace"] / rate})
        record["training" if "method" in found else "encoding"].append(line(rows[-1]))
        print(line(rows[-1]), flush=True)
        if options.output:
            options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = backbone(folder / "bert", options.layers)
        for method in METHODS:
            tell(
                6 * count, {"method": method, **trained(method, dialogues, folder, options.device)}
            )
        for found in encoded(dialogues, folder, options.device):
            tell(2 * count, found)


if __name__ == "__main__":
    main()
