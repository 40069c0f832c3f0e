"""How well conversations are split where their topic changes, beside TextTiling and other ways.

The dialogues of SGD with several services; the topic changes with a turn of the user's whose intent
is of another service. Boundary similarity (Fournier, 2013) is 1 for the same boundaries, and counts
half for one that is a turn off. TextTiling (Hearst, 1997) is that of nltk, of which turns are the
paragraphs.

    HF_DIALEMB_DATA=corpora python benchmarks/topic_segments.py --output
    docs/results/topic_segments.json

Needs nltk. ``--split dev`` tries other thresholds; that of the package was chosen there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from hardware import describe_machine
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import hf_dialemb
from hf_dialemb.apps.topics.segments import CHANGE, ENCODER, boundaries
from hf_dialemb.data import single_domain
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.storage.files import write_json_atomically

MOST = 300
TRIED = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


class Once:
    """Encodes the same dialogues once."""

    def __init__(self, model: str) -> None:
        self.encoder, self.kept = hf_dialemb.load_encoder(model), None

    def encode(self, dialogues: list[Dialogue]) -> np.ndarray:
        """Encode dialogues, or return their vectors."""
        if self.kept is None:
            self.kept = self.encoder.encode(dialogues)
        return self.kept


def services_of(dialogues: list[Dialogue]) -> dict[str, set[str]]:
    """Return the services that each intent belongs to, by dialogues of one service."""
    services: dict[str, set[str]] = {}
    for dialogue in single_domain(dialogues):
        for turn in dialogue.turns:
            for intent in turn.intents:
                services.setdefault(intent, set()).add(dialogue.domains[0])
    return services


def changes(dialogue: Dialogue, services: dict[str, set[str]]) -> list[int] | None:
    """Return the turns at which the service changes.

    Nothing of a dialogue in which an intent is of no one service.
    """
    places, last = [], ""
    for place, turn in enumerate(dialogue.turns):
        for intent in turn.intents[:1]:
            own = services.get(intent, set()) & set(dialogue.domains)
            if len(own) != 1:
                return None
            (service,) = own
            if last and service != last:
                places.append(place)
            last = service
    return places


def similarity(found: list[int], right: list[int]) -> float:
    """Return the boundary similarity (Fournier, 2013, equation 6) with near misses of one turn."""
    both = set(found) & set(right)
    left, other = sorted(set(found) - both), set(right) - both
    near = 0
    for place in left:
        match = next((place + by for by in (-1, 1) if place + by in other), None)
        if match is not None:
            other.remove(match)
            near += 1
    single = len(left) - near + len(other)
    every = len(both) + near + single
    return (len(both) + near / 2) / every if every else 1.0


def tiled(dialogue: Dialogue) -> list[int]:
    """Split a dialogue by nltk's TextTiling, with its own settings where the dialogue is long
    enough.
    """
    from nltk.tokenize import TextTilingTokenizer

    text = "\n\n" + "\n\n".join(turn.content for turn in dialogue.turns)
    try:
        tiles = TextTilingTokenizer(stopwords=sorted(ENGLISH_STOP_WORDS)).tokenize(text)
    except ValueError:  # it is too short
        return []
    ends = np.cumsum([sum(bool(part.strip()) for part in tile.split("\n\n")) for tile in tiles])
    return [int(end) for end in ends[:-1]]


def row(name: str, found: list[list[int]], right: list[list[int]]) -> dict[str, object]:
    """Make a row: mean boundary similarity, and the boundaries of a dialogue."""
    scores = [similarity(*pair) for pair in zip(found, right, strict=True)]
    return {
        "name": name,
        "similarity": float(np.mean(scores)),
        "boundaries": float(np.mean(list(map(len, found)))),
    }


def main() -> None:
    """Measures the ways, and writes figures and their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--split", choices=("dev", "test"), default="test", help="which part (default: test)"
    )
    parser.add_argument("--model", nargs="+", default=(ENCODER,), help="the encoders")
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    options = parser.parse_args()
    whole = hf_dialemb.load_dialogues("sgd", split=options.split)
    services = services_of(whole)
    several = [
        (dialogue, changes(dialogue, services)) for dialogue in whole if len(dialogue.domains) > 1
    ]
    known = [(dialogue, right) for dialogue, right in several if right]
    chosen = [
        known[place] for place in np.sort(np.random.default_rng(0).permutation(len(known))[:MOST])
    ]
    dialogues, right = [dialogue for dialogue, _ in chosen], [places for _, places in chosen]
    rows = [row("true boundaries", right, right), row("no boundary", [[] for _ in right], right)]
    rows.append(row("TextTiling", [tiled(dialogue) for dialogue in dialogues], right))
    for model in options.model:
        encoder = Once(model)
        for change in TRIED if options.split == "dev" else (CHANGE,):
            name = f"{model}, from {change}" if options.split == "dev" else f"--segments, {model}"
            rows.append(row(name, boundaries(dialogues, encoder, change), right))
    lines = ["| Way | Boundary similarity | Boundaries a dialogue |", "| :-- | --: | --: |"]
    lines += [
        f"| {one['name']} | {one['similarity']:.3f} | {one['boundaries']:.2f} |" for one in rows
    ]
    counted = Counter({"dialogues": len(chosen), "of several services": len(several)})
    record = {
        "split": options.split,
        "hardware": describe_machine(),
        **counted,
        "rows": rows,
        "table": lines,
    }
    write_json_atomically(options.output, record)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
