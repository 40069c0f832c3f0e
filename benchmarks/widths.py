"""What a vector loses when it is cut.

The first numbers of each alone, or the first axes after a rotation.

The rotation brings what differs most between training texts to the front (PCA without a centre: no
cosine of whole vectors changes). MAP is of retrieving dialogues of one's own domain, accuracy that
of intents from one example each.

    python benchmarks/widths.py --model dialogue-minilm --output docs/results/widths.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from encoders import DIALOGUES, INTENTS, LIMIT
from hardware import describe_machine
from numpy.typing import NDArray

import hf_dialemb
from hf_dialemb.drawing import table_lines
from hf_dialemb.evaluation.tasks.domains import load_domains
from hf_dialemb.evaluation.tasks.intents import (
    classify_intents,
    in_scope,
    load_intents,
    load_utterances,
)
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.metrics.dialogue_retrieval import retrieval_scores
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.hardware import bfloat16_where_faster

WIDTHS = (384, 192, 96, 48)
ROTATED_ON = ("sgd/train", "multiwoz/train", "taskmaster4/train", "self_dialogue/train")
PER_CORPUS = 400


def rotation(encoder: hf_dialemb.encoders.Encoder) -> NDArray[np.float32]:
    """Find the axes of training dialogues and utterances, ``(D, D)``, the longest first."""
    vectors = []
    for corpus in ROTATED_ON:
        name, split = corpus.split("/")
        found = hf_dialemb.load_dialogues(name, split=split)
        rows = sorted(np.random.default_rng(0).permutation(len(found))[:PER_CORPUS])
        drawn = [found[row] for row in rows]
        vectors += [
            encoder.encode(drawn),
            encoder.encode_utterances([each.turns[0].content for each in drawn]),
        ]
    stacked = np.concatenate(vectors)
    return np.linalg.eigh(stacked.T @ stacked)[1][:, ::-1].astype(np.float32)


def main() -> None:
    """Measures, prints the table and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", default="dialogue-minilm", help="an encoder (default: dialogue-minilm)"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("widths.json"), help="where the figures go"
    )
    options = parser.parse_args()
    encoder = hf_dialemb.load_encoder(options.model)
    with bfloat16_where_faster():
        axes = rotation(encoder)
        parts = [
            load_domains(CorpusPart(corpus, None, "test", LIMIT["domains"])) for corpus in DIALOGUES
        ]
        dialogues = [(encoder.encode(part.dialogues), part.labels) for part in parts]
        intents = []
        for corpus in INTENTS:
            part = CorpusPart(corpus, None, "test", None)
            problem, examples = load_intents(part), len(in_scope(load_utterances(part)[0]))
            intents.append((encoder.encode(problem.dialogues), problem.labels, examples))
    lines = []
    for width in WIDTHS:
        figures = {"width": width}
        for name, cut in (
            ("cut", np.eye(len(axes), dtype=np.float32)[:, :width]),
            ("rotated", axes[:, :width]),
        ):
            found = [
                retrieval_scores(vectors @ cut, labels)["map"] for vectors, labels in dialogues
            ]
            figures[f"map {name}"] = 100 * float(np.mean(found))
            found = [
                classify_intents(vectors @ cut, *rest, range(3))[0].mean
                for vectors, *rest in intents
            ]
            figures[f"accuracy {name}"] = float(np.mean(found))
        lines.append(figures)
    heads = ["Width", "MAP, cut", "MAP, rotated", "Accuracy, cut", "Accuracy, rotated"]
    keys = ["map cut", "map rotated", "accuracy cut", "accuracy rotated"]
    rows = [[str(each["width"]), *(f"{each[key]:.1f}" for key in keys)] for each in lines]
    table = table_lines((), heads, rows)
    write_json_atomically(
        options.output,
        {"machine": describe_machine(), "model": options.model, "lines": lines, "table": table},
    )
    print("\n".join(table))


if __name__ == "__main__":
    main()
