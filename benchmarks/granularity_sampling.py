"""Measures how negatives by granularity are drawn, beside ranking all pairs of responses.

Every response gets negatives from each of its segments: ours computes the bounds of the segments
and draws between them; the ranking builds the whole matrix of cosines, sorts its rows, and draws
places. The ranking runs at sizes whose matrices fit in the memory that is free. Both read the same
vectors, which are made up like the states of an LSTM: tanh times sigmoid of a mixture whose
clusters have very different sizes and widths. Each side has a process of its own, so that its peak
memory is its own, the vectors and numpy included.

Of some responses, the negatives are then compared with the true ranking of the whole pool: the
share of them that lie in the segment they were drawn for.

    python benchmarks/granularity_sampling.py --output granularity_sampling.json     # 10 minutes
    python benchmarks/granularity_sampling.py --responses 20000 --beside 2000 5000   # a smoke run

Exit code 1: at some size and level, fewer than 96% of ours lie in their segment.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hardware import describe_machine, read_memory
from processes import answer_of, peak_bytes

OURS, RANKING = "ours", "ranking"
LEVELS, NEGATIVES, WIDTH = 5, 9, 150
INSIDE = 0.96
RANKING_BYTES = 12
"""Of a pair: the cosine (4) and the place in the order (8)."""


def make_vectors(path: Path, count: int) -> None:
    """Write the vectors (N, D) of made-up responses."""
    import numpy as np

    generator = np.random.default_rng(0)
    clusters, factors = 2000, 24
    shares = 1 / np.arange(1, clusters + 1)
    shares /= shares.sum()
    centres = generator.standard_normal((clusters, factors))
    widths = generator.uniform(0.1, 0.7, clusters)
    cell, gate = generator.standard_normal((2, factors, WIDTH)) * 1.2 / np.sqrt(factors)
    bias = 0.5 * generator.standard_normal(WIDTH)
    vectors = np.empty((count, WIDTH), dtype=np.float32)
    for start in range(0, count, 20_000):
        size = min(20_000, count - start)
        chosen = generator.choice(clusters, size, p=shares)
        state = centres[chosen] + widths[chosen, None] * generator.standard_normal((size, factors))
        content = np.tanh(state @ cell + bias + 0.2 * generator.standard_normal((size, WIDTH)))
        vectors[start : start + size] = content / (1 + np.exp(-state @ gate))
    np.save(path, vectors)


def run_ours(vectors: Any) -> list[Any]:
    """Draw negatives for every response from each of its segments, (N, negatives) for a level."""
    import numpy as np

    from hf_dialemb.methods.granularity import Segments

    segments, drawn = Segments(vectors, LEVELS), []
    for level in range(1, LEVELS + 1):
        generator = np.random.default_rng([0, level])
        rows = [segments.draw(row, level, NEGATIVES, generator) for row in range(len(vectors))]
        drawn.append(np.stack(rows))
    return drawn


def run_ranking(vectors: Any) -> list[Any]:
    """Do the same by sorting all cosines."""
    import numpy as np

    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(vectors @ vectors.T, axis=1)[:, ::-1]  # the response itself comes first
    count, drawn = len(vectors), []
    for level in range(1, LEVELS + 1):
        first, end = ((count - 1) * number // LEVELS for number in (level - 1, level))
        places = 1 + np.random.default_rng([0, level]).integers(first, end, size=(count, NEGATIVES))
        drawn.append(np.take_along_axis(order, places, 1))
    return drawn


def measure(folder: Path, side: str, checked: int) -> dict[str, Any]:
    """Run one side, keep some of its negatives, and return its seconds and peak memory."""
    import numpy as np

    import hf_dialemb.methods.granularity  # noqa: F401

    vectors = np.load(folder / "vectors.npy")
    start, processor = time.perf_counter(), time.process_time()
    drawn = run_ours(vectors) if side == OURS else run_ranking(vectors)
    row = {
        "side": side,
        "responses": len(vectors),
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "peak_bytes": peak_bytes(),
    }
    rows = np.random.default_rng(1).choice(len(vectors), min(checked, len(vectors)), replace=False)
    np.savez(folder / "drawn.npz", rows=rows, drawn=np.stack([level[rows] for level in drawn]))
    return row


def check(folder: Path) -> list[float]:
    """Rank the pool for the responses that were kept; return each level's share inside."""
    import numpy as np

    vectors = np.load(folder / "vectors.npy")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = np.load(folder / "drawn.npz")
    rows, drawn = kept["rows"], kept["drawn"]  # (n,), (L, n, negatives)
    edges = (len(vectors) - 1) * np.arange(LEVELS + 1) // LEVELS
    places = np.empty(drawn.shape, dtype=np.int64)
    for number, row in enumerate(rows):
        cosines = vectors @ vectors[row]
        negatives = cosines[drawn[:, number]]
        cosines[row] = -np.inf
        cosines.sort()
        # how many are closer
        places[:, number] = len(cosines) - np.searchsorted(cosines, negatives, side="right")
    inside = [
        float(((of_level >= edges[level]) & (of_level < edges[level + 1])).mean())
        for level, of_level in enumerate(places)
    ]
    return inside


def work(folder: Path, task: str, *words: str) -> Any:
    """Do one thing in a process of its own."""
    if task == "make":
        return make_vectors(folder / "vectors.npy", int(words[0]))
    if task == "check":
        return check(folder)
    return measure(folder, words[0], int(words[1]))


def measure_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures both sides at all sizes; returns a row of figures for each."""
    result: list[dict[str, Any]] = []
    for count in [*options.beside, options.responses]:
        needed = RANKING_BYTES * count**2
        sides = [OURS]
        if count in options.beside and needed < 0.8 * read_memory("MemAvailable"):
            sides.append(RANKING)
        elif count in options.beside:
            print(
                f"ranking {count:,} responses needs {needed / 2**30:.1f} GiB: left out",
                file=sys.stderr,
            )
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            answer_of(__file__, "--work", folder, "make", count)
            for side in sides:
                row = answer_of(__file__, "--work", folder, "measure", side, options.checked)
                print(f"{side}, {count:,} responses: {row['seconds']:.1f} s", file=sys.stderr)
                row["inside"] = answer_of(__file__, "--work", folder, "check")
                result.append(row)
    return result


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """Render the figures as lines of text."""
    columns = (
        f"{'seconds':>8} {'of processor':>12} {'peak MiB':>9}  in the true segment, level 1 "
        f"to {LEVELS}"
    )
    lines = [f"{'responses':>9} {'':<16} {columns}"]
    for row in rows:
        shares = " ".join(f"{share:>7.2%}" for share in row["inside"])
        lines.append(
            f"{row['responses']:>9,} {row['side']:<16} {row['seconds']:>8.1f} "
            f"{row['processor_seconds']:>12.1f} "
            f"{row['peak_bytes'] / 2**20:>9,.0f}  {shares}"
        )
    return lines


def main() -> int:
    """Measures, prints the table, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--responses", type=int, default=500_000, help="of the largest pool (default: 500000)"
    )
    parser.add_argument(
        "--beside",
        type=int,
        nargs="*",
        default=[2000, 5000, 10_000, 20_000],
        metavar="N",
        help="sizes at which all pairs are ranked too (default: 2000 5000 10000 20000)",
    )
    parser.add_argument(
        "--checked", type=int, default=1000, help="responses whose true ranking is computed"
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(Path(options.work[0]), *options.work[1:])))
        return 0

    rows = measure_all(options)
    lines = tables(rows)
    print("\n".join(lines))
    if options.output:
        figures = {"machine": describe_machine(), "sides": rows, "table": lines}
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if all(min(row["inside"]) >= INSIDE for row in rows if row["side"] == OURS) else 1


if __name__ == "__main__":
    sys.exit(main())
