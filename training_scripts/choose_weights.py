"""Choose the weights of a merge on dev splits: python training_scripts/choose_weights.py --help.

A coordinate search, twice around, for the best average of retrieval by domain (MAP). Of the tries
within a tenth of the spread of the best it prints the one with the smallest weights, which change
the backbone least.
"""

import argparse
from pathlib import Path

import numpy as np
from merge import merged_model

from hf_dialemb.data import load_dialogues
from hf_dialemb.encoders.load_encoder import model_encoder
from hf_dialemb.evaluation.results.result_tables import table_lines
from hf_dialemb.metrics.dialogue_retrieval import retrieval_scores
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.hardware import bfloat16_where_faster

GRID = (0.0, 0.5, 1.0, 1.5, 2.0)


def drawn(name: str, most: int) -> list:
    """Draw dialogues of one domain from a set, always the same ones."""
    dialogues = [dialogue for dialogue in load_dialogues(name) if len(dialogue.domains) == 1]
    return [
        dialogues[row]
        for row in sorted(np.random.default_rng(0).permutation(len(dialogues))[:most])
    ]


def main() -> None:
    """Search, and write each try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--model", nargs="+", required=True, help="trainings of the backbone")
    parser.add_argument("--by", nargs="+", required=True, help="dev splits, such as sgd/dev")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--limit", type=int, default=300, help="dialogues of each split")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    sets = {name: drawn(name, options.limit) for name in options.by}
    tries: dict[tuple[float, ...], dict[str, float]] = {}

    def mean(weights: tuple[float, ...]) -> float:
        if not any(weights):
            return -np.inf
        if weights not in tries:
            parts = {
                path: weight for path, weight in zip(options.model, weights, strict=True) if weight
            }
            with bfloat16_where_faster():
                encoder = model_encoder(
                    *merged_model(options.backbone, parts, options.rank), "merged"
                )
                tries[weights] = {
                    name: 100
                    * retrieval_scores(encoder.encode(held), [item.domains[0] for item in held])[
                        "map"
                    ]
                    for name, held in sets.items()
                }
            print(weights, tries[weights], flush=True)
        return float(np.mean([*tries[weights].values()]))

    best = (1.0,) * len(options.model)
    for place in [*range(len(best))] * 2:
        best = max(((*best[:place], value, *best[place + 1 :]) for value in GRID), key=mean)
    names = [Path(path).name for path in options.model]
    search = {
        "backbone": options.backbone,
        "parts": names,
        "by": options.by,
        "rank": options.rank,
        "limit": options.limit,
    }
    rows = [
        [*map("{:g}".format, each), *map("{:.2f}".format, [*tries[each].values(), mean(each)])]
        for each in tries
    ]
    record = [
        {"weights": dict(zip(options.model, each, strict=True)), "figures": tries[each]}
        for each in tries
    ]
    table = table_lines((), [*names, *options.by, "Mean"], rows)
    write_json_atomically(options.output, {"search": search, "tries": record, "table": table})
    enough = max(map(mean, tries)) - 0.1 * (max(map(mean, tries)) - min(map(mean, tries)))
    print("Chosen:", min((each for each in tries if mean(each) >= enough), key=sum))


if __name__ == "__main__":
    main()
