"""Measures how negatives by granularity are drawn, beside ranking all pairs of responses.

Every response gets negatives from each of its segments: ours computes the bounds of the segments
and draws between them; the ranking builds the whole matrix of cosines, sorts its rows, and draws
places. The ranking runs at sizes whose matrices fit in the memory that is free. Both read the same
vectors, which are made up like the states of an LSTM: tanh times sigmoid of a mixture whose
clusters have very different sizes and widths. Each side has a process of its own, so that its peak
memory is its own, the vectors and numpy included.

Of some responses, ours is then compared with the true ranking of the whole pool: the share of the
negatives that lie in the segment they were drawn for, and how evenly they cover the tenths of it.

    python benchmarks/granularity_sampling.py --output granularity_sampling.json     # 10 minutes
    python benchmarks/granularity_sampling.py --responses 20000 --beside 2000 5000   # a smoke run

On a machine with more than two cores, put ``taskset -c 0,1`` before it to measure what two can do.
Seconds of the processor are printed too: other work on the machine changes them less. Exit code 1:
a bound does not hold.
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
SECONDS, GIBIBYTES = 60, 2.0
"""Bounds for the largest pool."""
INSIDE, UNEVEN = 0.96, 0.02
"""Bounds.

The share in the true segment at every level, and how far the share of a tenth may be from 0.1.
"""
RANKING_BYTES = 12
"""Of a pair: the cosine (4) and the place in the order (8)."""


def make_vectors(path: Path, count: int, seed: int) -> dict[str, Any]:
    """Write the vectors (N, D) of made-up responses."""
    import numpy as np

    generator = np.random.default_rng(seed)
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
    return {}


def run_ours(vectors: Any) -> tuple[list[Any], Any]:
    """Draws for every response from every segment.

    Returns the negatives of each level, and the segments.
    """
    import numpy as np

    from hf_dialemb.methods.granularity import Segments

    segments, drawn = Segments(vectors, LEVELS), []
    for level in range(1, LEVELS + 1):
        generator = np.random.default_rng([0, level])
        drawn.append(
            np.stack(
                [segments.draw(row, level, NEGATIVES, generator) for row in range(len(vectors))]
            )
        )
    return drawn, segments


def time_one(segments: Any) -> float:
    """Return the median seconds of a draw for one response, with a generator of its own, as in
    training.
    """
    import numpy as np

    seconds = []
    for index in range(min(500, len(segments))):
        start = time.perf_counter()
        segments.draw(index, index % LEVELS + 1, NEGATIVES, np.random.default_rng([0, 0, index]))
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def run_ranking(vectors: Any) -> tuple[list[Any], None]:
    """Do the same by sorting all cosines."""
    import numpy as np

    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(vectors @ vectors.T, axis=1)[:, ::-1]  # the response itself comes first
    count, drawn = len(vectors), []
    for level in range(1, LEVELS + 1):
        first, end = ((count - 1) * number // LEVELS for number in (level - 1, level))
        places = 1 + np.random.default_rng([0, level]).integers(first, end, size=(count, NEGATIVES))
        drawn.append(np.take_along_axis(order, places, 1))
    return drawn, None


def measure(folder: Path, side: str, checked: int) -> dict[str, Any]:
    """Run one side.

    Return its seconds and the peak memory of this process, and keep some of its negatives.
    """
    import numpy as np

    import hf_dialemb.methods.granularity  # noqa: F401

    vectors = np.load(folder / "vectors.npy")
    start, processor = time.perf_counter(), time.process_time()
    drawn, segments = run_ours(vectors) if side == OURS else run_ranking(vectors)
    row: dict[str, Any] = {
        "side": side,
        "responses": len(vectors),
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "peak_bytes": peak_bytes(),
    }
    if segments is not None:
        row |= {"exact": segments.exact, "one_response_seconds": time_one(segments)}
    rows = np.random.default_rng(1).choice(len(vectors), min(checked, len(vectors)), replace=False)
    np.savez(folder / "drawn.npz", rows=rows, drawn=np.stack([level[rows] for level in drawn]))
    return row


def check(folder: Path) -> dict[str, Any]:
    """Ranks the pool for the responses that were kept.

    Returns each level's share inside, and its tenths.
    """
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
    inside, tenths = [], []
    for level, of_level in enumerate(places):
        parts = (of_level - edges[level]) / (edges[level + 1] - edges[level])
        within = (parts >= 0) & (parts < 1)
        inside.append(float(within.mean()))
        counts = np.bincount((parts[within] * 10).astype(int), minlength=10)
        tenths.append((counts / counts.sum()).tolist())
    own = bool((drawn == rows[:, None]).any())
    return {"inside": inside, "tenths": tenths, "checked": len(rows), "drew_itself": own}


def work(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Do one thing in a process of its own."""
    if task["do"] == "make":
        return make_vectors(folder / "vectors.npy", task["responses"], task["seed"])
    if task["do"] == "check":
        return check(folder)
    return measure(folder, task["side"], task["checked"])


def start_worker(folder: Path, **task: Any) -> dict[str, Any]:
    """Lets a process do a task."""
    return answer_of(__file__, "--work", folder, json.dumps(task))


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
            start_worker(folder, do="make", responses=count, seed=options.seed)
            for side in sides:
                row = start_worker(folder, do="measure", side=side, checked=options.checked)
                print(f"{side}, {count:,} responses: {row['seconds']:.1f} s", file=sys.stderr)
                result.append({**row, **start_worker(folder, do="check")})
    return result


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """Render the figures as lines of text."""
    columns = (
        f"{'seconds':>8} {'of processor':>12} {'peak MiB':>9}  in the true segment, level 1 "
        f"to {LEVELS}"
    )
    lines = [f"{'responses':>9} {'':<16} {columns}"]
    for row in rows:
        name = row["side"] + (
            ", exact" if row.get("exact") else ", sampled" if row["side"] == OURS else ""
        )
        shares = " ".join(f"{share:>7.2%}" for share in row["inside"])
        lines.append(
            f"{row['responses']:>9,} {name:<16} {row['seconds']:>8.1f} "
            f"{row['processor_seconds']:>12.1f} "
            f"{row['peak_bytes'] / 2**20:>9,.0f}  {shares}"
        )
    return lines


def judge(rows: list[dict[str, Any]]) -> dict[str, bool]:
    """Says what holds of what must hold."""
    ours = [row for row in rows if row["side"] == OURS]
    last = ours[-1]
    least = min(min(row["inside"]) for row in ours)
    uneven = max(abs(share - 0.1) for tenths in last["tenths"] for share in tenths)
    size, gibibytes = f"{last['responses']:,} responses", last["peak_bytes"] / 2**30
    one = 1e6 * last["one_response_seconds"]
    return {
        f"{size} take less than {SECONDS} s ({last['seconds']:.1f})": last["seconds"] < SECONDS,
        f"{size} take less than {GIBIBYTES:g} GiB ({gibibytes:.2f})": gibibytes < GIBIBYTES,
        f"a draw for one response takes less than 200 microseconds ({one:.0f})": one < 200,
        f"{INSIDE:.0%} are in the true segment at every size and level ({least:.2%})": least
        >= INSIDE,
        f"every tenth of a segment has {UNEVEN} more or less than 0.1 at most ({uneven:.3f})": uneven
        <= UNEVEN,
        "no response is its own negative": not any(row["drew_itself"] for row in rows),
    }


def main() -> int:
    """Measures, prints the table and the verdicts, and returns the exit code."""
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
    parser.add_argument("--seed", type=int, default=0, help="makes up the vectors (default: 0)")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(Path(options.work[0]), json.loads(options.work[1]))))
        return 0

    rows = measure_all(options)
    verdicts = judge(rows)
    lines = tables(rows) + [
        f"{'holds' if holds else 'FAILS'}: {sentence}" for sentence, holds in verdicts.items()
    ]
    print("\n".join(lines))
    if options.output:
        settings = {"levels": LEVELS, "negatives": NEGATIVES, "width": WIDTH, "seed": options.seed}
        figures = {
            "machine": describe_machine(),
            **settings,
            "sides": rows,
            "verdicts": verdicts,
            "table": lines,
        }
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
