"""What `make checkpoints` took: a line for each kind of training, from the reports of its runs.

python benchmarks/checkpoint_times.py runs/shipped --output docs/results/checkpoint_times.json
"""

import argparse
import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean

from hf_dialemb.runs.files import write_json_atomically
from hf_dialemb.runs.hardware import describe_hardware


def main() -> None:
    """Read the reports of a folder of runs, print the table and write it; other runs keep their lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="the folder of the runs")
    parser.add_argument("--output", type=Path, required=True, help="where the table goes")
    options = parser.parse_args()
    found, here = defaultdict(list), describe_hardware(gpu=False)  # tables are made on the processor
    for file in sorted(options.runs.glob("*/training_report.json")):
        report = json.loads(file.read_text())
        if report.get("resumed_from"):
            continue  # its seconds are those since then
        if report.get("steps") or file.parent.name.endswith("-static"):  # merges take seconds
            found[re.sub(r"-\d$", "", file.parent.name)].append((report["seconds"], report.get("hardware", here)))
    lines = json.loads(options.output.read_text())["lines"] if options.output.is_file() else {}
    lines |= {name: {"seconds": [s for s, _ in each], "on": each[0][1]} for name, each in found.items()}
    rows, totals = [], defaultdict(list)
    for name, line in sorted(lines.items()):
        rows.append([name, str(len(line["seconds"])), f"{mean(line['seconds']) / 60:.0f}", line["on"]])
        totals[line["on"]] += line["seconds"]
    rows += [["all", str(len(each)), f"{sum(each) / 60:.0f} in all", on] for on, each in sorted(totals.items())]
    head = ["Training", "Runs", "Minutes each", "On"], [":--", "--:", "--:", ":--"]
    table = [f"| {' | '.join(row)} |" for row in (*head, *rows)]
    write_json_atomically(options.output, {"lines": lines, "table": table})
    print("\n".join(table))


if __name__ == "__main__":
    main()
