"""One training run, from settings or Python's arguments to a saved encoder."""

import logging
import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from torch import nn
from tqdm.auto import tqdm
from transformers import set_seed

from ..data import load_dialogues
from ..dialogue import Dialogue
from ..encoders.load_encoder import EncoderRun
from ..errors import InputError
from ..methods import get_method
from ..methods.backbone_model import MethodModel
from ..methods.encoding import DialogueEncoder, encode
from ..storage.adapters import without_adapters
from ..storage.files import check_not_read, check_writable, locked
from ..storage.pretrained import resolve_backbone
from ..storage.run_folder import RunFolder
from .arguments import make_settings
from .data import ExampleDataset, given_examples, make_examples
from .dialogues import dev_dialogues, training_dialogues
from .resuming import restore_finished
from .settings import SELECTIONS, Report, Settings
from .trainer import DialogueTrainer, publish
from .training_record import recorded_settings, starting_point

logger = logging.getLogger(__name__)

_CENTER_SAMPLE = 500


def train(
    method: str,
    dialogues: Any,
    *,
    output_dir: str | Path,
    backbone: str | None = None,
    dev_dialogues: Any = None,
    recipe: str | Path | None = None,
    callbacks: Sequence[Any] = (),
    **settings: Any,
) -> EncoderRun:
    """Train an encoder on dialogues; call it again with the same arguments to resume.

    Examples:
        >>> run = hf_dialemb.train("dial2vec", dialogues, output_dir="runs/mine")
        >>> run.encoder().encode(dialogues)

    Args:
        method: ``dial2vec``, ``dse``, ``dialog2flow``, ``dialogue_cse``, a ranker of responses, a
            method that was registered, or the path of the user's own file.
        dialogues: A list of dialogues (lists of chat messages, or `Dialogue` objects), a
            ``datasets.Dataset``, a path, or the name of a corpus.
        output_dir: The folder of the run; it loads as an encoder everywhere.
        backbone: Folder or Hub id of the encoder to start from; by default all-MiniLM-L6-v2.
        dev_dialogues: Dialogues that choose the checkpoint (see ``checkpoint_selection``), in the
            forms of ``dialogues``.
        recipe: The name of a recipe, such as ``own_minilm``, or a YAML file; the arguments here win
            over it.
        callbacks: Callbacks of transformers' Trainer.
        **settings: Settings of `RunArguments`, of the method's config, or of transformers'
            ``TrainingArguments``.

    Raises:
        InputError: A setting is unknown, wrong or not for this method, or the method cannot use the
            dialogues.
    """
    in_memory = not isinstance(dialogues, str | Path)
    usual: dict[str, Any] = {"exclude": ["none"]} if in_memory else {}
    if dev_dialogues is not None:
        usual["dev_split"] = "dev"
    given = {"method": method, "output_dir": output_dir, "corpus": [] if in_memory else dialogues}
    if backbone is not None:
        given["backbone"] = backbone
    request = make_settings({**usual, **settings, **given}, recipe)
    shown = request.training.process_index == 0 and not request.training.disable_tqdm
    report = tqdm.write if shown else logger.debug  # as Trainer shows its figures
    learnt = load_dialogues(dialogues, **request.run.reading()) if in_memory else None
    dev = None if dev_dialogues is None else load_dialogues(dev_dialogues, **request.run.reading())
    return EncoderRun(run_training(request, report, learnt, dev, callbacks))


def run_training(
    settings: Settings,
    report: Report = lambda line: None,
    dialogues: Sequence[Dialogue] | None = None,
    dev: Sequence[Dialogue] | None = None,
    callbacks: Sequence[Any] = (),
) -> Path:
    """Train an encoder and save it with its tokenizer, its settings and a report to ``output_dir``.

    Run again with the same settings, it resumes from the last checkpoint and ends in the same
    weights.

    Args:
        settings: The run, its method and its trainer.
        report: Receives one line per fact.
        dialogues: Replace the corpora that the settings name.
        dev: Replace their dev split.
        callbacks: Callbacks of transformers' Trainer.

    Raises:
        InputError: The data, the backbone or the output folder cannot be used.
    """
    output = Path(str(settings.training.output_dir))
    check_writable(RunFolder(output).settings_file)
    main = PartialState().is_main_process
    with locked(output, "choose another --output_dir") if main else nullcontext():
        run = settings.run
        started = time.time()
        method = get_method(run.method)
        backbone = run.backbone if method.from_scratch else resolve_backbone(str(run.backbone))
        check_not_read(output, *filter(None, [backbone]))
        dev = [] if run.dev_candidates is not None else dev_dialogues(run, method, report, dev)
        dialogues = training_dialogues(run, method, settings.sample_seed, report, dialogues)
        checkpoint = starting_point(settings, output, dialogues, dev)
        if RunFolder(output).complete:
            report(f"Complete already: {output}")
            _publish(settings, report)
            return output
        trainer = build_trainer(settings, backbone, dialogues, dev, report, callbacks)
        trainer.started = started
        trainer.recorded = recorded_settings(settings)
        if checkpoint is not None:
            report(f"Resuming from {checkpoint}")
        if checkpoint is None or not restore_finished(trainer, checkpoint):
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        _finish(trainer, settings, backbone, dialogues)
        trainer.save_finished(output)
        if trainer.is_world_process_zero():
            facts = RunFolder(output).report()
            report(
                f"Trained {facts['steps']:,} steps on {len(dialogues):,} dialogues in "
                f"{facts['seconds']:.0f} s"
            )
            report(f"{facts['truncation']}; kept: checkpoint '{facts['checkpoint']}'")
            report(f"Wrote {output}")
        _publish(settings, report)
    return output


def _publish(settings: Settings, report: Report) -> None:
    if settings.training.push_to_hub and PartialState().is_main_process:
        publish(settings.training, report=report)


def build_trainer(
    settings: Settings,
    backbone: str | None,
    dialogues: Sequence[Dialogue],
    dev: Sequence[Dialogue],
    report: Report,
    callbacks: Sequence[Any] = (),
) -> DialogueTrainer:
    """Build the model of a run and the trainer of its examples."""
    run = settings.run
    args = settings.training
    method = get_method(run.method)
    set_seed(args.seed)  # heads begin at random
    model, tokenizer = _untrained(settings, backbone, dialogues)
    learnt = ExampleDataset(
        make_examples(method, dialogues, model.config, args, run, report), dialogues
    )
    measured = None
    if run.dev_candidates is not None:
        measured = ExampleDataset(given_examples(run.dev_candidates))
    elif dev:
        measured = ExampleDataset(
            make_examples(method, dev, model.config, args, run, logger.info, "eval"), dev
        )
    # Trainer evaluates where it saves, and ends with the best checkpoint
    if run.checkpoint_selection != "last":
        args.eval_strategy = args.save_strategy
        args.eval_steps = args.save_steps
        args.load_best_model_at_end = True
        args.metric_for_best_model = run.checkpoint_selection
        args.greater_is_better = SELECTIONS[run.checkpoint_selection]
    trainer = DialogueTrainer(
        model,
        args,
        train_dataset=learnt,
        eval_dataset=measured,
        processing_class=tokenizer,
        run=run,
        callbacks=list(callbacks),
    )
    shards = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if shards and (run.center or run.average_with_backbone or run.rank):
        raise InputError(
            "center, average_with_backbone, rank: got settings that need all weights in one "
            "place, but FSDP or DeepSpeed shards them; leave them out, or train without it"
        )
    return trainer


def _untrained(
    settings: Settings, backbone: str | None, dialogues: Sequence[Dialogue]
) -> tuple[MethodModel, Any]:
    run = settings.run
    trusted = {"trust_remote_code": True} if run.trust_remote_code else {}
    return get_method(run.method).model_class.build(
        backbone, dialogues, run.dropout, **trusted, **settings.method
    )


@torch.no_grad()
def _finish(
    trainer: DialogueTrainer,
    settings: Settings,
    backbone: str | None,
    dialogues: Sequence[Dialogue],
) -> None:
    """Average the trained model with the backbone and centre it; refuse one that went astray."""
    # Without the wrapper of mixed precision, the centre is the same whether or not the run was
    # resumed at its end.
    model: Any = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    if settings.run.rank is not None:
        without_adapters(model, merge=True)
    check_finite(model, trainer.state.log_history)
    if trainer.is_world_process_zero():
        if settings.run.average_with_backbone:
            _average(model, str(backbone), settings)
        if settings.run.center:
            _center(model, trainer, dialogues, settings.run.center)


def check_finite(model: nn.Module, log: Sequence[dict[str, float]]) -> None:
    """Refuse weights that are not finite; all processes stop where those of one are not."""
    lost = None
    for name, value in model.named_parameters():
        own = value.to_local() if hasattr(value, "to_local") else value
        if not torch.isfinite(own).all():
            lost = name
            break
    norms = [entry["grad_norm"] for entry in log if "grad_norm" in entry]
    # clipping turned such a step into nothing
    if lost is None and norms and not math.isfinite(norms[-1]):
        lost = "the last step's gradient"
    lost = next(filter(None, gather_object([lost])), None)
    if lost is not None:
        raise InputError(
            f"the training went astray: {lost} holds numbers that are not finite; start over "
            "(--resume false) with a lower learning_rate or a higher loss_temperature, or another "
            "backbone"
        )


def _average(model: MethodModel, backbone: str, settings: Settings) -> None:
    """Move the weights towards the backbone's.

    A straight line in weight space keeps what the backbone knew.
    """
    start, _ = _untrained(settings, backbone, ())
    before = start.state_dict()
    for name, value in model.state_dict().items():
        if name in before and value.is_floating_point() and not name.startswith("heads."):
            value.lerp_(before[name].to(value), settings.run.average_with_backbone)


def _center(
    model: DialogueEncoder, trainer: DialogueTrainer, dialogues: Sequence[Dialogue], share: float
) -> None:
    """Store a share of the mean embedding of some training dialogues as the centre."""
    rows = np.random.default_rng(trainer.args.seed).permutation(len(dialogues))[:_CENTER_SAMPLE]
    vectors = encode(
        model, trainer.collator.tokenizer, [dialogues[row] for row in rows], show_progress=True
    )
    model.center.add_(share * torch.from_numpy(vectors.mean(axis=0)).to(model.center))
