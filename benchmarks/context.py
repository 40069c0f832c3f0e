"""Whether the turn before tells what an utterance does.

Unit vectors, plus a share of those of the turns before.

    python benchmarks/context.py --output docs/results/context.json                    # some
    minutes python benchmarks/context.py --model runs/with-context --output
    docs/results/context.json

Dialogues of one domain, at most `MOST` of each domain that has `FEWEST`, are drawn from parts of
corpora that no table reports. Few-shot F1 is that of the task action-similarity, over different
pairs of an utterance and the turn before. V-measure and adjusted Rand are of k-means over all
annotated turns whose action has `OFTEN`. Edges are those of flows with as many clusters as actions,
means over domains. Corpora come
from HF_DIALEMB_DATA. Models that are not named keep their lines.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from hardware import describe_machine
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, v_measure_score

from hf_dialemb import load_dialogues, load_encoder
from hf_dialemb.data import single_domain
from hf_dialemb.data.labels import unified_turn
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.encoders.turn_encoding import with_neighbours
from hf_dialemb.evaluation.tasks.actions import PER_ACTION, compare_actions
from hf_dialemb.metrics.vectors import unit
from hf_dialemb.papers.tasks.flow_extraction import Utterance, cluster_utterances, compare_flow
from hf_dialemb.storage.files import write_json_atomically

PARTS = ("sgd/dev", "multiwoz/dev", "star/dev")
"""`action-minilm` learnt from MultiWOZ's, from SGD's train split, and from nothing of STAR."""
MOST, FEWEST, OFTEN = 60, 30, 10
WEIGHTS = (0.0, 0.25, 0.5)
SEEDS = range(5)
FIGURES = {
    "f1 1-shot": "F1, one example",
    "f1 5-shot": "F1, five examples",
    "v_measure": "V-measure, k-means",
    "adjusted_rand": "Adjusted Rand, k-means",
    "edge_f1": "Edges of flows (F1)",
}


def drawn(part: str) -> dict[str, list[Dialogue]]:
    """Draw dialogues of each domain that has enough, always the same ones."""
    domains = defaultdict(list)
    for dialogue in single_domain(load_dialogues(part)):
        domains[dialogue.domains[0]].append(dialogue)
    kept = {}
    for name in sorted(domains):
        rows = np.random.default_rng(0).permutation(len(domains[name]))[:MOST]
        if len(rows) >= FEWEST:
            kept[name] = [domains[name][row] for row in np.sort(rows)]
    return kept


class Turns:
    """The turns of a corpus: their vectors, actions and dialogues."""

    def __init__(self, domains: dict[str, list[Dialogue]], encoder: Any) -> None:
        self.dialogues = [dialogue for group in domains.values() for dialogue in group]
        self.domains = np.array(
            [name for name, group in domains.items() for dialogue in group for _ in dialogue.turns]
        )
        self.lengths = [len(dialogue.turns) for dialogue in self.dialogues]
        self.places = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.unified = [
            unified_turn(turn) for dialogue in self.dialogues for turn in dialogue.turns
        ]
        self.actions = np.array([turn.action for turn in self.unified], dtype=object)
        self.alone = unit(
            encoder.encode_utterances([turn.text or turn.role for turn in self.unified])
        )

    def figures(self, weight: float) -> dict[str, float]:
        """Measure the vectors with a weight of the turn before."""
        vectors = with_neighbours(self.alone, self.lengths, {1: weight})
        rows = self._examples()
        f1 = compare_actions(vectors[rows], self.actions[rows].tolist(), SEEDS)
        counts = Counter(self.actions)
        often = [
            row for row, action in enumerate(self.actions) if action and counts[action] >= OFTEN
        ]
        labels = self.actions[often]
        clusterings = [
            KMeans(len(set(labels)), n_init=1, random_state=seed).fit(vectors[often])
            for seed in SEEDS
        ]
        return {
            **{
                f"f1 {row.setting}": row.mean
                for row in f1
                if row.metric == "f1" and "," not in row.setting
            },
            "v_measure": 100
            * float(np.mean([v_measure_score(labels, each.labels_) for each in clusterings])),
            "adjusted_rand": 100
            * float(np.mean([adjusted_rand_score(labels, each.labels_) for each in clusterings])),
            "edge_f1": 100
            * float(np.mean([self._edges(vectors, name) for name in sorted(set(self.domains))])),
        }

    def _examples(self) -> list[int]:
        """Draw turns of each action: different pairs of a text and the text before."""
        pairs: dict[tuple[str, str], int] = {}
        for row, turn in enumerate(self.unified):
            first = row == 0 or self.places[row] != self.places[row - 1]
            pairs.setdefault((turn.text, "" if first else self.unified[row - 1].text), row)
        groups = defaultdict(list)
        for row in pairs.values():
            if self.actions[row] and self.unified[row].text:
                groups[self.actions[row]].append(row)
        generator = np.random.default_rng(0)
        return [
            int(row)
            for action in sorted(groups)
            if len(groups[action]) >= PER_ACTION
            for row in np.sort(generator.choice(groups[action], PER_ACTION, replace=False))
        ]

    def _edges(self, vectors: np.ndarray, domain: str) -> float:
        """Compare a domain's flow of clusters with that of its actions."""
        rows = [
            row
            for row in np.flatnonzero(self.domains == domain)
            if self.actions[row] and self.unified[row].text
        ]
        flow = defaultdict(list)
        for row in rows:
            turn = self.unified[row]
            flow[self.places[row]].append(Utterance(turn.role, turn.text, turn.action))
        turns = list(flow.values())
        return float(compare_flow(turns, cluster_utterances(turns, vectors[rows]))["edge_f1"])


def table(models: dict[str, dict[str, dict[str, dict[str, float]]]]) -> list[str]:
    """Return a row for each corpus and figure; the best weight of a model is bold."""
    columns = [(model, weight) for model, weights in models.items() for weight in weights]
    heads = [f"{model}, {weight}" for model, weight in columns]
    lines = [
        f"| Corpus | Figure | {' | '.join(heads)} |",
        f"| :-- | :-- |{' --: |' * len(columns)}",
    ]
    for corpus in PARTS:
        for figure, name in FIGURES.items():
            cells = []
            for model, weight in columns:
                values = {other: f"{of[corpus][figure]:.1f}" for other, of in models[model].items()}
                best = (
                    max(values.values(), key=float) == values[weight]
                    and len(set(values.values())) > 1
                )
                cells.append(f"**{values[weight]}**" if best else values[weight])
            lines.append(f"| {corpus} | {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure models with some weights, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", default=["action-minilm@bfloat16"])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    models = json.loads(options.output.read_text())["models"] if options.output.is_file() else {}
    domains = {corpus: drawn(corpus) for corpus in PARTS}
    sizes = {
        name: {of: len(group) for of, group in groups.items()} for name, groups in domains.items()
    }
    for spec in options.model:
        encoder, name = load_encoder(spec), Path(spec).name.partition("@")[0]
        weights = WEIGHTS
        models[name] = {str(weight): {} for weight in weights}
        for corpus, groups in domains.items():
            turns = Turns(groups, encoder)
            for weight in weights:
                figures = turns.figures(weight)
                models[name][str(weight)][corpus] = figures
                print(
                    spec,
                    corpus,
                    weight,
                    {name: round(value, 1) for name, value in figures.items()},
                    flush=True,
                )
    lines = table(models)
    record = {"machine": describe_machine(), "dialogues": sizes, "models": models, "table": lines}
    write_json_atomically(options.output, record)
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
