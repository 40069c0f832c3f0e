"""Measures retrieval and relatedness over all pairs of dialogues, beside the bare matrix product.

Every dialogue ranks all others by cosine: mean average precision, mean reciprocal rank and
Spearman's correlation of each query. The bare product computes the same cosines, block by block and
in the same precision (float64), and throws them away. At sizes that it survives, a plain script
does it with scikit-learn and scipy. Each side has a process of its own, so that its peak memory is
its own, the vectors and what is imported included. The sides take turns; seconds are the median of
the rounds.

    python benchmarks/retrieval_metrics.py --output retrieval_metrics.json       # 8 minutes
    python benchmarks/retrieval_metrics.py --dialogues 5000 --beside 1000        # a smoke run

Exit code 1: ours and the script's figures differ.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hardware import describe_machine
from processes import answer_of, peak_bytes

OURS, PRODUCT, SCRIPT = "ours", "product", "script"
WIDTH, LABELS = 384, 45
AGREEMENT = 1e-9


def make_vectors(folder: Path, count: int) -> None:
    """Write the vectors (N, D) float32 of made-up dialogues, and their labels (N,)."""
    import numpy as np

    generator = np.random.default_rng(0)
    labels = generator.choice(LABELS, count, p=generator.dirichlet(np.full(LABELS, 2.0)))
    vectors = generator.standard_normal((LABELS, WIDTH))[labels] + 2.0 * generator.standard_normal(
        (count, WIDTH)
    )
    np.save(folder / "vectors.npy", vectors.astype(np.float32))
    np.save(folder / "labels.npy", labels)


def run_ours(vectors: Any, labels: Any) -> list[float]:
    """Return MAP, MRR and the mean correlation."""
    from hf_dialemb.metrics.semantic_relatedness import binary_spearman
    from hf_dialemb.metrics.vectors import average_precision, query_scores, reciprocal_rank

    found, _ = query_scores(vectors, labels, average_precision, reciprocal_rank, binary_spearman)
    return [float(each.mean()) for each in found]


def run_product(vectors: Any, labels: Any) -> list[float]:
    """Multiplies, and keeps nothing."""
    import numpy as np

    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    for start in range(0, len(unit), 256):
        unit[start : start + 256] @ unit.T
    return []


def run_script(vectors: Any, labels: Any) -> list[float]:
    """Do what ours does, as anyone would write it."""
    import numpy as np
    from scipy.stats import spearmanr
    from sklearn.metrics import average_precision_score

    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    cosines = unit @ unit.T
    found = []
    for row in range(len(labels)):
        others = np.arange(len(labels)) != row
        scores, relevant = cosines[row, others], labels[others] == labels[row]
        if relevant.any():
            rank = 1 + (scores > scores[relevant].max()).sum()
            found.append(
                (
                    average_precision_score(relevant, scores),
                    1 / rank,
                    spearmanr(scores, relevant).statistic,
                )
            )
    return [float(value) for value in np.mean(found, axis=0)]


SIDES = {OURS: run_ours, PRODUCT: run_product, SCRIPT: run_script}


def measure(folder: Path, side: str) -> dict[str, Any]:
    """Run one side; return its figures, seconds and the peak memory of this process."""
    import numpy as np

    import hf_dialemb.evaluation.tasks.domains  # noqa: F401

    vectors, labels = np.load(folder / "vectors.npy"), np.load(folder / "labels.npy")
    start, processor = time.perf_counter(), time.process_time()
    figures = SIDES[side](vectors, labels)
    return {
        "side": side,
        "dialogues": len(vectors),
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "peak_bytes": peak_bytes(),
        "figures": figures,
    }


def measure_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures all sides at all sizes; they take turns, as machines change their pace."""
    result: list[dict[str, Any]] = []
    for count in [*options.beside, options.dialogues]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            answer_of(__file__, "--make", folder, count)
            found: dict[str, list[Any]] = {
                side: [] for side in SIDES if side != SCRIPT or count in options.beside
            }
            for side in [*found] * options.rounds:
                found[side].append(answer_of(__file__, "--work", folder, side))
                print(
                    f"{side}, {count:,} dialogues: {found[side][-1]['seconds']:.1f} s",
                    file=sys.stderr,
                )
            result += map(in_one, found.values())
    return result


def in_one(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Make one row of a side's rounds: medians, all its seconds, and the highest peak."""
    medians = {
        name: statistics.median(row[name] for row in rows)
        for name in ("seconds", "processor_seconds")
    }
    more = {
        "rounds": [row["seconds"] for row in rows],
        "peak_bytes": max(row["peak_bytes"] for row in rows),
    }
    return {**rows[0], **medians, **more}


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """Render the figures as lines of text."""
    lines = [
        f"{'dialogues':>9} {'':<8} {'seconds':>8} {'of processor':>12} {'peak MiB':>9}  MAP, MRR, "
        "Spearman"
    ]
    for row in rows:
        figures = " ".join(f"{100 * value:7.3f}" for value in row["figures"])
        lines.append(
            f"{row['dialogues']:>9,} {row['side']:<8} {row['seconds']:>8.1f} "
            f"{row['processor_seconds']:>12.1f} "
            f"{row['peak_bytes'] / 2**20:>9,.0f}  {figures}".rstrip()
        )
    return lines


def largest_difference(rows: list[dict[str, Any]]) -> float:
    """Return how far ours and the script's figures are apart at most."""
    ours = {row["dialogues"]: row["figures"] for row in rows if row["side"] == OURS}
    return max(
        abs(one - other)
        for row in rows
        if row["side"] == SCRIPT
        for one, other in zip(ours[row["dialogues"]], row["figures"], strict=True)
    )


def main() -> int:
    """Measures, prints the table, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dialogues", type=int, default=50_000, help="of the largest size (default: 50000)"
    )
    parser.add_argument(
        "--beside",
        type=int,
        nargs="*",
        default=[2000, 5000],
        metavar="N",
        help="sizes at which the plain script runs too (default: 2000 5000)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="of each side (default: 3)")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        print(json.dumps(make_vectors(Path(options.make[0]), int(options.make[1]))))
        return 0
    if options.work:
        print(json.dumps(measure(Path(options.work[0]), options.work[1])))
        return 0

    rows = measure_all(options)
    apart = largest_difference(rows)
    lines = [*tables(rows), f"ours and the script's figures differ by {apart:.1e} at most"]
    print("\n".join(lines))
    if options.output:
        figures = {"machine": describe_machine(), "width": WIDTH, "sides": rows, "table": lines}
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if apart <= AGREEMENT else 1


if __name__ == "__main__":
    sys.exit(main())
