"""Training steps of today's code beside an earlier commit's: the recipes of the package.

Both sides run `dialemb train` with the same recipe, data and seeds, each in a process of its own,
in turns. A round's ratio is the median step of the earlier commit divided by ours; the first steps
do not count.

    python benchmarks/training_since.py --output docs/results/training_since.json

SGD comes from HF_DIALEMB_DATA. It takes half an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from hardware import describe_machine

from hf_dialemb.drawing import table_lines
from hf_dialemb.storage.files import write_json_atomically

ROOT = Path(__file__).resolve().parents[1]
SINCE = "91196f0"
"""The last commit before training was made faster."""
RECIPES = ("dse_minilm", "dialogue_cse_minilm", "dialog2flow_single_minilm", "dial2vec_minilm")
WARM = 3  # so many steps do not count
TRAIN = """
import json, resource, sys, time
import transformers.trainer as trainer
from transformers import TrainerCallback

class Clock(TrainerCallback):
    begun, seconds = 0.0, []
    def on_step_begin(self, *_, **__):
        self.begun = time.perf_counter()
    def on_step_end(self, *_, **__):
        self.seconds.append(time.perf_counter() - self.begun)

trainer.DEFAULT_CALLBACKS.append(Clock)
from hf_dialemb.apps.cli import main
output, *words = sys.argv[1:]
code = main(["train", *words])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
open(output, "w").write(json.dumps({"seconds": Clock.seconds, "peak_mib": peak}))
sys.exit(code)
"""


def step(source: Path, recipe: str, steps: int) -> dict[str, float]:
    """Trains for some steps.

    Returns the median seconds of one, and the peak memory of the process.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        words = {"--max_steps": steps, "--average_with_backbone": 0, "--save_strategy": "no"}
        given = [
            "--config",
            recipe,
            *(str(word) for pair in words.items() for word in pair),
            "--warmup_steps",
            "2",
        ]
        env = {**os.environ, "PYTHONPATH": str(source / "src"), "TQDM_DISABLE": "1"}
        subprocess.run(
            [
                sys.executable,
                "-c",
                TRAIN,
                str(folder / "steps.json"),
                *given,
                "--output_dir",
                str(folder / "run"),
            ],
            cwd=folder,
            env=env,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        figures = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    return {"seconds": median(figures["seconds"][WARM:]), "peak_mib": figures["peak_mib"]}


def measured(recipe: str, before: Path, rounds: int, steps: int) -> dict[str, object]:
    """Measures a recipe, in turns."""
    pairs = [(step(before, recipe, steps), step(ROOT, recipe, steps)) for _ in range(rounds)]
    ratios = [old["seconds"] / new["seconds"] for old, new in pairs]
    print(recipe, [round(ratio, 2) for ratio in ratios], flush=True)
    return {
        "recipe": recipe,
        "ratios": ratios,
        "seconds": [new["seconds"] for _, new in pairs],
        "seconds_before": [old["seconds"] for old, _ in pairs],
        "peak_mib": max(new["peak_mib"] for _, new in pairs),
        "peak_mib_before": max(old["peak_mib"] for old, _ in pairs),
    }


def table(rows: list[dict[str, object]]) -> list[str]:
    """Make a line for each recipe."""
    lines = []
    for row in rows:
        spread = (
            f"{median(row['ratios']):.2f} ({min(row['ratios']):.2f} to {max(row['ratios']):.2f})"
        )
        seconds = [f"{median(row[name]):.2f}" for name in ("seconds", "seconds_before")]
        peaks = [f"{row[name]:,.0f}" for name in ("peak_mib", "peak_mib_before")]
        lines.append([row["recipe"], spread, *seconds, *peaks])
    heads = ["Times as fast", "Seconds a step", "Before", "Peak, MiB", "Before"]
    return table_lines(["Recipe"], heads, lines)


def main() -> None:
    """Check the earlier commit out beside this one, and measure the recipes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--since", default=SINCE, help=f"the earlier commit (default: {SINCE})")
    parser.add_argument(
        "--recipes", nargs="+", default=RECIPES, help="default: those of four methods over MiniLM"
    )
    parser.add_argument("--rounds", type=int, default=3, help="pairs of each recipe (default: 3)")
    parser.add_argument(
        "--steps",
        type=int,
        default=13,
        help=f"steps of each run (default: 13, {WARM} do not count)",
    )
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        before = Path(made) / "before"
        subprocess.run(
            [
                "git",
                "-C",
                str(ROOT),
                "worktree",
                "add",
                "-q",
                "--detach",
                str(before),
                options.since,
            ],
            check=True,
        )
        try:
            rows = [
                measured(recipe, before, options.rounds, options.steps)
                for recipe in options.recipes
            ]
        finally:
            subprocess.run(
                ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(before)], check=True
            )
    lines = table(rows)
    write_json_atomically(
        options.output,
        {"since": options.since, "machine": describe_machine(), "rows": rows, "table": lines},
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
