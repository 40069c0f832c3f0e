"""Measures what encoders lose on speech that a machine transcribed.

The same texts in three dresses.

"Bare" is lower case without punctuation. "Misheard" is bare, with a tenth of the words replaced by
words that sound alike, and fillers between one word in twenty and the next. Words sound alike if
their codes by Metaphone are equal or one letter apart; the words are those of all-MiniLM-L6-v2's
vocabulary. A text is always misheard in the same way.

Everything that is encoded wears the dress, examples of intents and actions too. The parts of
corpora and the settings are those of encoders.py, on test splits, or on the dev splits that choose.

    python benchmarks/noise.py --model all-MiniLM-L6-v2 dialogue-minilm action-minilm --output
    docs/results/noise.json

What was measured is kept beside the output, in a folder, and not measured again. Needs jellyfish.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import jellyfish
from encoders import DIALOGUES, EVALUATION, LIMIT, Figures, kept
from hardware import describe_machine

import hf_dialemb
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.drawing import table_lines
from hf_dialemb.encoders import Encoder
from hf_dialemb.evaluation.tasks.actions import compare_actions, load_actions
from hf_dialemb.evaluation.tasks.domains import load_domains
from hf_dialemb.evaluation.tasks.intents import load_intents
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.storage.files import write_json_atomically
from hf_dialemb.storage.pretrained import MINILM
from hf_dialemb.training.distil import word_pieces

MISHEARD = 0.1
FILLERS = ("uh", "um", "er", "like", "you know", "i mean", "well")
ALIKE = 4  # words that a word may be misheard as, the most alike in spelling
CHOSEN_ON = ("sgd", "multiwoz", "self_dialogue", "dailydialog")
PARTS = {
    "test": {"domains": DIALOGUES, "intents": ("clinc150",), "actions": (EVALUATION,)},
    "dev": {"domains": CHOSEN_ON, "intents": ("clinc150",), "actions": ("sgd", "star")},
}
FIGURE = {"domains": ("map", ""), "intents": ("accuracy", "1-shot"), "actions": ("f1", "1-shot")}
HEADS = {"domains": "MAP", "intents": "Intents", "actions": "Actions"}


def variants(code: str) -> set[str]:
    """Return a code and what is left of it without one of its letters.

    Codes a letter apart share one of these.
    """
    return {code, *(code[:place] + code[place + 1 :] for place in range(len(code)))}


@cache
def words_by_code() -> dict[str, list[str]]:
    """Read the vocabulary, by the variants of the words' codes."""
    words = defaultdict(list)
    for word in word_pieces(MINILM)[1]:
        if word.isascii() and word.isalpha() and len(word) > 1:
            for variant in variants(jellyfish.metaphone(word)):
                words[variant].append(word)
    return words


@cache
def sound_alikes(word: str) -> list[str]:
    """Find what a word is misheard as: none for numbers and for words with apostrophes."""
    code = jellyfish.metaphone(word) if word.isascii() and word.isalpha() else ""
    near = {
        other for variant in variants(code) if variant for other in words_by_code()[variant]
    } - {word}
    # Equal codes first, then what is spelt most alike; the word itself decides ties.
    rank = {
        other: (
            jellyfish.metaphone(other) != code,
            -jellyfish.jaro_winkler_similarity(word, other),
            other,
        )
        for other in near
    }
    return sorted(near, key=rank.__getitem__)[:ALIKE]


def bare(text: str) -> str:
    """Write a text in lower case without punctuation; what is nothing but punctuation stays."""
    return " ".join(re.findall(r"[\w']+", text.lower())) or text


def misheard(text: str, share: float = MISHEARD, seed: str | None = None) -> str:
    """Write a text as a machine may have heard it, with this share of its words misheard, and half
    as many fillers.
    """
    chance, words = random.Random(text if seed is None else seed), []
    for word in bare(text).split():
        if chance.random() < share / 2:
            words.append(chance.choice(FILLERS))
        if chance.random() < share and (alike := sound_alikes(word)):
            words.append(chance.choice(alike))
        else:
            words.append(word)
    return " ".join(words)


DRESSES: dict[str, Callable[[str], str]] = {"written": str, "bare": bare, "misheard": misheard}


def dressed(dialogues: list[Dialogue], dress: str) -> list[Dialogue]:
    """Dress every turn."""
    return [
        replace(
            own,
            turns=tuple(replace(turn, content=DRESSES[dress](turn.content)) for turn in own.turns),
        )
        for own in dialogues
    ]


def measure(
    encoder: Encoder, task: str, corpus: str, split: str, dress: str, seeds: range
) -> Figures:
    """Measure an encoder on a part of a corpus in a dress."""
    part = CorpusPart(corpus, None, split, LIMIT["domains"] if task == "domains" else None)
    if task == "actions":
        problem = load_actions(part)
        texts = [DRESSES[dress](dialogue.turns[0].content) for dialogue in problem.dialogues]
        rows = compare_actions(encoder.encode_utterances(texts), problem.labels, seeds)
    else:
        for own in (split,) if task == "domains" else ("train", split):
            part.loaded[own] = dressed(part.dialogues(own), dress)
        load = load_domains if task == "domains" else load_intents
        rows = load(part).measure(encoder, seeds)
    return {row.metric: row.mean for row in rows if (row.metric, row.setting) == FIGURE[task]}


def main() -> None:
    """Measure what is missing, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", required=True, help="encoders, by name or folder")
    parser.add_argument(
        "--split", choices=PARTS, default="test", help="test splits, or those that choose"
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help="repeats of what draws at random (default: 3)"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("noise.json"), help="where the figures go"
    )
    parser.add_argument(
        "--work", type=Path, help="folder of what was measured (default: beside the output)"
    )
    options = parser.parse_args()
    folder = options.work or options.output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    lines = json.loads(options.output.read_text())["lines"] if options.output.is_file() else {}
    for model in options.model:
        name, line = Path(model).name, {}
        encoder = hf_dialemb.load_encoder(model)
        for task, corpora in PARTS[options.split].items():
            for dress in DRESSES:
                found = []
                for corpus in corpora:
                    measured = partial(
                        measure, encoder, task, corpus, options.split, dress, range(options.seeds)
                    )
                    file = folder / f"{name}-{corpus}-{options.split}-{task}-{dress}.json"
                    found += kept(file, measured).values()
                line[f"{task} {dress}"] = sum(found) / len(found)
        lines[name] = line
        table = draw(lines)
        write_json_atomically(
            options.output, {"machine": describe_machine(), "lines": lines, "table": table}
        )
    print("\n".join(draw(lines)))


def draw(lines: dict[str, dict[str, float]]) -> list[str]:
    """Draw the figures as written, and what is lost in the other dresses."""
    heads, rows = [], [[name] for name in lines]
    for task, head in HEADS.items():
        heads += [f"{head}, written", *list(DRESSES)[1:]]
        for row, line in zip(rows, lines.values(), strict=True):
            written = line[f"{task} written"]
            row += [
                f"{written:.1f}",
                *(f"{line[f'{task} {dress}'] - written:+.1f}" for dress in list(DRESSES)[1:]),
            ]
    return table_lines(["Encoder"], heads, rows)


if __name__ == "__main__":
    main()
