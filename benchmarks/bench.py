"""Runs the pairs of ours and a peer, and renders one table of them: make bench.

Each program beside this one runs in a process of its own, one after another, and writes its figures to the folder; a
program whose figures are there is not run again. A ratio is the peer's seconds divided by ours in the same round. The
floor is what the machine can do: the rate of large matrix products, measured here. "Of the floor" is the share of it
that our arithmetic reaches, at 2 operations for a weight of the layers and a token, three times that in training.

    python benchmarks/bench.py --output docs/results/bench.json       # SGD from HF_DIALEMB_DATA
    python benchmarks/bench.py --compare docs/results/bench.json      # exit code 1 where a ratio fell by a fifth
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from hardware import describe_machine

FELL = 0.8
"""A ratio below this share of the committed one is told: runs of the same code differ by a tenth."""
LAYERS = 6 * (4 * 384 * 384 + 2 * 384 * 1536)
"""Weights of the layers of all-MiniLM-L6-v2, which each token is multiplied with."""
PROGRAMS: dict[str, list[str]] = {
    "startup": [],
    "encoding": ["--model", "dialogue-minilm", "--rounds", "3"],
    "utterance_step": ["--only", "dse", "dialog2flow", "--steps", "3"],
    "lstm_step": [],
    "dial2vec_step": ["--steps", "1", "--dialogues", "2", "--official-slice", "1"],
    "under_load": [],
    "flow": [],
    "retrieval_metrics": ["--dialogues", "20000"],
}
Figures = dict[str, Any]


AIMS = {
    ("encode utterances, int8", "sentence-transformers"): 4,
    ("encode utterances, dialogue-static", "sentence-transformers"): 100,
    ("encode dialogues, bfloat16", "sentence-transformers"): 3,
    ("encode dialogues, int8", "sentence-transformers"): 6,
    ("encode dialogues, dialogue-static", "sentence-transformers"): 100,
    ("train dse, bfloat16", "its trainer as it comes, float32"): 2.5,
    ("train dialog2flow, bfloat16", "its trainer as it comes, float32"): 2.5,
}
"""How many times as fast we want to be; `benchmarks/README.md` says what stands between."""


def product_rate(kind: str) -> float:
    """Measures operations a second of a large matrix product."""
    import torch

    left, right = (torch.randn(2048, 2048).to(getattr(torch, kind)) for _ in range(2))
    found = []
    for _ in range(8):
        started = time.perf_counter()
        left @ right
        found.append(2 * 2048**3 / (time.perf_counter() - started))
    return max(found)


def copy_rate() -> float:
    """Measures bytes a second that one thread copies."""
    import numpy as np

    source = np.ones(2**27, dtype=np.uint8)
    target, found = np.empty_like(source), []
    for _ in range(8):
        started = time.perf_counter()
        np.copyto(target, source)
        found.append(source.nbytes / (time.perf_counter() - started))
    return max(found)


def row(path: str, peer: str, ratios: list[float], **more: float | None) -> Figures:
    """One line of the table."""
    return {"path": path, "peer": peer, "ratio": median(ratios), "lowest": min(ratios), "highest": max(ratios), **more}


def encoding_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Encoding beside sentence-transformers."""
    from encoding import texts
    from transformers import AutoTokenizer

    from hf_dialemb.encoders.text_models import dialogue_texts
    from hf_dialemb.models.backbones import MINILM, resolve_backbone

    inputs, tokenizer = texts(400, 60), AutoTokenizer.from_pretrained(resolve_backbone(MINILM))
    inputs["dialogues"] = dialogue_texts(inputs["dialogues"])
    tokens = {
        name: sum(map(len, tokenizer(given, truncation=True, max_length=512)["input_ids"])) / len(given)
        for name, given in inputs.items()
    }
    peak = {each["reads"]: each["peak_mib"] for each in figures["rows"] if each["side"] == "sentence-transformers"}
    for each in figures["rows"]:
        reads, side = each["reads"], each["side"].lstrip("@")
        if side == "sentence-transformers":
            continue
        operations = each["per_second"] * tokens[reads] * 2 * LAYERS
        yield {
            "path": f"encode {reads}, {side}",
            "peer": "sentence-transformers",
            **{name: each[name] for name in ("ratio", "lowest", "highest", "peak_mib")},
            "peer_mib": peak[reads],
            "floor": operations / floor[side] if side in floor else None,
        }


def utterance_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Training steps beside sentence-transformers' trainer."""
    length = {each["method"]: each["mean_length"] for each in figures["inputs"]["batches"]}
    for name, sides in figures["timing"].items():
        method, precision = name.split(", ")
        ours, peer = sides["ours"], sides["sentence-transformers"]
        operations = 2 * ours["pairs"] * length[method] * 6 * LAYERS / ours["median_seconds"]
        ratios = [theirs / own for theirs, own in zip(peer["seconds"], ours["seconds"], strict=True)]
        memory = {"peak_mib": ours["peak_mib"], "peer_mib": peer["peak_mib"]}
        yield row(f"train {name}", "its trainer", ratios, **memory, floor=operations / floor[precision])
        if precision == "bfloat16":
            plain = figures["timing"][f"{method}, float32"]["sentence-transformers"]
            ratios = [theirs / own for theirs, own in zip(plain["seconds"], ours["seconds"], strict=True)]
            yield row(
                f"train {name}",
                "its trainer as it comes, float32",
                ratios,
                peak_mib=ours["peak_mib"],
                peer_mib=plain["peak_mib"],
            )


def dial2vec_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """dial2vec's step beside a restatement of the released program's."""
    peer = figures["timing"]["official"]
    for name in ("ours fp32, dropout 0.1", "ours bf16, dropout 0"):
        ours = figures["timing"][name]
        ratios = [theirs / own for theirs, own in zip(peer["seconds"], ours["seconds"], strict=True)]
        memory = {"peak_mib": 1024 * ours["peak_gib"], "peer_mib": 1024 * peer["peak_gib"]}
        yield row(f"train dial2vec, {name.removeprefix('ours ')}", "the released program's step", ratios, **memory)


def lstm_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """The ranker of two LSTMs beside plain ways through torch."""
    ours = figures["seconds"]["ours"]
    for peer in ("packed sequences", "padded to the longest"):
        ratios = [theirs / own for theirs, own in zip(figures["seconds"][peer], ours, strict=True)]
        yield row("train a ranker of two LSTMs", f"torch, {peer}", ratios)


def load_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """What is kept beside a busy process; torch's default is the peer."""
    for kind in ("encoding", "training"):
        kept = {each["way"]: each for each in figures["rows"] if each["work"] == kind}
        ratio = kept["ours"]["kept"] / kept["as it comes"]["kept"]
        shares = f"{kept['ours']['kept']:.0%} of the idle rate, {kept['as it comes']['kept']:.0%} by default"
        yield row(f"{kind} beside a busy process ({shares})", "torch's default", [ratio])


def flow_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Clustering of utterances beside scikit-learn."""
    side = {each["side"]: each for each in figures["sides"]}
    peer, ours = side["scikit-learn"], side["ours"]
    memory = {"peak_mib": ours["peak_bytes"] / 2**20, "peer_mib": peer["peak_bytes"] / 2**20}
    yield row(
        f"cluster {ours['utterances']:,} utterances", "scikit-learn", [peer["seconds"] / ours["seconds"]], **memory
    )


def retrieval_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Retrieval over all pairs beside a script with scikit-learn and scipy, and beside the bare product."""
    sizes = sorted({each["dialogues"] for each in figures["sides"]})
    for size in sizes:
        side = {each["side"]: each for each in figures["sides"] if each["dialogues"] == size}
        for name, peer in (("script", "scikit-learn and scipy"), ("product", "the bare product")):
            if name in side and (name == "script" or size == sizes[-1]):
                memory = {
                    f"{key}_mib": side[of]["peak_bytes"] / 2**20 for key, of in (("peak", "ours"), ("peer", name))
                }
                ratio = side[name]["seconds"] / side["ours"]["seconds"]
                yield row(f"rank {size:,} dialogues by all", peer, [ratio], **memory)


def startup_rows(figures: Figures, floor: Figures) -> Iterator[Figures]:
    """Importing the package, and a search in stored vectors, beside importing torch."""
    seconds = figures["seconds"]
    for name in ("import hf_dialemb", "dialemb --help", "search by text in stored vectors"):
        yield row(name, "import torch", [a / b for a, b in zip(seconds["import torch"], seconds[name], strict=True)])


ROWS = {
    "startup": startup_rows,
    "encoding": encoding_rows,
    "utterance_step": utterance_rows,
    "lstm_step": lstm_rows,
    "dial2vec_step": dial2vec_rows,
    "under_load": load_rows,
    "flow": flow_rows,
    "retrieval_metrics": retrieval_rows,
}


def run(name: str, folder: Path) -> Figures:
    """Runs a program, unless its figures are there."""
    output = folder / f"{name}.json"
    if not output.exists():
        program, started = str(Path(__file__).with_name(f"{name}.py")), time.perf_counter()
        subprocess.run(
            [sys.executable, program, *PROGRAMS[name], "--output", str(output)], stdout=sys.stderr, check=False
        )
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    figures: Figures = json.loads(output.read_text(encoding="utf-8"))
    return figures


def table(rows: list[Figures]) -> list[str]:
    """Renders the rows."""
    lines = [
        "| | Beside | Times as fast | Aim | Peak, MiB | Its peak | Of the floor |",
        "| :-- | :-- | --: | --: | --: | --: | --: |",
    ]
    for each in rows:
        spread = "" if each["lowest"] == each["highest"] else f" ({each['lowest']:.2f} to {each['highest']:.2f})"
        peaks = [f"{each[name]:,.0f}" if each.get(name) else "" for name in ("peak_mib", "peer_mib")]
        share = f"{each['floor']:.0%}" if each.get("floor") else ""
        ratio, aim = f"{each['ratio']:.2f}{spread}", AIMS.get((each["path"], each["peer"]), "")
        lines.append(f"| {each['path']} | {each['peer']} | {ratio} | {aim} | {' | '.join(peaks)} | {share} |")
    return lines


def fallen(rows: list[Figures], committed: list[Figures]) -> list[str]:
    """Says which ratios are well below the committed ones."""
    names = ("path", "peer")
    before = {tuple(each[name].split(" (")[0] for name in names): each["ratio"] for each in committed}
    found = []
    for each in rows:
        was = before.get(tuple(each[name].split(" (")[0] for name in names))
        if was and each["ratio"] < FELL * was:
            found.append(f"{each['path']} beside {each['peer']}: {each['ratio']:.2f}, was {was:.2f}")
    return found


def main() -> int:
    """Runs what has no figures yet, writes the table, and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help="default: all")
    parser.add_argument("--folder", type=Path, help="where the programs' figures lie (default: one that is removed)")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--compare", type=Path, help="figures that ratios must not fall behind")
    options = parser.parse_args()
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
    floor = {"float32": product_rate("float32"), "bfloat16": product_rate("bfloat16")}
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [each for name in options.only for each in ROWS[name](run(name, folder), floor)]
    machine = {**describe_machine(), "operations_per_second": floor, "copied_bytes_per_second": copy_rate()}
    lines = table(rows)
    print("\n".join(lines))
    if options.output:
        figures = {"machine": machine, "rows": rows, "table": lines}
        options.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    told = fallen(rows, json.loads(options.compare.read_text(encoding="utf-8"))["rows"]) if options.compare else []
    print("\n".join(told), file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
