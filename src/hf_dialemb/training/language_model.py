"""Continued masked-language-model pre-training of a backbone on the utterances of a run
(DialogueCSE, section 5.3).

Masking and training are transformers' own. A backbone without a language-model head gets an
untrained one.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    set_seed,
)

from ..dialogue import Dialogue
from ..errors import InputError
from ..methods.layout import escape, shortened, special_texts
from ..storage.files import write_json_atomically
from ..storage.pretrained import load_pretrained
from ..storage.run_folder import check_same
from .settings import Report, Settings

REPORT_FILE = "language_model_report.json"
_SHARED = ("logging_steps", "seed", "bf16", "fp16", "use_cpu", "disable_tqdm")
"""Settings that this training shares with the run's own."""


def adapted_backbone(
    settings: Settings, backbone: str, dialogues: Sequence[Dialogue], report: Report
) -> str:
    """Continue the pre-training of a backbone if the run asks for it, and return the folder.

    A stopped one starts over.

    An InputError says that it has no mask token, or the folder holds the outcome of other settings
    or utterances.
    """
    run, args = settings.run, settings.training
    if run.language_model_epochs is None:
        return backbone
    folder = Path(str(args.output_dir)) / "language_model"
    texts = [turn.content for dialogue in dialogues for turn in dialogue.turns]
    # the latter is a ranker's
    longest = int(settings.method.get("max_tokens") or settings.method["max_context_tokens"])
    made_of = {
        "backbone": run.backbone,
        "utterances": len(texts),
        "sha256": hashlib.sha256(json.dumps(texts).encode()).hexdigest(),
        "language_model_epochs": run.language_model_epochs,
        "max_tokens": longest,
        "seed": args.seed,
    }
    with args.main_process_first():
        if not run.resume and args.process_index == 0:
            (folder / REPORT_FILE).unlink(missing_ok=True)
        check_same(folder / REPORT_FILE, made_of, "a language model")
        complete = (folder / REPORT_FILE).is_file()
    if complete:
        report(f"Language model: complete already, in {folder}")
        return str(folder)
    started = time.time()
    trainer = _trainer(settings, backbone, texts, longest, folder)
    trainer.train()
    trainer.save_model(str(folder))
    if trainer.is_world_process_zero():
        steps, seconds = trainer.state.global_step, time.time() - started
        record = {**made_of, "steps": steps, "seconds": seconds, "log": trainer.state.log_history}
        write_json_atomically(folder / REPORT_FILE, record)
        report(
            f"Language model: {steps:,} steps on {len(texts):,} utterances in {seconds:.0f} s; "
            f"wrote {folder}"
        )
    trainer.accelerator.wait_for_everyone()
    return str(folder)


def _trainer(
    settings: Settings, backbone: str, texts: Sequence[str], longest: int, folder: Path
) -> Trainer:
    run, args = settings.run, settings.training
    trusted = {"trust_remote_code": run.trust_remote_code}
    set_seed(args.seed)  # a new head begins at random
    tokenizer = load_pretrained(AutoTokenizer, backbone, **trusted)
    if tokenizer.mask_token is None:
        raise InputError(
            f"backbone: got '{run.backbone}', whose tokenizer has no mask token, expected a masked "
            "language model for "
            "language_model_epochs; leave it out, or choose another backbone"
        )
    model = load_pretrained(AutoModelForMaskedLM, backbone, **trusted).float()
    if args.device.type == "cpu":
        model.set_attn_implementation("eager")  # as for the method's own training
    specials = special_texts(tokenizer)

    def tokenise(batch: dict[str, list[str]]) -> Any:
        escaped = [escape(text, specials) for text in shortened(batch["text"], tokenizer, longest)]
        return tokenizer(
            escaped, truncation=True, max_length=longest, return_special_tokens_mask=True
        )

    return Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder),
            learning_rate=2e-5,
            per_device_train_batch_size=50,
            num_train_epochs=run.language_model_epochs or 0,
            save_strategy="no",
            report_to="none",
            remove_unused_columns=False,
            **{name: getattr(args, name) for name in _SHARED},
        ),
        train_dataset=Dataset.from_dict({"text": texts}).with_transform(tokenise),
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15),
        processing_class=tokenizer,
    )
