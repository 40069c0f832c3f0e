"""Measure the default training on topics that it was fitted on, and on topics that it never saw.

A corpus is split in two by its topics; each half is fitted on, and MAP is measured on both.

    python benchmarks/unseen_topics.py --output docs/results/unseen_topics.json
"""

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

import hf_dialemb
from hf_dialemb.data import single_domain
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.display import table_lines
from hf_dialemb.metrics.dialogue_retrieval import retrieval_scores
from hf_dialemb.storage.files import write_json_atomically

CORPORA = ("sgd/dev", "multiwoz/dev", "self_dialogue/dev", "star/train")
BACKBONE = "dialogue-minilm"
MOST = 300


def figures(corpus: str, work: Path) -> dict[str, float]:
    """Measure the backbone and what is fitted to it, on topics seen and unseen."""
    dialogues = single_domain(hf_dialemb.load_dialogues(corpus))
    rows = np.random.default_rng(0).permutation(len(dialogues))[:MOST]
    topics = sorted({dialogues[row].domains[0] for row in rows})
    parts: dict[int, list[Dialogue]] = {0: [], 1: []}
    for row in rows:
        parts[topics.index(dialogues[row].domains[0]) % 2].append(dialogues[row])
    values = defaultdict(list)
    for fitted in parts:
        run = hf_dialemb.train(
            "dial2vec",
            parts[fitted],
            recipe="own_minilm",
            backbone=BACKBONE,
            output_dir=work / f"{corpus.replace('/', '-')}-{fitted}",
        )
        for name, model in (("backbone", BACKBONE), ("fitted", run)):
            for part, measured in parts.items():
                vectors = hf_dialemb.load_encoder(model).encode(measured)
                labels = [dialogue.domains[0] for dialogue in measured]
                key = f"{'seen' if part == fitted else 'unseen'}, {name}"
                values[key].append(100 * retrieval_scores(vectors, labels)["map"])
    return {name: float(np.mean(found)) for name, found in values.items()}


def main() -> None:
    """Measure the corpora, and write the figures with their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as work:
        measured = {corpus: figures(corpus, Path(work)) for corpus in CORPORA}
    heads = list(next(iter(measured.values())))
    rows = [[name, *(f"{values[head]:.1f}" for head in heads)] for name, values in measured.items()]
    write_json_atomically(output, {"figures": measured, "table": table_lines(["MAP"], heads, rows)})


if __name__ == "__main__":
    main()
