"""Measure what nested widths, larger batches and mined negatives add to contrastive trainings.

Each training begins from the same backbone and sees as many pairs of the same dialogues. Embeddings
are measured whole and cut, on dev splits of other corpora.

    python benchmarks/losses.py --output docs/results/losses.json
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import mine_hard_negatives

import hf_dialemb
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.display import table_lines
from hf_dialemb.encoders.word_vectors import dialogue_texts
from hf_dialemb.methods import get_method
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.pretrained import resolve_backbone

BACKBONE = "all-MiniLM-L6-v2"
CORPORA = ["multiwoz/train", "self_dialogue/train"]
STEPS = 60
PAIRS = 64
WIDTHS = (384, 128, 64)
MEASURED = {
    "intents": ("clinc150", "intent-classification", "accuracy", 2000),
    "topics": ("sgd", "domains", "map", 500),
    "actions": ("sgd", "action-similarity", "f1", 2000),
}
"""What is measured: the corpus, whose dev split it is, the task, the metric, and the most items."""
NESTED: dict[str, Any] = {"matryoshka_dims": list(WIDTHS[1:])}
TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "DSE": ("dse", {}),
    "DSE, nested widths": ("dse", NESTED),
    "DSE, batches of 256 by gradient caching": ("dse", {"mini_batch_size": PAIRS}),
    "Dialog2Flow": ("dialog2flow", {}),
    "Dialog2Flow, nested widths": ("dialog2flow", NESTED),
    "Dialog2Flow, batches of 256 by gradient caching": ("dialog2flow", {"mini_batch_size": PAIRS}),
}
THEIRS = "sentence-transformers' MultipleNegativesRankingLoss"
RECIPES = {"dse": "dse_minilm", "dialog2flow": "dialog2flow_single_minilm"}


class Cut:
    """An encoder whose vectors are cut to a width, and kept for the next one."""

    def __init__(self, encoder: Any, width: int, kept: dict[tuple[str, ...], Any]) -> None:
        self.encoder = encoder
        self.width = width
        self.kept = kept
        self.name = f"cut to {width}"

    def encode(self, dialogues: list[Dialogue]) -> Any:
        """Embed the texts of dialogues, (N, width)."""
        texts = tuple(dialogue_texts(dialogues))
        if texts not in self.kept:
            self.kept[texts] = self.encoder.encode_utterances(list(texts))
        return self.kept[texts][:, : self.width]


def trained(method: str, settings: dict[str, Any], folder: Path) -> Any:
    """Train with the package's own settings, and return the encoder."""
    times = 4 if "mini_batch_size" in settings else 1
    corpora = CORPORA if method == "dse" else CORPORA[:1]  # small talk has no actions
    run = hf_dialemb.train(
        method,
        [dialogue for name in corpora for dialogue in hf_dialemb.load_dialogues(name)],
        recipe=RECIPES[method],
        backbone=BACKBONE,
        output_dir=folder,
        exclude="none",
        max_tokens=32,
        max_steps=STEPS // times,
        warmup_steps=STEPS // times // 10,
        per_device_train_batch_size=PAIRS * times,
        save_steps=STEPS,
        average_with_backbone=0,
        learning_rate=1e-4,
        bf16=False,
        **settings,
    )
    return hf_dialemb.load_encoder(run)


def mined(negatives: int, folder: Path) -> Any:
    """Train on DSE's pairs with sentence-transformers, with or without mined negatives."""
    model = SentenceTransformer(resolve_backbone(BACKBONE), device="cpu")
    model.max_seq_length = 32
    dialogues = [item for name in CORPORA for item in hf_dialemb.load_dialogues(name)]
    method = get_method("dse")
    pairs = method.examples(dialogues, method.config_class(), 0).items
    data = Dataset.from_dict(
        dict(zip(("anchor", "positive"), zip(*pairs, strict=True), strict=True))
    )
    data = data.shuffle(seed=0).select(range(min(len(data), STEPS * PAIRS)))
    if negatives:
        data = mine_hard_negatives(
            data, model, num_negatives=negatives, range_min=10, range_max=50, verbose=False
        )
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=STEPS,
        per_device_train_batch_size=PAIRS,
        learning_rate=1e-4,
        warmup_steps=STEPS // 10,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss).train()
    return hf_dialemb.load_encoder(model)


def figures(encoder: Any) -> dict[str, float]:
    """Measure an encoder at each width."""
    values = {}
    kept: dict[tuple[str, ...], Any] = {}
    for subject, (corpus, task, metric, limit) in MEASURED.items():
        for width in WIDTHS:
            rows = hf_dialemb.evaluate(
                Cut(encoder, width, kept), corpus, split="dev", tasks=[task], limit=limit, seeds=5
            ).results
            first = next(row for row in rows if row.metric == metric)
            values[f"{subject}, {width}"] = first.mean
    return values


def main() -> None:
    """Train and measure; write the figures after each training, and go on where it stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    makers: dict[str, Callable[[Path], Any]] = {
        BACKBONE: lambda _: hf_dialemb.load_encoder(BACKBONE)
    }
    for name, (method, settings) in TRAININGS.items():
        makers[name] = partial(trained, method, settings)
    makers[THEIRS] = partial(mined, 0)
    makers[f"{THEIRS}, a mined negative each"] = partial(mined, 1)
    measured: dict[str, dict[str, float]] = {}
    if output.is_file():  # of an earlier run, which was stopped
        measured = json.loads(output.read_text("utf-8"))["figures"]
    for name in [name for name in makers if name not in measured]:
        with tempfile.TemporaryDirectory() as work:
            measured[name] = figures(makers[name](Path(work, "run")))
        heads = list(measured[name])
        rows = [
            [made, *(f"{measured[made][head]:.1f}" for head in heads)]
            for made in makers
            if made in measured
        ]
        table = table_lines(["Training"], heads, rows)
        write_json_atomically(output, {"figures": measured, "table": table})


if __name__ == "__main__":
    main()
