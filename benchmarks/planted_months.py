"""Plant changes by rule in three months of a desk, and count those that the commands name.

Conversations of STAR, and requests about cards of CLINC150, are dealt to months, teams, agents and
channels. What is said in the first two months has topics, and March goes on from these. A subject
counts as gathered where one topic has four fifths of its conversations, which are four fifths of
that topic. A line beyond chance that no plant explains is false. Vectors are those of the tables
of words, ``dialogue-static`` and ``action-static``, and flows have every third conversation, so
that it takes two minutes of a core.

    HF_DIALEMB_DATA=corpora python benchmarks/planted_months.py --output
    docs/results/planted_months.json
"""

import argparse
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

import hf_dialemb
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.display import table_lines
from hf_dialemb.storage.files import write_json_atomically

SUBJECTS = {
    **dict.fromkeys(("bank", "ride", "plane", "doctor", "hotel"), ""),
    "report_lost_card": "I have blocked it. A new card is on its way.",
    "damaged_card": "I am sending you a replacement. Please cut the old one in two.",
}
SPAM = "Congratulations {0}! You have won a voucher of {0} pounds, see win-{0}.example for it"
COLUMNS = {
    "team": ("north", "south"),
    "agent": ("Ann", "Bo", "Cy", "Di", "Ed", "Flo"),
    "channel": ("chat", "phone"),
    "month": ("01", "02", "03"),
}
RULES = (
    (
        ("month", "01 02", 0.38, slice(2, 2)),
        ("What is your address?", "Can you confirm your address, please?", "And your address?"),
        ("{} Main Street", "I live at {} Mill Lane", "{} Oak Road, second floor"),
    ),
    (
        ("channel", "phone", 1, slice(-2, -2)),
        ("Sorry, the line is bad. Are you still there?", "Can you hear me now?", "Hello? Hello?"),
        ("Yes, I am here", "I can hear you", "Yes, still here"),
    ),
    (
        ("agent", "Cy", 1, slice(1, 1)),
        ("Before we go on: calls may be recorded for training purposes.",),
        ("That is fine", "OK", "All right"),
    ),
    (
        ("team", "north", 0.3, slice(-4, None)),
        ("I have to pass you on to another department.", "Another department must look at this."),
        ("I'd rather close my account", "I'm going to another bank", "I'll do it myself online"),
    ),
)
"""Whose conversations have an exchange, how often and where; what is asked and answered."""

PLANTS = {
    "March: damaged cards": ("topics", "New topic: .*card"),
    "March: 110 copies of spam": ("topics", "New topic: near copies"),
    "north: ends": ("topics", "south, beside north: (end badly|cancelled|broken)"),
    "north: scores": ("topics", "south, beside north: mean score"),
    "north: why": ("team", "department"),
    "north: how customers leave": ("team", "are cancelled|account|bank|myself online"),
    "Cy: a template": ("agent", "recorded"),
    "Cy: its answers": ("agent", "That is fine|OK|All right|mean turns"),
    "phone: longer calls": ("channel", "mean turns"),
    "phone: why": ("channel", "line is bad|hear|Hello|still here"),
    "March: no check of addresses": ("month", "address"),
    "March: nobody says an address": ("month", "Street|Lane|Oak Road"),
    "March: what cards and spam bring": (
        "month",
        "Congrat|replacement|card|mean turns|voucher|broken off",
    ),
}
"""The lines that a plant explains: the comparison that has them, and a pattern."""

FINDING = re.compile(r"(New|Step|Conversations|mean)\b|.+, beside north: ")


def said() -> list[tuple[str, list[Turn]]]:
    """Return conversations with their subjects."""
    return [
        *(
            (*own.domains, [*own.turns])
            for own in hf_dialemb.load_dialogues("star", split="all")
            if len(own.domains) == 1 and own.domains[0] in SUBJECTS
        ),
        *(
            (name, [own.turns[0], Turn("assistant", SUBJECTS[name]), Turn("user", "thanks, bye")])
            for own in hf_dialemb.load_dialogues("clinc150", split="all")
            for name in own.turns[0].intents
            if SUBJECTS.get(name)
        ),
        *(("spam", [Turn("user", SPAM.format(number))]) for number in range(110)),
    ]


def planted(number: int, subject: str, turns: list[Turn]) -> Dialogue:
    """Draw a team, an agent, a channel and a month, and plant what belongs to them."""
    draw = random.Random(number)
    facts = {name: draw.choice(values) for name, values in COLUMNS.items()}
    if subject in ("damaged_card", "spam"):
        facts["month"] = "03"
    for (column, values, share, place), asks, answers in RULES:
        if subject != "spam" and facts[column] in values and draw.random() < share:
            turns[place] = [
                Turn("assistant", draw.choice(asks)),
                Turn("user", draw.choice(answers).format(number)),
            ]
    time = f"2026-{facts.pop('month')}-{draw.randint(1, 28):02d}"
    score = min(5, max(1, round(draw.gauss(3.2 + 0.6 * (facts["team"] == "south"), 1))))
    return Dialogue(tuple(turns), f"{subject}-{number}", (), time, {**facts, "score": score})


def findings(*words: object) -> list[str]:
    """Run a command, and return the lines that say something beyond chance."""
    command = [sys.executable, "-m", "hf_dialemb.apps.cli", *map(str, words)]
    return list(filter(FINDING.match, subprocess.check_output(command, text=True).splitlines()))


def main() -> None:
    """Plant, run the commands, and write what they name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    work = parser.parse_args().output.with_suffix("")
    every = [planted(number, *own) for number, own in enumerate(said())]
    for name, months, step in (("third", "123", 3), ("early", "12", 1), ("march", "3", 1)):
        write_jsonl([own for own in every[::step] if own.time[6] in months], work / f"{name}.jsonl")
    for name, *words in (
        ("early", "topics", work / "early.jsonl", "--model", "dialogue-static"),
        ("flow", "flow", work / "third.jsonl", "--by", "all", "--model", "action-static"),
    ):
        findings(*words, "--output", work / name)
    flow = ("flow", "compare", "--flow", work / "flow", "--input", work / "third.jsonl", "--by")
    commands = {
        **{name: (*flow, name) for name in COLUMNS},
        "topics": ("topics", work / "march.jsonl", "--from", work / "early", "--compare", "team"),
    }
    named = {name: findings(*own, "--output", work / name) for name, own in commands.items()}
    topics = pq.read_table(work / "topics" / "dialogues.parquet").to_pylist()
    pairs = Counter((row["name"], row["id"].rpartition("-")[0]) for row in topics)
    sizes = Counter(part for pair in pairs.elements() for part in pair)
    gathered = {
        subject: name
        for (name, subject), count in pairs.items()
        if count >= 0.8 * max(sizes[name], sizes[subject])
    }
    rows = [
        *([f"one topic: {own}", gathered.get(own, "")] for own in (*SUBJECTS, "spam")),
        *(
            [name, next(filter(re.compile(pattern).search, named[column]), "")]
            for name, (column, pattern) in PLANTS.items()
        ),
    ]
    false = [
        f"{column}: {line}"
        for column, lines in named.items()
        for line in lines
        if not any(re.search(own, line) for of, own in PLANTS.values() if of == column)
    ]
    found = sum(bool(line) for _, line in rows)
    head = f"Planted: found {found}, not found {len(rows) - found}, false {len(false)}"
    table = table_lines([head, "Named by"], [], rows)
    write_json_atomically(work.with_suffix(".json"), {"false": false, "table": table})
    print("\n".join([*table, *false]))


if __name__ == "__main__":
    main()
