"""Tiny untrained models of every published method.

Training folders, published folders, results files.
"""

import json
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

import torch
from afresh import printed_afresh
from commands import main

from hf_dialemb.encoders.specs import find_encoder
from hf_dialemb.evaluation.results.rows import Results, Row, describe_run, rows_of, write_results
from hf_dialemb.hub.card.card import render_card
from hf_dialemb.hub.card.card_record import make_record
from hf_dialemb.hub.card.figures import measured
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.hub.published_folder import WITHOUT_PACKAGE
from hf_dialemb.methods import get_method
from hf_dialemb.methods.multi_granularity import MultiGranularityModel
from hf_dialemb.storage.run_folder import RunFolder
from hf_dialemb.training.arguments import make_settings

REPO = "org/some-model"
SETTINGS_FILE, REPORT_FILE = "training_settings.json", "training_report.json"
SETTINGS = {
    "dial2vec": {"average_with_backbone": 0.5},
    "dse": {"max_tokens": 32, "encoding_tokens": 32},
    "dialog2flow": {"target": "joint"},
    "dialogue_cse": {"frozen_layers": 1},
    "turns": {},
    "dual_encoder": {"hidden_size": 12, "embedding_size": 8, "max_context_tokens": 40},
    "transformer_dual_encoder": {"max_context_tokens": 40},
}
"""Settings of each method beside the defaults."""

ENSEMBLE = "multi_granularity"
REPORT = {
    "steps": 1234,
    "dialogues": 4321,
    "examples": 98765,
    "processes": 2,
    "seconds": 4567.8,
    "truncation": "3 of 4,000 utterances were truncated (7 of 90,000 tokens dropped)",
    "checkpoint": "last",
    "hardware": "2 x Quick GPU",
    "resumed_from": None,
    "log": [],
}


def train(
    method: str, backbone: str, dialogues, folder: Path, seed: int = 0, **more: object
) -> Path:
    """Write the folder of a training, without training."""
    start = None if get_method(method).from_scratch else backbone
    place = {
        "method": method,
        "backbone": start,
        "output_dir": folder,
        "use_cpu": True,
        "seed": seed,
    }
    settings = make_settings(place | SETTINGS[method] | more)
    torch.manual_seed(seed)
    for part in get_method(method).model_class.build(start, dialogues, None, **settings.method):
        part.save_pretrained(folder)
    (folder / "training_settings.json").write_text(json.dumps(settings.fingerprint()))
    (folder / "training_report.json").write_text(json.dumps(REPORT))
    return folder


def train_ensemble(dialogues, folder: Path) -> Path:
    """Write two granularities, their baseline, and the ensemble of them."""
    train("dual_encoder", "", dialogues, folder / "baseline")
    members = []
    for level in (1, 2):
        granular = {"granularity": level, "granularity_model": folder / "baseline"}
        members.append(
            train(
                "dual_encoder",
                "",
                dialogues,
                folder / f"granularity-{level}",
                seed=level,
                **granular,
            )
        )
    ensemble = folder / "multi-granularity"
    for part in MultiGranularityModel.from_members([str(member) for member in members]):
        part.save_pretrained(ensemble)
    digests = [find_encoder(str(member)).fingerprint for member in members]
    made_of = [
        {"run": member.name, "weights": digest}
        for member, digest in zip(members, digests, strict=True)
    ]
    RunFolder(ensemble).members_file.write_text(json.dumps(made_of))
    return ensemble


def publish(run: Path, folder: Path) -> Path:
    """Write the published form, unverified."""
    write_checkpoint(*load_checkpoint(str(run)), folder)
    return folder


def measure(path: Path, model: Path | str, reference: Path | str | None) -> Path:
    """Write a results file of the model, of its reference, and with a quoted figure."""
    purity = {"task": "domain-categorization", "metric": "purity", "setting": ""}
    uniformity = {"task": "alignment-uniformity", "metric": "uniformity", "setting": ""}
    measured = [
        Row(**purity, mean=81.23456, std=1.98765, n=10, interval=(80.111, 82.222)),
        Row(**uniformity, mean=-2.34567),
        Row(task="semantic-relatedness", metric="spearman", setting="per-query", mean=38.3),
        Row(task="encoding", metric="seconds", setting="", mean=17.5),
    ]
    rows = rows_of(str(model), "sgd", "test", measured)
    rows += rows_of(
        "dial2vec (PLATO)", "sgd", "test", [Row(**purity, mean=99.875)], quoted_from="a table"
    )
    if reference is not None:
        measured = [Row(**purity, mean=83.5, std=0.7, n=10), Row(**uniformity, mean=-1.5)]
        rows += rows_of(str(reference), "sgd", "test", measured)
    command = f"dialemb papers benchmark --data-dir {path.parent} --output benchmark"
    described = describe_run(command, {"models": [str(model)]}, [0, 1, 2], time.perf_counter())
    write_results(Results(described, tuple(rows)), path)
    return path


class Made(NamedTuple):
    folder: Path
    run: Path
    results: Path
    reference: Path | None

    def card(self, results=None, licences=None) -> str:
        record = make_record(self.folder, self.run, licences)
        files = [self.results] if results is None else results
        return render_card(record, measured(record, files), REPO)

    def evaluation(self, licences=None) -> str:
        return section(self.card(licences=licences), "Evaluation")

    def command(self, *words: object) -> int:
        return main(
            [
                str(word)
                for word in ("model", "card", "--model", self.folder, "--run", self.run, *words)
            ]
        )

    def learnt_from(self, corpus, **settings) -> None:
        change(self.run / SETTINGS_FILE, lambda record: record.update(corpus=corpus, **settings))

    def measured(self, **config) -> None:
        change(self.results, lambda record: record["run"]["config"].update(config))

    def rename(self, field: str, names: dict[str, str]) -> None:
        change(
            self.results,
            lambda record: [
                row.update({field: names.get(row[field], row[field])}) for row in record["results"]
            ],
        )


def change(path: Path, change) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def make(method: str, backbone: str, dialogues, root: Path) -> Made:
    if method == ENSEMBLE:
        run = train_ensemble(dialogues, root / "runs")
        reference: Path | None = root / "runs" / "baseline"
    else:
        run = train(method, backbone, dialogues, root / "runs" / method)
        reference = None if method == "dual_encoder" else Path(backbone)
    folder = publish(run, root / "published" / method.replace("_", "-"))
    return Made(folder, run, measure(root / "results.json", run, reference), reference)


def section(card: str, title: str) -> str:
    return re.split(r"^## ", card.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def output_without_package(program: str, folder: Path, *words: object) -> str:
    environment = {**os.environ, "HF_MODULES_CACHE": str(folder)}
    return printed_afresh(WITHOUT_PACKAGE + program, *words, environment=environment, folder=folder)


def blocks(card: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", card, re.MULTILINE | re.DOTALL)


def table_of(evaluation: str, corpus: str = "sgd") -> list[str]:
    return [line for line in evaluation.splitlines() if line.startswith(f"| {corpus}")]
