"""Draws how Dialog2Flow learns.

Its task on the Dialog2Flow evaluation file after so many steps, from so many corpora.

    dialemb train --config dialog2flow_single_minilm --output_dir runs/all
    dialemb train --config dialog2flow_single_minilm --output_dir runs/sgd --corpus sgd/train
    --max_steps 500 \
        --lr_scheduler_type constant_with_warmup     # in so few steps, the learning rate of the
        long run hardly falls
    python benchmarks/learning_curve.py --run "all corpora=runs/all" --run SGD=runs/sgd --output
    curve.json

Every ``checkpoint-N`` of a run is measured as `dialemb evaluate --task action-similarity` measures
it; step 0 is the backbone. No checkpoint is chosen by this. The picture goes beside the results
file, with the ending ``.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hardware import describe_machine

from hf_dialemb.drawing import check_drawing, new_figure
from hf_dialemb.encoders import load_encoder
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.pretrained import MINILM
from hf_dialemb.storage.run_folder import RunFolder

FIGURES = {
    "F1, 1-shot": ("f1", "1-shot"),
    "F1, 5-shot": ("f1", "5-shot"),
    "within less between": ("difference", ""),
}
"""What is shown, from its name to the metric and the setting."""


def checkpoints(folder: Path) -> dict[int, str]:
    """Return a run's checkpoints by step, in order."""
    return {
        int(path.name.rpartition("-")[2]): str(path) for path in RunFolder(folder).checkpoints()
    }


def measure(model: str, problem: Any, seeds: range) -> dict[str, float]:
    """Measures one checkpoint."""
    rows = {
        (row.metric, row.setting): row.mean for row in problem.measure(load_encoder(model), seeds)
    }
    return {name: round(rows[key], 3) for name, key in FIGURES.items()}


def draw(curves: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    """Draws one panel per figure, one line per run."""
    figure = new_figure(11, 3.6)
    for place, name in enumerate(FIGURES):
        axes = figure.add_subplot(1, len(FIGURES), place + 1)
        for label, points in curves.items():
            axes.plot(
                list(points), [values[name] for values in points.values()], marker="o", label=label
            )
        axes.set_title(name)
        axes.set_xlabel("steps of 64 pairs")
        axes.grid(alpha=0.3)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        ncol=len(curves),
        frameon=False,
    )
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measures all checkpoints of all runs, writes the figures and the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--run",
        action="append",
        required=True,
        help="NAME=FOLDER of a run that kept its checkpoints",
    )
    parser.add_argument("--backbone", default=MINILM, help="what the runs started from")
    parser.add_argument("--corpus", default="dialog2flow_evaluation", help="what is measured on")
    parser.add_argument("--split", default="test")
    parser.add_argument("--data-dir", help="where it lies; by default what HF_DIALEMB_DATA names")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("learning_curve.json"))
    options = parser.parse_args()
    check_drawing()
    problem = load_problem(
        "action-similarity", CorpusPart(options.corpus, options.data_dir, options.split)
    )
    seeds = range(options.seeds)
    start = measure(options.backbone, problem, seeds)
    curves: dict[str, dict[int, dict[str, float]]] = {}
    for run in options.run:
        name, _, folder = run.partition("=")
        curves[name] = {0: start}
        for step, path in checkpoints(Path(folder)).items():
            curves[name][step] = measure(path, problem, seeds)
            print(name, step, curves[name][step], flush=True)
    lines = [f"| trained on | steps | {' | '.join(FIGURES)} |", f"|:--|--:|{'--:|' * len(FIGURES)}"]
    for name, points in curves.items():
        for step, values in points.items():
            shown = [
                f"{value:.1f}" if abs(value) > 1 else f"{value:.3f}" for value in values.values()
            ]
            lines.append(f"| {name} | {step:,} | {' | '.join(shown)} |")
    record = {
        "machine": describe_machine(),
        "corpus": options.corpus,
        "split": options.split,
        "seeds": options.seeds,
    }
    write_json_atomically(options.output, {**record, "curves": curves, "table": lines})
    draw(curves, options.output.with_suffix(".png"))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
