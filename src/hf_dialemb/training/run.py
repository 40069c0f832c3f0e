"""One training run, from settings or Python's arguments to a saved encoder."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import math
import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from transformers import set_seed

from ..checkpoints.pretrained import resolve_backbone
from ..corpora import load_dialogues
from ..dialogue import Dialogue
from ..encoders.loading import EncoderRun
from ..errors import InputError
from ..hashing import sha256, text_key
from ..methods import get_method
from ..methods.backbone_model import MethodModel
from ..methods.encoder import DialogueEncoder, encode
from ..methods.method import Examples
from ..runs.files import check_not_read, check_writable, locked, write_json_atomically
from ..runs.folder import RunFolder, check_same, field_of, read_object
from ..runs.hardware import describe_hardware
from .arguments import make_settings
from .data import given_examples, make_examples, weights_digest
from .dialogues import dev_dialogues, training_dialogues
from .language_model import adapted_backbone
from .low_rank import merge_factors
from .settings import SELECTIONS, Report, Settings
from .trainer import DialogueTrainer, last_complete_checkpoint, restore_finished

logger = logging.getLogger(__name__)

_CENTER_SAMPLE = 500


def train(
    method: str,
    dialogues: Any,  # noqa: ANN401 - see load_dialogues
    *,
    output_dir: str | Path,
    backbone: str | None = None,
    dev_dialogues: Any = None,  # noqa: ANN401
    recipe: str | Path | None = None,
    **settings: Any,  # noqa: ANN401
) -> EncoderRun:
    """Train an encoder on dialogues; call it again with the same arguments to resume.

    Examples:
        >>> run = hf_dialemb.train("dse", dialogues, output_dir="runs/mine", max_steps=100)
        >>> run.encoder().encode(dialogues)

    Args:
        method: ``dial2vec``, ``dse``, ``dialog2flow``, ``dialogue_cse``, a ranker of responses, or a method that was
            registered.
        dialogues: A list of dialogues (lists of chat messages, or `Dialogue` objects), a ``datasets.Dataset``, a path,
            or the name of a corpus.
        output_dir: The folder of the run; it loads as an encoder everywhere.
        backbone: Folder or Hub id of the encoder to start from; by default all-MiniLM-L6-v2.
        dev_dialogues: Dialogues that choose the checkpoint (see ``checkpoint_selection``), in the forms of
            ``dialogues``.
        recipe: The name of a recipe, such as ``dse_minilm``, or a YAML file; the arguments here win over it.
        **settings: Settings of `RunArguments`, of the method's config, or of transformers' ``TrainingArguments``.

    Raises:
        InputError: A setting is unknown, wrong or not for this method, or the method cannot use the dialogues.
    """
    in_memory = not isinstance(dialogues, str | Path)
    usual: dict[str, Any] = {"exclude": ["none"]} if in_memory else {}
    usual |= {} if dev_dialogues is None else {"dev_split": "dev"}
    given = {"method": method, "output_dir": output_dir, "corpus": [] if in_memory else dialogues}
    given |= {} if backbone is None else {"backbone": backbone}
    request = make_settings({**usual, **settings, **given}, recipe)
    report = logger.info if request.training.process_index == 0 else lambda line: None
    learnt = load_dialogues(dialogues) if in_memory else None
    dev = None if dev_dialogues is None else load_dialogues(dev_dialogues)
    return EncoderRun(run_training(request, report, learnt, dev))


def run_training(
    settings: Settings,
    report: Report = lambda line: None,
    dialogues: Sequence[Dialogue] | None = None,
    dev: Sequence[Dialogue] | None = None,
) -> Path:
    """Train an encoder and save it with its tokenizer, its settings and a report to ``output_dir``.

    Run again with the same settings, it resumes from the last checkpoint and ends in the same weights.

    Args:
        settings: The run, its method and its trainer.
        report: Receives one line per fact.
        dialogues: Replace the corpora that the settings name.
        dev: Replace their dev split.

    Raises:
        InputError: The data, the backbone or the output folder cannot be used.
    """
    output = Path(str(settings.training.output_dir))
    check_writable(RunFolder(output).settings_file)
    with locked(output, "choose another --output_dir") if PartialState().is_main_process else nullcontext():
        run, started = settings.run, time.time()
        method = get_method(run.method)
        dev = [] if run.dev_candidates is not None else dev_dialogues(run, method, report, dev)
        dialogues = training_dialogues(run, method, settings.sample_seed, report, dialogues)
        backbone = run.backbone if method.from_scratch else resolve_backbone(str(run.backbone))
        check_not_read(output, *filter(None, [backbone]))
        checkpoint = _starting_point(settings, output, dialogues, dev, report)
        if checkpoint is not None and RunFolder(output).complete:
            report(f"Complete already: {output}")
            return output
        if backbone is not None:
            backbone = adapted_backbone(settings, backbone, dialogues, report)
        trainer = build_trainer(settings, backbone, dialogues, dev, report)
        if checkpoint is not None:
            report(f"Resuming from {checkpoint}")
        if checkpoint is None or not restore_finished(trainer, checkpoint):
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        _save(trainer, settings, backbone, dialogues)
        if trainer.is_world_process_zero():
            _report(trainer, output, len(dialogues), checkpoint, started, report)
    return output


def build_trainer(
    settings: Settings, backbone: str | None, dialogues: Sequence[Dialogue], dev: Sequence[Dialogue], report: Report
) -> DialogueTrainer:
    """Build the model of a run and the trainer of its examples."""
    run, args = settings.run, settings.training
    method = get_method(run.method)
    set_seed(args.seed)  # heads begin at random
    model, tokenizer = method.model_class.build(backbone, dialogues, run.dropout, **settings.method)
    examples = make_examples(method, dialogues, model.config, args, run, report)
    dev_examples = _dev_examples(settings, dev, model.config)
    model.freeze_lower_layers()
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError("frozen_layers: got all layers, which leaves nothing to learn; lower it")
    if run.checkpoint_selection != "last":  # Trainer evaluates where it saves, and ends with the best checkpoint
        args.eval_strategy, args.eval_steps = args.save_strategy, args.save_steps
        args.load_best_model_at_end, args.metric_for_best_model = True, run.checkpoint_selection
        args.greater_is_better = SELECTIONS[run.checkpoint_selection]
    trainer = DialogueTrainer(
        model, args, (), tokenizer, dev_dialogues=dev or None, run=run, examples=examples, dev_examples=dev_examples
    )
    shards = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if shards and (run.center or run.average_with_backbone or run.rank):
        raise InputError(
            "center, average_with_backbone, rank: got settings that need all weights on one device, but FSDP or "
            "DeepSpeed shards them; leave them out, or train without it"
        )
    return trainer


def _dev_examples(settings: Settings, dev: Sequence[Dialogue], config: Any) -> Examples | None:  # noqa: ANN401
    """Make the examples that choose a checkpoint; a ranker's candidates are drawn from all responses."""
    if settings.run.dev_candidates is not None:
        return given_examples(settings.run.dev_candidates)
    if not dev:
        return None
    method = get_method(settings.run.method)
    if method.kind == "responses":
        config = copy.deepcopy(config)
        config.granularity = None
    return make_examples(method, dev, config, settings.training, settings.run, lambda line: None, "eval")


@torch.no_grad()
def _save(trainer: DialogueTrainer, settings: Settings, backbone: str | None, dialogues: Sequence[Dialogue]) -> None:
    """Save the trained model, once averaged with the backbone and centred; refuse one that went astray."""
    # Without the wrapper of mixed precision, the centre is the same whether or not the run was resumed at its end.
    model: Any = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    merge_factors(model)
    _check_finite(model, trainer.state.log_history)
    if trainer.is_world_process_zero():
        if settings.run.average_with_backbone:
            _average(model, str(backbone), settings)
        if settings.run.center:
            _center(model, trainer, dialogues)
    trainer.save_model(str(trainer.args.output_dir))


def _check_finite(model: torch.nn.Module, log: Sequence[dict[str, float]]) -> None:
    lost = next((name for name, parameter in model.named_parameters() if not torch.isfinite(parameter).all()), None)
    norms = [entry["grad_norm"] for entry in log if "grad_norm" in entry]
    if lost is None and norms and not math.isfinite(norms[-1]):  # clipping turned such a step into nothing
        lost = "the last step's gradient"
    if lost is not None:
        raise InputError(
            f"the training went astray: {lost} holds numbers that are not finite; start over (--resume false) with a "
            "lower learning_rate or a higher loss_temperature, or another backbone"
        )


def _average(model: MethodModel, backbone: str, settings: Settings) -> None:
    """Move the weights towards the backbone's: a straight line in weight space keeps what the backbone knew."""
    model_class = get_method(settings.run.method).model_class
    start, _ = model_class.build(backbone, (), settings.run.dropout, **settings.method)
    before = start.state_dict()
    for name, value in model.state_dict().items():
        if name in before and value.is_floating_point() and not name.startswith("heads."):
            value.lerp_(before[name].to(value), settings.run.average_with_backbone)


def _center(model: DialogueEncoder, trainer: DialogueTrainer, dialogues: Sequence[Dialogue]) -> None:
    """Store the mean embedding of a sample of the training dialogues as the model's centre."""
    rows = np.random.default_rng(trainer.args.seed).permutation(len(dialogues))[:_CENTER_SAMPLE]
    vectors = encode(model, trainer.collator.tokenizer, [dialogues[row] for row in rows], show_progress=True)
    model.center.add_(torch.from_numpy(vectors.mean(axis=0)).to(model.center))


def _report(
    trainer: DialogueTrainer, output: Path, dialogues: int, resumed: Path | None, started: float, report: Report
) -> None:
    """Write the facts of a finished run, and report the most important."""
    state, counted = trainer.state, trainer.collator.truncation
    truncation = f"{counted}, counted on every pass{' since the run was resumed' if resumed else ''}"
    if trainer.args.dataloader_num_workers:
        truncation = "truncation was not counted, as other processes made the batches"
    elif not counted.dialogues:
        truncation = "truncation was not counted, as an earlier run had made all batches"
    record = {
        "steps": state.global_step,
        "dialogues": dialogues,
        "examples": len(trainer.examples),
        "processes": trainer.args.world_size,
        "hardware": describe_hardware(trainer.args.device.type == "cuda"),
        "energy": _energy(trainer),
        "resumed_from": None if resumed is None else resumed.name,
        "seconds": time.time() - started,
        "truncation": truncation,
        "checkpoint": Path(state.best_model_checkpoint or "last").name,
        "log": [{name: _number(value) for name, value in entry.items()} for entry in state.log_history],
    }
    write_json_atomically(RunFolder(output).report_file, record)
    report(f"Trained {state.global_step:,} steps on {dialogues:,} dialogues in {record['seconds']:.0f} s")
    report(f"{truncation}; kept: checkpoint '{record['checkpoint']}'")
    report(f"Wrote {output}")


def _number(value: Any) -> Any:  # noqa: ANN401 - of a log
    """Return None for what JSON does not have: the infinite gradient of a step that mixed precision skips."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _energy(trainer: DialogueTrainer) -> dict[str, Any] | None:
    """Return what codecarbon measured; None unless ``report_to`` names it."""
    trackers = (getattr(callback, "tracker", None) for callback in trainer.callback_handler.callbacks)
    measured: Any = next(filter(None, (getattr(tracker, "final_emissions_data", None) for tracker in trackers)), None)
    return measured and {
        "kwh": measured.energy_consumed,
        "co2eq_kg": measured.emissions,
        "country": measured.country_name,
        "tool": f"codecarbon {metadata.version('codecarbon')}",
    }


def _starting_point(
    settings: Settings, output: Path, dialogues: Sequence[Dialogue], dev: Sequence[Dialogue], report: Report
) -> Path | None:
    """Find the checkpoint to resume from, and refuse that of another run; only the main process writes."""
    folder, state, fingerprint = RunFolder(output), PartialState(), settings.fingerprint()
    saving = {
        "save_strategy": str(getattr(settings.training.save_strategy, "value", settings.training.save_strategy)),
        "save_steps": settings.training.save_steps,
    }
    # Processes share the batches of a step.
    data = {"num_processes": state.num_processes, **_described(dialogues), **_chosen_by(settings, dev, saving)}
    with state.main_process_first():
        others = [output / name for name in ("config.json", "modules.json") if (output / name).is_file()]
        if not folder.settings_file.is_file() and (folder.checkpoints() or others):
            raise InputError(
                f"{output} holds {'a model' if others else 'checkpoints'} without {folder.settings_file.name}, which "
                "another program wrote; choose another --output_dir"
            )
        if not settings.run.resume and state.is_main_process:
            for begun in folder.checkpoints():
                shutil.rmtree(begun)
        checkpoint = last_complete_checkpoint(output, report)
        if checkpoint is not None:
            again = "start over with --resume false"
            for path, now, name in (
                (folder.settings_file, fingerprint, "method"), (folder.data_file, data, "sha256")
            ):  # fmt: skip
                check_same(path, now, "a run")
                field_of(read_object(path, again), name, str(path), again)
        elif state.is_main_process:
            folder.report_file.unlink(missing_ok=True)  # of the run before
            write_json_atomically(folder.data_file, data)
            write_json_atomically(folder.settings_file, fingerprint | saving)
        if state.is_main_process:
            write_json_atomically(folder.texts_file, {"texts": sorted({text_key(dialogue) for dialogue in dialogues})})
    return checkpoint


def check_same_data(output: Path, dialogues: Sequence[Dialogue]) -> None:
    """Raise InputError unless a run was trained on these dialogues."""
    check_same(RunFolder(output).data_file, _described(dialogues), "a run")


def _described(dialogues: Sequence[Dialogue]) -> dict[str, Any]:
    digest = hashlib.sha256()
    for dialogue in dialogues:
        digest.update(json.dumps(dialogue.to_json(), sort_keys=True).encode() + b"\n")
    return {"dialogues": len(dialogues), "sha256": digest.hexdigest()}


def _chosen_by(settings: Settings, dev: Sequence[Dialogue], saving: dict[str, Any]) -> dict[str, Any]:
    """Describe further inputs that decide the last weights: the data of the signal, and the granularity model."""
    run, facts = settings.run, dict[str, Any]()
    if run.dev_candidates is not None and Path(run.dev_candidates).is_file():
        facts["dev_sha256"] = sha256(Path(run.dev_candidates))
    elif dev:
        facts["dev_sha256"] = _described(dev)["sha256"]
    if run.checkpoint_selection != "last":
        # Some losses are of batches. When checkpoints are written decides nothing where the last one is kept.
        facts |= {"per_device_eval_batch_size": settings.training.per_device_eval_batch_size, **saving}
    if run.granularity_model is not None:
        facts["granularity_model_sha256"] = weights_digest(Path(run.granularity_model))
    return facts
