"""The recipe of `dialemb demo`, chosen on other corpora.

Slices of their training splits, as small as the demo's.

Each slice has 40 dialogues of a domain to train on and 20 to measure, of at most 16 domains; the
test splits are not read. Every step size is measured as trained, and halfway back to the backbone.

    python benchmarks/demo_recipe.py --output docs/results/demo_recipe.json
"""

from __future__ import annotations

import argparse
import hashlib
from collections import defaultdict
from pathlib import Path

from hardware import describe_machine

import hf_dialemb
from hf_dialemb.data import load_dialogues, single_domain, write_jsonl
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.drawing import table_lines
from hf_dialemb.evaluation.tasks.domains import evaluate_embeddings
from hf_dialemb.storage.files import write_json_atomically

BACKBONE, RECIPE = "all-MiniLM-L6-v2", "dse_demo"
CORPORA = {"sgd": "SGD", "multiwoz": "MultiWOZ"}
RATES, BACK = (5e-5, 1e-4), (0.0, 0.5)
TRAIN, MEASURED, DOMAINS, SEEDS = 40, 20, 16, range(5)
METRICS = ("purity", "nmi", "ari", "map", "mrr")
OPTIONS: dict[str, object] = {}  # further settings of the trainings


def slices(corpus: str, folder: Path) -> tuple[Path, list[Dialogue]]:
    """Draws a slice: the file to train on, and the dialogues to measure.

    Which ones, digests of their ids decide.
    """
    found = defaultdict(list)
    for dialogue in single_domain(load_dialogues(corpus, split="train")):
        found[dialogue.domains[0]].append(dialogue)
    drawn = [
        sorted(dialogues, key=lambda dialogue: hashlib.sha256(dialogue.id.encode()).hexdigest())
        for _, dialogues in sorted(found.items())
        if len(dialogues) >= TRAIN + MEASURED
    ][:DOMAINS]
    file = folder / f"{corpus}.jsonl"
    write_jsonl([each for domain in drawn for each in domain[:TRAIN]], file)
    return file, [each for domain in drawn for each in domain[TRAIN : TRAIN + MEASURED]]


def figures(encoder: object, dialogues: list[Dialogue]) -> dict[str, float]:
    """Measures an encoder."""
    labels = [dialogue.domains[0] for dialogue in dialogues]
    rows = evaluate_embeddings(
        hf_dialemb.load_encoder(encoder).encode(dialogues), labels, seeds=SEEDS
    )
    return {row.metric: float(row.mean) for row in rows if row.metric in METRICS}


def main() -> None:
    """Measures, prints the table and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=Path("demo_recipe.json"), help="where the figures go"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("runs/demo-recipe"), help="where the trainings go"
    )
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    lines = []
    for corpus, title in CORPORA.items():
        file, dialogues = slices(corpus, options.work)
        lines.append({"slice": title, "step size": "untrained", **figures(BACKBONE, dialogues)})
        for rate in RATES:
            for back in BACK:
                run = hf_dialemb.train(
                    "dse",
                    file,
                    recipe=RECIPE,
                    learning_rate=rate,
                    average_with_backbone=back,
                    train_split="all",
                    **OPTIONS,
                    output_dir=options.work / f"{corpus}-{rate:.0e}-{back}",
                )
                told = f"{rate:.0e}" + (", halfway back" if back else "")
                lines.append({"slice": title, "step size": told, **figures(run, dialogues)})
                print(lines[-1], flush=True)
    rows = [[str(v) if isinstance(v, str) else f"{v:.1f}" for v in line.values()] for line in lines]
    table = table_lines(["Slice", "Step size"], ["Purity", "NMI", "ARI", "MAP", "MRR"], rows)
    write_json_atomically(
        options.output, {"machine": describe_machine(), "lines": lines, "table": table}
    )
    print("\n".join(table))


if __name__ == "__main__":
    main()
