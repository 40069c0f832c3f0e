"""What `make checkpoints` took: a line for each kind of training, from the reports of its runs.

python benchmarks/checkpoint_times.py runs/shipped --output docs/results/checkpoint_times.json
"""

import argparse
import json
import re
from collections import defaultdict
from pathlib import Path

from hf_dialemb.runs.files import write_json_atomically


def main() -> None:
    """Reads the reports of a folder of runs, prints the table and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="the folder of the runs")
    parser.add_argument("--output", type=Path, required=True, help="where the table goes")
    options = parser.parse_args()
    seconds, machines = defaultdict(list), set()
    for report in sorted(options.runs.glob("*/training_report.json")):
        found = json.loads(report.read_text())
        if found.get("steps") or report.parent.name.endswith("-static"):  # merges take seconds
            seconds[re.sub(r"-\d$", "", report.parent.name)].append(found["seconds"])
            machines.add(found.get("hardware"))
    total = sum(sum(each) for each in seconds.values())
    rows = [[name, str(len(each)), f"{sum(each) / len(each) / 60:.0f}"] for name, each in seconds.items()]
    rows.append(["all", str(sum(map(len, seconds.values()))), f"{total / 60:.0f} in all"])
    table = [f"| {' | '.join(row)} |" for row in (["Training", "Runs", "Minutes each"], [":--", "--:", "--:"], *rows)]
    hardware = sorted(filter(None, machines))
    write_json_atomically(options.output, {"hardware": hardware, "seconds": dict(seconds), "table": table})
    print("\n".join(table))


if __name__ == "__main__":
    main()
