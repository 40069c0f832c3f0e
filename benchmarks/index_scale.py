"""Measures searching many vectors: time, memory and what is found, beside comparing all.

The vectors are of SGD's utterances by ``dialogue-static``; where more are asked for, each comes
again with noise of a seed. Queries are other utterances, of the test split. ``all`` is one product
with all vectors by NumPy, the truth of recall at 10; ``search`` is that of ``dialemb index``
(LanceDB, on disk). Each side has a process of its own. Seconds are those of the processor, of all
threads; those of a query are the median.

    python benchmarks/index_scale.py --output index_scale.json       # some minutes, 6 GiB
    python benchmarks/index_scale.py --vectors 60000                 # a smoke run
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from hardware import describe_machine
from processes import answer_of, peak_bytes

SIDES = ("all", "search")
TOP, QUERIES = 10, 200
CORPUS = "sgd"
HEAD = [
    "| | ms a query | Recall at 10 | Building, s | Peak, MiB | On disk, MiB |",
    "| :-- | --: | --: | --: | --: | --: |",
]


def make(folder: Path, count: int) -> None:
    """Write vectors and queries."""
    import hf_dialemb

    encoder, vectors = hf_dialemb.load_encoder("dialogue-static"), {}
    for split in ("train", "dev", "test"):
        found = hf_dialemb.load_dialogues(CORPUS, split=split)
        vectors[split] = encoder.encode_utterances(
            list(dict.fromkeys(t.content for d in found for t in d.turns))
        )
    base, draw = np.concatenate([vectors["train"], vectors["dev"]]), np.random.default_rng(0)
    rows = np.arange(count) % len(base)
    stored = np.lib.format.open_memmap(
        folder / "vectors.npy", "w+", np.float32, (count, base.shape[1])
    )
    for start in range(0, count, 50_000):
        part = base[rows[start : start + 50_000]]
        noise = draw.standard_normal(part.shape, dtype=np.float32) * (
            0.3 * part.std() * (start >= len(base))
        )
        stored[start : start + 50_000] = part + noise
    np.save(folder / "queries.npy", draw.permutation(vectors["test"])[:QUERIES])


def built(side: str, vectors: Any, folder: Path) -> Any:
    """Return what finds the rows nearest to a query by cosine."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)
    if side == "all":
        return lambda query: np.argsort(-(units @ query), kind="stable")[:TOP].tolist()
    import pyarrow as pa

    from hf_dialemb.apps.search.dialogue_index import DialogueIndex
    from hf_dialemb.apps.search.index_rows import schema_of

    grown: Any = DialogueIndex(folder / "calls.lance", "dialogue-static")
    schema = schema_of(units.shape[1], grown._record)
    grown._table = grown._database.create_table("calls", schema=schema)
    for start in range(0, len(units), 50_000):
        part = units[start : start + 50_000]
        columns = {name: pa.nulls(len(part), schema.field(name).type) for name in schema.names}
        columns["id"] = pa.array([str(row) for row in range(start, start + len(part))])
        columns["role"] = columns["text"] = pa.array([""] * len(part))
        columns["turn"] = pa.array([0] * len(part), pa.int32())
        columns["domains"] = pa.array([[]] * len(part), pa.list_(pa.string()))
        columns["vector"] = pa.FixedSizeListArray.from_arrays(
            pa.array(part.reshape(-1)), part.shape[1]
        )
        grown._table.add(pa.Table.from_pydict(columns, schema=schema))
    grown._tidy()
    return lambda query: [int(hit.id) for hit in grown._nearest(query, TOP, None)]


def work(side: str, folder: Path) -> dict[str, Any]:
    """Build one side, and query it."""
    vectors, queries = (
        np.load(folder / "vectors.npy", mmap_mode="r"),
        np.load(folder / "queries.npy"),
    )
    started = time.process_time()
    find = built(side, np.asarray(vectors), folder)
    building = time.process_time() - started
    found, seconds = [], []
    for query in queries / np.linalg.norm(queries, axis=1, keepdims=True).clip(1e-9):
        started = time.process_time()
        found.append(find(query))
        seconds.append(time.process_time() - started)
    peak = peak_bytes() / 2**20
    disk = (
        sum(file.stat().st_size for file in (folder / "calls.lance").rglob("*") if file.is_file())
        / 2**20
    )
    return {
        "building": building,
        "seconds": median(seconds),
        "peak_mib": peak,
        "disk_mib": disk,
        "found": found,
    }


def line(side: str, figures: dict[str, Any]) -> str:
    """Write a row of a table."""
    shown = [f"{1000 * figures['seconds']:.1f}", f"{figures['recall']:.1%}"]
    shown += [f"{figures[name]:,.0f}" for name in ("building", "peak_mib", "disk_mib")]
    return f"| {side} | {' | '.join(shown)} |"


def main() -> None:
    """Measures, and prints or writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--vectors", type=int, default=1_000_000, help="how many (default: a million)"
    )
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        side, folder = options.work[0], Path(options.work[1])
        print(json.dumps(make(folder, options.vectors) if side == "make" else work(side, folder)))
        return
    sides: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for side in ("make", *SIDES):
            sides[side] = answer_of(
                __file__, "--work", side, name, "--vectors", str(options.vectors)
            )
    del sides["make"]
    truth = [set(each) for each in sides["all"]["found"]]
    lines = list(HEAD)
    for side, figures in sides.items():
        hits = [
            len(rows & set(each)) for rows, each in zip(truth, figures.pop("found"), strict=True)
        ]
        figures["recall"] = sum(hits) / (TOP * len(hits))
        lines.append(line(side, figures))
    print("\n".join(lines))
    if options.output:
        record = {
            "machine": describe_machine(),
            "vectors": options.vectors,
            "sides": sides,
            "table": lines,
        }
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
