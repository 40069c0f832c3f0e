"""Few-shot classification of intents by a copy of the model that learns (DSE, section 4.2.1).

Of every intent 2k utterances are drawn from train: k to learn from, k to stop early by. Accuracy is
measured on the utterances of the split that are not out of scope, as in the task
``intent-classification``. The text's token vectors are averaged, special tokens too, and pass
dropout and a linear layer (appendix B.1). AdamW follows a linear schedule; the weights with the
best accuracy on the validation part classify.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer, get_linear_schedule_with_warmup

from ...encoders import Encoder
from ...encoders.specs import find_encoder, has_weights
from ...errors import InputError
from ...evaluation.results.rows import Row
from ...evaluation.tasks.intents import NAME, load_intents
from ...evaluation.tasks.sampling import SHOTS, draw_examples
from ...evaluation.tasks.task import CorpusPart, Problem, percentage
from ...methods import register
from ...storage.pretrained import has_decoder, load_pretrained

RUNS = 5  # the most repeats, each with a seed of its own; the paper has 10
_PREDICTED_AT_ONCE = 64


@dataclass(frozen=True)
class FineTuning:
    """Hyper-parameters: those of the paper's appendix B.1; patience and warm-up of its program.

    The learning rate rises from 0 in the ``warmup``, a share of all steps, and then falls to 0
    linearly. Training stops after ``patience`` scores of the validation part without a new best.
    """

    learning_rate: float = 3e-5
    epochs: int = 50
    batch_size: int = 16
    evaluate_every: int = 10  # steps
    patience: int = 5
    max_length: int = 64
    dropout: float = 0.1
    warmup: float = 0.05


SETTINGS = FineTuning()


class Backbone(NamedTuple):
    """A pretrained model and its tokenizer; fine-tuning takes copies of the model."""

    model: Any
    tokenizer: Any


class Examples(NamedTuple):
    """N texts, and the class of each, whole numbers (N,)."""

    texts: list[str]
    classes: NDArray[np.intp]


def load_fine_tuning(part: CorpusPart) -> Problem:
    """Load the utterances of a corpus that have an intent."""
    whole = load_intents(part)
    texts = [item.turns[0].content for item in whole.dialogues]
    labels = np.array(whole.labels)
    examples = len(labels) - whole.config["utterances"]

    def measure(encoder: Encoder, seeds: Sequence[int]) -> list[Row]:
        backbone = load_backbone(encoder.name)

        def accuracy(shots: int, seed: int) -> float:
            parts = draw_parts(labels, examples, shots, np.random.default_rng([seed, shots]))
            intents = np.unique(labels[parts[0]])
            train, validation, queries = (
                Examples([texts[row] for row in rows], np.searchsorted(intents, labels[rows]))
                for rows in parts
            )
            classifier = fine_tune(backbone, train, validation, len(intents), SETTINGS, seed)
            return classifier.accuracy(queries)

        return [
            percentage(
                NAME,
                "accuracy",
                f"{shots}-shot fine-tuned",
                [accuracy(shots, seed) for seed in seeds[:RUNS]],
            )
            for shots in SHOTS
        ]

    return Problem({**whole.config, "runs": RUNS, "fine_tuning": asdict(SETTINGS)}, measure)


def draw_parts(
    labels: NDArray[Any], examples: int, shots: int, generator: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Draw rows of k utterances of each intent to learn from, of k to stop by, and of queries.

    Only the first ``examples`` rows are drawn from, and only the others are queries.
    """
    drawn = draw_examples(labels, np.arange(examples), 2 * shots, 2 * shots, generator)
    train = draw_examples(labels, drawn, shots, shots, generator)
    queries = np.arange(examples, len(labels))
    return train, np.setdiff1d(drawn, train), queries[np.isin(labels[queries], labels[train])]


def load_backbone(spec: str) -> Backbone:
    """Load the model that is fine-tuned, in float32, on a GPU where there is one."""
    source = find_encoder(spec)
    if not has_weights(spec):
        raise InputError(
            f"model '{spec}': got a model without weights, expected one to fine-tune; leave it out"
        )
    register()
    model = load_pretrained(AutoModel, source.path)
    tokenizer = load_pretrained(AutoTokenizer, source.path)
    if source.kind == "dialemb":
        if not hasattr(model, "encoder"):
            raise InputError(
                f"model '{spec}': got {type(model).__name__}, which wraps no single encoder; leave "
                "it out"
            )
        model = model.encoder
    if has_decoder(model):
        model = model.get_encoder()
    return Backbone(model.float().to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer)


class Classifier(nn.Module):
    """A copy of a backbone, the mean of its token vectors, dropout, and a linear layer."""

    def __init__(self, backbone: Backbone, classes: int, settings: FineTuning) -> None:
        super().__init__()
        self.tokenizer = backbone.tokenizer
        self.max_length = settings.max_length
        self.encoder = copy.deepcopy(backbone.model)
        self.head = nn.Sequential(
            nn.Dropout(settings.dropout), nn.Linear(backbone.model.config.hidden_size, classes)
        )
        self.to(backbone.model.device)

    def forward(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the float32 logits of each text, ``(B, C)``."""
        batch = self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.max_length,
            padding=True,
            return_tensors="pt",
        ).to(self.encoder.device)
        kind = self.encoder.device.type
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            hidden = self.encoder(**batch).last_hidden_state  # (B, L, D)
        mask = batch["attention_mask"].unsqueeze(-1).float()  # (B, L, 1)
        logits: torch.Tensor = self.head((hidden.float() * mask).sum(dim=1) / mask.sum(dim=1))
        return logits

    def accuracy(self, examples: Examples) -> float:
        """Return the share of texts whose highest logit is that of their class."""
        self.eval()
        predicted: list[int] = []
        with torch.inference_mode():
            for start in range(0, len(examples.texts), _PREDICTED_AT_ONCE):
                logits = self(examples.texts[start : start + _PREDICTED_AT_ONCE])
                predicted += logits.argmax(dim=1).tolist()
        return float(np.mean(np.array(predicted) == examples.classes))


def fine_tune(
    backbone: Backbone,
    train: Examples,
    validation: Examples,
    classes: int,
    settings: FineTuning,
    seed: int,
) -> Classifier:
    """Train a classifier, and return it with the weights that were best on the validation part.

    It is scored before the first step, every few steps and at the end. The seed decides the layer's
    first weights, the order of the texts, and dropout.
    """
    steps = settings.epochs * math.ceil(len(train.texts) / settings.batch_size)
    rows = list(zip(train.texts, train.classes.tolist(), strict=True))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        classifier = Classifier(backbone, classes, settings)
        optimiser = torch.optim.AdamW(
            classifier.parameters(), settings.learning_rate, weight_decay=0
        )
        schedule = get_linear_schedule_with_warmup(optimiser, round(settings.warmup * steps), steps)
        loader: Any = DataLoader(rows, settings.batch_size, shuffle=True)  # type: ignore[arg-type]
        batches = (batch for _ in range(settings.epochs) for batch in loader)
        best, best_score = copy.deepcopy(classifier.state_dict()), classifier.accuracy(validation)
        waited = 0
        for step, (texts, targets) in enumerate(batches, 1):
            classifier.train()
            logits = classifier(texts)
            cross_entropy(logits, targets.to(logits.device)).backward()
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            if step % settings.evaluate_every and step < steps:
                continue
            score = classifier.accuracy(validation)
            waited += 1
            if score > best_score:
                best, best_score, waited = copy.deepcopy(classifier.state_dict()), score, 0
            elif waited == settings.patience:
                break
    classifier.load_state_dict(best)
    return classifier
