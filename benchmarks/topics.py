"""Topics of test splits that chose nothing, beside BERTopic over all-MiniLM-L6-v2.

Dialogues of one domain each, at most 600 of a corpus, are clustered without labels; purity and NMI
are those at the number of topics that was found, means and standard deviations over five seeds of
Louvain's method and of UMAP. BERTopic leaves outliers: they count as one more topic, or are given
to the nearest. The settings of the package were chosen on dev
splits.

    HF_DIALEMB_DATA=corpora python benchmarks/topics.py --output docs/results/topics.json   # half
    an hour

Vectors are kept in a folder beside the output. BERTopic comes with the extra ``topics``.
"""

import argparse
from pathlib import Path

import numpy as np
from hardware import describe_machine
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import normalize

import hf_dialemb
from hf_dialemb.apps.topics import topic_clustering
from hf_dialemb.data import single_domain
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.pretrained import MINILM

CORPORA = ("sgd", "multiwoz", "self_dialogue", "star")
OURS = "dialogue-minilm"
MOST = 600
SEEDS = range(5)


def drawn(corpus: str, split: str) -> list[Dialogue]:
    """Read the dialogues of one domain, or `MOST` of them that a seed draws."""
    found = single_domain(hf_dialemb.load_dialogues(corpus, split=split))
    return [found[row] for row in np.sort(np.random.default_rng(0).permutation(len(found))[:MOST])]


def bertopic(
    dialogues: list[Dialogue], vectors: np.ndarray, seed: int
) -> tuple[object, np.ndarray]:
    """Run BERTopic with its own settings, and a seed; return it, and the topic of each dialogue.

    -1 are outliers.
    """
    from bertopic import BERTopic
    from umap import UMAP

    reduced = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    model = BERTopic(umap_model=reduced)
    texts = ["\n".join(turn.content for turn in dialogue.turns) for dialogue in dialogues]
    return model, np.array(model.fit_transform(texts, vectors)[0])


def by_seed(unit: np.ndarray) -> list[np.ndarray]:
    """Find topics with each seed."""
    return [topic_clustering.find_clusters(unit, seed=seed) for seed in SEEDS]


def with_nearest(labels: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Give outliers to the topic whose mean is nearest."""
    unit = normalize(vectors)
    means = normalize(
        np.stack([unit[labels == number].mean(axis=0) for number in range(labels.max() + 1)])
    )
    return np.where(labels < 0, (unit @ means.T).argmax(axis=1), labels)


def figures(name: str, corpus: str, truth: list[str], found: list[np.ndarray]) -> dict[str, object]:
    """Make a row: how many topics were found, and how well they fit the true ones, in percent.

    A labelling a seed.
    """
    pure = [100 * contingency_matrix(truth, each).max(axis=0).sum() / len(truth) for each in found]
    nmi = [100 * normalized_mutual_info_score(truth, each) for each in found]
    numbers = [len(set(each[each >= 0].tolist())) for each in found]
    row: dict[str, object] = {
        "name": name,
        "corpus": corpus,
        "dialogues": len(truth),
        "true": len(set(truth)),
    }
    for key, values in (("found", numbers), ("purity", pure), ("nmi", nmi)):
        row |= {key: float(np.mean(values)), f"{key}_std": float(np.std(values, ddof=1))}
    return row


def measured(corpus: str, cache: Path) -> list[dict[str, object]]:
    """Measures a corpus.

    Ours, BERTopic with its outliers, and with each of them given to a topic.
    """
    dialogues = drawn(corpus, "test")
    truth = [dialogue.domains[0] for dialogue in dialogues]
    ours, minilm = (
        RememberingEncoder(model, cache).encode(dialogues)
        for model in (OURS, MINILM.rpartition("/")[2])
    )
    labels = [bertopic(dialogues, minilm, seed)[1] for seed in SEEDS]
    labellings = {
        "dialemb topics": by_seed(normalize(ours)),
        "dialemb topics over MiniLM": by_seed(normalize(minilm)),
        "BERTopic over MiniLM": labels,
        "BERTopic, outliers to the nearest": [with_nearest(each, minilm) for each in labels],
    }
    return [figures(name, corpus, truth, own) for name, own in labellings.items()]


def table(rows: list[dict[str, object]]) -> list[str]:
    """Make a line for each corpus and way."""
    lines = [
        "| Corpus (dialogues) | Way | Topics, found / true | Purity | NMI |",
        "| :-- | :-- | --: | --: | --: |",
    ]
    for row in rows:
        found = f"{row['found']:g} / {row['true']}"
        purity, nmi = (f"{row[key]:.1f} ± {row[f'{key}_std']:.1f}" for key in ("purity", "nmi"))
        lines.append(
            f"| {row['corpus']} ({row['dialogues']}) | {row['name']} | {found} | {purity} | {nmi} |"
        )
    return lines


def main() -> None:
    """Measures the corpora, and writes figures and their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    output = parser.parse_args().output
    rows = [row for corpus in CORPORA for row in measured(corpus, output.with_suffix(""))]
    record = {"split": "test", "hardware": describe_machine(), "rows": rows, "table": table(rows)}
    write_json_atomically(output, record)
    print("\n".join(record["table"]))


if __name__ == "__main__":
    main()
