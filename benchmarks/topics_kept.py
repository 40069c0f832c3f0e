"""Topics that are kept.

Are new dialogues assigned to the right ones, and are new topics among them noticed?

Dialogues of one domain of SGD, at most 600 of a split, are halved. Two domains are taken out of the
first half, whose topics are found without labels and kept. The second half is assigned to them,
which also finds what is new. That is done for a quarter of the pairs of domains with at least ten
dialogues in the second half. A topic is about the domain that most of its dialogues have; a domain
is known if a topic of the first half is about it. Right is a dialogue of a known domain on a topic
about it; a new domain is noticed if half of its dialogues are on new topics about it; a new topic
about a known domain is false. Services of one domain, as Hotels_1 and Hotels_4, are one. With
``--split dev`` other thresholds are tried too; the package's were chosen there: all new domains are
noticed, no false topic is found, and the least share of known dialogues is lost.

    HF_DIALEMB_DATA=corpora python benchmarks/topics_kept.py --output docs/results/topics_kept.json
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import combinations, repeat
from pathlib import Path

import numpy as np
from hardware import describe_machine
from sklearn.preprocessing import normalize
from topics import OURS, drawn, encoded

from hf_dialemb.apps.topics import topic_groups
from hf_dialemb.apps.topics.model import with_new
from hf_dialemb.apps.topics.topic_clustering import find_clusters
from hf_dialemb.apps.topics.topic_groups import no_groups
from hf_dialemb.storage.files import kept_vectors, write_json_atomically

EVERY = 4  # pairs of domains, one is tried
FEWEST = 10  # dialogues of a domain that is held out
TRIED = ((0.7, 0.7), (0.75, 0.75), (0.75, 0.8), (0.8, 0.8), (0.75, 0.85), (0.75, 0.9))


def about(labels: np.ndarray, truth: np.ndarray) -> dict[int, str]:
    """Return the domain that most dialogues of each topic have."""
    return {
        number: Counter(truth[labels == number]).most_common(1)[0][0]
        for number in set(labels.tolist())
    }


def kept_topics(
    units: np.ndarray, truth: np.ndarray, held_out: tuple[str, str], first: np.ndarray
) -> topic_groups.Groups:
    """Find the topics of the first half without two domains."""
    old = first & ~np.isin(truth, held_out)
    return no_groups(units[old]).with_more(units[old], find_clusters(units[old]))


def tried(
    units: np.ndarray,
    truth: np.ndarray,
    held_out: tuple[str, str],
    first: np.ndarray,
    kept: topic_groups.Groups,
) -> list[float]:
    """Return the counts of one pair.

    Known dialogues, those that are right, new domains noticed, false new topics.
    """
    topics, second = about(kept.labels, truth[first & ~np.isin(truth, held_out)]), units[~first]
    groups = with_new(replace(kept, labels=kept.assigned(second)), second, 0)
    count, domains = len(kept.ids), truth[~first]
    known = np.isin(domains, [*topics.values()])
    right = sum(
        topics.get(label) == domain
        for label, domain in zip(groups.labels[known], domains[known], strict=True)
    )
    new = about(np.where(groups.labels >= count, groups.labels, -1), domains)
    shares = [
        np.mean(
            [
                label >= count and new[label] == domain
                for label in groups.labels[domains == domain].tolist()
            ]
        )
        for domain in held_out
    ]
    false = sum(number >= count and domain in topics.values() for number, domain in new.items())
    return [int(known.sum()), right, sum(share >= 0.5 for share in shares), false]


def measured(split: str, cache: Path) -> list[dict[str, object]]:
    """Measure a split with the package's threshold, on dev with others too."""
    dialogues = drawn("sgd", split)
    vectors = kept_vectors(
        cache / f"sgd-{split}-{OURS}.safetensors", partial(encoded, OURS, dialogues)
    )
    units, truth = (
        normalize(vectors),
        np.array([dialogue.domains[0].partition("_")[0] for dialogue in dialogues]),
    )
    first = np.random.default_rng(0).permutation(len(truth)) < len(truth) // 2
    sizes = Counter(truth[~first].tolist())
    pairs = list(combinations(sorted(name for name, size in sizes.items() if size >= FEWEST), 2))[
        ::EVERY
    ]
    kept = [kept_topics(units, truth, pair, first) for pair in pairs]
    rows: list[dict[str, object]] = []
    chosen = topic_groups.LEAST, topic_groups.NEW
    for topic_groups.LEAST, topic_groups.NEW in TRIED if split == "dev" else (chosen,):
        counts = np.array(
            [tried(units, truth, *each) for each in zip(pairs, repeat(first), kept, strict=False)]
        )
        known, right, noticed, false = counts.sum(axis=0).tolist()
        worst = float((counts[:, 1] / counts[:, 0]).min())
        row = {
            "split": split,
            "least": topic_groups.LEAST,
            "new": topic_groups.NEW,
            "pairs": len(pairs),
            "dialogues": len(truth),
        }
        rows.append(
            {**row, "right": right / known, "worst": worst, "noticed": noticed, "false": false}
        )
    topic_groups.LEAST, topic_groups.NEW = chosen
    return rows


def table(rows: list[dict[str, object]]) -> list[str]:
    """Make a line for each threshold."""
    head = (
        "| SGD | Least | New below | Pairs | Known, right | In the worst pair | New, noticed | "
        "False new topics |"
    )
    lines = [head, "| :-- | --: | --: | --: | --: | --: | --: | --: |"]
    for row in rows:
        right, worst = (f"{100 * float(str(row[key])):.1f} %" for key in ("right", "worst"))
        noticed = f"{row['noticed']} of {2 * int(str(row['pairs']))}"
        cells = [
            row["split"],
            row["least"],
            row["new"],
            row["pairs"],
            right,
            worst,
            noticed,
            row["false"],
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def main() -> None:
    """Measure dev and test, and write figures and their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--split", nargs="+", choices=("dev", "test"), default=("dev", "test"), help="which parts"
    )
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    parser.add_argument(
        "--cache", type=Path, help="where vectors are kept (default: a folder beside the output)"
    )
    options = parser.parse_args()
    cache = options.cache or options.output.with_suffix("")
    rows = [row for split in options.split for row in measured(split, cache)]
    write_json_atomically(
        options.output, {"hardware": describe_machine(), "rows": rows, "table": table(rows)}
    )
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
