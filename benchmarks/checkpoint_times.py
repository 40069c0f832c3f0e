"""What trainings take.

Those of `make checkpoints`, from the reports of their runs, and recipes, from a few steps.

    python benchmarks/checkpoint_times.py runs/shipped --output docs/results/checkpoint_times.json
    python benchmarks/checkpoint_times.py --recipe dse_minilm dse_demo --output
    docs/results/checkpoint_times.json

The time of a recipe is extrapolated: what passes beside steps, and the mean of a few steps times
their number. On a processor it is the time of one thread at work, which other programs change
little; on a GPU it is what passes. Corpora come from HF_DIALEMB_DATA. What is not measured keeps
its lines.
"""

import argparse
import json
import re
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from processes import answer_of

from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.hardware import describe_hardware
from hf_dialemb.storage.run_folder import RunFolder

STARTED = time.perf_counter()
WARM = 1  # steps that do not count
GIB = 2**30
ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def main() -> None:
    """Read the reports of a folder of runs, or train recipes for some steps.

    Print the tables and write them.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="?", help="the folder of the runs")
    parser.add_argument("--recipe", nargs="+", default=[], help="recipes to train for some steps")
    parser.add_argument(
        "--steps", type=int, default=8, help="how many, of which the first does not count"
    )
    parser.add_argument(
        "--measure", help="measure this recipe in this process and print the figures"
    )
    parser.add_argument("--output", type=Path, help="where the tables go")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(extrapolated(options.measure, options.steps)))
        return
    record = json.loads(options.output.read_text()) if options.output.is_file() else {}
    lines, recipes = record.get("lines", {}), record.get("recipes", {})
    lines |= reported(options.runs) if options.runs else {}
    for name in options.recipe:
        words = (__file__, "--measure", name, "--steps", options.steps)
        figures = answer_of(*words, environment=ONE_THREAD)
        recipes[f"{name} on {figures['on']}"] = figures
        print(name, figures, flush=True)
    tables = {"table": trainings(lines), "extrapolated": recipe_table(recipes)}
    write_json_atomically(
        options.output, {"lines": lines, "recipes": dict(sorted(recipes.items())), **tables}
    )
    print(*tables["table"], "", *tables["extrapolated"], sep="\n")


def reported(runs: Path) -> dict[str, dict[str, Any]]:
    """Read what the trainings in a folder took, those that differ in the seed together."""
    # tables are made on the processor
    found, here = (defaultdict(list), describe_hardware(gpu=False))
    for file in sorted(runs.glob("*/training_report.json")):
        report = json.loads(file.read_text())
        if report.get("resumed_from"):
            continue  # its seconds are those since then
        if report.get("steps") or file.parent.name.endswith("-static"):  # merges take seconds
            found[re.sub(r"-\d$", "", file.parent.name)].append({"hardware": here, **report})
    return {
        name: {
            "seconds": [report["seconds"] for report in reports],
            "peak_memory": max(report.get("peak_memory") or 0 for report in reports) or None,
            "on": reports[0]["hardware"],
        }
        for name, reports in found.items()
    }


def extrapolated(recipe: str, steps: int) -> dict[str, Any]:
    """Train a recipe for some steps.

    Its number of steps, seconds beside them and of each, and bytes of memory.
    """
    import torch
    from transformers import TrainerCallback

    from hf_dialemb.training.arguments import make_settings
    from hf_dialemb.training.training_run import run_training

    gpu = torch.cuda.is_available()

    def now() -> float:
        if not gpu:
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter() - STARTED

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.times: list[float] = []
            self.total = 0

        def on_train_begin(self, args, state, control, **_):
            self.times.append(now())

        def on_step_end(self, args, state, control, **_):
            self.times.append(now())
            self.total = state.max_steps
            control.should_training_stop |= len(self.times) == steps + 1

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        run_training(
            make_settings({"output_dir": run, "disable_tqdm": True}, recipe), callbacks=[clock]
        )
        report = RunFolder(run).report()
    took = [end - begin for begin, end in pairwise(clock.times)]  # with the making of batches
    return {
        "steps": clock.total,
        "measured_steps": len(took[WARM:]) or 1,
        "beside_seconds": now() - sum(took),
        "step_seconds": mean(took[WARM:] or took),
        "peak_memory": report["peak_memory"],
        "peak_gpu_memory": report["peak_gpu_memory"],
        "on": report["hardware"] if gpu else f"a thread of {report['hardware']}",
    }


def trainings(lines: dict[str, dict[str, Any]]) -> list[str]:
    """Return the table of whole trainings."""
    rows, totals = [], defaultdict(list)
    for name, line in sorted(lines.items()):
        minutes = f"{mean(line['seconds']) / 60:.0f}"
        rows.append(
            [
                name,
                str(len(line["seconds"])),
                minutes,
                gibibytes(line.get("peak_memory")),
                line["on"],
            ]
        )
        totals[line["on"]] += line["seconds"]
    rows += [
        ["all", str(len(each)), f"{sum(each) / 60:.0f} in all", "", on]
        for on, each in sorted(totals.items())
    ]
    return markdown(["Training", "Runs", "Minutes each", "GiB at most", "On"], rows)


def recipe_table(recipes: dict[str, dict[str, Any]]) -> list[str]:
    """Return the table of the recipes that were measured."""
    rows = []
    for key, figures in sorted(recipes.items()):
        seconds = figures["beside_seconds"] + figures["steps"] * figures["step_seconds"]
        peak = figures["peak_gpu_memory"] or figures["peak_memory"]
        counted = [
            f"{figures['steps']:,}",
            f"{figures['beside_seconds']:.0f}",
            f"{figures['step_seconds']:.2f}",
        ]
        minutes = f"{max(1, seconds / 60):,.0f}"
        rows.append([key.partition(" on ")[0], *counted, minutes, gibibytes(peak), figures["on"]])
    head = [
        "Recipe",
        "Steps",
        "Seconds beside steps",
        "Seconds a step",
        "Minutes, extrapolated",
        "GiB at most",
        "On",
    ]
    return markdown(head, rows)


def gibibytes(count: int | None) -> str:
    """Write a number of bytes; a dash for reports that lack it."""
    return f"{count / GIB:.1f}" if count else "–"


def markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table whose numbers stand right."""
    rule = [":--", *["--:"] * (len(head) - 2), ":--"]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


if __name__ == "__main__":
    main()
