"""Measure how well questions find the turns that answer them, and write docs/results/turn_retrieval.json.

    python benchmarks/turn_retrieval.py --data-dir DATA MODEL...

The folder holds the corpora (docs/corpora.md) and LoCoMo's conversations, as locomo_dev/locomo_dev.tar.xz. LoCoMo may
be used for research only: it chose the weights of words, speakers and times, and no model learnt from it. In a log of
Ubuntu IRC, a message is the question, and what it replies to is the answer. Of SGD, each slot is asked for. The same
command goes on where it was stopped.
"""

import argparse
import json
import os
import re
import sys
import tarfile
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from hf_dialemb import Dialogue, Turn, evaluate, load_dialogues
from hf_dialemb.runs.files import write_text_atomically

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "turn_retrieval.json"
MESSAGE = re.compile(r"\[(\d\d:\d\d)\] (?:<([^>]+)>| \* (\S+)) +(.*\S)")
SETTINGS = {
    "words": "",
    "alone": "",
    "surroundings": ", in surroundings",
    "alone and words": ", with words",
    "": ", in surroundings, with words",
}
UNANSWERABLE = 5  # a category of questions


def files(archive: Path, ending: str) -> dict[str, str]:
    """Read the texts of an archive's files by name."""
    with tarfile.open(archive) as packed:
        members = [member for member in packed if member.name.endswith(ending)]
        return {member.name: packed.extractfile(member).read().decode() for member in members}


def locomo(data: Path) -> list[Dialogue]:
    """Read the conversations and questions of LoCoMo."""
    dialogues = []
    for name, text in sorted(files(data / "locomo_dev" / "locomo_dev.tar.xz", ".json").items()):
        record = json.loads(text)
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


def ubuntu(data: Path, split: str, logs: int) -> list[Dialogue]:
    """Read the logs of Ubuntu IRC, with a question for each message that replies to an earlier one."""
    texts = files(data / "ubuntu_irc" / "ubuntu_irc.tar.xz", ".txt")
    dialogues = []
    for name in sorted(name for name in texts if f"/{split}/" in name and name.endswith(".ascii.txt"))[:logs]:
        day, turns, places = Path(name).name[:10], [], {}
        for number, line in enumerate(texts[name].splitlines()):
            if match := MESSAGE.match(line):
                places[number] = len(turns)
                nick = match[2] or match[3]
                turns.append(Turn("user", match[4], name=nick, time=f"{day}T{match[1]}:00"))
        replies = {}
        for line in texts[name.replace(".ascii.", ".annotation.")].splitlines():
            first, second = sorted(map(int, line.split()[:2]))
            if first != second and first in places and second in places:
                replies.setdefault(places[second], []).append(places[first])
        questions = [{"question": turns[at].content, "turns": to, "before": at} for at, to in replies.items()]
        dialogues.append(Dialogue(tuple(turns), Path(name).stem, metadata={"questions": questions}))
    return dialogues


def main() -> None:
    """Measure the models on each corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    data = os.environ.get("HF_DIALEMB_DATA")
    parser.add_argument("--data-dir", type=Path, default=data, required=data is None)
    parser.add_argument("--limit", type=int, default=600, help="the most questions of a corpus (default: 600)")
    parser.add_argument("--logs", type=int, default=3, help="how many logs of Ubuntu IRC, the first (default: 3)")
    parser.add_argument("--corpora", nargs="+", default=["locomo", "ubuntu_irc", "sgd"])
    parser.add_argument("--split", default="test", help="of Ubuntu IRC and SGD")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    load = {
        "locomo": lambda: locomo(options.data_dir),
        "ubuntu_irc": lambda: ubuntu(options.data_dir, options.split, options.logs),
        "sgd": lambda: load_dialogues("sgd", options.data_dir, options.split),
    }
    command = " ".join(["python", "benchmarks/turn_retrieval.py", *sys.argv[1:]])
    before = json.loads(options.output.read_text()) if options.output.exists() else {}
    entries = before["entries"] if before.get("command") == command else []
    for corpus in options.corpora:
        dialogues, split = load[corpus](), "dev" if corpus == "locomo" else options.split
        for model in options.models:
            place = {"corpus": f"{corpus}/{split}", "model": Path(model).name}
            if not any(place.items() <= entry.items() for entry in entries):
                entries.append({**place, "figures": measured(model, dialogues, options.limit)})
            record = {"command": command, "entries": entries, "table": table(entries), "short": short(entries)}
            write_text_atomically(options.output, json.dumps(record, indent=1) + "\n")
            print("\n".join(table(entries)), flush=True)


def measured(model: str, dialogues: list[Dialogue], limit: int) -> dict[str, dict[str, float]]:
    """Measure a model in each setting."""
    figures = defaultdict(dict)
    for row in evaluate([model], dialogues, tasks=["turn-retrieval"], seeds=1, limit=limit).results:
        if row.task == "turn-retrieval":
            figures[row.setting][row.metric] = round(row.mean, 1)
    return figures


def table(entries: list[dict]) -> list[str]:
    """Write nDCG@10 / recall@10 of each model and setting in Markdown, a column for each corpus."""
    corpora = list(dict.fromkeys(entry["corpus"] for entry in entries))
    rows = {}
    for entry in entries:
        for setting, name in SETTINGS.items():
            found = entry["figures"][setting]
            model = "BM25" if setting == "words" else f"{entry['model']}{name}"
            rows.setdefault(model, {})[entry["corpus"]] = f"{found['ndcg10']} / {found['recall10']}"
    lines = [f"| nDCG@10 / recall@10 | {' | '.join(corpora)} |", f"| :-- |{' --: |' * len(corpora)}"]
    for model, cells in rows.items():
        lines.append(f"| {model} | {' | '.join(cells.get(corpus, '') for corpus in corpora)} |")
    return lines


def short(entries: list[dict]) -> list[str]:
    """Write nDCG@10 of each model by itself, and in surroundings with words, in Markdown."""
    names = {"locomo/dev": "LoCoMo (dev)", "ubuntu_irc/test": "Ubuntu IRC (test)"}
    rows: dict[str, dict[str, str]] = {"BM25": {}}
    for entry in entries:
        alone, words, together = (entry["figures"][name]["ndcg10"] for name in ("alone", "words", ""))
        rows["BM25"][entry["corpus"]] = str(words)
        rows.setdefault(entry["model"], {})[entry["corpus"]] = f"{alone}, {together}"
    lines = [f"| | {' | '.join(names.values())} |", f"| :-- |{' --: |' * len(names)}"]
    return lines + [
        f"| {model} | {' | '.join(cells.get(name, '') for name in names)} |" for model, cells in rows.items()
    ]


if __name__ == "__main__":
    main()
