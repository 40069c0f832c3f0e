"""How often a 95 % interval holds the true mean, and what ties would win by their order.

python benchmarks/uncertainty.py --output docs/results/uncertainty.json
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hf_dialemb.display import table_lines
from hf_dialemb.evaluation.tasks.sampling import mean_interval
from hf_dialemb.metrics.vectors import expected_share
from hf_dialemb.storage.files import write_json_atomically

SIZES = (3, 5, 10, 30)
DRAWS = 4_000
SHARE = (0.0, 1.0)
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
POPULATIONS: dict[str, tuple[Draw, float, tuple[float, float] | None]] = {
    "figures of seeds": (lambda generator, size: generator.normal(60, 2, size), 60, None),
    "right or wrong, half right": (
        lambda generator, size: generator.random(size) < 0.5,
        0.5,
        SHARE,
    ),
    "right or wrong, 2 % right": (
        lambda generator, size: generator.random(size) < 0.02,
        0.02,
        SHARE,
    ),
    "reciprocal ranks to 100": (
        lambda generator, size: 1 / generator.integers(1, 101, size),
        float(np.mean(1 / np.arange(1, 101))),
        SHARE,
    ),
}


def covered(draw: Draw, truth: float, bounds: tuple[float, float] | None, size: int) -> float:
    """Return how many intervals of ``size`` items hold the truth, in per cent."""
    values = draw(np.random.default_rng(0), (DRAWS, size)) * 1.0
    ends = np.array([mean_interval(items, bounds) for items in values])
    return 100 * float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())


def of_ties(turns: int) -> list[str]:
    """Return a row: recall@10 where all turns have one score and the fifth answers."""
    relevant = np.arange(turns) == 4
    generator = np.random.default_rng(0)
    drawn = [generator.permutation(relevant)[:10].any() for _ in range(DRAWS)]
    earliest = float(relevant[:10].any())
    ours = expected_share(10, np.zeros(turns), relevant)
    return [f"{turns} turns", *(f"{100 * share:.1f}" for share in (ours, np.mean(drawn), earliest))]


def main() -> None:
    """Simulate, and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    rows = [
        [name, *(f"{covered(*population, size):.1f}" for size in SIZES)]
        for name, population in POPULATIONS.items()
    ]
    record = {
        "table": table_lines(["Intervals of"], [f"{size} items" for size in SIZES], rows),
        "ties": table_lines(
            ["Recall@10 of"],
            ["by expectation", f"mean of {DRAWS:,} orders", "the earliest first"],
            [of_ties(turns) for turns in (20, 100, 400)],
        ),
    }
    write_json_atomically(parser.parse_args().output, record)


if __name__ == "__main__":
    main()
