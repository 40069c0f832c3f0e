"""Measures a sentence-transformers model while it trains.

Python examples/evaluate_while_training.py [STEPS [FILE]].

The model learns that two turns which follow each other belong together. FILE is your own
conversations, by default made-up ones. Those with `domains` are measured by them, one in four; the
others are learnt from.
"""

import sys
import tempfile
from itertools import pairwise

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from hf_dialemb import load_dialogues
from hf_dialemb.integrations import DialogueDomainEvaluator, TaskEvaluator
from hf_dialemb.storage.pretrained import MINILM, resolve_backbone

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

steps, source = [*sys.argv[1:], *("20", "sample")[len(sys.argv) - 1 :]]
steps = int(steps)
if source == "sample":
    train = load_dialogues("sample", split="train")
    dev = load_dialogues("sample", split="dev")[:60]
else:
    dialogues = load_dialogues(source)
    dev = [dialogue for dialogue in dialogues if dialogue.domains][::4]
    held_out = set(dev)
    train = [dialogue for dialogue in dialogues if dialogue not in held_out]
    if len({dialogue.domains[0] for dialogue in dev}) < 2:
        raise SystemExit(
            f"{source}: got {len(dev)} dialogues to measure, expected two domains among them; add "
            "labels"
        )
turns = [pair for dialogue in train for pair in pairwise(dialogue.turns)]
pairs = Dataset.from_list(
    [{"anchor": turn.content, "positive": reply.content} for turn, reply in turns]
)

model = SentenceTransformer(resolve_backbone(MINILM), device="cpu")
evaluators = [
    DialogueDomainEvaluator(
        dev, [dialogue.domains[0] for dialogue in dev], seeds=range(3), name="dev"
    )
]
if source == "sample":  # a task reads a corpus and its splits by name
    evaluators.insert(
        0, TaskEvaluator("response-selection", source, split="dev", limit=100, seeds=range(3))
    )
arguments = SentenceTransformerTrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=steps,
    per_device_train_batch_size=16,
    learning_rate=2e-5,
    eval_strategy="steps",
    eval_steps=steps,
    save_strategy="best",
    metric_for_best_model="eval_dev_purity",
    use_cpu=True,
    report_to="none",
)
trainer = SentenceTransformerTrainer(
    model=model,
    args=arguments,
    train_dataset=pairs,
    loss=MultipleNegativesRankingLoss(model),
    evaluator=evaluators,
)
print(f"purity before: {evaluators[-1](model)['dev_purity']:.1f}")
trainer.train()
print(f"purity after:  {trainer.state.best_metric:.1f}")
