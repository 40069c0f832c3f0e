"""Packs the slice of STAR that comes with the package.

``python training_scripts/pack_star.py [--data-dir ...]``.
"""

import argparse
import hashlib
from collections import defaultdict
from pathlib import Path

from hf_dialemb.data import load_dialogues, single_domain, write_jsonl
from hf_dialemb.data.readers.packed import packed
from hf_dialemb.dialogue import Dialogue

SIZES = {"train": 28, "test": 11}  # how many dialogues of each task a split has


def complete(data_dir: Path | None, split: str) -> dict[str, list[Dialogue]]:
    """Return the complete dialogues of one task, in an order that their ids decide."""
    found = defaultdict(list)
    for dialogue in single_domain(load_dialogues("star", data_dir, split)):
        if dialogue.id.startswith("Complete/") and dialogue.turns[0].intents:
            found[dialogue.turns[0].intents[0]].append(dialogue)
    return {
        task: sorted(
            dialogues, key=lambda dialogue: hashlib.sha256(dialogue.id.encode()).hexdigest()
        )
        for task, dialogues in sorted(found.items())
    }


def main() -> None:
    """Write a file for each split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    splits = {split: complete(options.data_dir, split) for split in SIZES}
    tasks = [
        name
        for name in splits["train"]
        if all(len(splits[split][name]) >= SIZES[split] for split in SIZES)
    ]
    for split, size in SIZES.items():
        chosen = [dialogue for name in tasks for dialogue in splits[split][name][:size]]
        path = packed("star_small", split)
        print(f"{path}: {write_jsonl(chosen, path)} dialogues of {', '.join(tasks)}")


if __name__ == "__main__":
    main()
