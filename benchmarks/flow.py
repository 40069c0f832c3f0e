"""Measures dialogue flows on real utterances of SGD.

Clustering beside scikit-learn's, and every step at full size.

First some utterances of users are clustered into as many clusters by ours and by a plain script
with scikit-learn in turns. Seconds are the median of the rounds. Then many utterances of both roles
go all the way from vectors to the page. Each side has a process of its own, so that its peak memory
is its own, the vectors and what is imported included.

Vectors are hashed TF-IDF brought to 384 dimensions by a singular value decomposition, so that no
model is needed.

    HF_DIALEMB_DATA=corpora python benchmarks/flow.py --output flow.json           # 3 minutes
    HF_DIALEMB_DATA=corpora python benchmarks/flow.py --utterances 5000 --beside 1000

Exit code 1: the two partitions differ.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hardware import describe_machine
from processes import answer_of, peak_bytes
from sklearn.metrics import adjusted_rand_score

OURS = "ours"
SCRIPT = "scikit-learn"
STEPS = "steps"
WIDTH = 384
CLUSTERS = 60


def make(folder: Path, utterances: int, beside: int) -> None:
    """Write utterances, their vectors (N, D), and the rows of those that both sides cluster."""
    import numpy as np

    from hf_dialemb.data import iterate_dialogues

    dialogues = []
    count = 0
    for dialogue in iterate_dialogues("sgd", None, "train"):
        turns = [(turn.role, turn.content) for turn in dialogue.turns][: utterances - count]
        dialogues.append((dialogue.id, turns))
        count += len(turns)
        if count == utterances:
            break
    (folder / "dialogues.json").write_text(json.dumps(dialogues), encoding="utf-8")
    texts = [text for _, turns in dialogues for _, text in turns]
    np.save(folder / "vectors.npy", hashed(texts))
    users = np.flatnonzero([role == "user" for _, turns in dialogues for role, _ in turns])
    rows = np.random.default_rng(0).choice(users, min(beside, len(users)), replace=False)
    np.save(folder / "rows.npy", np.sort(rows))


def hashed(texts: list[str]) -> Any:
    """Return hashed TF-IDF in few dimensions, (N, D); equal texts have equal vectors."""
    import numpy as np
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    distinct, places = np.unique(texts, return_inverse=True)
    counts = HashingVectorizer(
        n_features=2**16, ngram_range=(1, 2), alternate_sign=False, norm=None
    ).transform(distinct)
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    reduced = TruncatedSVD(WIDTH, n_iter=2, random_state=0).fit_transform(weighted)
    return reduced.astype(np.float32)[places]


def clustering_of(side: str) -> Callable[[Any], Any]:
    """Import what a side needs, and return how it clusters vectors.

    What takes time is measured without imports.
    """
    if side == OURS:
        from hf_dialemb.apps.flow.flow_clustering import cluster

        return lambda vectors: cluster(vectors, clusters=CLUSTERS).labels
    from sklearn.cluster import AgglomerativeClustering

    return AgglomerativeClustering(CLUSTERS, metric="cosine", linkage="average").fit_predict


def measure_side(folder: Path, side: str) -> dict[str, Any]:
    """Run one side; return its clusters, seconds and the peak memory of this process."""
    import numpy as np

    work = clustering_of(side)
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")[np.load(folder / "rows.npy")]
    start = time.perf_counter()
    processor = time.process_time()
    labels = work(vectors)
    return {
        "side": side,
        "utterances": len(vectors),
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "peak_bytes": peak_bytes(),
        "labels": labels.tolist(),
    }


def measure_steps(folder: Path) -> dict[str, Any]:
    """Goes from vectors to the page.

    Returns the seconds of each step and the peak memory after it.
    """
    import numpy as np

    from hf_dialemb.apps.flow.flow import read_utterances
    from hf_dialemb.apps.flow.flow_clustering import cluster_by_role
    from hf_dialemb.apps.flow.graph import Pruning, pruned
    from hf_dialemb.apps.flow.step_names import named
    from hf_dialemb.apps.pages.insights import insights
    from hf_dialemb.apps.pages.page import write_page
    from hf_dialemb.dialogue import Dialogue, Turn

    steps: list[dict[str, Any]] = []

    def step(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        processor = time.process_time()
        result = work()
        seconds = time.perf_counter() - start
        of_processor = time.process_time() - processor
        steps.append(
            {
                "step": name,
                "seconds": seconds,
                "processor_seconds": of_processor,
                "peak_bytes": peak_bytes(),
            }
        )
        return result

    dialogues = json.loads((folder / "dialogues.json").read_text(encoding="utf-8"))
    given = [Dialogue(tuple(Turn(*turn) for turn in turns), id=name) for name, turns in dialogues]
    vectors = np.load(folder / "vectors.npy")
    pruning = Pruning()
    page = folder / "index.html"
    said = step("read", lambda: read_utterances(given))
    found = step("cluster", lambda: cluster_by_role(vectors, said.roles))
    flow = step(
        "name",
        lambda: named("SGD", said, vectors, {role: each.labels for role, each in found.items()}),
    )
    step("graph", lambda: pruned(flow.graph, pruning))
    choices = {role: each.sentence for role, each in found.items()}
    step("insights", lambda: insights(flow))
    step("page", lambda: write_page(flow, page, pruning, choices=choices))
    return {
        "side": STEPS,
        "utterances": len(said),
        "dialogues": len(given),
        "distinct": {
            role: len({said.texts[row] for row in rows})
            for role, rows in said.rows_by_role().items()
        },
        "clusters": {role: int(each.labels.max()) + 1 for role, each in found.items()},
        "page_bytes": page.stat().st_size,
        "steps": steps,
    }


def in_turns(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Lets scikit-learn and ours cluster in turns; returns a row for each."""
    found: dict[str, list[dict[str, Any]]] = {SCRIPT: [], OURS: []}
    for side in [*found] * rounds:
        found[side].append(answer_of(__file__, "--work", folder, side))
    return [in_one(rows) for rows in found.values()]


def in_one(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Make one row of a side's rounds: medians, all its seconds, and the highest peak."""
    medians = {
        name: statistics.median(row[name] for row in rows)
        for name in ("seconds", "processor_seconds")
    }
    more = {
        "rounds": [row["seconds"] for row in rows],
        "peak_bytes": max(row["peak_bytes"] for row in rows),
    }
    return {**rows[0], **medians, **more}


def tables(sides: list[dict[str, Any]], steps: dict[str, Any]) -> list[str]:
    """Render the figures as lines of text."""
    head = f"{'seconds':>8} {'of processor':>12} {'peak MiB':>9}"
    lines = [f"{'utterances':>10} {'':<12} {head}"]
    rows = [(f"{row['utterances']:>10,} {row['side']:<12}", row) for row in sides]
    rows += [(f"{steps['utterances']:>10,} {row['step']:<12}", row) for row in steps["steps"]]
    for words, row in rows:
        lines.append(
            f"{words} {row['seconds']:>8.2f} {row['processor_seconds']:>12.2f} "
            f"{row['peak_bytes'] / 2**20:>9,.0f}"
        )
    counted = ", ".join(
        f"{count} of {steps['distinct'][role]:,} texts of the {role}"
        for role, count in steps["clusters"].items()
    )
    return [*lines, f"clusters: {counted}"]


def main() -> int:
    """Measures, prints the table, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--utterances", type=int, default=100_000, help="of all steps (default: 100000)"
    )
    parser.add_argument(
        "--beside", type=int, default=5000, help="that both sides cluster (default: 5000)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of both sides (default: 3)")
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        folder, utterances, beside = options.make
        print(json.dumps(make(Path(folder), int(utterances), int(beside))))
        return 0
    if options.work:
        folder = Path(options.work[0])
        side = options.work[1]
        print(json.dumps(measure_steps(folder) if side == STEPS else measure_side(folder, side)))
        return 0

    with tempfile.TemporaryDirectory() as name:
        answer_of(__file__, "--make", name, options.utterances, options.beside)
        script, ours = in_turns(Path(name), options.rounds)
        steps = answer_of(__file__, "--work", name, STEPS)
    rand = float(adjusted_rand_score(ours.pop("labels"), script.pop("labels")))
    lines = tables([script, ours], steps)
    ratio = script["seconds"] / ours["seconds"]
    lines.append(
        f"{ours['utterances']:,} utterances: scikit-learn takes {ratio:.2f} times as long as ours, "
        f"and finds the same partition (adjusted Rand {rand:.4f})"
    )
    print("\n".join(lines))
    if options.output:
        figures = {"machine": describe_machine(), "sides": [script, ours], "steps": steps}
        figures |= {"adjusted_rand": rand, "table": lines}
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if rand == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
