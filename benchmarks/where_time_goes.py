"""Shows where the time of encoding and of training goes, on one thread, by the shares of a profile.

Each operator has its own time by torch's profiler. The rest of the time is that of Python, of
autograd and of the profiler. Texts are encoded once before, so that kernels are there for every
length.

    python benchmarks/where_time_goes.py --output docs/results/where_time_goes.json     # SGD from
    HF_DIALEMB_DATA
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

# so that the parts add up to the time that passes
os.environ |= {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}

from encoding import texts
from hardware import describe_machine
from torch.profiler import ProfilerActivity, profile
from transformers import TokenizersBackend

import hf_dialemb

KINDS = {
    "products": ("mm", "linear", "matmul"),
    "attention": ("attention", "softmax"),
    "normalisation": ("layer_norm",),
    "activation": ("gelu",),
    "dropout": ("dropout", "bernoulli"),
    "optimiser": ("adam", "_foreach", "norm"),
    "gathering": ("embedding", "index", "gather"),
    "copies, casts": ("copy", "cat", "stack", "fill", "zero"),
}
"""What is told, and what the names of torch's operators have within; the first that fits."""
REST, TOKENISING, OUTSIDE = "other operators", "tokenising", "Python, files"
COLUMNS = (*KINDS, REST, TOKENISING)
# all others are shown as one
SHOWN = ("products", "attention", "copies, casts", TOKENISING, OUTSIDE)
STATIC = "dialogue-static"
SPECS = {"dialogue-minilm": "float32", "dialogue-minilm@bfloat16": "bfloat16", STATIC: STATIC}
STEPS = 8
RECIPES = {
    "dse": "dse_minilm",
    "dialog2flow": "dialog2flow_single_minilm",
    "dialogue_cse": "dialogue_cse_minilm",
    "dial2vec": "dial2vec_minilm",
}


def shares(
    work: Callable[[], object], counted: Callable[[], Counter[str]] | None = None
) -> dict[str, float]:
    """Profiles some work; returns what share of the time each kind takes.

    ``counted`` tells seconds so far.
    """
    before = counted() if counted else Counter()
    spent: Counter[str] = Counter()
    started = time.perf_counter()
    with tokenising(spent):
        if counted:
            work()
            seconds = time.perf_counter() - started
            spent.update(counted())
            spent.subtract(before)
        else:
            with profile(activities=[ProfilerActivity.CPU]) as found:
                work()
                seconds = time.perf_counter() - started
            for event in found.key_averages():
                if event.key.startswith("aten::"):
                    spent[kind_of(event.key, KINDS)] += event.self_cpu_time_total / 1e6
    return {
        **{kind: spent[kind] / seconds for kind in COLUMNS},
        OUTSIDE: 1 - spent.total() / seconds,
    }


def kind_of(name: str, kinds: dict[str, tuple[str, ...]]) -> str:
    """Says of what kind an operator is."""
    return next(
        (kind for kind, parts in kinds.items() if any(part in name.lower() for part in parts)), REST
    )


@contextmanager
def tokenising(spent: Counter[str]) -> Iterator[None]:
    """Count the seconds of transformers' tokenizers."""
    inner: Any = TokenizersBackend._encode_plus
    with patch.object(
        TokenizersBackend,
        "_encode_plus",
        lambda *given, **more: timed(spent, inner, *given, **more),
    ):
        yield


def timed(spent: Counter[str], work: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """Call a tokenizer, and count its seconds."""
    started = time.perf_counter()
    found = work(*given, **more)
    spent[TOKENISING] += time.perf_counter() - started
    return found


class CountedWords:
    """The parts of static vectors, each with its seconds."""

    def __init__(self, vectors: Any) -> None:
        self.vectors, self.tokenizer, self.spent = vectors, vectors._tokenizer, Counter[str]()
        vectors._tokenizer = self

    def encode_batch_fast(self, *given: Any, **more: Any) -> Any:
        """Call the tokenizer."""
        return timed(self.spent, self.tokenizer.encode_batch_fast, *given, **more)

    def __call__(self, given: list[str]) -> Any:
        """Embeds texts."""
        before, started = self.spent[TOKENISING], time.perf_counter()
        found = self.vectors(given)
        self.spent["gathering"] += time.perf_counter() - started - (self.spent[TOKENISING] - before)
        return found


def encoding() -> dict[str, dict[str, float]]:
    """Profiles encoding."""
    found = {}
    for spec in SPECS:
        encoder = hf_dialemb.load_encoder(spec)
        counted = None
        if spec == STATIC:
            words = encoder.embed_texts = CountedWords(encoder.embed_texts)
            counted = lambda words=words: Counter(words.spent)  # noqa: E731
        inputs = texts(*(4000, 400) if spec == STATIC else (400, 40))
        for name, work in (
            ("utterances", encoder.encode_utterances),
            ("dialogues", encoder.encode),
        ):
            work(inputs[name])
            found[f"encode {name}, {SPECS[spec]}"] = shares(partial(work, inputs[name]), counted)
    return found


def main() -> None:
    """Profiles, prints the table, and writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    found = encoding()
    dialogues = hf_dialemb.load_dialogues("sgd", split="dev")
    settings: dict[str, Any] = {"exclude": ["none"], "disable_tqdm": True, "save_strategy": "no"}
    for method in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            found[f"train {method}"] = steps(method, dialogues, Path(folder) / "run", settings)
    lines = table(found)
    print("\n".join(lines))
    if options.output:
        record = {"machine": describe_machine(), "shares": found, "table": lines}
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def table(found: dict[str, dict[str, float]]) -> list[str]:
    """Draws the largest shares, and the rest as one."""
    lines = [f"| | {' | '.join(SHOWN)} | {REST} |", f"| :-- |{' --: |' * (len(SHOWN) + 1)}"]
    for name, each in found.items():
        cells = [each[kind] for kind in SHOWN]
        lines.append(
            f"| {name} | {' | '.join(f'{share:.0%}' for share in (*cells, 1 - sum(cells)))} |"
        )
    return lines


def steps(
    method: str, dialogues: list[Any], folder: Path, settings: dict[str, Any]
) -> dict[str, float]:
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
            method,
            dialogues,
            recipe=RECIPES[method],
            output_dir=folder,
            max_steps=STEPS,
            use_cpu=True,
            **settings,
        )
    finally:
        DialogueTrainer._inner_training_loop = inner
    return found


if __name__ == "__main__":
    main()
