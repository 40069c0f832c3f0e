"""A thin subclass of transformers' Trainer.

Our batches, whole checkpoints only, evaluation without labels.
"""

import logging
import time
from collections.abc import Mapping
from copy import copy
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import torch
from torch.optim import Optimizer
from torch.utils.data import Sampler
from transformers import PreTrainedTokenizerBase, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import (
    EvalLoopOutput,
    EvalPrediction,
    PredictionOutput,
    rotate_checkpoints,
)

from ..data import load_dialogues
from ..errors import InputError
from ..methods import method_of
from ..methods.backbone_model import MethodModel
from ..methods.method import Examples
from ..storage.adapters import has_adapters, load_adapters, save_base
from ..storage.run_folder import write_files_of_our_own
from . import optimizing
from .data import Collator, EpochSampler, ExampleDataset, make_examples
from .dialogues import unified
from .measuring import labels_of, measure, vectors_of
from .resuming import COMPLETE, last_complete_checkpoint, out_of_patience
from .settings import RunArguments, check_arguments
from .training_record import write_record

logger = logging.getLogger(__name__)

_OF_THE_METHOD = ("data_collator", "compute_loss_func", "preprocess_logits_for_metrics")


def publish(args: TrainingArguments, **options: Any) -> str | None:
    """Publish a finished run as Trainer's arguments say; see `hf_dialemb.push`."""
    from .. import push

    usual = {
        "private": bool(args.hub_private_repo),
        "revision": args.hub_revision,
        "token": args.hub_token,
        "commit_message": "End of training",
    }
    return push(str(args.output_dir), str(args.hub_model_id), **{**usual, **options})


class DialogueTrainer(Trainer):
    """A Trainer of any method on dialogues.

    Examples:
        >>> model, tokenizer = DSEModel.from_backbone("sentence-transformers/all-MiniLM-L6-v2")
        >>> args = TrainingArguments("runs/mine", max_steps=100)
        >>> trainer = DialogueTrainer(
        ...     model, args, train_dataset=dialogues, processing_class=tokenizer
        ... )
        >>> trainer.train()
        >>> trainer.save_model()  # with the record of the training, for its card

    Args:
        model: An untrained or trained model of a registered method.
        args: Trainer's arguments, which are copied; by default its own. An argument without effect
            is refused.
        train_dataset: The training dialogues, in any form that `hf_dialemb.data.load_dialogues`
            takes.
        eval_dataset: The dialogues that ``evaluate`` measures, or a dict of several sets by name.
        processing_class: The model's tokenizer, as ``from_backbone`` returns it.
        run: Further settings of a run.
        model_init: Makes the model, instead of ``model``; ``hyperparameter_search`` needs it.
        **kwargs: Trainer's other arguments. ``compute_metrics`` gets the embeddings (N, D) of the
            measured dialogues as predictions, and the first domain of each, or None, as labels.

    Raises:
        InputError: The model is of no registered method, the tokenizer is missing, it cannot use
            the dialogues, or an argument is wrong or has no effect.
    """

    def __init__(
        self,
        model: MethodModel | None = None,
        args: TrainingArguments | None = None,
        *,
        train_dataset: Any = (),
        eval_dataset: Any = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        run: RunArguments | None = None,
        model_init: Any = None,
        **kwargs: Any,
    ) -> None:
        self.args = TrainingArguments("runs/mine") if args is None else copy(args)
        for name in _OF_THE_METHOD:
            if kwargs.get(name) is not None:
                raise InputError(
                    f"{name}: got one, but the method makes its batches and its loss; leave it out"
                )
        check_arguments(self.args)
        self.args.remove_unused_columns = False  # examples have no columns
        self.run: Any = run
        self.processing_class: Any = processing_class
        self.started: float | None = None
        self.resumed: Path | None = None
        # the settings of a run, where more than the trainer decides them
        self.recorded: dict[str, Any] | None = None
        self.eval_dataset: Any = None
        if model_init is not None:
            set_seed(self.args.seed)
            self.model_init = model_init
            model = self.call_model_init()
        else:
            self._adopt(model)
        self.source = train_dataset if isinstance(train_dataset, str) else None
        nothing = train_dataset is None or train_dataset == ()
        self.train_dataset = None if nothing else self._dataset(train_dataset, "train")
        super().__init__(
            model,
            self.args,
            train_dataset=self.train_dataset,
            eval_dataset=self._eval_sets(eval_dataset),
            data_collator=self.collator,
            processing_class=processing_class,
            **kwargs,
        )
        # `accelerate config` may have chosen another precision than the arguments
        self.args.bf16 = self.accelerator.mixed_precision == "bf16"
        self.args.fp16 = self.accelerator.mixed_precision == "fp16"
        self.model_init = model_init

    def call_model_init(self, trial: Any = None) -> Any:
        """Make a model by ``model_init``; all have the same settings of their method."""
        model = super().call_model_init(trial)
        self._adopt(model)
        return model

    def _adopt(self, model: Any) -> None:
        """Prepare a model for its training, and the batches for the model."""
        method = method_of(model)
        tokenizer = self.processing_class
        if method is None or tokenizer is None:
            raise InputError(
                f"DialogueTrainer: got a {type(model).__name__} and a {type(tokenizer).__name__}, "
                "expected what from_backbone returns: a model and its tokenizer"
            )
        self.run = self.run or RunArguments(method=method.name)
        model.freeze_lower_layers()
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise InputError(
                "frozen_layers: got all layers, which leaves nothing to learn; lower it"
            )
        if self.run.rank is not None:
            optimizing.limit_rank(model, self.run.rank)
        if has_adapters(model) and self.args.should_save:
            save_base(model, Path(str(self.args.output_dir)))
        # as Trainer does, with a warning
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            if (token := getattr(tokenizer, name)) is not None:
                setattr(model.config.get_text_config(), name, token)
        self.data_collator = self.collator = Collator(method, tokenizer, model.config)
        if method.in_batch_negatives:
            self.args.dataloader_drop_last = True  # a last batch of one would have no negatives

    def _dataset(self, given: Any, part: str) -> ExampleDataset:
        if isinstance(given, ExampleDataset):
            return given
        method = self.collator.method
        dialogues = unified(load_dialogues(given, **self.run.reading()), method)
        made = make_examples(
            method, dialogues, self.collator.config, self.args, self.run, logger.info, part
        )
        return ExampleDataset(made, dialogues)

    def _eval_sets(self, given: Any) -> Any:
        if isinstance(given, Mapping):
            return {name: self._dataset(dialogues, "eval") for name, dialogues in given.items()}
        names = self.eval_dataset if isinstance(self.eval_dataset, Mapping) else {}
        if given is None or (isinstance(given, str) and given in names):
            return given
        return self._dataset(given, "eval")

    @property
    def examples(self) -> Any:
        """The training examples."""
        return cast("ExampleDataset", self.train_dataset).examples

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Train as Trainer does."""
        if self.train_dataset is None:
            raise InputError("train_dataset: got none, expected dialogues to learn from; give some")
        self.started = self.started or time.time()
        last = resume_from_checkpoint
        if last is True:
            with self.args.main_process_first():
                last = last_complete_checkpoint(Path(str(self.args.output_dir)))
            if last is None:
                raise InputError(
                    f"resume_from_checkpoint: got True, but {self.args.output_dir} has no "
                    "checkpoint that is whole; leave it out"
                )
        self.resumed = Path(last) if last else None
        return super().train(str(last) if last else None, *args, **kwargs)

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        sampler = EpochSampler(self.examples, self._train_batch_size * self.args.world_size, seed)
        cast("ExampleDataset", self.train_dataset).sampler = sampler
        return sampler

    def create_optimizer(self, *args: Any, **kwargs: Any) -> Optimizer:
        """Make Trainer's optimizer.

        Contrastive heads with a learning rate become separate groups.
        """
        optimizer: Optimizer = super().create_optimizer(*args, **kwargs)
        if self.run.head_learning_rate is not None:
            optimizing.separate_heads(
                optimizer, cast("torch.nn.Module", self.model), self.run.head_learning_rate
            )
        return optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Make Trainer's schedule, or the released program's, which counts examples."""
        if self.run.learning_rate_schedule == "trainer":
            return super().create_scheduler(num_training_steps, optimizer)
        self.lr_scheduler = optimizing.released_schedule(
            cast("Optimizer", optimizer or self.optimizer), len(self.examples)
        )
        return self.lr_scheduler

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any) -> None:
        # The mark comes when every process has written, and older checkpoints go only after it: at
        # any moment that the run can be killed, one whole checkpoint is there.
        limit = self.args.save_total_limit
        self.args.save_total_limit = None
        output = self._get_output_dir(trial)
        folder = Path(output, f"checkpoint-{self.state.global_step}")
        # Trainer may choose it as the best before it writes there
        folder.mkdir(parents=True, exist_ok=True)
        try:
            super()._save_checkpoint(model, trial)
        finally:
            self.args.save_total_limit = limit
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            (folder / COMPLETE).touch()
            rotate_checkpoints(output, limit, self.state.best_model_checkpoint, use_mtime=True)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model as Trainer does, with the record of its training."""
        if _internal_call:
            super().save_model(output_dir, _internal_call)
            return
        self.save_finished(Path(output_dir or str(self.args.output_dir)))
        if self.args.push_to_hub and self.is_world_process_zero():
            publish(self.args)

    def save_finished(self, folder: Path) -> None:
        """Save the whole model, where checkpoints may be sharded, with its training's record."""
        if self.is_fsdp_enabled:
            self.accelerator.state.fsdp_plugin.set_state_dict_type("FULL_STATE_DICT")
        super().save_model(str(folder), _internal_call=True)
        write_record(self, folder)

    def push_to_hub(  # type: ignore[override]
        self, commit_message: str = "End of training", *_: Any, **options: Any
    ) -> str | None:
        """Save the model and publish it, exported, checked and with its card.

        Return the commit's id. ``options`` are those of `hf_dialemb.push`.
        """
        self.save_finished(Path(str(self.args.output_dir)))
        if not self.is_world_process_zero():
            return None
        return publish(self.args, commit_message=commit_message, **options)

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        """Publish nothing before the end, since what is sent is exported and checked."""

    def _save(
        self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None
    ) -> None:
        """Save as Trainer does, with the files by which sentence-transformers loads the folder."""
        model = self.accelerator.unwrap_model(self.model)
        folder = Path(str(output_dir or self.args.output_dir))
        super()._save(output_dir, state_dict)
        if not self.args.should_save:
            return
        if getattr(model, "embeds", True):
            write_files_of_our_own(folder, model.config)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        own = self.accelerator.unwrap_model(self.model)
        if load_adapters(own, Path(resume_from_checkpoint)):
            return
        super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_best_model(self) -> None:
        model = self.accelerator.unwrap_model(self.model)
        if not load_adapters(model, Path(str(self.state.best_model_checkpoint))):
            super()._load_best_model()

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Measure how well the model solves the method's task on dialogues.

        The metrics are ``eval_loss``, also as ``eval_contrastive_loss``;
        ``eval_contrastive_accuracy`` (share of intact dialogues that rank first, over speakers);
        for the paper's protocol alone, ``eval_dev_purity``; those of ``compute_metrics``; and
        ``eval_runtime``. None depends on the batch or the number of processes: where the other
        examples of a batch are the negatives, these are at most 63 others, always the same.

        Args:
            eval_dataset: Dialogues in any form, a dict of several sets, or the name of a set that
                the trainer was made with; by default all of these sets. Metrics of sets in a dict
                begin with ``eval_<name>_``.
            ignore_keys: Not used.
            metric_key_prefix: What all names begin with.

        Raises:
            InputError: The model cannot use the dialogues.
        """
        given = self._eval_sets(eval_dataset)
        metrics: dict[str, float] = super().evaluate(given, ignore_keys, metric_key_prefix)
        self.control.should_training_stop |= out_of_patience(self.state, self.run)
        return metrics

    def predict(
        self, test_dataset: Any, ignore_keys: Any = None, metric_key_prefix: str = "test"
    ) -> PredictionOutput:
        """Embed N dialogues in any form, or those of ``eval_dataset``.

        Return their embeddings (N, D) float32, their first domains as labels, and the metrics of
        `evaluate`. Where the dialogues are too few or too short for the method's loss, there is
        none among the metrics, and a warning says so.
        """
        dataset = test_dataset
        if not isinstance(test_dataset, ExampleDataset):
            dialogues = load_dialogues(test_dataset, **self.run.reading())
            try:
                dataset = self._dataset(dialogues, "eval")
            except InputError as error:
                logger.warning("No loss is measured: %s", error)
                dataset = ExampleDataset(Examples([]), dialogues)
        return super().predict(dataset, ignore_keys, metric_key_prefix)

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: Any = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Measure the batches of a data loader, and embed its dialogues where this is asked for."""
        dataset = dataloader.dataset
        metrics = measure(self, dataset)
        labels = labels_of(dataset.dialogues)
        vectors: Any = None if prediction_loss_only else vectors_of(self, dataset.dialogues)
        if self.compute_metrics is not None:
            metrics |= self.compute_metrics(EvalPrediction(vectors, labels))
        begin = f"{metric_key_prefix}_"
        named = {f"{begin}{name.removeprefix(begin)}": value for name, value in metrics.items()}
        return EvalLoopOutput(vectors, labels, named, len(dataset))

    def hyperparameter_search(
        self, hp_space: Any = None, compute_objective: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Search as Trainer does, by default for the least ``eval_loss``."""
        return super().hyperparameter_search(
            hp_space, compute_objective or itemgetter("eval_loss"), *args, **kwargs
        )
