"""Measures the methods' training steps and encoding on one GPU.

Where there is none, it says so and ends.

The backbone has BERT-base's sizes and random weights, which are as fast as trained ones. "Of the
card" is the share of its measured rate of bfloat16 products that the layers reach, at 2 operations
for a weight and a token, three times that in training. Steps are timed after a few that are not;
ratios are of rounds in which both sides took turns.

    python benchmarks/gpu.py --output docs/results/gpu.json             # some minutes
    python benchmarks/gpu.py --device cpu --corpus sample --layers 2    # a smoke run
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from encoding import Tokens
from hardware import describe_machine
from processes import seconds_of
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
ROUNDS = 3


def product_rate(device: str) -> float:
    """Measures operations a second of large bfloat16 products."""
    size = 8192 if device == "cuda" else 1024
    left, right = (torch.randn(size, size, device=device).bfloat16() for _ in range(2))

    def multiply() -> None:
        left @ right
        wait(device)

    wait(device)
    return median([2 * size**3 / seconds_of(multiply) for _ in range(20)][5:])


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
    """Times the steps of a training from within."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.count = 0
        self.tokens = Tokens()
        self.figures: dict[str, float] = {}

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
            self.figures = {
                "step_seconds": spent / STEPS,
                "step_tokens": read / STEPS,
                "pace": read / spent,
                "padding": 1 - read / places,
            }
        self.count += 1


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
        "max_steps": WARM + STEPS + 1,
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
    return {"batch": settings["per_device_train_batch_size"], **clock.figures}


def encoded(dialogues: list[Any], folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Measures encoding beside sentence-transformers in the same precision, taking turns."""
    from sentence_transformers import SentenceTransformer

    said = list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))
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
                size: seconds_of(partial(peer.encode, given[: len(given) // 8], batch_size=size))
                for size in (32, 128, 512)
            }
            best = partial(peer.encode, batch_size=min(sizes, key=lambda size: sizes[size]))
            ours(given[:100])
            tokens.taken()
            rounds = []
            for _ in range(ROUNDS):
                own = seconds_of(partial(ours, given))
                read, places = tokens.taken()
                rounds.append((own, seconds_of(partial(best, given))))
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
            yield row


def titles(last: str) -> list[str]:
    """Write the head of a table."""
    return [f"|  | Tokens a second | Of the card | {last} |", "| :-- | --: | --: | --: |"]


def line(row: dict[str, Any]) -> str:
    """Write a row of a table."""
    cells = [
        row.get("method") or f"{row['reads']}, {row['kind']}",
        f"{row['pace']:,.0f}",
        f"{row['of_card']:.0%}",
    ]
    cells.append(f"{row['padding']:.0%}" if "method" in row else f"{median(row['ratios']):.2f}")
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
    record["training"] = titles("Padding")
    record["encoding"] = titles("Beside sentence-transformers")

    def note(work: int, figures: dict[str, Any]) -> None:
        rows.append({**figures, "of_card": work * figures["pace"] / rate})
        record["training" if "method" in figures else "encoding"].append(line(rows[-1]))
        print(line(rows[-1]), flush=True)
        if options.output:
            options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = backbone(folder / "bert", options.layers)
        for method in METHODS:
            figures = trained(method, dialogues, folder, options.device)
            note(6 * count, {"method": method, **figures})
        for figures in encoded(dialogues, folder, options.device):
            note(2 * count, figures)


if __name__ == "__main__":
    main()
