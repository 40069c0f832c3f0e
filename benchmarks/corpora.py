"""Counts of the real corpora beside the dial2vec paper's Table 1: python benchmarks/corpora.py --output FILE.

The corpora are found through HF_DIALEMB_DATA.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from hf_dialemb.corpora import CORPORA, load_dialogues, single_domain
from hf_dialemb.models.errors import InputError

PAPER = {
    "sgd": ({"train": 16142, "dev": 836, "test": 1331}, 45),
    "multiwoz": ({"train": 8437, "dev": 1077, "test": 1084}, 7),
    "self_dialogue": ({"train": 19331, "dev": 2416, "test": 2417}, 28),
    "doc2dial": ({"train": 3474, "dev": 661, "test": 661}, 4),
}


def count(corpus: str, split: str) -> dict[str, object] | None:
    """Counts one split; None where its files are not at hand."""
    try:
        dialogues = load_dialogues(corpus, None, split)
    except InputError as error:
        print(f"{corpus} {split}: {error}", file=sys.stderr)
        return None
    single = single_domain(dialogues)
    return {
        "dialogues": len(dialogues),
        "turns": sum(len(dialogue.turns) for dialogue in dialogues),
        "single_domain": len(single),
        "labels": len({dialogue.domains[0] for dialogue in single}),
    }


def main() -> int:
    """Counts every corpus of the paper's table and writes figures and table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    counts: dict[str, dict[str, object]] = {}
    lines = [
        "| corpus | split | dialogues | turns | of one domain | their labels | paper's Table 1 | its labels |",
        "|:--|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for corpus, (sizes, labels) in PAPER.items():
        assert corpus in CORPORA
        for split, size in sizes.items():
            found = count(corpus, split)
            if found is None:
                lines.append(f"| {corpus} | {split} | not at hand | | | | {size:,} | {labels} |")
                continue
            counts[f"{corpus}/{split}"] = found
            figures = " | ".join(f"{value:,}" for value in found.values())
            lines.append(f"| {corpus} | {split} | {figures} | {size:,} | {labels} |")
    lines += ["", "The paper trains on all dialogues and keeps those of one domain for dev and test."]
    output.write_text(json.dumps({"counts": counts, "table": lines}, indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
