"""A thin subclass of transformers' Trainer: our sampler, whole checkpoints only, evaluation without labels."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from errno import EACCES, ENOSPC
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import Sampler
from transformers import PreTrainedTokenizerBase, Trainer, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import rotate_checkpoints

from ..corpora import load_dialogues
from ..errors import InputError
from ..hashing import sha256
from ..methods import method_of
from ..methods.backbone_model import MethodModel
from ..methods.encoder import encode
from ..methods.method import Examples
from ..metrics.alignment_uniformity import uniformity
from ..metrics.purity import cluster_purity
from ..runs.files import open_to_others, write_json_atomically
from ..runs.folder import RunFolder, read_object, write_files_of_our_own
from .data import Collator, EpochSampler, ExampleDataset, make_examples
from .dialogues import unified
from .low_rank import is_limited, limit_rank, load_factors, save_factors, whole_weights
from .settings import SELECTIONS, Report, RunArguments

logger = logging.getLogger(__name__)

COMPLETE = "complete"
"""The file that marks a whole checkpoint, with the digests of its files."""

_UNIFORMITY_SAMPLE = 2_000  # embeddings, of which all pairs are compared


class DialogueTrainer(Trainer):
    """A Trainer of any method on dialogues.

    Examples:
        >>> model, tokenizer = DSEModel.from_backbone("sentence-transformers/all-MiniLM-L6-v2")
        >>> trainer = DialogueTrainer(model, TrainingArguments("runs/mine", max_steps=100), dialogues, tokenizer)
        >>> trainer.train()

    Args:
        model: An untrained or trained model of a registered method.
        args: Trainer's arguments; by default its own.
        dialogues: The training dialogues, in any form that `hf_dialemb.corpora.load_dialogues` takes.
        processing_class: The model's tokenizer, as ``from_backbone`` returns it.
        dev_dialogues: The dialogues that ``evaluate`` measures and that choose a checkpoint.
        run: Further settings of a run.
        examples: The method's training examples, if they exist already.
        dev_examples: Its examples of the dev dialogues, if they exist already.
        **kwargs: Trainer's other arguments.

    Raises:
        InputError: The model is of no registered method, the tokenizer is missing, or it cannot use the dialogues.
    """

    def __init__(
        self,
        model: MethodModel,
        args: TrainingArguments | None = None,
        dialogues: Any = (),  # noqa: ANN401 - see load_dialogues
        processing_class: PreTrainedTokenizerBase | None = None,
        *,
        dev_dialogues: Any = None,  # noqa: ANN401
        run: RunArguments | None = None,
        examples: Examples | None = None,
        dev_examples: Examples | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        method = method_of(model)
        if method is None or processing_class is None:
            got = f"a {type(model).__name__}, of no registered method" if method is None else "no processing_class"
            raise InputError(f"DialogueTrainer: got {got}; give what from_backbone returns: a model and its tokenizer")
        args = TrainingArguments("runs/mine") if args is None else args
        args.remove_unused_columns = False  # examples have no columns
        self.run = run or RunArguments(method=method.name)
        if self.run.rank is not None:
            limit_rank(model, self.run.rank)
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):  # as Trainer does, with a warning
            if (token := getattr(processing_class, name)) is not None:
                setattr(model.config.get_text_config(), name, token)
        self.collator = Collator(method, processing_class, model.config)
        self.dev = [] if dev_dialogues is None else load_dialogues(dev_dialogues)

        made_of = partial(make_examples, method, config=model.config, args=args, run=self.run, report=logger.info)
        self.examples = examples or made_of(unified(load_dialogues(dialogues), method))
        if dev_examples is None and self.dev:
            dev_examples = made_of(unified(self.dev, method), part="eval")
        super().__init__(
            model,
            args,
            train_dataset=ExampleDataset(self.examples),
            eval_dataset=None if dev_examples is None else ExampleDataset(dev_examples),
            data_collator=self.collator,
            processing_class=processing_class,
            **kwargs,
        )

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:  # noqa: ANN401
        sampler = EpochSampler(self.examples, self._train_batch_size * self.args.world_size, self.args.seed)
        cast("ExampleDataset", self.train_dataset).sampler = sampler
        return sampler

    def create_optimizer(self, model: torch.nn.Module | None = None) -> Optimizer:
        """Make Trainer's optimizer; contrastive heads with a learning rate become separate groups."""
        optimizer: Optimizer = super().create_optimizer(*([] if model is None else [model]))
        rate = self.run.head_learning_rate
        if rate is None:
            return optimizer
        named = cast("torch.nn.Module", self.model).named_parameters()
        heads = {parameter for name, parameter in named if "heads." in name}
        if not heads:
            raise InputError(f"head_learning_rate: got {rate}, but with these settings there is no head; leave it out")
        for group in list(optimizer.param_groups):
            own = [parameter for parameter in group["params"] if parameter in heads]
            group["params"] = [parameter for parameter in group["params"] if parameter not in heads]
            if own:
                optimizer.add_param_group({**group, "params": own, "lr": rate})
        return optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:  # noqa: ANN401
        """Make Trainer's schedule, or the released program's, which counts examples."""
        if self.run.learning_rate_schedule == "trainer":
            return super().create_scheduler(num_training_steps, optimizer)
        total = len(self.examples)

        def factor(step: int) -> float:
            progress = step / total
            return progress / 0.1 if progress < 0.1 else max(0.0, 1 - progress)

        self.lr_scheduler = LambdaLR(cast("Optimizer", optimizer or self.optimizer), factor)
        return self.lr_scheduler

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any) -> None:  # noqa: ANN401
        # The mark comes when every process has written, and older checkpoints go only after it: at any moment that the
        # run can be killed, one whole checkpoint is there.
        limit, self.args.save_total_limit = self.args.save_total_limit, None
        try:
            with _as_system_error():
                super()._save_checkpoint(model, trial)
        finally:
            self.args.save_total_limit = limit
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            output = str(self.args.output_dir)
            folder = Path(output, f"checkpoint-{self.state.global_step}")
            digests = {file.name: sha256(file) for file in sorted(folder.iterdir()) if file.is_file()}
            write_json_atomically(folder / COMPLETE, digests)
            rotate_checkpoints(output, limit, self.state.best_model_checkpoint, use_mtime=True)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Save as Trainer does, with the files by which sentence-transformers loads the folder."""
        model, folder = self.accelerator.unwrap_model(self.model), Path(str(output_dir or self.args.output_dir))
        limited = is_limited(model)
        with _as_system_error():
            super()._save(output_dir, whole_weights(model) if limited else state_dict)
        if not self.args.should_save:
            return
        if limited:
            save_factors(model, folder)
        open_to_others(folder)
        if getattr(model, "embeds", True):
            write_files_of_our_own(folder, model.config)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:  # noqa: ANN401
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        own = self.accelerator.unwrap_model(self.model)
        if is_limited(own):
            load_factors(own, Path(resume_from_checkpoint))

    def _load_best_model(self) -> None:
        if self.state.best_model_checkpoint:  # the run's folder may have moved
            best = Path(str(self.args.output_dir)) / Path(self.state.best_model_checkpoint).name
            self.state.best_model_checkpoint = str(best)
        super()._load_best_model()

    @torch.no_grad()
    def evaluate(self, *_: Any, metric_key_prefix: str = "eval", **__: Any) -> dict[str, float]:  # noqa: ANN401
        """Measure the dev dialogues: how well the model solves the method's task, and how the embeddings spread.

        The metrics are ``eval_contrastive_loss``, ``eval_contrastive_accuracy`` (share of intact dialogues that rank
        first, over speakers), ``eval_uniformity`` (log mean exp(-2 d^2); lower is more even) and, for the paper's
        protocol alone, ``eval_dev_purity``.
        """
        losses: list[torch.Tensor] = []
        correct: list[torch.Tensor] = []
        embeddings: list[torch.Tensor] = []
        model = cast("torch.nn.Module", self.model)
        training, counted = model.training, copy(self.collator.truncation)
        model.eval()
        for batch in self.get_eval_dataloader():
            with self.compute_loss_context_manager():
                output = model(**self._prepare_inputs(batch))
            first = _ranked_first(output.similarities)  # (B,)
            row = [output.loss.expand(len(first)), first]
            row += [] if output.pooler_output is None else [output.pooler_output.float()]
            gathered = self.accelerator.gather_for_metrics(row)
            for store, value in zip((losses, correct, embeddings), gathered, strict=False):
                store.append(value.cpu())
        loss, accuracy = (torch.cat(store).mean().item() for store in (losses, correct))
        metrics = {"contrastive_loss": loss, "contrastive_accuracy": accuracy}
        if sum(map(len, embeddings)) > 1:
            metrics["uniformity"] = uniformity(torch.cat(embeddings)[:_UNIFORMITY_SAMPLE].numpy())
        if self.run.checkpoint_selection == "dev_purity":
            metrics["dev_purity"] = self._dev_purity()
        model.train(training)
        self.collator.truncation = counted  # of what is learnt from alone
        result = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
        self.log(result)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, result)
        self.control.should_training_stop |= out_of_patience(self.state, self.run)
        return result

    def _dev_purity(self) -> float:
        labelled = [dialogue for dialogue in self.dev if len(dialogue.domains) == 1]
        tokenizer: Any = self.processing_class
        vectors = encode(self.accelerator.unwrap_model(self.model), tokenizer, labelled)
        return float(np.mean(cluster_purity(vectors, [d.domains[0] for d in labelled], seeds=range(3))["purity"]))


def _ranked_first(similarities: torch.Tensor) -> torch.Tensor:
    """Return the share of roles whose first candidate is the most similar, (B,) in [0, 1]; a tie is no success."""
    first = (similarities[:, :1] > similarities[:, 1:]).all(1).float()  # (B, R)
    present = (similarities != 0).any(1).float()
    return (first * present).sum(1) / present.sum(1).clamp(min=1)


def out_of_patience(state: TrainerState, run: RunArguments) -> bool:
    """Return whether a run was measured often enough without gain, by its log, so that a resumed run agrees."""
    name = f"eval_{run.checkpoint_selection}"
    values = [entry[name] for entry in state.log_history if name in entry]
    if run.patience is None or not values:
        return False
    best = max(values) if SELECTIONS[run.checkpoint_selection] else min(values)
    return len(values) - 1 - values.index(best) >= run.patience


def restore_finished(trainer: DialogueTrainer, checkpoint: Path) -> bool:
    """Restore a run that was killed after its last step, by count or patience; Trainer itself would take more."""
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if not (out_of_patience(state, trainer.run) or 0 < state.max_steps <= state.global_step):
        return False
    chosen = checkpoint
    if trainer.args.load_best_model_at_end and state.best_model_checkpoint:
        chosen = checkpoint.parent / Path(state.best_model_checkpoint).name  # the run's folder may have moved
        state.best_model_checkpoint = str(chosen)
    trainer._load_from_checkpoint(str(chosen))
    trainer.state = state
    return True


def last_complete_checkpoint(output_dir: Path, report: Report = lambda line: None) -> Path | None:
    """Find the checkpoint to resume from, and remove those that are not whole.

    Such a checkpoint was being written when the run died, was damaged since, or has lost the best one before it.
    """
    whole: list[Path] = []
    for folder in RunFolder(output_dir).checkpoints():
        wrong = _damage(folder, {path.name for path in whole})
        if not wrong:
            whole.append(folder)
            continue
        if (folder / COMPLETE).exists():
            report(f"Left out {folder}, which is damaged ({wrong})")
        shutil.rmtree(folder)
    return whole[-1] if whole else None


def _damage(checkpoint: Path, before: set[str]) -> str:
    """Describe the damage of a checkpoint, given the names of the whole ones before it; empty if it is whole."""
    try:
        digests = read_object(checkpoint / COMPLETE, "")
    except InputError:
        return f"{COMPLETE} cannot be read"
    if TRAINER_STATE_NAME not in digests:
        return f"{COMPLETE} is not as it was written"
    for name, digest in digests.items():
        if not (checkpoint / name).is_file() or sha256(checkpoint / name) != digest:
            return f"{name} is not as it was written"
    best = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME)).best_model_checkpoint
    best = Path(best or checkpoint).name  # the run's folder may have moved
    return "" if best in {checkpoint.name, *before} else f"{best}, the best before it, is lost"


@contextmanager
def _as_system_error() -> Iterator[None]:
    """Raise torch's error of a file that cannot be written as the system's own error."""
    try:
        yield
    except RuntimeError as error:
        if "PytorchStreamWriter" not in str(error) and "inline_container" not in str(error):
            raise
        if "Permission denied" in str(error):
            raise PermissionError(EACCES, "a file there cannot be written; change its rights and run again") from error
        raise OSError(ENOSPC, "the checkpoint cannot be written; free space and run again") from error
