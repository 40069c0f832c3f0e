"""Fits and measures the probability that a turn answers a question.

    python benchmarks/turn_confidence.py --data-dir DATA MODEL...

Questions are those of LoCoMo's conversations at hand (dev): answered ones, those of its fifth
category, which name the wrong speaker, and as many of another conversation. Slots of SGD (dev)
that a dialogue has, or only another, are beside them. One conversation of LoCoMo and a quarter of
SGD's dialogues are kept back in turn: figures are of what a fit and its threshold never saw. The
weights that are written are fitted on all.
"""

import argparse
import os
import random
import sys
from pathlib import Path

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from turn_retrieval import UNANSWERABLE, locomo, locomo_records

from hf_dialemb import Dialogue, TurnIndex, load_dialogues
from hf_dialemb.apps.search import confidence
from hf_dialemb.methods.sessions import questions_of
from hf_dialemb.storage.files import write_json_atomically

RESULTS = Path(__file__).parents[1] / "docs" / "results"
KINDS = ("answered", "another conversation", "wrong speaker")
FOLDS = 4
TOP = 10
SLOT_DIALOGUES = 80
ANSWERED = 0.95
Asked = tuple[str, str, set[int]]  # the kind of a question, its text, the rows that answer


def asked_of(data: Path) -> list[tuple[str, int, list[Dialogue], list[Asked]]]:
    """Return groups: the corpus, the fold, dialogues that are one index, and their questions."""
    draw = random.Random(0)
    groups = []
    own = []
    for dialogue, record in zip(locomo(data), locomo_records(data).values(), strict=True):
        wrong = [each["question"] for each in record["qa"] if each["category"] == UNANSWERABLE]
        own.append((dialogue, list(questions_of(dialogue)), wrong))
    for fold, (dialogue, questions, wrong) in enumerate(own):
        asked = [(KINDS[0], question.text, {*question.turns}) for question in questions]
        others = [each.text for other, more, _ in own if other is not dialogue for each in more]
        asked += [(KINDS[1], text, set()) for text in draw.sample(others, len(questions))]
        asked += [(KINDS[2], text, set()) for text in wrong]
        groups.append(("LoCoMo", fold, [dialogue], asked))
    dialogues = draw.sample(load_dialogues("sgd", data, "dev"), SLOT_DIALOGUES)
    slots = [list(questions_of(dialogue)) for dialogue in dialogues]
    every = sorted({question.text for questions in slots for question in questions})
    for place, (dialogue, questions) in enumerate(zip(dialogues, slots, strict=True)):
        asked = [(KINDS[0], question.text, {*question.turns}) for question in questions]
        missing = [text for text in every if text not in {text for _, text, _ in asked}]
        asked += [(KINDS[1], text, set()) for text in draw.sample(missing, len(questions))]
        groups.append(("SGD", place % FOLDS, [dialogue], asked))
    return groups


def examples(model: str, data: Path) -> dict[str, np.ndarray]:
    """Return columns with a row for each hit: its features, whether it answers, its question."""
    rows: list[tuple] = []
    count = 0
    for corpus, fold, dialogues, asked in asked_of(data):
        index = TurnIndex(encoder=model)
        index.add(dialogues)
        vectors = index.encoder.encode_query([text for _, text, _ in asked])
        for (kind, text, answers), vector in zip(asked, vectors, strict=True):
            scored = index.scored(text, vector)
            best = np.argsort(-scored.total, kind="stable")[:TOP].tolist()
            features = confidence.evidence(text, best, scored, index._words).tolist()
            rows += [
                (own, row in answers, count, kind, fold, corpus)
                for own, row in zip(features, best, strict=True)
            ]
            count += 1
    names = ("features", "answers", "asked", "kind", "fold", "corpus")
    return {name: np.array(of) for name, of in zip(names, zip(*rows, strict=True), strict=True)}


def fitted(features: np.ndarray, answers: np.ndarray) -> list[float]:
    """Fit a logistic regression, and return its weights for features as they are."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    scaler, regression = model.fit(features, answers)
    weights = regression.coef_[0] / scaler.scale_
    return [*weights.tolist(), float(regression.intercept_[0] - weights @ scaler.mean_)]


def highest(values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return the highest value of each question's hits."""
    return np.array([values[asked == question].max() for question in np.unique(asked)])


def measured(rows: dict[str, np.ndarray]) -> dict:
    """Return what is refused of questions kept back, and how well probabilities are calibrated."""
    said = np.zeros(len(rows["answers"]))
    refused: dict[str, dict[str, list[bool]]] = {"probability": {}, "cosine": {}}
    for fold in range(FOLDS):
        own = rows["fold"] == fold
        weights = fitted(rows["features"][~own], rows["answers"][~own])
        sides = {
            "probability": confidence.logistic(rows["features"], weights),
            "cosine": rows["features"][:, confidence.FEATURES.index("cosine")],
        }
        said[own] = sides["probability"][own]
        answered = (rows["kind"] == KINDS[0]) & (rows["corpus"] == "LoCoMo") & ~own
        for side, values in sides.items():
            known = highest(values[answered], rows["asked"][answered])
            threshold = np.quantile(known, 1 - ANSWERED)
            for kind in KINDS:
                of = own & (rows["kind"] == kind) & (rows["corpus"] == "LoCoMo")
                best = highest(values[of], rows["asked"][of])
                refused[side].setdefault(kind, []).extend(best < threshold)
    true, mean = calibration_curve(rows["answers"], said, n_bins=10)
    counts = np.histogram(said, np.linspace(0, 1, 11))[0]
    return {
        "refused": {
            side: {kind: float(np.mean(of)) for kind, of in each.items()}
            for side, each in refused.items()
        },
        "calibration": [mean.tolist(), true.tolist()],
        "error": float(np.abs(true - mean) @ counts[counts > 0] / counts.sum()),
    }


def plot(models: dict[str, dict], path: Path) -> None:
    """Draw how often hits answer, by the probability that was said."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linestyle=":", label="as said")
    for model, record in models.items():
        axes.plot(*record["calibration"], marker="o", label=model)
    axes.set(xlabel="Probability", ylabel="Share that answers", xlim=(0, 1), ylim=(0, 1))
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def table(models: dict[str, dict]) -> list[str]:
    """Write what is refused, in Markdown."""
    lines = [
        f"| Refused, % | {' | '.join(KINDS)} | calibration error |",
        "| :-- | --: | --: | --: | --: |",
    ]
    for model, record in models.items():
        for side, name, error in (
            ("probability", model, f"{record['error']:.3f}"),
            ("cosine", f"{model}, by its cosine alone", ""),
        ):
            cells = " | ".join(f"{100 * record['refused'][side][kind]:.1f}" for kind in KINDS)
            lines.append(f"| {name} | {cells} | {error} |")
    return lines


def main() -> None:
    """Fit, measure, and write weights, figures and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    data = os.environ.get("HF_DIALEMB_DATA")
    parser.add_argument("--data-dir", type=Path, default=data, required=data is None)
    parser.add_argument("--output", type=Path, default=RESULTS / "turn_confidence.json")
    parser.add_argument("--weights", type=Path, default=confidence.WEIGHTS)
    options = parser.parse_args()
    weights = {}
    models = {}
    for model in options.models:
        rows = examples(model, Path(options.data_dir))
        weights[model] = [round(each, 5) for each in fitted(rows["features"], rows["answers"])]
        models[model] = measured(rows)
    record = {
        "command": " ".join(["python", "benchmarks/turn_confidence.py", *sys.argv[1:]]),
        "models": models,
        "table": table(models),
    }
    write_json_atomically(options.output, record)
    write_json_atomically(options.weights, weights)
    plot(models, options.output.with_suffix(".svg"))
    print("\n".join(record["table"]))


if __name__ == "__main__":
    main()
