"""Measures how well questions find the turns that answer them.

    python benchmarks/turn_retrieval.py --data-dir DATA MODEL...

The folder holds the corpora (docs/corpora.md) and LoCoMo's conversations, as
locomo_dev/locomo_dev.tar.xz. LoCoMo may be used for research only: it chose the weights of words,
speakers and times, and no model learnt from it. In a log of Ubuntu IRC, a message is the question,
and what it replies to is the answer; nothing after the question is known. Of SGD, each slot is
asked for. Transformers compute in bfloat16 where that is faster.
"""

import argparse
import json
import os
import sys
import tarfile
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from hf_dialemb import Dialogue, Turn, evaluate, load_dialogues
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


def locomo_records(data: Path) -> dict[str, dict]:
    """Read the files of LoCoMo by their names."""
    with tarfile.open(data / "locomo_dev" / "locomo_dev.tar.xz") as packed:
        names = sorted(name for name in packed.getnames() if name.endswith(".json"))
        return {name: json.loads(packed.extractfile(name).read()) for name in names}


def locomo(data: Path) -> list[Dialogue]:
    """Read the conversations and questions of LoCoMo."""
    dialogues = []
    for name, record in locomo_records(data).items():
        places, turns = {}, []
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
                questions.append({"question": asked["question"], "turns": answers})
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
    parser.add_argument(
        "--logs", type=int, default=2, help="how many logs of Ubuntu IRC, the first (default: 2)"
    )
    parser.add_argument("--corpora", nargs="+", default=["locomo", "ubuntu_irc"], help="or sgd")
    parser.add_argument("--split", default="test", help="of Ubuntu IRC and SGD")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    load = {
        "locomo": lambda: locomo(options.data_dir),
        "ubuntu_irc": lambda: load_dialogues("ubuntu_irc_logs", options.data_dir, options.split)[
            : options.logs
        ],
        "sgd": lambda: load_dialogues("sgd", options.data_dir, options.split),
    }
    command = " ".join(["python", "benchmarks/turn_retrieval.py", *sys.argv[1:]])
    entries: list[dict] = []
    for corpus in options.corpora:
        split = "dev" if corpus == "locomo" else options.split
        dialogues = load[corpus]()
        rows = [
            row for model in options.models for row in measured(model, dialogues, options.limit)
        ]
        entries += [
            {"corpus": f"{corpus}/{split}", **entry} for entry in entries_of(with_ties(rows))
        ]
    record = {"command": command, "entries": entries, "table": table(entries)}
    write_text_atomically(options.output, json.dumps(record, indent=1) + "\n")
    print("\n".join(record["table"]))


def measured(model: str, dialogues: list[Dialogue], limit: int) -> list[Row]:
    """Measure a model in each setting."""
    with bfloat16_where_faster():
        measurement = evaluate([model], dialogues, tasks=["turn-retrieval"], seeds=1, limit=limit)
    return [row for row in measurement.results if row.task == "turn-retrieval"]


def names(rows: list[Row]) -> list[str]:
    """Name the models that rows are of, each once."""
    return list(dict.fromkeys(named(row.model) for row in rows))


def entries_of(rows: list[Row]) -> list[dict]:
    """Make an entry for each model.

    NDCG names the models of this process that differ by no more than noise.
    """
    figures = {model: defaultdict(dict) for model in names(rows)}
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
    of = {entry["model"]: entry["figures"][""] for entry in entries if entry["corpus"] == corpus}
    best = max(of, key=lambda model: of[model]["ndcg10"])
    return {best, *of[best]["tied"]}


def table(entries: list[dict]) -> list[str]:
    """Write nDCG@10 / recall@10 of each model and setting in Markdown, a column for each corpus."""
    corpora = list(dict.fromkeys(entry["corpus"] for entry in entries))
    rows = {}
    for entry in entries:
        for setting, name in SETTINGS.items():
            found = entry["figures"][setting]
            model = "BM25" if setting == "words" else f"{entry['model']}{name}"
            cell = f"{found['ndcg10']} / {found['recall10']}"
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
