"""What a training run is told: `RunArguments`, beside the method's own settings and those of Trainer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..models import get_method
from ..models.config import check_range
from ..models.errors import InputError

if TYPE_CHECKING:
    from transformers import TrainingArguments


@dataclass
class RunArguments:
    """What a run is: method, backbone, data, and which checkpoint it ends with.

    Raises:
        InputError: A value is out of range.
    """

    method: str = field(default="dial2vec", metadata={"help": "What is learnt; see below for all methods."})
    backbone: str | None = field(
        default=None,
        metadata={
            "help": "Folder or Hub id of the encoder to start from (default: all-MiniLM-L6-v2); for methods that begin "
            "with the words of the corpus, a text file of word vectors such as GloVe's, or nothing."
        },
    )
    dropout: float | None = field(
        default=None, metadata={"help": "Replaces the backbone's dropout, in [0, 1]; 0 is fastest."}
    )
    corpus: list[str] = field(
        default_factory=lambda: ["sample"],
        metadata={
            "help": "One or more corpora: a name, or a name and a split as multiwoz/dev, or a file, folder or Hub "
            "dataset of your own."
        },
    )
    data_dir: str | None = field(default=None, metadata={"help": "Folder that holds the corpora."})
    columns: str | None = field(
        default=None, metadata={"help": "Your table: which column is what, as id=call,role=speaker,content=text."}
    )
    roles: str | None = field(
        default=None, metadata={"help": "Your speakers: who is who, as Agent=assistant,Customer=user."}
    )
    exclude: list[str] | None = field(
        default=None,
        metadata={
            "help": "Evaluation sets, as sgd/test: what equals or nearly equals something of them is left out of "
            "training. Default: the other splits of the corpus that are at hand; 'none' leaves everything in."
        },
    )
    train_split: str = field(default="train", metadata={"help": "Split to learn from; Dialog2Flow alone reads labels."})
    dev_split: str | None = field(
        default=None,
        metadata={
            "help": "Split for choosing a checkpoint, or a file or folder of your own; 'none' for none, whatever the "
            "recipe says."
        },
    )
    max_dialogues: int | None = field(
        default=None, metadata={"help": "Learn from so many, drawn by the seed; at least 2."}
    )
    max_dev_dialogues: int = field(
        default=200, metadata={"help": "So many dev dialogues are used, the same ones for every seed; at least 2."}
    )
    min_turns: int | None = field(
        default=None,
        metadata={"help": "Shorter dialogues are left out (dial2vec's program: 5); by default what the method needs."},
    )
    skip_invalid: bool = field(default=False, metadata={"help": "Count and leave out malformed dialogues."})
    checkpoint_selection: Literal["last", "contrastive_loss", "contrastive_accuracy", "uniformity", "dev_purity"] = (
        field(
            default="last",
            metadata={
                "help": "Which checkpoint the run ends with: the last, or the best of the dev split by a signal that "
                "needs no label. dev_purity reads labels: it is the paper's protocol, kept for comparison."
            },
        )
    )
    patience: int | None = field(
        default=None,
        metadata={
            "help": "Stop after so many measurements of that signal without gain; by default all steps are taken."
        },
    )
    average_with_backbone: float = field(
        default=0.0,
        metadata={
            "help": "Share of the backbone's weights in the final average, in [0, 1]; 0 keeps the trained weights."
        },
    )
    head_learning_rate: float | None = field(
        default=None,
        metadata={"help": "Learning rate of the contrastive heads, above 0; by default that of the encoder."},
    )
    dev_candidates: str | None = field(
        default=None,
        metadata={"help": "For rankers: a file of candidate sets (see `dialemb candidates`) that choose a checkpoint."},
    )
    granularity_model: str | None = field(
        default=None,
        metadata={
            "help": "For rankers whose granularity is set: folder of the one that tells how similar responses are."
        },
    )
    language_model_steps: int | None = field(
        default=None,
        metadata={
            "help": "First go on with the backbone's masked-language-model pre-training on the same dialogues, for so "
            "many steps of 50 utterances; wins over language_model_epochs. By default it is left out."
        },
    )
    language_model_epochs: float | None = field(
        default=None, metadata={"help": "The same, for so many passes over the utterances (DialogueCSE: 0.5)."}
    )
    center: bool = field(
        default=False,
        metadata={
            "help": "After training, store the mean embedding of (up to 500) training dialogues and take it off "
            "every embedding: what all dialogues share tells nothing about one of them."
        },
    )
    learning_rate_schedule: Literal["trainer", "official"] = field(
        default="trainer",
        metadata={"help": "official: warm up over a tenth of the number of examples, then 1 - steps/examples."},
    )
    resume: bool = field(default=True, metadata={"help": "Go on from the last complete checkpoint in output_dir."})

    def __post_init__(self) -> None:
        self.dev_split = None if self.dev_split == "none" else self.dev_split
        if not get_method(self.method).trained:
            raise InputError(
                f"method: got {self.method}, whose members are trained; train them one by one, then put them together "
                "with dialemb ensemble (rankers) or dialemb merge (encoders)"
            )
        check_range("max_dialogues", self.max_dialogues, 2)
        check_range("max_dev_dialogues", self.max_dev_dialogues, 2)
        check_range("min_turns", self.min_turns, 1)
        check_range("patience", self.patience, 1)
        check_range("head_learning_rate", self.head_learning_rate, 0, exclusive=True)
        check_range("language_model_steps", self.language_model_steps, 1)
        check_range("language_model_epochs", self.language_model_epochs, 0, exclusive=True)
        check_range("dropout", self.dropout, 0, 1)
        check_range("average_with_backbone", self.average_with_backbone, 0, 1)
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
