"""Measures how long a fresh interpreter takes to import hf_dialemb, to print help, and to search.

Importing the package must not import torch, so both are far faster than torch alone. The search is
in stored vectors. The commands take turns, so that other work on the machine strikes all alike.

    python benchmarks/startup.py --output startup.json
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hardware import describe_machine
from processes import answer_of

SEARCH = "search in vectors of dialogue-static"
STORED = 176
"""Dialogues of star_small's test split, all of them."""

COMMANDS = {
    "python -c 'pass'": ["-c", "pass"],
    "import hf_dialemb": ["-c", "import hf_dialemb"],
    "dialemb --help": ["-m", "hf_dialemb.apps.cli", "--help"],
    "import torch": ["-c", "import torch"],
}
LAUNCH = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
"""Runs a command and prints its peak memory.

A small process, as a child's peak starts from its parent's.
"""


def search_command(folder: Path) -> list[str]:
    """List the words of a search in the 176 dialogues of star_small's test split, kept before."""
    from hf_dialemb.data import load_dialogues, write_jsonl

    calls = folder / "calls.jsonl"
    write_jsonl(load_dialogues("star_small", split="test")[:STORED], calls)
    words = ["-m", "hf_dialemb.apps.cli", "search", str(calls), "--model", "dialogue-static"]
    return [*words, "--query", "my card was stolen"]


def measure(repeats: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Run every command several times, in turns, after one round that fills the file cache.

    Returns:
        The seconds of each command, and its peak memory in that first round, in MiB.
    """
    with tempfile.TemporaryDirectory() as folder:
        commands = {**COMMANDS, SEARCH: search_command(Path(folder))}
        launch = ("-c", LAUNCH, sys.executable)  # Linux counts in KiB
        peaks = {name: answer_of(*launch, *words) / 1024 for name, words in commands.items()}
        return _measured(commands, repeats), peaks


def _measured(commands: dict[str, list[str]], repeats: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, words in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Measures, and prints and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--repeats", type=int, default=7, help="measured runs of each command (default: 7)"
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()

    seconds, peaks = measure(options.repeats)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    lines = [f"{'command':<36} {'minimum':>9} {'median':>9} {'of torch':>9}"]
    for name, values in seconds.items():
        share = medians[name] / medians["import torch"]
        lines.append(f"{name:<36} {min(values):>7.3f} s {medians[name]:>7.3f} s {share:>9.1%}")

    print("\n".join(lines))
    if options.output:
        figures = {
            "machine": describe_machine(),
            "seconds": seconds,
            "medians": medians,
            "peak_mib": peaks,
            "table": lines,
        }
        options.output.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
