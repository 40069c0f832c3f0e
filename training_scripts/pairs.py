"""Draw the pairs that an encoder of many languages learns from: python pairs.py DATA OUTPUT.

Consecutive turns in English and Chinese, requests in fifteen languages or dialects beside their
translations, and questions to a shop that people found alike, in random order, so that no batch is
of one language. A pair is a dialogue of two turns. DATA holds the corpora, among them CrossWOZ's
and xSID's validation parts, which serve nothing else here: of each, and of JDDC's questions, every
other dialogue, request or group is left to choose on. SNIPS is left out: xSID has its requests.
"""

import itertools
import json
import random
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from hf_dialemb import load_dialogues
from hf_dialemb.dialogue import WORD
from hf_dialemb.storage.files import write_json_atomically, write_text_atomically

Pair = tuple[str, str]

TURNS = {
    "sgd/train": 7000,
    "multiwoz/train": 5000,
    "woz2/all": 1000,
    "taskmaster4/train": 1000,
    "self_dialogue/train": 12000,
}
CROSSWOZ = 4000
TRANSLATIONS = 4500
QUESTIONS = 1200
HELD_BACK = [
    *(
        f"{corpus}/{split}"
        for corpus in ("sgd", "multiwoz", "self_dialogue")
        for split in ("dev", "test")
    ),
    "clinc150/dev",
    "clinc150/test",
]
FURTHER = {
    "crosswoz/dev": ("Apache 2.0", "https://github.com/thu-coai/CrossWOZ"),
    "xsid/dev": ("CC BY-SA 4.0", "https://github.com/mainlp/xsid"),
}
"""Licences of what the catalogue of corpora does not have."""


def consecutive(turns: list[str], words: int = 4) -> Iterator[Pair]:
    """Yield each turn and the next, unless one is shorter."""
    for pair in itertools.pairwise(turns):
        if min(len(WORD.findall(text)) for text in pair) >= words:
            yield pair


def english(name: str, most: int, held_back: set[str]) -> list[Pair]:
    """Draw pairs of a corpus without texts that are held back."""
    dialogues = load_dialogues(name)
    random.shuffle(dialogues)
    pairs: list[Pair] = []
    for dialogue in dialogues:
        texts = [turn.content for turn in dialogue.turns]
        pairs += [pair for pair in consecutive(texts) if not held_back & set(pair)]
        if len(pairs) > 4 * most:
            break
    return random.sample(pairs, min(most, len(pairs)))


def crosswoz(data: Path) -> list[Pair]:
    """Draw pairs of every other dialogue."""
    with zipfile.ZipFile(data / "crosswoz_dev" / "val.json.zip") as packed:
        dialogues = json.loads(packed.read("val.json"))
    turns = (
        [said["content"] for said in dialogues[name]["messages"]] for name in sorted(dialogues)
    )
    pairs = [pair for texts in itertools.islice(turns, 0, None, 2) for pair in consecutive(texts)]
    return random.sample(pairs, min(CROSSWOZ, len(pairs)))


def translations(data: Path) -> list[Pair]:
    """Draw pairs of one request in two languages, of every other request."""
    with tarfile.open(data / "xsid_dev" / "xsid_dev.tar.xz") as packed:
        files = [packed.extractfile(name) for name in sorted(packed.getnames())]
        texts = [re.findall(r"(?m)^# text: (.*\S)", file.read().decode()) for file in files if file]
    whole = [of for of in texts if len(of) == max(map(len, texts))]  # Japanese has half of them
    pairs = [
        pair
        for request in list(zip(*whole, strict=True))[::2]
        for pair in itertools.combinations(dict.fromkeys(request), 2)
    ]
    return random.sample(pairs, TRANSLATIONS)


def questions(data: Path) -> list[Pair]:
    """Draw pairs of questions that ask the same, of every other group of JDDC's dev split."""
    with tarfile.open(data / "jddc" / "jddc.tar.xz") as packed:
        name = next(name for name in packed.getnames() if name.endswith("jddc/dev/select.txt"))
        lines = packed.extractfile(name).read().decode().splitlines()
    rows = {cells[0]: cells for cells in (line.split("\t") for line in lines)}
    groups = {name: {name} for name in rows}
    for name, cells in rows.items():
        for other in filter(None, cells[3].split(",")):
            if groups[other] is not groups[name]:
                groups[name] |= groups[other]
                for moved in groups[other]:
                    groups[moved] = groups[name]
    distinct = sorted({min(map(int, group)): group for group in groups.values()}.items())
    pairs = [
        (rows[name][1], rows[other][1])
        for _, group in distinct[::2]
        for name in sorted(group, key=int)
        for other in filter(None, rows[name][3].split(","))
        if rows[name][1] != rows[other][1]
    ]
    return random.sample(pairs, QUESTIONS)


def main(data: Path, output: Path) -> None:
    """Write the pairs, and beside them where they are from."""
    random.seed(0)
    held_back = {
        turn.content
        for name in HELD_BACK
        for dialogue in load_dialogues(name)
        for turn in dialogue.turns
        if len(WORD.findall(turn.content)) > 8
    }
    parts = {name: english(name, most, held_back) for name, most in TURNS.items()}
    parts |= {"crosswoz/dev": crosswoz(data), "xsid/dev": translations(data)}
    parts["jddc_retrieval/dev"] = questions(data)
    drawn = [(name, *pair) for name, pairs in parts.items() for pair in pairs]
    random.shuffle(drawn)
    records = [
        {
            "id": f"{name}-{number}",
            "messages": [
                {"role": "user", "content": first},
                {"role": "assistant", "content": second},
            ],
        }
        for number, (name, first, second) in enumerate(drawn)
    ]
    write_text_atomically(
        output, "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    )
    counts = {name: len(pairs) for name, pairs in parts.items()}
    write_json_atomically(
        output.with_suffix(".sources.json"), {"pairs": counts, "licences": FURTHER}
    )
    print(f"Wrote {len(drawn):,} pairs: {counts}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
