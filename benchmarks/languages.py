"""Measures whether few English examples of an intent find its requests in other languages.

    python benchmarks/languages.py --data-dir DATA MODEL...

The folder holds xSID's validation part (xsid_dev/xsid_dev.tar.xz), of which every other request
serves trainings (training_scripts/pairs.py); the rest is measured, in each language that has all of
it. Translations of the examples are no queries.
"""

import argparse
import re
import tarfile
from pathlib import Path

import numpy as np

from hf_dialemb import load_encoder
from hf_dialemb.display import table_lines
from hf_dialemb.evaluation.tasks.sampling import SHOTS, draw_examples
from hf_dialemb.metrics.prototype_classification import prototype_classification
from hf_dialemb.storage.files import write_json_atomically

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "languages.json"
SEEDS = 10


def requests(data: Path) -> tuple[dict[str, list[str]], np.ndarray]:
    """Read the requests that no training may see, by language, and their intents."""
    texts, intents = {}, np.array([])
    with tarfile.open(data / "xsid_dev" / "xsid_dev.tar.xz") as packed:
        for name in sorted(packed.getnames()):
            text = packed.extractfile(name).read().decode()
            texts[name.split(".")[0]] = re.findall(r"(?m)^# text: (.*\S)", text)[1::2]
            if name.startswith("en."):
                intents = np.array(re.findall(r"(?m)^# intent: (\S+)", text)[1::2])
    whole = {name: own for name, own in texts.items() if len(own) == len(intents)}
    return whole, intents


def accuracy(vectors: dict[str, np.ndarray], intents: np.ndarray, shots: int) -> dict[str, float]:
    """Return the mean accuracy in per cent over draws of English examples, by language."""
    scores: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        generator = np.random.default_rng(seed)
        drawn = draw_examples(intents, np.arange(len(intents)), shots, max(SHOTS) + 1, generator)
        rest = np.setdiff1d(np.flatnonzero(np.isin(intents, intents[drawn])), drawn)
        examples = vectors["en"][drawn], intents[drawn]
        for language, own in vectors.items():
            figures = prototype_classification(*examples, own[rest], intents[rest])
            scores.setdefault(language, []).append(100 * figures["accuracy"])
    return {language: float(np.mean(values)) for language, values in scores.items()}


def main() -> None:
    """Measure each model, beside those of earlier runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    texts, intents = requests(options.data_dir)
    rows = []
    for model in options.models:
        encoder = load_encoder(model)
        vectors = {language: encoder.encode_utterances(own) for language, own in texts.items()}
        by_shots = [accuracy(vectors, intents, shots) for shots in SHOTS]
        means = [
            np.mean([own for language, own in scores.items() if language != "en"])
            for scores in by_shots
        ]
        figures = [means, *([scores[language] for scores in by_shots] for language in texts)]
        cells = [" / ".join(f"{value:.1f}" for value in pair) for pair in figures]
        rows.append([Path(model).name, *cells])
        print(*rows[-1])
        table = table_lines(["Encoder"], ["others, mean", *texts], rows)
        write_json_atomically(options.output, {"table": table})


if __name__ == "__main__":
    main()
