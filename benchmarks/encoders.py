"""What you would pick instead: encoders side by side, a line each, on test splits that chose nothing.

MAP is of retrieving dialogues of one's own domain (each task of `dialogue-retrieval`, in %), accuracy that of intents
from one example each, F1 that of actions from one and from five. Rates are of utterances and of whole SGD dialogues,
on the threads that the run has.

    python benchmarks/encoders.py --model dialogue-minilm dialogue-static all-MiniLM-L6-v2 tfidf --output encoders.json

What was measured is kept beside the output, in a folder, and not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from hardware import describe_machine

import hf_dialemb
from hf_dialemb.evaluation.results.rows import Row, read_results
from hf_dialemb.runs.files import write_json_atomically

DIALOGUES = {
    "sgd": "SGD", "multiwoz": "MultiWOZ", "doc2dial": "Doc2Dial", "self_dialogue": "Self-dialogue", "star": "STAR",
    "kvret": "KVRET",
}  # fmt: skip
INTENTS = {"clinc150": "CLINC150", "banking77": "BANKING77", "snips": "SNIPS"}
ACTIONS = "dialog2flow_evaluation"
LIMIT = 600
"""At most so many dialogues of a corpus, drawn the same for all."""


def measured(model: str, corpus: str, task: str, seeds: int, folder: Path) -> tuple[Row, ...]:
    """Measures a model on a corpus, or reads what was measured before."""
    file = folder / f"{Path(model).name}-{corpus}.json"
    if not file.is_file():
        limit = LIMIT if corpus in DIALOGUES else None
        hf_dialemb.evaluate(model, corpus, tasks=[task], limit=limit, seeds=range(seeds)).save(file)
    return read_results(file).results


def figure(rows: tuple[Row, ...], metric: str, setting: str = "") -> float:
    """Finds one figure."""
    return next(row.mean for row in rows if (row.metric, row.setting) == (metric, setting))


def rate(model: str, folder: Path) -> dict[str, float]:
    """Counts the utterances, and whole dialogues, of SGD's test split that a model encodes in a second."""
    file = folder / f"rate-{Path(model).name}.json"
    if file.is_file():
        return dict(json.loads(file.read_text()))
    dialogues = hf_dialemb.load_dialogues("sgd", split="test")[:300]
    texts = list(dict.fromkeys(turn.content for dialogue in dialogues for turn in dialogue.turns))[:1000]
    encoder = hf_dialemb.load_encoder(model)
    encoder.encode(dialogues[:4])
    rates = {}
    work = {"utterances": (encoder.encode_utterances, texts), "dialogues": (encoder.encode, dialogues)}
    for name, (encode, items) in work.items():
        started = time.perf_counter()
        encode(items)
        rates[name] = len(items) / (time.perf_counter() - started)
    write_json_atomically(file, rates)
    return rates


def line(model: str, seeds: int, folder: Path) -> dict[str, float | str]:
    """Measures all of a model."""
    found: dict[str, float | str] = {"Encoder": Path(model).name}
    for corpus, title in DIALOGUES.items():
        found[title] = figure(measured(model, corpus, "domains", seeds, folder), "map")
    for corpus, title in INTENTS.items():
        found[title] = figure(measured(model, corpus, "intent-classification", seeds, folder), "accuracy", "1-shot")
    rows = measured(model, ACTIONS, "action-similarity", seeds, folder)
    found |= {"Actions, 1": figure(rows, "f1", "1-shot"), "Actions, 5": figure(rows, "f1", "5-shot")}
    return found | {f"{name}/s": value for name, value in rate(model, folder).items()}


def table(lines: list[dict[str, float | str]]) -> list[str]:
    """Draws the table; the best of each column in bold."""
    names = list(lines[0])
    best = {name: max(float(each[name]) for each in lines) for name in names[1:]}

    def cell(name: str, value: float | str) -> str:
        text = value if isinstance(value, str) else f"{value:,.0f}" if name.endswith("/s") else f"{value:.1f}"
        return f"**{text}**" if name != names[0] and value == best[name] else str(text)

    head = [f"| {' | '.join(names)} |", f"| :-- |{' --: |' * (len(names) - 1)}"]
    return [*head, *(f"| {' | '.join(cell(name, each[name]) for name in names)} |" for each in lines)]


def main() -> None:
    """Measures what is missing, prints the table and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", required=True, help="encoders, by name or folder")
    parser.add_argument("--seeds", type=int, default=3, help="repeats of what draws at random (default: 3)")
    parser.add_argument("--output", type=Path, default=Path("encoders.json"), help="where the figures go")
    options = parser.parse_args()
    folder = options.output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for model in options.model:
        lines.append(line(model, options.seeds, folder))
        print("\n".join(table(lines)[-1:]), flush=True)
    record = {"machine": describe_machine(), "limit": LIMIT, "lines": lines, "table": table(lines)}
    write_json_atomically(options.output, record)
    print("\n".join(table(lines)))


if __name__ == "__main__":
    main()
