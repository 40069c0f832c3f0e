"""What a training on one's own dialogues gains.

Recipes on parts of corpora, each as if it were all that somebody has.

Three parts choose the recipe, by the mean MAP of domains; the others only report. A training reads
no label, and learns from the dialogues that it is measured on, as one's own would: all but those
that `hf_dialemb.train` holds out. What the recipe is chosen from is centred, and its axes found, on
all of a part. Encoders read in bfloat16 where the processor multiplies it. The interval is of the
paired difference.

    HF_DIALEMB_DATA=corpora python benchmarks/own_recipe.py --output docs/results/own_recipe.json
    # an hour of a core

What was measured is kept beside the output, in a folder, and not measured again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hardware import describe_machine

import hf_dialemb
from hf_dialemb.data import load_dialogues, single_domain
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.drawing import table_lines
from hf_dialemb.evaluation.tasks.domains import evaluate_embeddings
from hf_dialemb.evaluation.tasks.sampling import mean_interval
from hf_dialemb.methods.dial2vec import Dial2VecModel
from hf_dialemb.metrics.vectors import unit
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.hardware import bfloat16_where_faster, multiplies_bfloat16


class Part(NamedTuple):
    """Dialogues of a corpus: those from ``start`` on in an order that a seed draws."""

    corpus: str
    split: str
    start: int = 0
    tasks: bool = False  # whether the label is the task, the intent of the first turn that has one
    known: str = ""  # what `dialogue-minilm` knows of the corpus


CHOOSING = {
    "Doc2Dial, a half": Part("doc2dial", "all"),
    "SGD, dev": Part("sgd", "dev", known="another split"),
    "Self-dialogue, dev": Part("self_dialogue", "dev", known="another split"),
}
REPORTING = {
    "Doc2Dial, the other half": Part("doc2dial", "all", 400),
    "STAR": Part("star", "all"),
    "STAR, tasks": Part("star", "all", 400, tasks=True),
    "KVRET": Part("kvret", "test"),
    "DailyDialog": Part("dailydialog", "test"),
    "SGD": Part("sgd", "test", known="another split"),
    "MultiWOZ": Part("multiwoz", "test", known="another split"),
    "Self-dialogue": Part("self_dialogue", "test", known="another split"),
}
SIZE = 400
BACKBONE = "dialogue-minilm"
PEERS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
SEEDS = range(5)
RECIPE = "own_minilm"
DIAL2VEC = {"recipe": "dial2vec_minilm", "num_negatives": 4, "pooling": "mean", "center": False}
SHARES = {"dial2vec, 60 steps": 0.0, "dial2vec, halfway back": 0.5, BACKBONE: 1.0}
"""Of the backbone's weights in the average; with all of them nothing is learnt."""

AXES = (16, 24, 32, 48)
OPTIONS: dict[str, Any] = {}
"""Further settings of every training."""

Figures = dict[str, Any]


def dialogues_of(part: Part) -> list[Dialogue]:
    """Draw the dialogues of a part, with one label each."""
    loaded = load_dialogues(part.corpus, split=part.split)
    if part.tasks:
        tasks = [
            [intent for turn in dialogue.turns for intent in turn.intents] for dialogue in loaded
        ]
        loaded = [
            replace(dialogue, domains=tuple(named[:1]))
            for dialogue, named in zip(loaded, tasks, strict=True)
        ]
    labelled = single_domain(loaded)
    rows = np.random.default_rng(0).permutation(len(labelled))[part.start : part.start + SIZE]
    return [labelled[row] for row in np.sort(rows)]


def figures(vectors: np.ndarray, dialogues: list[Dialogue]) -> Figures:
    """Measure vectors: MAP, the scores that it is the mean of, and purity."""
    rows = evaluate_embeddings(
        vectors, [dialogue.domains[0] for dialogue in dialogues], seeds=SEEDS
    )
    by_metric = {row.metric: row for row in rows}
    scores = [round(float(score), 3) for score in by_metric["map"].scores]
    return {"map": by_metric["map"].mean, "purity": by_metric["purity"].mean, "scores": scores}


def encoded(model: Any, dialogues: list[Dialogue]) -> np.ndarray:
    """Encode dialogues, in bfloat16 where that is faster."""
    with bfloat16_where_faster():
        return hf_dialemb.load_encoder(model).encode(dialogues)


def averaged(run: Any, share: float) -> Any:
    """Load a trained dial2vec with a share of the backbone's weights in it, as
    ``average_with_backbone`` leaves it.
    """
    start, tokenizer = Dial2VecModel.from_backbone(BACKBONE)
    model, before = Dial2VecModel.from_pretrained(run.path), start.state_dict()
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            value.lerp_(before[name], share)
    return hf_dialemb.load_encoder(model, tokenizer=tokenizer)


def ends(vectors: np.ndarray, dialogues: list[Dialogue]) -> dict[str, Figures]:
    """Measure vectors as they are, less the mean of all, and along their main axes alone."""
    centred = unit(vectors) - unit(vectors).mean(axis=0)
    main = np.linalg.svd(centred, full_matrices=False)[2]
    made = {
        "plain": vectors,
        "centred": centred,
        **{f"{count} axes": centred @ main[:count].T for count in AXES},
    }
    return {name: figures(made[name], dialogues) for name in made}


def trained(folder: Path, dialogues: list[Dialogue], **settings: Any) -> Any:
    """Train dial2vec by a recipe over the backbone."""
    given = {
        "backbone": BACKBONE,
        "output_dir": folder,
        "disable_tqdm": True,
        **settings,
        **OPTIONS,
    }
    return hf_dialemb.train("dial2vec", dialogues, **given)


def candidates(folder: Path, dialogues: list[Dialogue]) -> dict[str, dict[str, Figures]]:
    """Train once, and measure what the recipe may be."""
    run = trained(folder, dialogues, average_with_backbone=0.0, **DIAL2VEC)
    return {
        name: ends(encoded(averaged(run, share), dialogues), dialogues)
        for name, share in SHARES.items()
    }


def by_recipe(folder: Path, dialogues: list[Dialogue]) -> Figures:
    """Train by the recipe and measure, with what `hf_dialemb.train` measured of dialogues held out."""
    run = trained(folder, dialogues, recipe=RECIPE)
    facts = {name: run.report()[name] for name in ("seconds", "held_out")}
    return {**figures(encoded(run, dialogues), dialogues), **facts}


def untrained(model: Any, dialogues: list[Dialogue]) -> Figures:
    """Measure an encoder as it is."""
    return figures(encoded(model, dialogues), dialogues)


def kept(file: Path, measure: Callable[[], Figures]) -> Figures:
    """Read figures, or measure and write them."""
    if not file.is_file():
        write_json_atomically(file, measure())
        print(file.name, flush=True)
    return dict(json.loads(file.read_text(encoding="utf-8")))


def table_of_choices(parts: dict[str, dict[str, dict[str, Figures]]]) -> list[str]:
    """Make a line for each candidate: its mean MAP over the parts, by how vectors end."""
    first = next(iter(parts.values()))
    heads = [*next(iter(first.values()))]
    means = {
        name: [np.mean([part[name][end]["map"] for part in parts.values()]) for end in heads]
        for name in first
    }
    best = max(max(line) for line in means.values())
    rows = [
        [name, *(f"**{mean:.1f}**" if mean == best else f"{mean:.1f}" for mean in means[name])]
        for name in means
    ]
    return table_lines(["Mean MAP"], heads, rows)


def gain(line: dict[str, Figures]) -> tuple[float, tuple[float, float]]:
    """Compute the gain in MAP of the recipe over its backbone, and the interval of the paired
    difference.
    """
    differences = np.subtract(line[RECIPE]["scores"], line[BACKBONE]["scores"])
    low, high = mean_interval(differences)
    return float(differences.mean()), (low, high)


def tables(lines: dict[str, dict[str, Figures]], peers: list[str], metric: str) -> list[str]:
    """Make a line for each part that reports: the encoders side by side, the best in bold."""
    names = [*peers, BACKBONE, RECIPE]
    rows = []
    for name, line in lines.items():
        values = [line[encoder][metric] for encoder in names]
        best = f"{max(values):.1f}"
        cells = [f"**{best}**" if f"{value:.1f}" == best else f"{value:.1f}" for value in values]
        mean, (low, high) = gain(line)
        more = [f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"] if metric == "map" else []
        rows.append(
            [f"{name} ({line['dialogues']}){'' if REPORTING[name].known else ' *'}", *cells, *more]
        )
    return table_lines(["Dialogues"], [*names, *(["Gain"] if metric == "map" else [])], rows)


def main() -> None:
    """Measure what is missing, print the tables and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peer", nargs="+", default=PEERS, help="encoders to stand beside, by name or folder"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("own_recipe.json"), help="where the figures go"
    )
    parser.add_argument(
        "--work", type=Path, help="folder of what was measured (default: beside the output)"
    )
    options = parser.parse_args()
    work, peers = (
        options.work or options.output.with_suffix(""),
        [Path(peer).name for peer in options.peer],
    )
    work.mkdir(parents=True, exist_ok=True)
    choosing: dict[str, Any] = {}
    for part, drawn in CHOOSING.items():
        dialogues, place = dialogues_of(drawn), work / part.replace(" ", "-")
        run = place.with_name(f"{place.name}-dial2vec")
        choosing[part] = kept(Path(f"{run}.json"), partial(candidates, run, dialogues))
    record: dict[str, Any] = {"machine": {**describe_machine(), "bfloat16": multiplies_bfloat16()}}
    record |= {"choosing": without_scores(choosing), "choices": table_of_choices(choosing)}
    lines: dict[str, dict[str, Any]] = {}
    for part, drawn in REPORTING.items():
        dialogues, place = dialogues_of(drawn), work / part.replace(" ", "-")
        line = lines[part] = {"dialogues": len(dialogues)}
        run = place.with_name(f"{place.name}-{RECIPE}")
        line[RECIPE] = kept(Path(f"{run}.json"), partial(by_recipe, run, dialogues))
        for model, peer in zip([*options.peer, BACKBONE], [*peers, BACKBONE], strict=True):
            line[peer] = kept(Path(f"{place}-{peer}.json"), partial(untrained, model, dialogues))
        record |= {
            "reporting": without_scores(lines),
            "gains": {name: gain(lines[name]) for name in lines},
        }
        record |= {"table": tables(lines, peers, "map"), "purity": tables(lines, peers, "purity")}
        write_json_atomically(options.output, record)
    print("\n".join([*record["choices"], *record["table"]]))


def without_scores(record: Any) -> Any:
    """Leave out the scores of single dialogues."""
    if isinstance(record, dict):
        return {key: without_scores(value) for key, value in record.items() if key != "scores"}
    return record


if __name__ == "__main__":
    main()
