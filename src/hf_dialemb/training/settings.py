"""The settings of a training run.

Dataclasses that Python, YAML files and the command line fill alike.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from transformers import TrainingArguments

from ..data.reading_options import OPTIONS, ReadingOptions
from ..errors import InputError
from ..methods import get_method
from ..methods.method import Method
from ..ranges import ABOVE_ZERO, Range, check_range, check_ranges
from ..storage.pretrained import MINILM

Report = Callable[[str], None]
"""Receives one line per fact worth telling."""

Selection = Literal["last", "contrastive_loss", "contrastive_accuracy", "dev_purity"]

SELECTIONS = {"contrastive_loss": False, "contrastive_accuracy": True, "dev_purity": True}
"""Signals that can choose a checkpoint, and whether a greater value is better."""

_RUN_RANGES = {
    "max_dialogues": Range(2),
    "max_dev_dialogues": Range(2),
    "min_turns": Range(1),
    "patience": Range(1),
    "head_learning_rate": ABOVE_ZERO,
    "rank": Range(1),
    "dropout": Range(0, 1),
    "average_with_backbone": Range(0, 1),
    "center": Range(0, 1),
}
_TRAINING_RANGES = {
    "learning_rate": ABOVE_ZERO,
    "per_device_train_batch_size": Range(1),
    "num_train_epochs": ABOVE_ZERO,
    "gradient_accumulation_steps": Range(1),
    "weight_decay": Range(0),
    "dataloader_num_workers": Range(0),
    "seed": Range(0, 2**32 - 1),
    "data_seed": Range(0, 2**32 - 1),
}
_WITHOUT_EFFECT: tuple[tuple[str, Any, str], ...] = (
    ("train_sampling_strategy", "random", "batches are always made of examples of similar length"),
    ("label_smoothing_factor", 0.0, "no method has labels of classes"),
    ("use_liger_kernel", False, "liger has no kernel for these models"),
)
"""Arguments of Trainer, the value that they have without a choice, and why another does nothing."""

_WITHOUT_EFFECT_ON_A_RUN: tuple[tuple[str, Any, str], ...] = (
    ("resume_from_checkpoint", None, "a run resumes from its own last checkpoint"),
    ("load_best_model_at_end", False, "checkpoint_selection says which checkpoint a run ends with"),
    ("metric_for_best_model", None, "checkpoint_selection says by which signal"),
)


@dataclass
class RunArguments(ReadingOptions):
    """Method, backbone and data of a run, and which checkpoint it ends with.

    Attributes:
        method: What to learn; the help lists all methods. One of your own is the path of its file,
            as own_method.py.
        backbone: Folder or Hub id of the encoder to start from (default: all-MiniLM-L6-v2);
            methods that start from the words of the corpus have none.
        trust_remote_code: Whether Python code that comes with the backbone may run.
        dropout: Replaces the backbone's dropout, in [0, 1]; 0 is fastest.
        corpus: One or more corpora: a name, a name with a split as multiwoz/dev, or your file,
            folder or Hub dataset.
        data_dir: Folder that holds the corpora.
        exclude: Evaluation sets, as sgd/test. Dialogues that equal or nearly equal theirs are left
            out of training.
            Default: the other splits of the corpus that are at hand; 'none' leaves everything in.
        train_split: Split to learn from; Dialog2Flow alone reads labels.
        dev_split: Split for choosing a checkpoint, or a file or folder of your own; 'none'
            overrides a recipe's.
        max_dialogues: Learn from at most this many dialogues, drawn by the seed; at least 2.
        max_dev_dialogues: Use at most this many dev dialogues, the same ones for every seed; at
            least 2.
        min_turns: Leave out shorter dialogues (dial2vec's program: 5); by default what the method
            needs.
        checkpoint_selection: Which checkpoint the run ends with: the last, or the best of the dev
            split by a signal that needs no labels. dev_purity reads labels: it is the paper's
            protocol, kept for comparison.
        patience: Stop after this many measurements of that signal without gain; by default all
            steps are taken.
        average_with_backbone: Share of the backbone's weights in the final average, in [0, 1]; by
            default 0.
        rank: Let each linear layer learn a difference of this rank alone, by LoRA of peft; take ten
            times the learning rate.
        head_learning_rate: Learning rate of the contrastive heads, above 0; by default that of the
            encoder.
        dev_candidates: For rankers: a file of candidate sets (`write_candidates`) that
            choose a checkpoint.
        granularity_model: For rankers with a granularity: folder of the ranker that compares
            responses.
        center: After training, subtract this share, 0 to 1, of the mean embedding of up to 500
            training dialogues: what all dialogues share tells them not apart.
        learning_rate_schedule: official: warm up over a tenth of the number of examples, then 1 -
            steps/examples.
        resume: Continue from the last complete checkpoint in output_dir.

    Raises:
        InputError: A value is of another type or out of range.
    """

    method: str = "dial2vec"
    backbone: str | None = None
    trust_remote_code: bool = False
    dropout: float | None = None
    corpus: list[str] = field(default_factory=lambda: ["sample"])
    data_dir: str | None = None
    exclude: list[str] | None = None
    train_split: str = "train"
    dev_split: str | None = None
    max_dialogues: int | None = None
    max_dev_dialogues: int = 200
    min_turns: int | None = None
    checkpoint_selection: Selection = "last"
    patience: int | None = None
    average_with_backbone: float = 0.0
    rank: int | None = None
    head_learning_rate: float | None = None
    dev_candidates: str | None = None
    granularity_model: str | None = None
    center: float = 0.0
    learning_rate_schedule: Literal["trainer", "official"] = "trainer"
    resume: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dev_split = None if self.dev_split == "none" else self.dev_split
        if not get_method(self.method).trained:
            raise InputError(
                f"method: got {self.method}, whose members are trained; train them one by one, "
                "then combine them with dialemb papers ensemble"
            )
        check_ranges(self, _RUN_RANGES)
        if self.rank is not None and self.checkpoint_selection != "last":
            raise InputError(
                f"rank: got {self.rank} with checkpoint_selection, expected the last one; leave "
                "one out"
            )
        if (
            self.checkpoint_selection != "last"
            and self.dev_split is None
            and self.dev_candidates is None
        ):
            raise InputError(
                f"checkpoint_selection: {self.checkpoint_selection} needs a dev_split; name one, "
                "or choose last"
            )

    def reading(self) -> dict[str, Any]:
        """Return how files are read: the keywords of `ReadingOptions`."""
        return {name: getattr(self, name) for name in OPTIONS}


@dataclass
class TrainingSettings(TrainingArguments):
    """Transformers' settings of Trainer with this package's defaults.

    Impossible ones are refused when it is built.
    """

    output_dir: str | None = field(
        default="runs/dial2vec", metadata={"help": "The folder of the run."}
    )
    remove_unused_columns: bool = False
    report_to: list[str] = field(default_factory=lambda: ["none"])
    logging_steps: float = 10

    def __post_init__(self) -> None:
        check_ranges(self, _TRAINING_RANGES)
        named: dict[str, Any] = {"true": True, "false": None}
        self.fsdp = named.get(str(self.fsdp).lower(), self.fsdp)
        if str(self.resume_from_checkpoint).lower() == "true":
            self.resume_from_checkpoint = None  # as a run does
        _refuse(self, _WITHOUT_EFFECT_ON_A_RUN)
        # transformers refuses bf16 on a machine without accelerator unless the CPU is asked for.
        self.use_cpu = self.use_cpu or not torch.accelerator.is_available()
        try:
            super().__post_init__()  # type: ignore[no-untyped-call]
        except (ValueError, TypeError, ImportError, RuntimeError) as error:
            raise InputError(f"{' '.join(str(error).split())}; correct the setting") from None
        # `accelerate config` may have chosen another precision than the arguments
        self.bf16 = self.mixed_precision == "bf16"
        self.fp16 = self.mixed_precision == "fp16"
        check_arguments(self)


@dataclass
class Settings:
    """The settings of the run, of the method and of Trainer, which fit together."""

    run: RunArguments
    method: dict[str, Any]
    training: TrainingArguments

    def __post_init__(self) -> None:
        method = get_method(self.run.method)
        method.config_class(**self.method)  # checks names and ranges
        _check_together(method, self.run, self.training)
        if self.run.backbone is None and not method.from_scratch:
            self.run.backbone = MINILM

    @property
    def sample_seed(self) -> int:
        """The seed that draws ``max_dialogues``: ``data_seed``, or the seed of everything else.

        Trainer's sampler has the same.
        """
        return (
            self.training.seed if self.training.data_seed is None else int(self.training.data_seed)
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return everything that decides the final weights; a resumed run must agree with it."""
        return facts_of(self.run, self.method, self.training)


def facts_of(
    run: RunArguments, method: dict[str, Any], training: TrainingArguments
) -> dict[str, Any]:
    """Return everything that decides the final weights, as JSON holds it."""
    names = (
        "learning_rate",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "num_train_epochs",
        "max_steps",
        "seed",
        "data_seed",
        "bf16",
        "fp16",
        "weight_decay",
        "lr_scheduler_type",
        "warmup_steps",
        "max_grad_norm",
        "optim",
        "adam_beta1",
        "adam_beta2",
        "adam_epsilon",
        "lr_scheduler_kwargs",
        "dataloader_drop_last",
        "optim_args",
        "neftune_noise_alpha",
    )
    chosen = {key: value for key, value in vars(run).items() if key not in ("resume", "data_dir")}
    chosen["method"] = get_method(run.method).name
    decisive = {name: getattr(training, name) for name in names}
    return dict(json.loads(json.dumps({**chosen, **method, **decisive}, default=str)))


def check_arguments(args: TrainingArguments) -> None:
    """Refuse arguments of Trainer that would have no effect, and several GPUs in one process."""
    _refuse(args, _WITHOUT_EFFECT)
    # Trainer would split batches over threads, and each part would have its own negatives
    if args.n_gpu > 1:
        raise InputError(
            f"got {args.n_gpu} GPUs for one process, expected one; start with accelerate launch, "
            "or set CUDA_VISIBLE_DEVICES=0"
        )
    if args.push_to_hub and "/" not in (args.hub_model_id or ""):
        raise InputError(
            f"hub_model_id: got {args.hub_model_id}, expected a repository as org/name; name one"
        )
    if args.push_to_hub and not args.hub_private_repo:
        raise InputError(
            "hub_private_repo: got a repository that everybody sees, but a model has figures only "
            "after its training; set it to true, or publish the model once it is measured"
        )


def _refuse(args: TrainingArguments, arguments: Iterable[tuple[str, Any, str]]) -> None:
    for name, only, reason in arguments:
        if getattr(args, name, only) != only:
            raise InputError(f"{name}: got {getattr(args, name)}, but {reason}; leave it out")


def _check_together(method: Method, run: RunArguments, training: TrainingArguments) -> None:
    """Refuse settings that do not fit the method or one another."""
    fitting = {"center": "dialogues", "dev_candidates": "responses"}
    for name, kind in fitting.items():
        if getattr(run, name) and method.kind != kind:
            raise InputError(
                f"{name}: got a setting that is for methods of {kind}, but {method.name} is one of "
                f"{method.kind}; leave it out"
            )
    for name in ("backbone", "dropout", "trust_remote_code", "average_with_backbone"):
        if getattr(run, name) and method.from_scratch:
            raise InputError(
                f"{name}: got a setting that is not for {method.name}, which has no backbone; "
                "leave it out"
            )
    if run.checkpoint_selection == "last":
        if run.patience is not None:
            raise InputError(
                f"patience: got {run.patience}, but no signal to wait for, as checkpoint_selection "
                f"is last; choose one of {', '.join(SELECTIONS)} there"
            )
    elif training.save_strategy not in ("steps", "epoch"):
        raise InputError(
            f"checkpoint_selection: got {run.checkpoint_selection}, but save_strategy is neither "
            "steps nor epoch, so that there is nothing to choose from; set one, or choose last"
        )
    if method.in_batch_negatives:
        check_range("per_device_train_batch_size", training.per_device_train_batch_size, 2)
        training.dataloader_drop_last = True
