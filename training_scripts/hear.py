"""Teach an encoder what misheard words mean.

python training_scripts/hear.py --help

The encoder reads utterances as a machine may have heard them, and learns to give the vectors that
it gave to them as written: it is its own teacher, so that what it knows stays (self-distillation).
The loss is a cosine's, and that of finding an utterance's vector among those of its batch. Words
are misheard as words that sound alike: their codes by Metaphone are equal or one letter apart.
Needs jellyfish.
"""

import argparse
import random
import re
import tempfile
import time
from collections import defaultdict
from functools import cache
from pathlib import Path

import jellyfish
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, normalize
from transformers import AutoTokenizer

import hf_dialemb
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.results.contamination import sets_behind
from hf_dialemb.methods import get_method
from hf_dialemb.storage.files import appearing_whole, write_json_atomically
from hf_dialemb.storage.hardware import bfloat16_where_faster, describe_hardware
from hf_dialemb.storage.pretrained import MINILM, resolve_backbone
from hf_dialemb.storage.run_folder import RunFolder
from hf_dialemb.training.dialogues import training_dialogues
from hf_dialemb.training.settings import RunArguments

SHARES = {"misheard": 0.75, "bare": 0.1, "written": 0.15}
WORDS = range(3, 21)  # of the utterances that it reads: a batch takes as long as its longest one
TEMPERATURE = 0.05
BATCH = 64
RANK = 32
RATE = 1e-3
MISHEARD = 0.2
"""The share of words that are misheard."""

FILLERS = ("uh", "um", "er", "like", "you know", "i mean", "well")
ALIKE = 4  # words that a word may be misheard as, the most alike in spelling


def variants(code: str) -> set[str]:
    """Return a code and what is left of it without one of its letters.

    Codes a letter apart share one of these.
    """
    return {code, *(code[:place] + code[place + 1 :] for place in range(len(code)))}


@cache
def words_by_code() -> dict[str, list[str]]:
    """Read the vocabulary, by the variants of the words' codes."""
    words = defaultdict(list)
    vocabulary = AutoTokenizer.from_pretrained(resolve_backbone(MINILM)).get_vocab()
    for piece in sorted(vocabulary, key=vocabulary.__getitem__):
        word = piece.removeprefix("##")
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


def misheard(text: str, seed: str) -> str:
    """Write a text as a machine may have heard it, with half as many fillers as misheard words."""
    chance = random.Random(seed)
    words = []
    for word in bare(text).split():
        if chance.random() < MISHEARD / 2:
            words.append(chance.choice(FILLERS))
        if chance.random() < MISHEARD and (alike := sound_alikes(word)):
            words.append(chance.choice(alike))
        else:
            words.append(word)
    return " ".join(words)


class Heard(nn.Module):
    """Ten times the cosine distance to the teacher's vector, and a contrastive loss."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: list[dict[str, Tensor]], labels: Tensor) -> Tensor:
        """Return the loss of a batch; labels are the teacher's vectors, (B, E), of length 1."""
        vectors = normalize(self.model(features[0])["sentence_embedding"].float(), dim=-1)
        own = torch.arange(len(labels), device=labels.device)
        nearest = cross_entropy(vectors @ labels.T / TEMPERATURE, own)
        return 10 * (1 - cosine_similarity(vectors, labels)).mean() + nearest


def utterances(corpora: list[str], exclude: list[str], count: int, seed: int) -> list[str]:
    """Draw distinct utterances, as many of each corpus where it has them.

    Then leave out those of evaluation sets.
    """
    chance = random.Random(seed)
    texts = []
    for place, corpus in enumerate(corpora):
        own = {
            turn.content
            for dialogue in hf_dialemb.load_dialogues(corpus)
            for turn in dialogue.turns
        }
        fitting = [text for text in sorted(own.difference(texts)) if len(text.split()) in WORDS]
        share = (count - len(texts)) // (len(corpora) - place)
        texts += chance.sample(fitting, min(share, len(fitting)))
    chance.shuffle(texts)
    run = RunArguments(corpus=corpora, exclude=exclude, min_turns=1)
    alone = [Dialogue((Turn("user", text),), str(place)) for place, text in enumerate(texts)]
    return [
        dialogue.turns[0].content
        for dialogue in training_dialogues(run, get_method("dse"), seed, print, alone)
    ]


def dressed(texts: list[str], seed: int) -> list[str]:
    """Dress each text as chance has it."""
    chance = random.Random(seed)
    drawn = chance.choices([*SHARES], [*SHARES.values()], k=len(texts))
    dresses = {
        "written": lambda text: text,
        "bare": bare,
        "misheard": lambda text: misheard(text, f"{seed} {text}"),
    }
    return [dresses[dress](text) for dress, text in zip(drawn, texts, strict=True)]


def main() -> None:
    """Train, and write a folder that merge.py takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="the encoder, as dialogue-minilm")
    parser.add_argument(
        "--corpus", nargs="+", required=True, help="what it hears, smaller corpora first"
    )
    parser.add_argument(
        "--exclude", nargs="+", required=True, help="evaluation sets to keep out, or none"
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, help="must not exist yet")
    options = parser.parse_args()
    if options.output.exists():
        raise InputError(
            f"output: {options.output} exists already; choose a new folder or remove it"
        )
    started = time.time()
    texts = utterances(options.corpus, options.exclude, options.steps * BATCH, options.seed)
    model = SentenceTransformer(str(hf_dialemb.weights(options.model)))
    with bfloat16_where_faster():
        vectors = hf_dialemb.load_encoder(options.model).encode_utterances(texts)
    heard = {
        "text": dressed(texts, options.seed),
        "label": normalize(torch.from_numpy(vectors), dim=-1).numpy(),
    }
    train(model, Dataset.from_dict(heard), options)
    with appearing_whole(options.output) as folder:
        model.save(str(folder))
        record(RunFolder(folder), options, len(texts), time.time() - started)


def train(model: SentenceTransformer, heard: Dataset, options: argparse.Namespace) -> None:
    """Learn low-rank differences of all linear layers, and add them to the weights."""
    targets = ["query", "key", "value", "dense"]
    adapted = get_peft_model(
        model[0].auto_model, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=targets)
    )
    with tempfile.TemporaryDirectory() as unused:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=unused,
            max_steps=options.steps,
            per_device_train_batch_size=BATCH,
            warmup_steps=50,
            learning_rate=RATE,
            lr_scheduler_type="linear",
            weight_decay=0.01,
            bf16=True,
            use_cpu=not torch.cuda.is_available(),
            seed=options.seed,
            save_strategy="no",
            logging_steps=50,
            report_to="none",
        )
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=heard, loss=Heard(model)
        ).train()
    adapted.merge_and_unload()


def record(run: RunFolder, options: argparse.Namespace, examples: int, seconds: float) -> None:
    """Write what the training learnt from, with what its teacher had learnt from."""
    behind = {"/".join(filter(None, names)) for names in sets_behind(options.model)}
    settings = {
        "method": "heard",
        "backbone": options.model,
        "corpus": sorted(behind | {*options.corpus}),
    }
    settings |= {
        "train_split": "all",
        "exclude": options.exclude,
        "checkpoint_selection": "last",
        "seed": options.seed,
    }
    settings |= {"shares": SHARES, "rank": RANK, "learning_rate": RATE}
    write_json_atomically(run.settings_file, settings)
    report = {
        "steps": options.steps,
        "dialogues": examples,
        "examples": examples,
        "processes": 1,
        "seconds": seconds,
    }
    truncation = f"0 of {examples:,} utterances were truncated"  # none has more than 20 words
    report |= {
        "truncation": truncation,
        "checkpoint": "last",
        "hardware": describe_hardware(torch.cuda.is_available()),
    }
    write_json_atomically(run.report_file, report)


if __name__ == "__main__":
    main()
