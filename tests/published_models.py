"""Tiny untrained models of every method that is published: training folders, published folders, results files."""

import json
import time
from pathlib import Path

import torch

from hf_dialemb.apps.ensemble.training import assemble
from hf_dialemb.evaluation.results.rows import Results, describe_run, rows_of, write_results
from hf_dialemb.evaluation.tasks.task import Measurement
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.models import get_method
from hf_dialemb.training.arguments import parse

SETTINGS = {
    "dial2vec": ["--average_with_backbone", "0.5"],
    "dse": ["--max_tokens", "32", "--encoding_tokens", "32"],
    "dialog2flow": ["--target", "joint"],
    "dialogue_cse": ["--frozen_layers", "1"],
    "dual_encoder": ["--hidden_size", "12", "--embedding_size", "8", "--max_context_tokens", "40"],
    "transformer_dual_encoder": ["--max_context_tokens", "40"],
}
"""What a run of each method has beside the defaults."""

ENSEMBLE = "multi_granularity"
REPORT = {
    "steps": 1234, "dialogues": 4321, "examples": 98765, "processes": 2, "seconds": 4567.8,
    "truncation": "3 of 4,000 utterances were truncated (7 of 90,000 tokens dropped)", "checkpoint": "last",
    "hardware": "2 x Quick GPU", "energy": None, "resumed_from": None, "log": [],
}  # fmt: skip


def train(method: str, backbone: str, dialogues, folder: Path, *words: str, seed: int = 0) -> Path:
    """Writes what a training leaves, without training."""
    from_scratch = get_method(method).from_scratch
    given = ["--method", method, *([] if from_scratch else ["--backbone", backbone]), *SETTINGS[method], *words]
    settings = parse(None, [*given, "--output_dir", str(folder), "--use_cpu", "true", "--seed", str(seed)])
    torch.manual_seed(seed)
    start = None if from_scratch else backbone
    for part in get_method(method).model_class.build(start, dialogues, None, **settings.method):
        part.save_pretrained(folder)
    (folder / "training_settings.json").write_text(json.dumps(settings.fingerprint()))
    (folder / "training_report.json").write_text(json.dumps(REPORT))
    return folder


def train_ensemble(dialogues, folder: Path) -> Path:
    """Writes two granularities, their baseline, and the ensemble of them."""
    train("dual_encoder", "", dialogues, folder / "baseline")
    members = []
    for level in (1, 2):
        words = ("--granularity", str(level), "--granularity_model", str(folder / "baseline"))
        members.append(train("dual_encoder", "", dialogues, folder / f"granularity-{level}", *words, seed=level))
    assemble(folder / "multi-granularity", members, lambda line: None)
    return folder / "multi-granularity"


def publish(run: Path, folder: Path) -> Path:
    """Writes the published form, unverified."""
    write_checkpoint(*load_checkpoint(str(run)), folder)
    return folder


def measure(path: Path, model: Path | str, reference: Path | str | None) -> Path:
    """Writes a results file: of the model, of what it is compared with, and quoted figures that are none of its own."""
    purity = {"task": "domain-categorization", "metric": "purity", "setting": ""}
    uniformity = {"task": "alignment-uniformity", "metric": "uniformity", "setting": ""}
    measured = [
        Measurement(**purity, mean=81.23456, std=1.98765, n=10, interval=(80.111, 82.222)),
        Measurement(**uniformity, mean=-2.34567),
        Measurement(task="semantic-relatedness", metric="spearman", setting="per-query", mean=38.3),
        Measurement(task="encoding", metric="seconds", setting="", mean=17.5),
    ]
    rows = rows_of(str(model), "sgd", "test", measured)
    rows += rows_of("dial2vec (PLATO)", "sgd", "test", [Measurement(**purity, mean=99.875)], quoted_from="a table")
    if reference is not None:
        measured = [Measurement(**purity, mean=83.5, std=0.7, n=10), Measurement(**uniformity, mean=-1.5)]
        rows += rows_of(str(reference), "sgd", "test", measured)
    command = f"dialemb benchmark --data-dir {path.parent} --output benchmark"
    described = describe_run(command, {"models": [str(model)]}, [0, 1, 2], time.perf_counter())
    write_results(Results(described, tuple(rows)), path)
    return path
