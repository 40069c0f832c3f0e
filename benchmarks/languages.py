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
    texts = {}
    intents = np.array([])
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


def table(figures: dict[str, dict[str, list[float]]]) -> list[str]:
    """Render English, the mean of the other languages, and the best and the worst of them."""
    rows = []
    for model, own in figures.items():
        others = sorted(own.keys() - {"en"}, key=lambda language: own[language][-1])
        mean = np.mean([own[language] for language in others], axis=0)
        ends = [(f" ({name})", own[name]) for name in (others[-1], others[0])]
        cells = [("", own["en"]), ("", mean), *ends]
        rows.append(
            [model, *(f"{first:.1f} / {fifth:.1f}{name}" for name, (first, fifth) in cells)]
        )
    head = f"{len(others)} others, mean"
    return table_lines(["Encoder"], ["English", head, "highest", "lowest"], rows)


def main() -> None:
    """Measure the models, and write all figures and a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    texts, intents = requests(options.data_dir)
    figures: dict[str, dict[str, list[float]]] = {}
    for model in options.models:
        encoder = load_encoder(model)
        vectors = {language: encoder.encode_utterances(own) for language, own in texts.items()}
        by_shots = [accuracy(vectors, intents, shots) for shots in SHOTS]
        name = Path(model).name
        figures[name] = {language: [own[language] for own in by_shots] for language in texts}
        print(name, figures[name])
    write_json_atomically(options.output, {"figures": figures, "table": table(figures)})


if __name__ == "__main__":
    main()
