"""Continued masked-language-model pre-training of a backbone on the utterances of a run.

DialogueCSE (section 5.3) does so for about half an epoch before it contrasts, and calls the result domain-adaptive BERT
(section 5.2.1; Gururangan et al., 2020). Masking and training are transformers' own. A backbone without a
language-model head, such as all-MiniLM-L6-v2, gets an untrained one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import torch
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from ..checkpoints.pretrained import load_pretrained
from ..dialogue import Dialogue
from ..errors import InputError
from ..methods.layout import shortened
from ..methods.markers import escape, special_texts
from ..runs.files import write_json_atomically
from ..runs.folder import check_same
from .trainer import last_complete_checkpoint, mark_complete, restore_finished

if TYPE_CHECKING:
    from .settings import Report, Settings

FOLDER = "language_model"
SETTINGS_FILE, REPORT_FILE = "language_model_settings.json", "language_model_report.json"
MASKED_SHARE, LEARNING_RATE, BATCH_SIZE = 0.15, 2e-5, 50
_SHARED = ("save_steps", "logging_steps", "seed", "bf16", "fp16", "use_cpu", "disable_tqdm")
"""Settings that this training shares with the run's own."""


def adapted_backbone(settings: Settings, backbone: str, dialogues: Sequence[Dialogue], report: Report) -> str:
    """Continue the pre-training of a backbone if the run asks for it, and return the folder; resume a stopped one."""
    run, args = settings.run, settings.training
    if run.language_model_steps is None and run.language_model_epochs is None:
        return backbone
    folder = Path(str(args.output_dir)) / FOLDER
    texts = [turn.content for dialogue in dialogues for turn in dialogue.turns]
    wanted = {
        "backbone": run.backbone,
        "utterances": len(texts),
        "sha256": hashlib.sha256(json.dumps(texts).encode()).hexdigest(),
        "language_model_steps": run.language_model_steps,
        "language_model_epochs": run.language_model_epochs,
        "max_tokens": _max_tokens(settings),
        "seed": args.seed,
    }
    with args.main_process_first():
        complete = _is_complete(folder, wanted, run.resume, args.process_index == 0)
    if complete:
        report(f"Language model: complete already, in {folder}")
        return str(folder)
    started = time.time()
    trainer = _trainer(settings, backbone, texts, folder)
    checkpoint = last_complete_checkpoint(folder, report)
    if checkpoint is None or not restore_finished(trainer, checkpoint):
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    trainer.save_model(str(folder))
    if trainer.is_world_process_zero():
        steps, seconds = trainer.state.global_step, time.time() - started
        record = {"steps": steps, "seconds": seconds, "log": trainer.state.log_history}
        write_json_atomically(folder / REPORT_FILE, record)
        for path in folder.glob("checkpoint-*"):
            shutil.rmtree(path)
        report(f"Language model: {steps:,} steps on {len(texts):,} utterances in {seconds:.0f} s; wrote {folder}")
    trainer.accelerator.wait_for_everyone()
    return str(folder)


class _Utterances:
    """Utterances, tokenised on access."""

    def __init__(self, texts: Sequence[str], tokenizer: Any, max_tokens: int) -> None:  # noqa: ANN401
        self.texts, self.tokenizer, self.max_tokens = texts, tokenizer, max_tokens
        self.specials = special_texts(tokenizer)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - transformers' BatchEncoding
        text = escape(shortened([self.texts[index]], self.tokenizer, self.max_tokens)[0], self.specials)
        return self.tokenizer(text, truncation=True, max_length=self.max_tokens, return_special_tokens_mask=True)


class _Masking(DataCollatorForLanguageModeling):
    """Draw the masks of a batch from its tokens, so that a resumed run masks as an uninterrupted one."""

    def torch_call(self, examples: Any) -> dict[str, Any]:  # noqa: ANN401
        tokens = np.concatenate([np.asarray(example["input_ids"]) for example in examples])
        self.generator = torch.Generator().manual_seed(crc32(tokens.tobytes(), self.seed or 0))
        batch: dict[str, Any] = super().torch_call(examples)
        return batch


class _MarkComplete(TrainerCallback):
    """Mark a checkpoint when all of it is written; a killed run resumes from a marked one."""

    def on_save(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401
        if state.is_world_process_zero:
            mark_complete(Path(str(args.output_dir)) / f"checkpoint-{state.global_step}")


def _trainer(settings: Settings, backbone: str, texts: Sequence[str], folder: Path) -> Trainer:
    run, args = settings.run, settings.training
    set_seed(args.seed)  # a new head begins at random
    tokenizer = load_pretrained(AutoTokenizer, backbone)
    if tokenizer.mask_token is None:
        raise InputError(
            f"backbone: got '{run.backbone}', whose tokenizer has no mask token, expected a masked language model for "
            "language_model_steps or language_model_epochs; leave them out, or choose another backbone"
        )
    model = load_pretrained(AutoModelForMaskedLM, backbone).float()
    if args.device.type == "cpu":
        model.set_attn_implementation("eager")  # as for the method's own training
    return Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder),
            learning_rate=LEARNING_RATE,
            per_device_train_batch_size=BATCH_SIZE,
            num_train_epochs=run.language_model_epochs or 1.0,
            max_steps=run.language_model_steps or -1,
            save_total_limit=2,  # while the newest is being written, the one before it is whole
            report_to="none",
            remove_unused_columns=False,
            **{name: getattr(args, name) for name in _SHARED},
        ),
        train_dataset=_Utterances(texts, tokenizer, _max_tokens(settings)),
        data_collator=_Masking(tokenizer, mlm_probability=MASKED_SHARE, seed=args.seed),
        processing_class=tokenizer,
        callbacks=[_MarkComplete()],
    )


def _max_tokens(settings: Settings) -> int:
    names = ("max_tokens", "max_context_tokens")  # the latter is a ranker's
    return int(next(settings.method[name] for name in names if name in settings.method))


def _is_complete(folder: Path, wanted: dict[str, Any], resume: bool, may_write: bool) -> bool:
    """Return whether the stage is complete; refuse the folder of another one, unless the run starts over."""
    if not resume and may_write and folder.is_dir():
        shutil.rmtree(folder)
    file = folder / SETTINGS_FILE
    check_same(file, wanted, "a language model")
    if may_write and not file.is_file():
        write_json_atomically(file, wanted)
    return (folder / REPORT_FILE).is_file()
