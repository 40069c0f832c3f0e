"""Measures encoding beside sentence-transformers' own ``encode``, with the same weights and texts.

The texts are utterances of SGD's test split, each once, and whole dialogues as one text. The peer
is taken as it comes, at the best of a few batch sizes. Each side has a process of its own, so that
its peak memory is its own, and the sides take turns. A ratio is the peer's seconds divided by ours
in the same round; its median and its spread are told. Padding is the share of what goes through the
layers that is no token of a text.

    python benchmarks/encoding.py --output encoding.json             # SGD from HF_DIALEMB_DATA
    python benchmarks/encoding.py --model dialogue-minilm --side bfloat16
"""

import argparse
import json
import os
import sys
import time
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from hardware import describe_machine
from processes import Side, peak_bytes, seconds_of

PEER = "sentence-transformers"
MODELS = ("all-MiniLM-L6-v2", "dialogue-minilm")
STATIC = "dialogue-static"
SIDES = ("float32", "bfloat16", STATIC)
"""Ours: the model in numbers of a kind, or the table of word vectors."""

BATCHES = (8, 16, 32, 64, 128)
TIMES = {STATIC: 40}
"""How often a side reads the same in a round, call after call, where once is too short to time."""


def texts(utterances: int, dialogues: int) -> dict[str, list[Any]]:
    """Draws what is read: dialogues, and as many utterances of others, none of them twice."""
    import hf_dialemb

    found = hf_dialemb.load_dialogues("sgd", split="test")
    order = np.random.default_rng(0).permutation(len(found))
    said = dict.fromkeys(turn.content for row in order[dialogues:] for turn in found[row].turns)
    return {
        "utterances": list(said)[:utterances],
        "dialogues": [found[row] for row in order[:dialogues]],
    }


class Tokens:
    """Counts the tokens that any BERT reads from now on, and the places that they are padded to.

    Nothing waits for an accelerator.
    """

    def __init__(self) -> None:
        import torch
        from transformers import BertModel

        self.none = torch.zeros(2, dtype=torch.int64)
        self.count = self.none
        forward = BertModel.forward

        def counting(model: BertModel, *args: Any, **given: Any) -> Any:
            mask = given.get("attention_mask")
            ids = given.get("input_ids", args[0] if args else None)
            places = torch.tensor((mask if ids is None else ids).numel())
            read = mask.sum() if mask is not None and mask.ndim == 2 else places
            self.count = self.count.to(read.device) + torch.stack([read, places.to(read.device)])
            return forward(model, *args, **given)

        BertModel.forward = counting  # type: ignore[method-assign]

    def taken(self) -> tuple[int, int]:
        """Both numbers since they were last taken."""
        read, places = self.count.tolist()
        self.count = self.none
        return read, places


class Work:
    """One side in a process of its own.

    ``read`` encodes one kind of input, and tells seconds and peak memory.
    """

    def __init__(self, model: str, side: str, inputs: dict[str, list[Any]]) -> None:
        from tokenizers import Tokenizer

        import hf_dialemb
        from hf_dialemb.encoders.encoder import dialogue_texts
        from hf_dialemb.storage.pretrained import resolve_backbone

        self.inputs = inputs
        self.times = TIMES.get(side, 1)
        self.tokens = None if side == STATIC else Tokens()
        if side != PEER:
            encoder: Any = (
                hf_dialemb.load_encoder(STATIC)
                if side == STATIC
                else hf_dialemb.load_encoder(model, dtype=side)
            )
            if side == STATIC:
                self.pieces = Tokenizer.from_file(
                    str(hf_dialemb.weights(STATIC) / "0_StaticEmbedding" / "tokenizer.json")
                )
            self.encode = {"utterances": encoder.encode_utterances, "dialogues": encoder.encode}
            return
        from sentence_transformers import SentenceTransformer

        self.inputs = {**inputs, "dialogues": dialogue_texts(inputs["dialogues"])}
        self.peer = SentenceTransformer(resolve_backbone(model), device="cpu")
        self.encode = {name: self._best(name) for name in inputs}

    def _best(self, name: str) -> Any:
        part = self.inputs[name][: len(self.inputs[name]) // 4]
        best = min(
            BATCHES, key=lambda size: seconds_of(partial(self.peer.encode, part, batch_size=size))
        )
        return lambda given: self.peer.encode(given, batch_size=best)

    def read(self, name: str) -> dict[str, Any]:
        """Encode the inputs of one kind."""
        if self.tokens:
            self.tokens.taken()
        started = time.perf_counter()
        for _ in range(self.times):
            vectors = self.encode[name](self.inputs[name])
        seconds = (time.perf_counter() - started) / self.times
        read, places = self.tokens.taken() if self.tokens else (self._pieces(name), 0)
        counts = {"tokens": read, "places": places}
        return {
            "seconds": seconds,
            "peak_mib": peak_bytes() / 2**20,
            **counts,
            "vectors": np.asarray(vectors, np.float64).tolist(),
        }

    def _pieces(self, name: str) -> int:
        from hf_dialemb.encoders.encoder import dialogue_texts

        given = self.inputs[name]
        texts = dialogue_texts(given) if name == "dialogues" else given
        return sum(
            len(each.ids) for each in self.pieces.encode_batch(texts, add_special_tokens=False)
        )


def work(settings: dict[str, Any]) -> None:
    """Serve lines of standard input, the name of what to read each, until it ends."""
    answers = sys.stdout
    with redirect_stdout(sys.stderr):
        side = Work(
            settings["model"],
            settings["side"],
            texts(settings["utterances"], settings["dialogues"]),
        )
        for name in side.inputs:
            side.encode[name](side.inputs[name][:40])
        print(json.dumps("ready"), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(side.read(line.strip())), file=answers, flush=True)


def measure(model: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Lets the peer and ours take turns over one model."""
    counts = {"utterances": options.utterances, "dialogues": options.dialogues}
    sides = {}
    for side in (PEER, *options.side):
        given = json.dumps({"model": model, "side": side, **counts})
        sides[side] = Side(side, __file__, "--work", given)
        sides[side].read()
    rows = []
    for name, count in counts.items():
        rounds = [
            {side: worker.ask(name) for side, worker in sides.items()}
            for _ in range(options.rounds)
        ]
        vectors = {side: np.array(answer["vectors"]) for side, answer in rounds[0].items()}
        for side in sides:
            ratios = [each[PEER]["seconds"] / each[side]["seconds"] for each in rounds]
            seconds = median(each[side]["seconds"] for each in rounds)
            row = {"model": model, "side": side, "reads": name, "per_second": count / seconds}
            row |= {"ratio": median(ratios), "lowest": min(ratios), "highest": max(ratios)}
            row["peak_mib"] = max(each[side]["peak_mib"] for each in rounds)
            row |= {
                "texts": count,
                "tokens": rounds[0][side]["tokens"],
                "width": vectors[side].shape[1],
            }
            if places := rounds[0][side]["places"]:  # a table has none
                row["padding"] = 1 - row["tokens"] / places
            if side != STATIC:
                unit = [
                    each / np.linalg.norm(each, axis=1, keepdims=True)
                    for each in (vectors[side], vectors[PEER])
                ]
                row["least_cosine"] = float((unit[0] * unit[1]).sum(1).min())
            print(json.dumps(row), file=sys.stderr)
            rows.append(row)
    for worker in sides.values():
        worker.close()
    return rows


def main() -> None:
    """Measures, and prints or writes the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", nargs="+", default=MODELS, help="whose weights (default: both over MiniLM)"
    )
    parser.add_argument(
        "--side", nargs="+", choices=SIDES, default=SIDES, help="our sides (default: all)"
    )
    parser.add_argument("--utterances", type=int, default=400)
    parser.add_argument("--dialogues", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(json.loads(options.work))
        return
    rows = [row for model in options.model for row in measure(model, options)]
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    figures = {"machine": {**describe_machine(), "threads": threads}, "rows": rows}
    if options.output:
        options.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
