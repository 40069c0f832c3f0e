"""One training run from settings to a saved encoder."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from ..corpora import CORPORA, load_dialogues
from ..corpora.at_hand import sets_at_hand
from ..corpora.corpus import ALL, SPLITS
from ..corpora.leakage import build_index, check_apart
from ..corpora.leakage_report import Cleaning
from ..corpora.own import is_own
from ..models import get_method
from ..models.backbones import resolve_backbone
from ..models.dialogue import Dialogue
from ..models.encoder import DialogueEncoder, encode
from ..models.errors import InputError
from ..models.files import check_writable, write_json_atomically
from ..models.method import Method
from .arguments import SELECTIONS, RunArguments, Settings
from .data import Collator
from .trainer import DialogueTrainer, last_complete_checkpoint

SETTINGS_FILE = "training_settings.json"
REPORT_FILE = "training_report.json"
CENTER_SAMPLE = 500


def train(settings: Settings, report: Callable[[str], None] = lambda line: None) -> Path:
    """Trains an encoder and saves it with its tokenizer, its settings and a report.

    Run again with the same settings, it goes on from the last checkpoint and ends in the same weights.

    Args:
        settings: What `parse` returned.
        report: Receives one line per fact worth telling.

    Returns:
        The folder of the trained encoder: ``output_dir``.

    Raises:
        InputError: The data, the backbone or the output folder cannot be used.
    """
    run, output, started = settings.run, Path(str(settings.training.output_dir)), time.time()
    check_writable(output / SETTINGS_FILE)
    dialogues = _usable(_without_leaks(_load(run, run.corpus, run.train_split), run, report), run, report)
    if run.max_dialogues is not None:  # drawn, not the first: corpora are often sorted by domain
        rows = np.random.default_rng(settings.training.seed).permutation(len(dialogues))[: run.max_dialogues]
        dialogues = [dialogues[row] for row in sorted(rows)]
    backbone = resolve_backbone(run.backbone)
    checkpoint = _starting_point(settings, output)
    trainer = _build_trainer(settings, backbone, dialogues, report)
    if checkpoint is not None:
        report(f"Resuming from {checkpoint}")
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if trainer.is_world_process_zero():
        model = trainer.accelerator.unwrap_model(trainer.model)
        if run.average_with_backbone:
            _average(model, get_method(run.method), backbone, settings)
        if run.center:
            _center(model, trainer.collator.tokenizer, dialogues, settings.training.seed)
    trainer.save_model(str(output))
    if trainer.is_world_process_zero():
        _report(trainer, output, dialogues, started, report)
    return output


def _build_trainer(
    settings: Settings, backbone: str, dialogues: Sequence[Dialogue], report: Callable[[str], None]
) -> DialogueTrainer:
    run, args = settings.run, settings.training
    method = get_method(run.method)
    model, tokenizer = method.model_class.from_backbone(backbone, dropout=run.dropout, **settings.method)
    examples = method.examples(dialogues, model.config, args.seed)
    dev = _dev_dialogues(run, report)
    dev_examples = method.examples(dev, model.config, args.seed) if dev else None
    model.freeze_lower_layers()
    _select_by_signal(settings)
    collator = Collator(method, tokenizer, model.config)
    return DialogueTrainer(
        examples, run, collator, dev, dev_examples, model=model, args=args, processing_class=tokenizer
    )


def _report(
    trainer: DialogueTrainer,
    output: Path,
    dialogues: Sequence[Dialogue],
    started: float,
    report: Callable[[str], None],
) -> None:
    """Writes and tells what the run did."""
    state, truncation = trainer.state, trainer.collator.truncation
    record = {
        "steps": state.global_step,
        "dialogues": len(dialogues),
        "examples": len(trainer.examples),
        "processes": trainer.args.world_size,
        "seconds": time.time() - started,
        "truncation": str(truncation),
        "checkpoint": Path(state.best_model_checkpoint or "last").name,
        "log": state.log_history,
    }
    write_json_atomically(output / REPORT_FILE, record)
    report(f"Trained {state.global_step:,} steps on {len(dialogues):,} dialogues in {record['seconds']:.0f} s")
    report(f"{truncation}; kept: checkpoint '{record['checkpoint']}'")
    report(f"Wrote {output}")


def _starting_point(settings: Settings, output: Path) -> Path | None:
    """Finds the checkpoint to go on from; refuses one of another run. Only the main process writes."""
    from accelerate import PartialState

    state, fingerprint = PartialState(), settings.fingerprint()
    with state.main_process_first():
        if not settings.run.resume and state.is_main_process:
            for folder in output.glob("checkpoint-*"):
                shutil.rmtree(folder)
        checkpoint = last_complete_checkpoint(output)
        file = output / SETTINGS_FILE
        if checkpoint is not None and file.is_file():
            before = json.loads(file.read_text(encoding="utf-8"))
            changed = [name for name in fingerprint if before.get(name) != fingerprint[name]]
            if changed:
                raise InputError(
                    f"{output} holds a run with another {changed[0]} ({before.get(changed[0])} there, "
                    f"{fingerprint[changed[0]]} now); choose another --output_dir, or start over with --resume false"
                )
        elif state.is_main_process:
            output.mkdir(parents=True, exist_ok=True)
            write_json_atomically(file, fingerprint)
    return checkpoint


def _load(run: RunArguments, corpus: str, split: str) -> list[Dialogue]:
    return load_dialogues(
        corpus, run.data_dir, split, skip_invalid=run.skip_invalid, columns=run.columns, roles=run.roles
    )


def _without_leaks(dialogues: list[Dialogue], run: RunArguments, report: Callable[[str], None]) -> list[Dialogue]:
    """Leaves out what evaluation sets hold: those that were named, or the other splits of the corpus."""
    names = list(run.exclude or ())
    if run.exclude is None and run.corpus in CORPORA:
        others = [split for split in SPLITS if run.train_split not in (split, ALL)]
        names = list(sets_at_hand(run.data_dir, others, names=[run.corpus], skip_invalid=run.skip_invalid))
    if names == ["none"]:
        return dialogues
    if run.dev_split is not None and _own_dev(run):
        names.append(run.dev_split)
    if not names:
        return dialogues
    check_apart([run.corpus if is_own(run.corpus) else f"{run.corpus}/{run.train_split}"], names)
    cleaning = Cleaning()
    index = build_index(names, run.data_dir, skip_invalid=run.skip_invalid)
    kept = list(index.clean(dialogues, cleaning))
    report(
        f"Left out of training, as {', '.join(names)} hold them or nearly so: {cleaning.removed_dialogues:,} dialogues "
        f"({cleaning.removed_turns:,} turns)"
    )
    return kept


def _usable(dialogues: Sequence[Dialogue], run: RunArguments, report: Callable[[str], None]) -> list[Dialogue]:
    kept = [dialogue for dialogue in dialogues if len(dialogue.turns) >= run.min_turns]
    if len(kept) < len(dialogues):
        report(f"Left out {len(dialogues) - len(kept):,} dialogues of fewer than {run.min_turns} turns")
    if run.skip_invalid:
        paired = [dialogue for dialogue in kept if len(dialogue.roles) > 1]
        if len(paired) < len(kept):
            report(f"Left out {len(kept) - len(paired):,} dialogues of one speaker")
        kept = paired
    return kept


def _own_dev(run: RunArguments) -> bool:
    return run.dev_split not in SPLITS and is_own(str(run.dev_split))


def _dev_dialogues(run: RunArguments, report: Callable[[str], None]) -> list[Dialogue]:
    if run.dev_split is None:
        return []
    own = _own_dev(run)
    if not own and run.corpus not in CORPORA and is_own(run.corpus):
        raise InputError(f"dev_split: got '{run.dev_split}', but {run.corpus} has no splits; give another file")
    dialogues = _load(run, run.dev_split if own else run.corpus, run.dev_split)
    if run.checkpoint_selection == "dev_purity":
        dialogues = [dialogue for dialogue in dialogues if len(dialogue.domains) == 1]
    return _usable(dialogues, run, report)[: run.max_dev_dialogues]


def _select_by_signal(settings: Settings) -> None:
    """Lets Trainer evaluate where it saves, and end with the best checkpoint."""
    run, args = settings.run, settings.training
    if run.checkpoint_selection == "last":
        return
    args.eval_strategy, args.eval_steps = args.save_strategy, args.save_steps
    args.load_best_model_at_end = True
    args.metric_for_best_model = run.checkpoint_selection
    args.greater_is_better = SELECTIONS[run.checkpoint_selection]


@torch.no_grad()
def _average(model: DialogueEncoder, method: Method, backbone: str, settings: Settings) -> None:
    """Moves the weights towards the backbone's: a straight line in weight space keeps what the backbone knew."""
    start, _ = method.model_class.from_backbone(backbone, dropout=settings.run.dropout, **settings.method)
    before = start.state_dict()
    for name, value in model.state_dict().items():
        value.lerp_(before[name].to(value), settings.run.average_with_backbone)


@torch.no_grad()
def _center(
    model: DialogueEncoder, tokenizer: PreTrainedTokenizerBase, dialogues: Sequence[Dialogue], seed: int
) -> None:
    """Stores the mean embedding of a sample of the training dialogues as the model's centre."""
    rows = np.random.default_rng(seed).permutation(len(dialogues))[:CENTER_SAMPLE]
    vectors = encode(model, tokenizer, [dialogues[row] for row in rows], show_progress=True)
    model.center.add_(torch.from_numpy(vectors.mean(axis=0)).to(model.center))
