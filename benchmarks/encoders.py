"""What you would pick instead: encoders side by side, on test splits that chose nothing.

MAP is of retrieving dialogues of one's own domain, accuracy that of intents from one example each,
F1 that of actions. Several runs of one recipe, as `dse=runs/dse-0,runs/dse-1`, make one line: their
mean, and how far they lie apart. Where the processor multiplies bfloat16, encoders read in it;
rates are in single precision, on the threads that the run has.

    python benchmarks/encoders.py --model all-MiniLM-L6-v2 dialogue-minilm action-minilm --output
    encoders.json

What was measured is kept beside the output, in a folder, and not measured again.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from encoder_tables import short
from hardware import describe_machine
from processes import seconds_of
from safetensors.numpy import load_file

import hf_dialemb
from hf_dialemb.data import iterate_dialogues
from hf_dialemb.data.labels import unified_turn
from hf_dialemb.evaluation.results.rows import read_results
from hf_dialemb.evaluation.tasks.actions import NAME, SHOTS, draw_repeats, load_actions
from hf_dialemb.evaluation.tasks.intents import by_prototypes
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.hardware import bfloat16_where_faster, multiplies_bfloat16
from hf_dialemb.storage.pretrained import resolve_backbone

DIALOGUES = ("sgd", "multiwoz", "doc2dial", "self_dialogue", "star", "kvret")
INTENTS = ("clinc150", "banking77", "snips")
ACTIONS = ("sgd", "multiwoz", "star", "kvret", "sim_m", "gecor")
EVALUATION = "dialog2flow_evaluation"
CARRIERS = (
    "sgd",
    "multiwoz",
    "titan",
    "woz2",
    "gecor",
    "sim_m",
    "kvret",
    "star",
    "muldogo",
    "hdsa",
)
"""The corpora at hand whose turns have actions: what one of them carries is covered."""


READ = "sgd"
"""The corpus whose test split is encoded for the rates."""

LIMIT = {"domains": 600, "ablations": 600, "action-similarity": 3000, "intent-classification": None}
"""At most so many items of a corpus, drawn the same for all."""

Figures = dict[str, float]


def kept(file: Path, measure: Callable[[], Figures]) -> Figures:
    """Read what was measured before, or measure and write it."""
    if not file.is_file():
        with bfloat16_where_faster():
            write_json_atomically(file, measure())
    return dict(json.loads(file.read_text(encoding="utf-8")))


def figures(file: Path, model: str, corpus: str, task: str, seeds: int) -> Figures:
    """Measures a model on a corpus.

    Each figure by its metric and setting, and a mark where it learnt from it.
    """
    if not file.is_file():
        with bfloat16_where_faster():
            hf_dialemb.evaluate(
                model, corpus, tasks=[task], limit=LIMIT[task], seeds=range(seeds)
            ).save(file)
    found = read_results(file).results
    return {f"{row.metric} {row.setting}".strip(): row.mean for row in found} | {
        "learnt": found[0].learnt
    }


def evaluation_file(model: str, covered: set[str], seeds: int) -> Figures:
    """Measures the actions of Dialog2Flow's file.

    All labels, the covered ones and the others, among all to choose.
    """
    problem = load_actions(CorpusPart(EVALUATION, None, "test", None))
    names = np.array(problem.labels)
    vectors = hf_dialemb.load_encoder(model).encode(problem.dialogues)
    inside = np.isin(names, [*covered])
    found: Figures = {"labels": len(set(names)), "covered labels": len(set(names[inside]))}
    for shots in SHOTS:
        repeats = draw_repeats(names, shots, range(seeds))
        for told, asked in {"": names == names, "covered ": inside, "uncovered ": ~inside}.items():
            chosen = [(drawn, queries[asked[queries]]) for drawn, queries in repeats]
            for row in by_prototypes(NAME, {"f1": "macro_f1"}, vectors, names, chosen, shots):
                found[f"{told}{row.setting}"] = row.mean
    return found


def covered_labels() -> Figures:
    """Find the unified labels of Dialog2Flow's file that some corpus at hand carries."""
    carried = {
        unified_turn(turn).action
        for corpus in CARRIERS
        for dialogue in iterate_dialogues(corpus, split="all")
        for turn in dialogue.turns
    }
    turns = [dialogue.turns[0] for dialogue in iterate_dialogues(EVALUATION, split="test")]
    return {turn.intents[0]: 1.0 for turn in turns if unified_turn(turn).action in carried}


def rate(model: str) -> Figures:
    """Measure texts encoded in a second, and count the millions of weights."""
    dialogues = hf_dialemb.load_dialogues(READ, split="test")[:300]
    texts = list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))[
        :1000
    ]
    encoder = hf_dialemb.load_encoder(model)
    encoder.encode(dialogues[:4])
    found = {
        "utterances/s": len(texts) / seconds_of(partial(encoder.encode_utterances, texts)),
        "dialogues/s": len(dialogues) / seconds_of(partial(encoder.encode, dialogues)),
    }
    if not encoder.fitted_on_input:
        files = Path(model if Path(model).is_dir() else resolve_backbone(model)).rglob(
            "*.safetensors"
        )
        found["parameters"] = (
            sum(tensor.size for file in files for tensor in load_file(file).values()) / 1e6
        )
    return found


def measured(model: str, kinds: set[str], seeds: int, folder: Path) -> dict[str, Figures]:
    """Measures a model, by task and corpus."""
    name = Path(model).name
    found = {}
    wanted = {
        "domains": DIALOGUES,
        "intent-classification": INTENTS,
        "action-similarity": (*ACTIONS, EVALUATION),
        "ablations": (*DIALOGUES, "dailydialog"),
    }
    for task in filter(kinds.__contains__, wanted):
        for corpus in wanted[task]:
            file = folder / f"{name}-{corpus}-{task}.json"
            found[f"{task} {corpus}"] = figures(file, model, corpus, task, seeds)
    if EVALUATION in kinds:
        covered = set(kept(folder / "covered.json", covered_labels))
        file = folder / f"covered-{name}.json"
        found[EVALUATION] = kept(file, lambda: evaluation_file(model, covered, seeds))
    if "rate" in kinds:
        file = folder / f"rate-{name}.json"
        if not file.is_file():
            write_json_atomically(file, rate(model))
        found["rate"] = json.loads(file.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Measures what is missing, prints the tables and writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", nargs="+", required=True, help="encoders, by name or folder, or NAME=RUN,RUN"
    )
    kinds = (
        "domains",
        "intent-classification",
        "action-similarity",
        EVALUATION,
        "ablations",
        "rate",
    )
    parser.add_argument(
        "--task", nargs="+", choices=kinds, default=kinds, help="what is measured (default: all)"
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help="repeats of what draws at random (default: 3)"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("encoders.json"), help="where the figures go"
    )
    parser.add_argument(
        "--work", type=Path, help="folder of what was measured (default: beside the output)"
    )
    options = parser.parse_args()
    folder = options.work or options.output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    lines = json.loads(options.output.read_text())["lines"] if options.output.is_file() else {}
    for given in options.model:
        name, _, runs = given.partition("=")
        every = runs.split(",") if runs else [name]
        found = [measured(run, set(options.task), options.seeds, folder) for run in every]
        lines.setdefault(Path(name).name, {}).update(
            {
                what: {key: [each[what][key] for each in found] for key in found[0][what]}
                for what in found[0]
            }
        )
        machine = {**describe_machine(), "bfloat16": multiplies_bfloat16()}
        write_json_atomically(options.output, {"machine": machine, "limit": LIMIT, "lines": lines})
    print("\n".join(short(lines)))


if __name__ == "__main__":
    main()
