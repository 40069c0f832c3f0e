"""Embeds SGD on a cluster of Ray that loses a worker and gains a node on the way, and compares with one machine.

The nodes are processes here, so that seconds tell what Ray costs, and not what machines gain. `dialemb embed` runs as a
command of its own. A node is added when shards begin to come, and a worker is killed when half of them are written.

    HF_DIALEMB_DATA=corpora python benchmarks/ray_cluster.py --output docs/results/ray.json   # minutes; needs ray
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
from hardware import describe_machine

import hf_dialemb
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.runs.files import write_json_atomically

MODEL = "dialogue-static"
NODE = {"num_cpus": 1, "object_store_memory": 200_000_000, "include_dashboard": False}
WORKER = "ray::MapWorker"  # what Ray Data calls the processes of its actors


def embedding(source: Path, output: Path, shard: int, engine: str) -> subprocess.Popen[bytes]:
    """Starts the command."""
    words = ["--model", MODEL, "--input", source, "--output", output, "--shard-size", shard, "--engine", engine]
    command = [sys.executable, "-m", "hf_dialemb.cli", "embed", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def workers() -> dict[int, int]:
    """The processes that hold an encoder, with those of their nodes."""
    found = {}
    for each in psutil.Process().children(recursive=True):
        try:
            if each.name().startswith(WORKER[:15]) and "".join(each.cmdline()).startswith(WORKER):
                found[each.pid] = each.ppid()
        except psutil.Error:  # it has ended
            continue
    return found


def on_a_cluster(source: Path, output: Path, shard: int, shards: int) -> dict[str, Any]:
    """Runs the command on two nodes, kills a worker, adds a node, and says what was seen."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    cluster.add_node(**NODE)
    os.environ["RAY_ADDRESS"] = cluster.address
    parts, seen, added, written = output.with_name(f"{output.name}.parts"), {}, None, -1
    try:
        started, process = time.perf_counter(), embedding(source, output, shard, "ray")
        while process.poll() is None:
            now, count = workers(), len(list(parts.glob("part-*.parquet")))
            seen |= now
            if count and added is None:
                added = cluster.add_node(**NODE)
            if written < 0 and now and count >= shards // 2:
                psutil.Process(next(iter(now))).kill()
                written = count
            time.sleep(0.05)
        seconds = time.perf_counter() - started
    finally:
        cluster.shutdown()
    if process.returncode or not 0 < written < shards:
        raise SystemExit(f"exit code {process.returncode}; a worker was killed at {written} of {shards} shards")
    nodes = {"nodes": 2, "nodes_added": 1, "nodes_with_workers": len(set(seen.values()))}
    return {"ray_seconds": seconds, **nodes, "workers": len(seen), "workers_killed": 1, "written_when_killed": written}


def compared(found: Path, expected: Path) -> dict[str, Any]:
    """Compares all but the vectors for equality, metadata too, and says by how much the vectors differ."""
    tables = pq.read_table(found), pq.read_table(expected)
    same = tables[0].schema.equals(tables[1].schema, check_metadata=True)
    same = same and tables[0].drop(["embedding"]).equals(tables[1].drop(["embedding"]))
    vectors = [table["embedding"].combine_chunks().flatten().to_numpy() for table in tables]
    return {"same_rows": same, "largest_difference": float(np.abs(vectors[0] - vectors[1]).max())}


def table(record: dict[str, Any]) -> list[str]:
    """The lines of the page."""
    cells = {
        "dialogues": f"{record['dialogues']:,}",
        "nodes": f"{record['nodes']}, then {record['nodes'] + record['nodes_added']}",
        "workers killed": str(record["workers_killed"]),
        "shards written then": f"{record['written_when_killed']} of {record['shards']}",
        "rows, order, metadata": "the same" if record["same_rows"] else "OTHERS",
        "vectors differ by": f"{record['largest_difference']:g}",
        "seconds": f"{record['ray_seconds']:.0f}",
        "without Ray": f"{record['local_seconds']:.0f}",
    }
    return ["| | |", "| :-- | --: |", *(f"| {name} | {cell} |" for name, cell in cells.items())]


def main() -> None:
    """Embeds twice, compares, and writes figures and their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard-size", type=int, default=200)
    parser.add_argument("--data-dir", help="where the corpora lie; by default what HF_DIALEMB_DATA names")
    parser.add_argument("--output", type=Path, default=Path("ray.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        source, here, there = (Path(place) / name for name in ("sgd.jsonl", "local.parquet", "ray.parquet"))
        count = write_jsonl(hf_dialemb.load_dialogues("sgd", data_dir=options.data_dir, split="all"), source)
        shards, started = -(-count // options.shard_size), time.perf_counter()
        if code := embedding(source, here, options.shard_size, "local").wait():
            raise SystemExit(f"exit code {code}")
        record = {"model": MODEL, "dialogues": count, "shards": shards, "local_seconds": time.perf_counter() - started}
        record |= on_a_cluster(source, there, options.shard_size, shards)
        record |= compared(there, here)
        record["machine"] = describe_machine()
    record["table"] = table(record)
    write_json_atomically(options.output, record)
    print("\n".join(record["table"]))


if __name__ == "__main__":
    main()
