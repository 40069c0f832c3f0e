"""Measures how well questions find the turns that answer them.

    python benchmarks/turn_retrieval.py --data-dir DATA MODEL...

The folder holds the corpora (docs/corpora.md) and LoCoMo's conversations, as
locomo_dev/locomo_dev.tar.xz. LoCoMo may be used for research only: it chose the weights of words,
speakers and times, and no model learnt from it. In a log of Ubuntu IRC, a message is the question,
and what it replies to is the answer; nothing after the question is known. Of SGD, each slot is
asked for. Transformers compute in bfloat16 where that is faster.

With --kinds, LoCoMo's questions count by their kinds, and their sessions by the best turn of each.
"""

import argparse
import json
import os
import sys
import tarfile
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np

from hf_dialemb import Dialogue, Turn, TurnIndex, evaluate, load_dialogues
from hf_dialemb.apps.search.turn_task import figures_of
from hf_dialemb.evaluation.results.rows import Row, with_ties
from hf_dialemb.storage.files import write_text_atomically
from hf_dialemb.storage.hardware import bfloat16_where_faster

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "turn_retrieval.json"
SETTINGS = {
    "words": "",
    "alone": "",
    "surroundings": ", in surroundings",
    "alone and words": ", with words",
    "": ", in surroundings, with words",
}
UNANSWERABLE = 5  # a category of questions
LOGS = 2  # of Ubuntu IRC, the first
KINDS = ("several turns", "a time", "common knowledge", "one turn", "all")  # LoCoMo's 1 to 4
PUBLISHED = {
    "Nemotron-3-Embed-8B": "67.0 / 80.9",
    "bge-multilingual-gemma2, 9 B": "64.6 / 79.3",
    "e5-base": "54.9 / 69.6",
    "arctic-embed-s, 33 M": "48.8 / 64.8",
    "BM25": "47.9 / 60.4",
    "Qwen3-Embedding-0.6B": "39.0 / 53.3",
}
"""LMEB's figures of all ten conversations of LoCoMo in MTEB's results, by vectors alone."""


def locomo_records(data: Path) -> dict[str, dict]:
    """Read the files of LoCoMo by their names."""
    with tarfile.open(data / "locomo_dev" / "locomo_dev.tar.xz") as packed:
        names = sorted(name for name in packed.getnames() if name.endswith(".json"))
        return {name: json.loads(packed.extractfile(name).read()) for name in names}


def locomo(data: Path) -> list[Dialogue]:
    """Read the conversations and questions of LoCoMo."""
    dialogues = []
    for name, record in locomo_records(data).items():
        places = {}
        turns = []
        for number in range(1, len(record)):
            written = record.get(f"session_{number}_date_time", "").replace(",", "")
            for said in record.get(f"session_{number}", ()):
                time = datetime.strptime(written, "%I:%M %p on %d %B %Y").isoformat()
                role = "user" if said["speaker"] == record["speaker_a"] else "assistant"
                places[said["dia_id"]] = len(turns)
                turns.append(Turn(role, said["text"], name=said["speaker"], time=time))
        questions = []
        for asked in record["qa"]:
            answers = [places[place] for place in asked.get("evidence", ()) if place in places]
            if asked["category"] != UNANSWERABLE and answers:
                questions.append(
                    {"question": asked["question"], "category": asked["category"], "turns": answers}
                )
        dialogues.append(Dialogue(tuple(turns), Path(name).stem, metadata={"questions": questions}))
    return dialogues


def main() -> None:
    """Measure the models on each corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    data = os.environ.get("HF_DIALEMB_DATA")
    parser.add_argument("--data-dir", type=Path, default=data, required=data is None)
    parser.add_argument(
        "--limit", type=int, default=600, help="the most questions of a corpus (default: 600)"
    )
    parser.add_argument("--corpora", nargs="+", default=["locomo", "ubuntu_irc"], help="or sgd")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--kinds", action="store_true", help="count LoCoMo's questions by kinds")
    options = parser.parse_args()
    load = {
        "locomo": lambda: locomo(options.data_dir),
        "ubuntu_irc": lambda: load_dialogues("ubuntu_irc_logs", options.data_dir, "test")[:LOGS],
        "sgd": lambda: load_dialogues("sgd", options.data_dir, "test"),
    }
    command = " ".join(["python", "benchmarks/turn_retrieval.py", *sys.argv[1:]])
    entries: list[dict] = []
    if options.kinds:
        kinds = {model: by_kinds(model, locomo(options.data_dir)) for model in options.models}
        record = {"command": command, "models": kinds, "table": table_of_kinds(kinds)}
    else:
        for corpus in options.corpora:
            dialogues = load[corpus]()
            rows = [
                row for model in options.models for row in measured(model, dialogues, options.limit)
            ]
            entries += [
                {"corpus": f"{corpus}/{'dev' if corpus == 'locomo' else 'test'}", **entry}
                for entry in entries_of(with_ties(rows))
            ]
        record = {"command": command, "entries": entries, "table": table(entries)}
    write_text_atomically(options.output, json.dumps(record, indent=1) + "\n")
    print("\n".join(record["table"]))


def by_kinds(model: str, dialogues: list[Dialogue]) -> dict[str, dict[str, float]]:
    """Return the mean figures of each kind of LoCoMo's questions, and of all."""
    rows = defaultdict(list)
    for dialogue in dialogues:
        index = TurnIndex(encoder=model)
        index.add([dialogue])
        times = np.array([turn.time for turn in dialogue.turns])
        asked = dialogue.metadata["questions"]
        vectors = index.encoder.encode_query([entry["question"] for entry in asked])
        for entry, vector in zip(asked, vectors, strict=True):
            scores = index.scored(entry["question"], vector).total
            best = {time: scores[times == time].max() for time in np.unique(times)}
            found = sorted(best, key=best.get, reverse=True)
            answers = np.unique(times[entry["turns"]])
            of = {f"sessions{most}": np.isin(answers, found[:most]).mean() for most in (5, 10)}
            of |= figures_of(scores, entry["turns"])
            for kind in (KINDS[entry["category"] - 1], "all"):
                rows[kind].append(of)
    return {
        kind: {name: round(100 * float(np.mean([of[name] for of in own])), 1) for name in own[0]}
        | {"questions": len(own)}
        for kind, own in rows.items()
    }


def table_of_kinds(models: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Write the figures of kinds, and those that others published, in Markdown."""
    lines = [
        f"| nDCG@10 / recall@10 | {' | '.join(KINDS)} | sessions, recall@5 / @10 |",
        f"| :-- |{' --: |' * (len(KINDS) + 1)}",
    ]
    for model, of in models.items():
        cells = [f"{of[kind]['ndcg10']} / {of[kind]['recall10']}" for kind in KINDS]
        cells += [f"{of['all']['sessions5']} / {of['all']['sessions10']}"]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return lines + [
        f"| {model} (published) {'| ' * len(KINDS)}{cell} | |" for model, cell in PUBLISHED.items()
    ]


def measured(model: str, dialogues: list[Dialogue], limit: int) -> list[Row]:
    """Measure a model in each setting."""
    with bfloat16_where_faster():
        measurement = evaluate([model], dialogues, tasks=["turn-retrieval"], seeds=1, limit=limit)
    return [row for row in measurement.results if row.task == "turn-retrieval"]


def entries_of(rows: list[Row]) -> list[dict]:
    """Make an entry for each model.

    NDCG names the models of this process that differ by no more than noise.
    """
    figures = {named(row.model): defaultdict(dict) for row in rows}
    for row in rows:
        figures[named(row.model)][row.setting][row.metric] = round(row.mean, 1)
        if row.metric == "ndcg10":
            figures[named(row.model)][row.setting]["tied"] = list(map(named, row.tied))
    return [{"model": model, "figures": of} for model, of in figures.items()]


def named(model: str) -> str:
    """Return the name of a model without its folder."""
    return Path(model).name


def leading(entries: list[dict], corpus: str) -> set[str]:
    """Name the models that are best by all together, and those that tie with the best."""
    of = {
        entry["model"]: entry["figures"][""]
        for entry in entries
        if entry["corpus"] == corpus and "" in entry["figures"]
    }
    best = max(of, key=lambda model: of[model]["ndcg10"])
    return {best, *of[best]["tied"]} if len(of) > 1 else set()


def table(entries: list[dict]) -> list[str]:
    """Write nDCG@10 / recall@10 of each model and setting in Markdown, a column for each corpus."""
    corpora = list(dict.fromkeys(entry["corpus"] for entry in entries))
    rows = {}
    for entry in entries:
        for setting in filter(entry["figures"].get, SETTINGS):
            figures = entry["figures"][setting]
            model = "BM25" if setting == "words" else f"{entry['model']}{SETTINGS[setting]}"
            cell = f"{figures['ndcg10']} / {figures['recall10']}"
            best = setting == "" and entry["model"] in leading(entries, entry["corpus"])
            rows.setdefault(model, {})[entry["corpus"]] = f"**{cell}**" if best else cell
    lines = [
        f"| nDCG@10 / recall@10 | {' | '.join(corpora)} |",
        f"| :-- |{' --: |' * len(corpora)}",
    ]
    for model, cells in rows.items():
        lines.append(f"| {model} | {' | '.join(cells.get(corpus, '') for corpus in corpora)} |")
    return lines


if __name__ == "__main__":
    main()
