"""Shows where the time of encoding and of training goes, on one thread: the shares of a profile by torch.

Each operator has the time that is its own. What is left of the time that passed is Python's, autograd's and the
profiler's.

    python benchmarks/where_time_goes.py --output docs/results/where_time_goes.json     # SGD from HF_DIALEMB_DATA
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # so that the parts add up to the time that passes

from encoding import texts
from hardware import describe_machine
from torch.profiler import ProfilerActivity, profile

import hf_dialemb

KINDS = {
    "products of matrices": ("mm", "linear", "matmul"),
    "attention, softmax": ("attention", "softmax"),
    "normalisation": ("layer_norm",),
    "activation": ("gelu",),
    "dropout": ("dropout", "bernoulli"),
    "optimiser": ("adam", "_foreach", "norm"),
    "embeddings, gathering": ("embedding", "index", "gather"),
    "copies, casts": ("copy", "cat", "stack", "fill", "zero"),
}
"""What is told, and what the names of torch's operators have within; the first that fits."""
REST, OUTSIDE = "other operators", "outside torch: tokenising, Python, files"
STEPS = 8
RECIPES = {
    "dse": "dse_minilm",
    "dialog2flow": "dialog2flow_single_minilm",
    "dialogue_cse": "dialogue_cse_minilm",
    "dial2vec": "dial2vec_minilm",
}


def shares(work: Callable[[], object]) -> dict[str, float]:
    """Profiles some work; returns what share of the time each kind takes."""
    started = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        work()
        seconds = time.perf_counter() - started
    spent: Counter[str] = Counter()
    for event in found.key_averages():
        if event.key.startswith("aten::"):
            kind = next((kind for kind, names in KINDS.items() if any(name in event.key for name in names)), REST)
            spent[kind] += event.self_cpu_time_total / 1e6
    return {**{kind: spent[kind] / seconds for kind in (*KINDS, REST)}, OUTSIDE: 1 - spent.total() / seconds}


def main() -> None:
    """Profiles, prints the table, and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    inputs, found = texts(400, 40), {}
    for numbers, told in (("", "float32"), ("@bfloat16", "bfloat16")):
        encoder = hf_dialemb.load_encoder(f"dialogue-minilm{numbers}")
        encoder.encode_utterances(inputs["utterances"][:64])
        found[f"encode utterances, {told}"] = shares(partial(encoder.encode_utterances, inputs["utterances"]))
        found[f"encode dialogues, {told}"] = shares(partial(encoder.encode, inputs["dialogues"]))
    dialogues = hf_dialemb.load_dialogues("sgd", split="dev")
    settings: dict[str, Any] = {"exclude": ["none"], "disable_tqdm": True, "save_strategy": "no"}
    for method in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            found[f"train {method}"] = steps(method, dialogues, Path(folder) / "run", settings)
    names = list(found)
    lines = [f"| | {' | '.join(names)} |", f"| :-- |{' --: |' * len(names)}"]
    for kind in (*KINDS, REST, OUTSIDE):
        lines.append(f"| {kind} | {' | '.join(f'{found[name][kind]:.0%}' for name in names)} |")
    print("\n".join(lines))
    if options.output:
        record = {"machine": describe_machine(), "shares": found, "table": lines}
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def steps(method: str, dialogues: list[Any], folder: Path, settings: dict[str, Any]) -> dict[str, float]:
    """Profiles the steps of a training, without what comes before them."""
    from hf_dialemb.training.trainer import DialogueTrainer

    found: dict[str, float] = {}
    inner = DialogueTrainer._inner_training_loop

    def profiled(trainer: DialogueTrainer, *given: Any, **more: Any) -> Any:
        results: list[Any] = []
        found.update(shares(lambda: results.append(inner(trainer, *given, **more))))
        return results[0]

    DialogueTrainer._inner_training_loop = profiled
    try:
        hf_dialemb.train(
            method, dialogues, recipe=RECIPES[method], output_dir=folder, max_steps=STEPS, use_cpu=True, **settings
        )
    finally:
        DialogueTrainer._inner_training_loop = inner
    return found


if __name__ == "__main__":
    main()
