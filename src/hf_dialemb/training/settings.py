"""What a training run is told: `RunArguments`, beside the method's own settings and those of Trainer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ..methods import get_method
from ..ranges import ABOVE_ZERO, Range, check_ranges

if TYPE_CHECKING:
    from transformers import TrainingArguments


Report = Callable[[str], None]
"""Receives one line per fact worth telling."""

Selection = Literal["last", "contrastive_loss", "contrastive_accuracy", "uniformity", "dev_purity"]

RUN_RANGES = {
    "max_dialogues": Range(2), "max_dev_dialogues": Range(2), "min_turns": Range(1), "patience": Range(1),
    "head_learning_rate": ABOVE_ZERO, "language_model_steps": Range(1), "language_model_epochs": ABOVE_ZERO,
    "rank": Range(1), "dropout": Range(0, 1), "average_with_backbone": Range(0, 1),
}  # fmt: skip


@dataclass
class RunArguments:
    """What a run is: method, backbone, data, and which checkpoint it ends with.

    Attributes:
        method: What is learnt; see below for all methods.
        backbone: Folder or Hub id of the encoder to start from (default: all-MiniLM-L6-v2); for methods that begin with
            the words of the corpus, a text file of word vectors such as GloVe's, or nothing.
        dropout: Replaces the backbone's dropout, in [0, 1]; 0 is fastest.
        corpus: One or more corpora: a name, or a name and a split as multiwoz/dev, or a file, folder or Hub dataset of
            your own.
        data_dir: Folder that holds the corpora.
        columns: Your table: which column is what, as id=call,role=speaker,content=text.
        roles: Your speakers: who is who, as Agent=assistant,Customer=user.
        exclude: Evaluation sets, as sgd/test: what equals or nearly equals something of them is left out of training.
            Default: the other splits of the corpus that are at hand; 'none' leaves everything in.
        train_split: Split to learn from; Dialog2Flow alone reads labels.
        dev_split: Split for choosing a checkpoint, or a file or folder of your own; 'none' for none, whatever the
            recipe says.
        max_dialogues: Learn from so many, drawn by the seed; at least 2.
        max_dev_dialogues: So many dev dialogues are used, the same ones for every seed; at least 2.
        min_turns: Shorter dialogues are left out (dial2vec's program: 5); by default what the method needs.
        skip_invalid: Count and leave out malformed dialogues.
        checkpoint_selection: Which checkpoint the run ends with: the last, or the best of the dev split by a signal
            that needs no label. dev_purity reads labels: it is the paper's protocol, kept for comparison.
        patience: Stop after so many measurements of that signal without gain; by default all steps are taken.
        average_with_backbone: Share of the backbone's weights in the final average, in [0, 1]; 0 keeps the trained
            weights.
        rank: Let each linear layer of the encoder learn a difference of this rank alone (LoRA), and nothing else of it,
            so that a merge of the same rank cuts nothing; the learning rate wants to be ten times as high.
        head_learning_rate: Learning rate of the contrastive heads, above 0; by default that of the encoder.
        dev_candidates: For rankers: a file of candidate sets (see `dialemb candidates`) that choose a checkpoint.
        granularity_model: For rankers whose granularity is set: folder of the one that tells how similar responses are.
        language_model_steps: First go on with the backbone's masked-language-model pre-training on the same dialogues,
            for so many steps of 50 utterances; wins over language_model_epochs. By default it is left out.
        language_model_epochs: The same, for so many passes over the utterances (DialogueCSE: 0.5).
        center: After training, store the mean embedding of (up to 500) training dialogues and take it off every
            embedding: what all dialogues share tells nothing about one of them.
        learning_rate_schedule: official: warm up over a tenth of the number of examples, then 1 - steps/examples.
        resume: Go on from the last complete checkpoint in output_dir.

    Raises:
        InputError: A value is out of range.
    """

    method: str = "dial2vec"
    backbone: str | None = None
    dropout: float | None = None
    corpus: list[str] = field(default_factory=lambda: ["sample"])
    data_dir: str | None = None
    columns: str | None = None
    roles: str | None = None
    exclude: list[str] | None = None
    train_split: str = "train"
    dev_split: str | None = None
    max_dialogues: int | None = None
    max_dev_dialogues: int = 200
    min_turns: int | None = None
    skip_invalid: bool = False
    checkpoint_selection: Selection = "last"
    patience: int | None = None
    average_with_backbone: float = 0.0
    rank: int | None = None
    head_learning_rate: float | None = None
    dev_candidates: str | None = None
    granularity_model: str | None = None
    language_model_steps: int | None = None
    language_model_epochs: float | None = None
    center: bool = False
    learning_rate_schedule: Literal["trainer", "official"] = "trainer"
    resume: bool = True

    def __post_init__(self) -> None:
        self.dev_split = None if self.dev_split == "none" else self.dev_split
        if not get_method(self.method).trained:
            raise InputError(
                f"method: got {self.method}, whose members are trained; train them one by one, then put them together "
                "with dialemb ensemble (rankers) or dialemb merge (encoders)"
            )
        check_ranges(self, RUN_RANGES)
        if self.rank is not None and self.checkpoint_selection != "last":
            raise InputError(f"rank: got {self.rank} with checkpoint_selection, expected the last one; leave one out")
        if self.checkpoint_selection != "last" and self.dev_split is None and self.dev_candidates is None:
            raise InputError(
                f"checkpoint_selection: {self.checkpoint_selection} needs a dev_split; name one, or choose last"
            )


@dataclass(frozen=True)
class Settings:
    """A parsed request: the run, the method's own settings, and the trainer's."""

    run: RunArguments
    method: dict[str, Any]
    training: TrainingArguments

    @property
    def sample_seed(self) -> int:
        """What ``max_dialogues`` are drawn by: ``data_seed``, or the seed of everything else."""
        return self.training.seed if self.training.data_seed is None else int(self.training.data_seed)

    def fingerprint(self) -> dict[str, Any]:
        """Returns everything that decides the final weights; a resumed run must agree with it."""
        names = (
            "learning_rate", "per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs",
            "max_steps", "seed", "data_seed", "bf16", "fp16", "weight_decay", "lr_scheduler_type", "warmup_steps",
            "max_grad_norm", "optim", "adam_beta1", "adam_beta2", "adam_epsilon", "lr_scheduler_kwargs",
            "dataloader_drop_last", "optim_args", "neftune_noise_alpha",
        )  # fmt: skip
        run = {key: value for key, value in vars(self.run).items() if key not in ("resume", "data_dir")}
        training = {name: getattr(self.training, name) for name in names}
        record: dict[str, Any] = json.loads(json.dumps({**run, **self.method, **training}, default=str))
        return record
