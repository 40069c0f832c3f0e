"""Runs the pairs of ours and a peer, and renders one table of them: make bench.

Each program beside this one runs in a process of its own, one after another, and writes its figures
to the folder; a program whose figures are there is not run again. A ratio is the peer's seconds
divided by ours in the same round. The floor is what the machine can do: the rate of large matrix
products, or of copies where vectors are only looked up, both measured here. "Of the floor" is the
share of it that our work reaches: 2 operations for a weight of the layers and a token, three times
that in training, 2 for a number of one vector and another that are compared; 4 bytes for a number.

    python benchmarks/bench.py --output docs/results/bench.json       # SGD from HF_DIALEMB_DATA
    python benchmarks/bench.py --compare docs/results/bench.json      # exit code 1 where a ratio
    fell by a fifth
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from hardware import describe_machine
from processes import seconds_of

FELL = 0.8
"""A ratio below this share of the committed one is told.

Runs of the same code differ by a tenth.
"""
LAYERS = 6 * (4 * 384 * 384 + 2 * 384 * 1536)
"""Weights of the layers of all-MiniLM-L6-v2, which each token is multiplied with."""
BERT_LAYERS = 12 * (4 * 768 * 768 + 2 * 768 * 3072)
"""Those of BERT-base, half of them frozen in dial2vec's step, which are 2 operations instead of 6.
"""
METHODS = ("dse", "dialog2flow", "dialogue_cse")
PROGRAMS: dict[str, list[str]] = {
    "startup": [],
    "encoding": ["--model", "dialogue-minilm", "--rounds", "3"],
    "utterance_step": ["--only", *METHODS, "--steps", "3"],
    "dial2vec_step": ["--steps", "3", "--dialogues", "2"],
    "flow": ["--utterances", "20000"],
}
Figures = dict[str, Any]
PEER = "sentence-transformers"


def product_rate(kind: str) -> float:
    """Measures operations a second of a large matrix product."""
    import torch

    left, right = (torch.randn(2048, 2048).to(getattr(torch, kind)) for _ in range(2))
    return max(2 * 2048**3 / seconds_of(lambda: left @ right) for _ in range(8))


def copy_rate() -> float:
    """Measures bytes a second that one thread copies."""
    import numpy as np

    source = np.ones(2**27, dtype=np.uint8)
    target = np.empty_like(source)
    copy = partial(np.copyto, target, source)
    return max(source.nbytes / seconds_of(copy) for _ in range(8))


def paired(theirs: list[float], ours: list[float]) -> list[float]:
    """Compute the ratios of the rounds."""
    return [their / own for their, own in zip(theirs, ours, strict=True)]


def row(path: str, peer: str, ratios: list[float], **more: float | None) -> Figures:
    """One line of the table."""
    return {
        "path": path,
        "peer": peer,
        "ratio": median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
        **more,
    }


def encoding_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Measure encoding beside sentence-transformers."""
    peers = {own["reads"]: own for own in figures["rows"] if own["side"] == PEER}
    for own in (own for own in figures["rows"] if own["side"] != PEER):
        static = own["side"] == "dialogue-static"
        pace = f" ({own['per_second']:,.0f} a second)" if static else ""
        operations = 4 * own["width"] if static else 2 * LAYERS
        work = own["per_second"] * own["tokens"] / own["texts"] * operations
        rate = floor.get("copy" if static else own["side"])
        yield {
            "path": f"encode {own['reads']}, {own['side']}{pace}",
            "peer": PEER,
            **{
                name: own[name] for name in ("ratio", "lowest", "highest", "per_second", "peak_mib")
            },
            "peer_mib": peers[own["reads"]]["peak_mib"],
            "padding": own.get("padding"),
            "peer_padding": peers[own["reads"]]["padding"],
            "floor": work / rate if rate else None,
        }


def utterance_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Training steps beside sentence-transformers' trainer."""
    tokens = {
        each["method"]: each["texts"] * each["mean_length"] for each in figures["inputs"]["batches"]
    }
    for name, sides in figures["timing"].items():
        method, precision = name.split(", ")
        ours = sides["ours"]
        peer = sides[PEER]
        reached = tokens[method] * 6 * LAYERS / ours["median_seconds"] / floor[precision]
        memory = {"peak_mib": ours["peak_mib"], "peer_mib": peer["peak_mib"]}
        yield row(
            f"train {name}",
            "its trainer",
            paired(peer["seconds"], ours["seconds"]),
            **memory,
            floor=reached,
        )
        if precision == "bfloat16":
            plain = figures["timing"][f"{method}, float32"][PEER]
            memory["peer_mib"] = plain["peak_mib"]
            yield row(
                f"train {name}",
                "its trainer as it comes, float32",
                paired(plain["seconds"], ours["seconds"]),
                **memory,
            )


def dial2vec_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """dial2vec's step beside a restatement of the released program's."""
    peer = figures["timing"]["official"]
    batch = figures["batch"]
    for name, kind in (("fp32, dropout 0.1", "float32"), ("bf16, dropout 0", "bfloat16")):
        ours = figures["timing"][f"ours {name}"]
        memory = {"peak_mib": 1024 * ours["peak_gib"], "peer_mib": 1024 * peer["peak_gib"]}
        work = batch["sequences"] * batch["mean_length"] * 4 * BERT_LAYERS / ours["median_seconds"]
        ratios = paired(peer["seconds"], ours["seconds"])
        yield row(
            f"train dial2vec, {name}",
            "the released program's step",
            ratios,
            **memory,
            floor=work / floor[kind],
        )


def flow_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Clustering of utterances beside scikit-learn."""
    side = {measured["side"]: measured for measured in figures["sides"]}
    peer = side["scikit-learn"]
    ours = side["ours"]
    memory = {"peak_mib": ours["peak_bytes"] / 2**20, "peer_mib": peer["peak_bytes"] / 2**20}
    ratios = paired(peer["rounds"], ours["rounds"])
    yield row(f"cluster {ours['utterances']:,} utterances", "scikit-learn", ratios, **memory)


def startup_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Measure importing the package, and a search in stored vectors, beside importing torch."""
    seconds = figures["seconds"]
    peak = figures["peak_mib"]
    for name in ("import hf_dialemb", "dialemb --help", "search in vectors of dialogue-static"):
        memory = {"peak_mib": peak[name], "peer_mib": peak["import torch"]}
        yield row(name, "import torch", paired(seconds["import torch"], seconds[name]), **memory)


ROWS = {
    "startup": startup_rows,
    "encoding": encoding_rows,
    "utterance_step": utterance_rows,
    "dial2vec_step": dial2vec_rows,
    "flow": flow_rows,
}


def run(name: str, folder: Path) -> Figures:
    """Run a program, unless its figures are there; they tell how many seconds it took."""
    output = folder / f"{name}.json"
    if not output.exists():
        command = [sys.executable, str(Path(__file__).with_name(f"{name}.py"))]
        started = time.perf_counter()
        subprocess.run(
            [*command, *PROGRAMS[name], "--output", str(output)], stdout=sys.stderr, check=False
        )
        took = time.perf_counter() - started
        print(f"{name}: {took:.0f} s", file=sys.stderr)
        output.write_text(
            json.dumps({**json.loads(output.read_text(encoding="utf-8")), "took": took}) + "\n"
        )
    figures: Figures = json.loads(output.read_text(encoding="utf-8"))
    return figures


def table(rows: list[Figures]) -> list[str]:
    """Render the rows."""
    lines = [
        "| | Beside | Times as fast | Peak, MiB | Its peak | Of the floor |",
        "| :-- | :-- | --: | --: | --: | --: |",
    ]
    for each in rows:
        spread = (
            ""
            if each["lowest"] == each["highest"]
            else f" ({each['lowest']:.2f} to {each['highest']:.2f})"
        )
        peaks = [
            f"{each[name]:,.0f}" if each.get(name) else "" for name in ("peak_mib", "peer_mib")
        ]
        share = f"{each['floor']:.0%}" if each.get("floor") else ""
        ratio = f"{each['ratio']:.2f}{spread}"
        lines.append(
            f"| {each['path']} | {each['peer']} | {ratio} | {' | '.join(peaks)} | {share} |"
        )
    return lines


def rates(floor: Figures) -> str:
    """Says what the machine can do."""
    found = ", ".join(
        f"{floor[name] / 1e9:,.0f} in {name}" for name in ("float32", "bfloat16", "float64")
    )
    return (
        f"The floor: {found} thousand million operations a second; {floor['copy'] / 1e9:.1f} "
        "GB "
        "a second are copied."
    )


def remarks(rows: list[Figures], minutes: float) -> list[str]:
    """Says what the rows hold beside the table's columns, a paragraph each."""
    by_path = {each["path"]: each for each in rows}
    found = []
    read = [by_path.get(f"encode {kind}, float32") for kind in ("utterances", "dialogues")]
    if all(read):
        ours, peers = (
            [f"{each[name]:.0%}" for each in read if each] for name in ("padding", "peer_padding")
        )
        found.append(
            f"Padding: ours {ours[0]} of tokens in utterances and {ours[1]} in dialogues, the "
            f"peer's {peers[0]} and "
            f"{peers[1]}."
        )
    return [*found, f"All pairs took {minutes:.0f} minutes."]


def key(each: Figures) -> tuple[str, str]:
    """Return what names a row: its words without the figures in brackets."""
    return each["path"].split(" (")[0], each["peer"].split(" (")[0]


def fallen(rows: list[Figures], committed: list[Figures]) -> list[str]:
    """Says which committed rows are missing, and which ratios are well below the committed ones."""
    now = {key(each): each["ratio"] for each in rows}
    found = []
    for each in committed:
        path, peer = key(each)
        was = each["ratio"]
        if (path, peer) not in now:
            found.append(f"{path} beside {peer} is missing")
        elif now[path, peer] < FELL * was:
            found.append(f"{path} beside {peer}: {now[path, peer]:.2f}, was {was:.2f}")
    return found


def main() -> int:
    """Run what has no figures yet, write the table, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help="default: all"
    )
    parser.add_argument(
        "--folder", type=Path, help="where the programs' figures lie (default: one that is removed)"
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument(
        "--compare", type=Path, help="figures that ratios must not fall behind, of all pairs"
    )
    options = parser.parse_args()
    if options.compare and set(options.only) != set(PROGRAMS):
        parser.error("--compare is of all pairs: leave --only out")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
    floor = {kind: product_rate(kind) for kind in ("float32", "bfloat16", "float64")} | {
        "copy": copy_rate()
    }
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        figures = {name: run(name, folder) for name in options.only}
    rows = [each for name, found in figures.items() for each in ROWS[name](found, floor)]
    seconds = {name: found.get("took", 0.0) for name, found in figures.items()}
    machine = {**describe_machine(), "floor": floor}
    lines = [rates(floor), "", *table(rows)]
    for line in remarks(rows, sum(seconds.values()) / 60):
        lines += ["", line]
    print("\n".join(lines))
    if options.output:
        record = {
            "machine": machine,
            "seconds": seconds,
            "all_seconds": sum(seconds.values()),
            "rows": rows,
        }
        options.output.write_text(
            json.dumps({**record, "table": lines}, indent=1) + "\n", encoding="utf-8"
        )
    told = (
        fallen(rows, json.loads(options.compare.read_text(encoding="utf-8"))["rows"])
        if options.compare
        else []
    )
    print("\n".join(told), file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
