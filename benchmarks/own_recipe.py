"""What a training on one's own dialogues gains: recipes on parts of corpora, each as if it were all that somebody has.

Three parts choose the recipe, by the mean MAP of domains; the others only report. A training reads no label, and learns
from the dialogues that it is measured on, as one's own would: all but those that `hf_dialemb.train` holds out. Trained
and untrained encoders read in bfloat16 where the processor multiplies it. The interval is of the paired difference.

    HF_DIALEMB_DATA=corpora python benchmarks/own_recipe.py --output docs/results/own_recipe.json   # an hour of a core

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
from hf_dialemb.corpora import load_dialogues, single_domain
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.drawing import table_lines
from hf_dialemb.evaluation.tasks.domains import evaluate_embeddings
from hf_dialemb.evaluation.tasks.sampling import mean_interval
from hf_dialemb.methods.dial2vec import Dial2VecModel
from hf_dialemb.runs.files import write_json_atomically
from hf_dialemb.runs.hardware import bfloat16_where_faster, multiplies_bfloat16


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
CANDIDATES = {
    "1e-5": {"max_steps": 60, "learning_rate": 1e-5, "num_negatives": 4},
    "3e-5": {"max_steps": 60, "learning_rate": 3e-5, "num_negatives": 4},
}
SHARES = (0.0, 0.5, 1.0)
"""Of the backbone's weights in the average; with all of them nothing is learnt but the centre."""

RECIPE = "own_minilm"
DSE = {"method": "dse", "recipe": "dse_minilm", "max_steps": 100}
OPTIONS: dict[str, Any] = {}
"""Further settings of every training."""

Figures = dict[str, Any]


def dialogues_of(part: Part) -> list[Dialogue]:
    """Draw the dialogues of a part, with one label each."""
    loaded = load_dialogues(part.corpus, split=part.split)
    if part.tasks:
        tasks = [[intent for turn in dialogue.turns for intent in turn.intents] for dialogue in loaded]
        loaded = [replace(dialogue, domains=tuple(named[:1])) for dialogue, named in zip(loaded, tasks, strict=True)]
    labelled = single_domain(loaded)
    rows = np.random.default_rng(0).permutation(len(labelled))[part.start : part.start + SIZE]
    return [labelled[row] for row in np.sort(rows)]


def figures(vectors: np.ndarray, dialogues: list[Dialogue]) -> Figures:
    """Measure vectors: MAP, the scores that it is the mean of, and purity."""
    rows = evaluate_embeddings(vectors, [dialogue.domains[0] for dialogue in dialogues], seeds=SEEDS)
    by_metric = {row.metric: row for row in rows}
    scores = [round(float(score), 3) for score in by_metric["map"].scores]
    return {"map": by_metric["map"].mean, "purity": by_metric["purity"].mean, "scores": scores}


def encoded(model: Any, dialogues: list[Dialogue]) -> np.ndarray:
    """Encode dialogues, in bfloat16 where that is faster."""
    with bfloat16_where_faster():
        return hf_dialemb.load_encoder(model).encode(dialogues)


def averaged(run: Any, share: float) -> Any:
    """Load a trained dial2vec with a share of the backbone's weights in it, as ``average_with_backbone`` leaves it."""
    start, tokenizer = Dial2VecModel.from_backbone(BACKBONE)
    model, before = Dial2VecModel.from_pretrained(run.path), start.state_dict()
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            value.lerp_(before[name], share)
    return hf_dialemb.load_encoder(model, tokenizer=tokenizer)


def both_ways(model: Any, dialogues: list[Dialogue]) -> dict[str, Figures]:
    """Measure an encoder as it is, and less the mean of the dialogues' vectors."""
    vectors = encoded(model, dialogues)
    return {"plain": figures(vectors, dialogues), "centred": figures(vectors - vectors.mean(axis=0), dialogues)}


def trained(folder: Path, dialogues: list[Dialogue], method: str, recipe: str, **settings: Any) -> Figures:
    """Train by a recipe and measure, with what `hf_dialemb.train` measured of dialogues held out."""
    run = hf_dialemb.train(
        method, dialogues, recipe=recipe, backbone=BACKBONE, output_dir=folder, disable_tqdm=True,
        **{**settings, **OPTIONS},
    )  # fmt: skip
    report = run.report()
    facts = {"seconds": report["seconds"], "held_out": report["held_out"]}
    return {**figures(encoded(run, dialogues), dialogues), **facts}


def candidates(folder: Path, dialogues: list[Dialogue], **settings: Any) -> dict[str, dict[str, Figures]]:
    """Train once, and measure each share of the backbone, with and without centre."""
    whole = {"average_with_backbone": 0.0, "center": False, **settings, **OPTIONS}
    run = hf_dialemb.train(
        "dial2vec", dialogues, recipe=RECIPE, backbone=BACKBONE, output_dir=folder, disable_tqdm=True, **whole
    )
    return {f"share {share:g}": both_ways(averaged(run, share), dialogues) for share in SHARES}


def kept(file: Path, measure: Callable[[], Figures]) -> Figures:
    """Read figures, or measure and write them."""
    if not file.is_file():
        write_json_atomically(file, measure())
        print(file.name, flush=True)
    return dict(json.loads(file.read_text(encoding="utf-8")))


def choices_of(place: Path, dialogues: list[Dialogue]) -> dict[str, dict[str, Figures]]:
    """Measure everything that the recipe is chosen from on a part, as it is and centred; DSE has no centre."""
    choices: dict[str, dict[str, Figures]] = {}
    for name, settings in CANDIDATES.items():
        run = place.with_name(f"{place.name}-{name}")
        shares = kept(Path(f"{run}.json"), partial(candidates, run, dialogues, **settings))
        choices |= {f"dial2vec, {name}, {share}": figures for share, figures in shares.items()}
    run = place.with_name(f"{place.name}-dse")
    return {**choices, "DSE, 100 steps": {"plain": kept(Path(f"{run}.json"), partial(trained, run, dialogues, **DSE))}}


def table_of_choices(parts: dict[str, dict[str, dict[str, Figures]]]) -> list[str]:
    """Make a line for each candidate: MAP on each part, as it is and centred."""
    rows = []
    for name in next(iter(parts.values())):
        ways = [parts[part][name].get(way) for part in parts for way in ("plain", "centred")]
        rows.append([name, *("" if way is None else f"{way['map']:.1f}" for way in ways)])
    return table_lines(["Candidate"], [head for part in parts for head in (part, "centred")], rows)


def gain(line: dict[str, Figures]) -> tuple[float, tuple[float, float]]:
    """Compute the gain in MAP of the recipe over its backbone, and the interval of the paired difference."""
    differences = np.subtract(line[RECIPE]["scores"], line[BACKBONE]["plain"]["scores"])
    low, high = mean_interval(differences)
    return float(differences.mean()), (low, high)


def tables(lines: dict[str, dict[str, Figures]], peers: list[str], metric: str) -> list[str]:
    """Make a line for each part that reports: the encoders side by side, the best in bold."""
    heads = [*peers, BACKBONE, "centred", RECIPE]
    rows = []
    for name, line in lines.items():
        part = REPORTING[name]
        values = [*(line[peer]["plain"][metric] for peer in (*peers, BACKBONE)), line[BACKBONE]["centred"][metric]]
        values += [line[RECIPE][metric]]
        best = f"{max(values):.1f}"
        cells = [f"**{best}**" if f"{value:.1f}" == best else f"{value:.1f}" for value in values]
        mean, (low, high) = gain(line)
        more = [f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"] if metric == "map" else []
        rows.append([f"{name} ({line['dialogues']}){'' if part.known else ' *'}", *cells, *more])
    return table_lines(["Dialogues"], [*heads, *(["gain"] if metric == "map" else [])], rows)


def main() -> None:
    """Measure what is missing, print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", nargs="+", default=PEERS, help="encoders to stand beside, by name or folder")
    parser.add_argument("--output", type=Path, default=Path("own_recipe.json"), help="where the figures go")
    parser.add_argument("--work", type=Path, help="folder of what was measured (default: beside the output)")
    options = parser.parse_args()
    work, peers = options.work or options.output.with_suffix(""), [Path(peer).name for peer in options.peer]
    work.mkdir(parents=True, exist_ok=True)
    choosing = {
        part: choices_of(work / part.replace(" ", "-"), dialogues_of(drawn)) for part, drawn in CHOOSING.items()
    }
    record: dict[str, Any] = {"machine": {**describe_machine(), "bfloat16": multiplies_bfloat16()}}
    record |= {"choosing": without_scores(choosing), "choices": table_of_choices(choosing)}
    lines: dict[str, dict[str, Any]] = {}
    for part, drawn in REPORTING.items():
        dialogues, place = dialogues_of(drawn), work / part.replace(" ", "-")
        line = lines[part] = {"dialogues": len(dialogues)}
        run = place.with_name(f"{place.name}-{RECIPE}")
        line[RECIPE] = kept(Path(f"{run}.json"), partial(trained, run, dialogues, "dial2vec", RECIPE))
        for model, peer in zip([*options.peer, BACKBONE], [*peers, BACKBONE], strict=True):
            line[peer] = kept(Path(f"{place}-{peer}.json"), partial(both_ways, model, dialogues))
        record |= {"reporting": without_scores(lines), "gains": {name: gain(lines[name]) for name in lines}}
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
