"""Fine-tuning a copy of a model under one linear layer, as the tasks do that train (DSE, appendix
B.1).

The text's token vectors are averaged, special tokens too, and pass dropout and a linear layer.
AdamW (without weight decay, as the paper names none) follows a linear schedule; the validation part
is scored before the first step, every few steps and at the end, and the weights of the best score
are what is returned.
"""

import copy
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import AutoModel, AutoTokenizer, get_linear_schedule_with_warmup

from ...encoders.specs import find_encoder, has_weights
from ...errors import InputError
from ...methods import register
from ...storage.hardware import multiplies_bfloat16
from ...storage.pretrained import has_decoder, load_pretrained
from .linear_layer import train_layers

logger = logging.getLogger(__name__)

# the most repeats of a fine-tuning, each with a seed of its own; the paper has 5 for acts and 10
# for intents
RUNS = 5

# of logits (N, C) and targets; the higher the better
Score = Callable[[NDArray[np.float32], NDArray[Any]], float]

_PREDICTED_AT_ONCE = 64


@dataclass(frozen=True)
class FineTuning:
    """The hyper-parameters of a fine-tuning.

    The learning rate rises from 0 in the ``warmup``, a share of all steps, and then falls to 0
    linearly. Training stops after ``patience`` scores of the validation part in a row without a new
    best.
    """

    learning_rate: float
    epochs: int
    batch_size: int
    evaluate_every: int
    patience: int
    max_length: int
    dropout: float
    truncation_side: str = "right"
    warmup: float = 0.05


class Backbone(NamedTuple):
    """A pretrained model and its tokenizer; fine-tuning takes copies of the model."""

    model: Any
    tokenizer: Any


class Examples(NamedTuple):
    """Texts, and of which class each is, ``(N,)`` whole numbers.

    Or of which classes, ``(N, C)`` zeros and ones.
    """

    texts: Sequence[str]
    targets: NDArray[Any]


def load_backbone(spec: str) -> Backbone:
    """Load what is to be fine-tuned: a model in float32, on a GPU where there is one."""
    results = find_encoder(spec)
    if not has_weights(spec):
        raise InputError(
            f"model '{spec}': got a model without weights, expected one to fine-tune; leave it out"
        )
    register()
    model = load_pretrained(AutoModel, results.path)
    tokenizer = load_pretrained(AutoTokenizer, results.path)
    if results.kind == "dialemb":
        if not hasattr(model, "encoder"):
            raise InputError(
                f"model '{spec}': got {type(model).__name__}, which wraps no single encoder; leave "
                "it out"
            )
        model = model.encoder
    if has_decoder(model):
        model = model.get_encoder()
    return Backbone(model.float().to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer)


class Classifier:
    """A copy of a backbone, the mean of its token vectors, dropout, and a linear layer."""

    def __init__(self, backbone: Backbone, classes: int, settings: FineTuning) -> None:
        self.tokenizer = backbone.tokenizer
        self.settings = settings
        self.device = backbone.model.device
        head = nn.Sequential(
            nn.Dropout(settings.dropout), nn.Linear(backbone.model.config.hidden_size, classes)
        )
        self.layers = nn.ModuleDict({"encoder": copy.deepcopy(backbone.model), "head": head}).to(
            self.device
        )

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, cut to the settings' length."""
        self.tokenizer.truncation_side = self.settings.truncation_side
        return list(
            self.tokenizer(list(texts), truncation=True, max_length=self.settings.max_length)[
                "input_ids"
            ]
        )

    def logits(self, token_ids: Sequence[list[int]]) -> torch.Tensor:
        """Return a float32 value for each text and class, ``(B, C)``."""
        batch = self.tokenizer.pad({"input_ids": list(token_ids)}, return_tensors="pt").to(
            self.device
        )
        with torch.autocast(
            self.device.type, torch.bfloat16, enabled=_has_bfloat16(self.device.type)
        ):
            hidden = self.layers["encoder"](**batch).last_hidden_state  # (B, L, D)
        mask = batch["attention_mask"].unsqueeze(-1).float()  # (B, L, 1)
        logits: torch.Tensor = self.layers["head"](
            (hidden.float() * mask).sum(dim=1) / mask.sum(dim=1)
        )
        return logits

    def predict(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the logits of each text without dropout, ``(N, C)``."""
        token_ids = self.token_ids(texts)
        # texts of one length need no padding
        order = sorted(range(len(texts)), key=lambda row: len(token_ids[row]))
        self.layers.eval()
        with torch.inference_mode():
            parts = [
                self.logits([token_ids[row] for row in order[start : start + _PREDICTED_AT_ONCE]])
                .cpu()
                .numpy()
                for start in range(0, len(order), _PREDICTED_AT_ONCE)
            ]
        logits: NDArray[np.float32] = np.concatenate(parts)[np.argsort(order)]
        return logits


class FineTuned(NamedTuple):
    """A classifier with the weights of the best score, and the scores of the validation part by
    step, from 0 on.
    """

    classifier: Classifier
    scores: dict[int, float]


def fine_tune(
    backbone: Backbone,
    train: Examples,
    validation: Examples,
    classes: int,
    settings: FineTuning,
    score: Score,
    *,
    seed: int,
) -> FineTuned:
    """Train a classifier on few examples, by binary cross entropy if the targets say of several
    classes which hold.
    """
    several = train.targets.ndim == 2
    loss_of = binary_cross_entropy_with_logits if several else cross_entropy
    steps = settings.epochs * math.ceil(len(train.texts) / settings.batch_size)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        classifier = Classifier(backbone, classes, settings)
        targets = torch.from_numpy(train.targets.astype(np.float32 if several else np.int64)).to(
            classifier.device
        )
        token_ids, layers = classifier.token_ids(train.texts), classifier.layers
        optimiser = torch.optim.AdamW(
            layers.parameters(), settings.learning_rate, weight_decay=0, fused=True
        )
        batches = _batches(len(token_ids), settings.batch_size, np.random.default_rng(seed))

        def loss() -> torch.Tensor:
            rows = next(batches)
            return loss_of(classifier.logits([token_ids[row] for row in rows]), targets[rows])

        def validated() -> float:
            return score(classifier.predict(validation.texts), validation.targets)

        scored_at = sorted({*range(0, steps, settings.evaluate_every), steps})
        schedule = get_linear_schedule_with_warmup(optimiser, round(settings.warmup * steps), steps)
        scores = train_layers(
            layers, loss, optimiser, validated, scored_at, settings.patience, schedule=schedule
        )
    best = max(scores.values())
    logger.info(
        "seed %d: best of %d scores after %d steps: %.4f", seed, len(scores), max(scores), best
    )
    return FineTuned(classifier, scores)


def precision() -> str:
    """Return in what the backbone computes: ``"bfloat16"`` where the device can.

    All else is in float32.
    """
    return (
        "bfloat16" if _has_bfloat16("cuda" if torch.cuda.is_available() else "cpu") else "float32"
    )


def _has_bfloat16(device: str) -> bool:
    return (
        torch.cuda.is_bf16_supported()
        if device == "cuda"
        else device == "cpu" and multiplies_bfloat16()
    )


def _batches(count: int, size: int, generator: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    while True:
        order = generator.permutation(count)
        for start in range(0, count, size):
            yield order[start : start + size]
