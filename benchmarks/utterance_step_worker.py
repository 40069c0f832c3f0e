"""The processes behind ``utterance_step.py``, which starts them; not meant to be run by hand.

``prepare FOLDER OPTIONS`` writes the backbone, the dialogues and the texts of every batch into the
folder. ``work FOLDER SIDE`` lets a trainer run: it stops before every step until a line comes on
standard input, and answers each step with a line of JSON.
"""

import json
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from processes import peak_bytes
from torch import Tensor
from torch.nn.functional import cosine_similarity
from transformers import AutoTokenizer, BertConfig, BertModel, Trainer, TrainerCallback
from transformers.utils.logging import disable_progress_bar

from hf_dialemb.data import load_dialogues, read_jsonl, write_jsonl
from hf_dialemb.data.labels import unified_dialogue
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.methods import get_method
from hf_dialemb.methods.layout import Truncation, tokenize_utterances
from hf_dialemb.storage.pretrained import MINILM, resolve_backbone

METHODS: dict[str, dict[str, Any]] = {
    "dse": {"negative_weights": "plain", "max_tokens": 32},
    "dialog2flow": {"contrast": "hard", "max_tokens": 64},
    "dialogue_cse": {"max_tokens": 100},
}
"""Our settings; what is not named here has its default."""

DIALOGUES = 1000
"""Dialogues that the batches are drawn from."""

DIRECTIONS: Any = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")
"""The comparisons of the peer's pair loss.

Those of DSE, every utterance of the batch with every other.
"""

COMPARED = 16
"""Pairs of the first batch whose cosines show that all sides read the same."""


def prepare(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Write what the sides share, and tell what is in it.

    Args:
        folder: Where to.
        options: ``small``, ``steps`` (batches of a side) and ``batches`` (a method and its pairs a
            batch each).
    """
    write_backbone(folder / "backbone", options["small"])
    dialogues, corpus = _dialogues(options["small"])
    write_jsonl(dialogues, folder / "dialogues.jsonl")
    tokenizer = AutoTokenizer.from_pretrained(folder / "backbone")
    batches = []
    for method, pairs in options["batches"]:
        rows = in_our_order(dialogues, method, pairs, options["steps"])
        _rows_file(folder, method).write_text(json.dumps(rows), encoding="utf-8")
        texts = [text for row in rows for text in row["texts"]]
        count = Truncation()
        lengths = tokenize_utterances(texts, tokenizer, METHODS[method]["max_tokens"], count)[
            "attention_mask"
        ].sum(-1)
        batches.append(
            {
                "method": method,
                "pairs": pairs,
                "mean_length": float(lengths.double().mean()),
                "maximal_length": int(lengths.max()),
                "truncated": count.truncated / len(texts),
                "texts": len(texts) / options["steps"],
            }
        )
    accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "corpus": corpus,
        "batches": batches,
        "threads": torch.get_num_threads(),
        "accelerator": accelerator,
        "versions": {
            name: version(name)
            for name in ("torch", "transformers", "sentence-transformers", "accelerate")
        },
    }


def write_backbone(folder: Path, small: bool) -> None:
    """Write all-MiniLM-L6-v2, or a tiny BERT of random weights, for both libraries."""
    from sentence_transformers import SentenceTransformer

    source = resolve_backbone(MINILM)
    if small:
        torch.manual_seed(0)
        config = BertConfig(
            num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=256
        )
        BertModel(config).save_pretrained(folder)
        AutoTokenizer.from_pretrained(source).save_pretrained(folder)
        source = str(folder)
    model = SentenceTransformer(source, device="cpu")
    model.save_pretrained(str(folder), create_model_card=False)


def in_our_order(
    dialogues: list[Dialogue], method: str, pairs: int, steps: int
) -> list[dict[str, Any]]:
    """List the examples that our trainer reads in a number of steps, in its order."""
    from hf_dialemb.training.data import EpochSampler

    found = get_method(method)
    examples = found.examples(dialogues, found.config_class(**METHODS[method]), 0)
    if len(examples) < pairs * steps:
        raise SystemExit(f"{method}: {len(examples)} examples are too few for {steps} steps")
    rows = []
    for number in list(EpochSampler(examples, pairs, 0))[: pairs * steps]:
        example = examples.example(0, number)
        texts = example
        label = None
        if method == "dialog2flow":
            texts = example[0].texts
            label = example[0].label
        elif method == "dialogue_cse":
            first, *others = example.previous + example.following
            texts = first, example.response, *others, *example.negatives
        rows.append({"texts": list(texts), "label": label})
    return rows


def _rows_file(folder: Path, method: str) -> Path:
    return folder / f"{method}-rows.json"


def _dialogues(small: bool) -> tuple[list[Dialogue], str]:
    corpus = "sample" if small else "sgd/dev"
    found = load_dialogues(corpus)
    chosen = np.random.default_rng(0).permutation(len(found))[:DIALOGUES]
    return [unified_dialogue(found[index]) for index in chosen], corpus


def trainer_settings(folder: Path, side: dict[str, Any]) -> dict[str, Any]:
    """Return what both trainers are told; all else is as their libraries have it."""
    return {
        "output_dir": str(folder / "runs"),
        "max_steps": side["steps"],
        "learning_rate": 2e-5,
        "lr_scheduler_type": "constant",
        "bf16": side["precision"] == "bfloat16",
        "use_cpu": not torch.cuda.is_available(),
        "seed": 0,
        "dataloader_drop_last": True,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }


def our_trainer(folder: Path, side: dict[str, Any]) -> Trainer:
    """Build our trainer as ``dialemb train`` does."""
    from hf_dialemb.training.arguments import make_settings
    from hf_dialemb.training.training_run import build_trainer

    settings = {
        "method": side["method"],
        "backbone": folder / "backbone",
        "per_device_train_batch_size": side["pairs"],
        **METHODS[side["method"]],
        **trainer_settings(folder, side),
    }
    dialogues = list(read_jsonl(folder / "dialogues.jsonl"))
    return build_trainer(
        make_settings(settings), str(folder / "backbone"), dialogues, [], lambda line: None
    )


def peer_trainer(folder: Path, side: dict[str, Any]) -> Trainer:
    """Build the trainer of sentence-transformers, fed with the same texts in the same order."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer.training_args import (
        SentenceTransformerTrainingArguments,
    )

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = SentenceTransformer(str(folder / "backbone"), device=device)
    model.max_seq_length = METHODS[side["method"]]["max_tokens"]
    rows = json.loads(_rows_file(folder, side["method"]).read_text(encoding="utf-8"))
    labelled = rows[0]["label"] is not None
    if labelled:  # utterances one by one, each with the label that it was drawn for
        texts = [(text, row["label"]) for row in rows for text in row["texts"]]
        columns = {"sentence": [text for text, _ in texts], "label": [label for _, label in texts]}
    else:
        count = max(len(row["texts"]) for row in rows)
        names = ["anchor", "positive", *(f"negative_{at}" for at in range(1, count - 1))]
        columns = {
            name: [row["texts"][at] if at < len(row["texts"]) else "" for row in rows]
            for at, name in enumerate(names)
        }
    arguments = SentenceTransformerTrainingArguments(
        per_device_train_batch_size=side["pairs"] * (2 if labelled else 1),
        batch_sampler=_as_they_come,
        **trainer_settings(folder, side),
    )
    return SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(columns),
        loss=_peer_loss(model, side),
    )


def _peer_loss(model: Any, side: dict[str, Any]) -> torch.nn.Module:
    from sentence_transformers.sentence_transformer import losses

    if side["method"] == "dialog2flow":
        return losses.BatchAllTripletLoss(model)
    if side["method"] == "dialogue_cse":
        return losses.MultipleNegativesRankingLoss(model)
    return losses.MultipleNegativesRankingLoss(model, directions=DIRECTIONS)


def _as_they_come(dataset: Any, batch_size: int, drop_last: bool, **_: Any) -> Any:
    from sentence_transformers.base.sampler import DefaultBatchSampler
    from torch.utils.data import SequentialSampler

    return DefaultBatchSampler(SequentialSampler(dataset), batch_size, drop_last)


@torch.no_grad()
def first_cosines(trainer: Any, side: dict[str, Any]) -> list[float]:
    """Return the cosines of the first pairs of the first batch, without dropout and head."""
    model = trainer.model
    batch = next(iter(trainer.get_train_dataloader()))
    model.train(False)
    if side["side"] == "ours":
        parts = [batch[name][:COMPARED] for name in ("input_ids", "attention_mask")]
        if side["method"] == "dialogue_cse":
            # the first turn of each context, and the response behind the last
            places = parts[1].any(-1).int().argmax(1), 2 * model.config.context_turns
            parts = [
                torch.stack([part[range(len(part)), place] for place in places], 1)
                for part in parts
            ]
        parts = [part.reshape(-1, part.shape[-1]) for part in parts]
        embeddings = model.embed(*parts).unflatten(0, (-1, 2))
        anchors, positives = embeddings.unbind(1)
    else:
        features, _ = trainer.collect_features(batch)
        # one column of utterances, or the two of pairs first
        rows = COMPARED * (2 if len(features) == 1 else 1)
        columns = [
            model(_first_rows(column, rows))["sentence_embedding"] for column in features[:2]
        ]
        anchors, positives = (
            columns if len(columns) == 2 else columns[0].unflatten(0, (-1, 2)).unbind(1)
        )
    return [float(value) for value in cosine_similarity(anchors, positives)]


def _first_rows(column: dict[str, Any], rows: int) -> dict[str, Any]:
    return {
        name: value[:rows] if isinstance(value, Tensor) else value for name, value in column.items()
    }


class Turns(TrainerCallback):
    """Holds a trainer before each step until a line comes in, and answers the step when it is done.

    Between two answers lies everything that the trainer does for a step: to read and to tokenise a
    batch, forward, backward, the gradient's norm and the optimiser.

    Args:
        answers: Where the answers go.
        first: The first answer, before any step.
    """

    def __init__(self, answers: Any, first: dict[str, Any]) -> None:
        self.answers = answers
        self.first = first
        self.start = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Answers that the side is ready."""
        self._answer(self.first)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Answers a step: its seconds, and the highest memory of this process so far."""
        cuda = args.device.type == "cuda"
        if cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - self.start
        peak = torch.cuda.max_memory_allocated() if cuda else peak_bytes()
        self._answer({"seconds": seconds, "peak_bytes": peak})

    def _answer(self, answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=self.answers, flush=True)
        if not sys.stdin.readline():
            raise SystemExit
        self.start = time.perf_counter()


def work(folder: Path, side: dict[str, Any], answers: Any) -> None:
    """Build one side's trainer and let it run, a step for each line on standard input."""
    ours = side["side"] == "ours"
    trainer = our_trainer(folder, side) if ours else peer_trainer(folder, side)
    model: Any = trainer.model
    backbone = model.encoder if ours else model[0].auto_model
    first = {
        "cosines": first_cosines(trainer, side),
        "attention": backbone.config._attn_implementation,
    }
    trainer.add_callback(Turns(answers, first))
    trainer.train()


def main() -> None:
    """Prepare, or let one side work until standard input ends."""
    # whatever a library prints must not disturb the answers
    answers = sys.stdout
    sys.stdout = sys.stderr
    disable_progress_bar()
    with suppress(OSError):
        # when memory runs out, let it be this process that ends
        Path("/proc/self/oom_score_adj").write_text("1000")
    action = sys.argv[1]
    folder = Path(sys.argv[2])
    argument = json.loads(sys.argv[3])
    if action == "work":
        work(folder, argument, answers)
    else:
        print(json.dumps(prepare(folder, argument)), file=answers)


if __name__ == "__main__":
    main()
