"""Mistakes in the settings of a training, told at once.

Names, types and choices are read from the source text of the dataclasses, since importing torch and transformers takes
many seconds. What passes here is checked again, and more closely, where the settings are parsed.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError, unknown_name
from ..methods import METHODS, check_method_name
from ..ranges import Range, check_range
from .checks import RANGES
from .settings import RUN_RANGES

# What other programs call a setting.
_ALSO = {
    "batch_size": "per_device_train_batch_size", "bs": "per_device_train_batch_size", "lr": "learning_rate",
    "epochs": "num_train_epochs", "num_epochs": "num_train_epochs", "steps": "max_steps", "output": "output_dir",
    "out": "output_dir", "model": "backbone", "base_model": "backbone", "data": "corpus", "input": "corpus",
    "dataset": "corpus", "dev": "dev_split", "split": "train_split", "limit": "max_dialogues", "warmup": "warmup_steps",
    "warmup_ratio": "warmup_steps", "scheduler": "lr_scheduler_type", "optimizer": "optim", "temperature":
    "loss_temperature", "max_length": "max_tokens", "max_seq_length": "max_tokens", "eval": "dev_split",
    "accumulation_steps": "gradient_accumulation_steps", "num_workers": "dataloader_num_workers", "lora_rank": "rank",
}  # fmt: skip


def check_words(words: Sequence[str], method: str) -> None:
    """Refuses an unknown setting, and a number or a choice that cannot be.

    Args:
        words: Settings as ``--field value`` or ``--field=value``.
        method: The method whose settings may be among them; of a method from outside only its name is known.

    Raises:
        InputError: The first mistake.
    """
    check_method_name(method)
    known = _settings(method)
    ranges: dict[str, Range] = {**RANGES, **RUN_RANGES}
    for place, word in enumerate(words):
        if not word.startswith("--"):
            continue
        written, tied, value = word[2:].partition("=")
        name = written.replace("-", "_")
        if name not in known and name.removeprefix("no_") not in known:
            if _source(method) is not None:
                raise unknown_setting(written, known)
            continue
        following = words[place + 1] if place + 1 < len(words) and not words[place + 1].startswith("--") else None
        given = value if tied else following
        if given is not None and name in known:
            _check(name, given, known[name], ranges.get(name))


def _check(name: str, given: str, kind: str, allowed: Range | None) -> None:
    number = re.fullmatch(r"(int|float)( \| None)?", kind)
    if number and given.lower() != "none":
        try:
            value = (int if number[1] == "int" else float)(given)
        except ValueError:
            wanted = "a whole number" if number[1] == "int" else "a number"
            raise InputError(f"{name}: got '{given}', expected {wanted}; change it") from None
        if not math.isfinite(value):
            raise InputError(f"{name}: got {given}, expected a finite number; change it")
        if allowed is not None:
            check_range(name, value, *allowed)
    choices = re.fullmatch(r"Literal\[(.+)\]( \| None)?", kind)
    if choices and given not in (values := [str(each) for each in ast.literal_eval(f"[{choices[1]}]")]):
        raise InputError(f"{name}: got '{given}', expected one of {', '.join(values)}; choose one")


def unknown_setting(written: str, known: Iterable[str]) -> InputError:
    """Makes the error for a misspelt setting, without listing the trainer's hundred fields."""
    known = set(known)
    meant = _ALSO.get(written.replace("-", "_"))
    told = f"Unknown setting '{written}'. Did you mean '{meant}'?"
    if meant not in known:
        told = str(unknown_name("setting", written, known)).split(" Known: ")[0]
    return InputError(f"{told} `dialemb train --list-settings` lists them.")


def _settings(method: str) -> dict[str, str]:
    """Finds the type, as it is written, of every setting of a run, of the trainer and of a method."""
    trainer = find_spec("transformers")
    own = dict(_fields(Path(__file__).with_name("settings.py"), "RunArguments"))
    if trainer is not None and trainer.submodule_search_locations:
        own |= _fields(Path(trainer.submodule_search_locations[0]) / "training_args.py", "TrainingArguments")
    source = _source(method)
    if source is not None:
        own |= _fields(source, next(name for name in reversed(_module(source)[0]) if name.endswith("Config")))
    return own


def _source(method: str) -> Path | None:
    """Finds the file of a method that comes with the package."""
    file = Path(__file__).parents[1] / "models" / f"{method}.py"
    return file if METHODS.get(method) == f"hf_dialemb.methods.{method}" else None


@cache
def _module(file: Path) -> tuple[dict[str, ast.ClassDef], dict[str, str]]:
    """Reads the classes of a file, and the names that it gives to types."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    named = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    return classes, {node.targets[0].id: ast.unparse(node.value) for node in named}  # type: ignore[attr-defined]


def _fields(file: Path, name: str) -> dict[str, str]:
    classes, types = _module(file)
    found: dict[str, str] = {}
    for base in (each.id for each in classes[name].bases if isinstance(each, ast.Name)):
        imported = next((other for other in (file, *_SHARED) if base in _module(other)[0]), None)
        found |= {} if imported is None else _fields(imported, base)
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            written = ast.unparse(node.annotation)
            if not written.startswith("ClassVar"):
                found[node.target.id] = types.get(written, written)
    return found


_SHARED = tuple(Path(__file__).parents[1] / "models" / name for name in ("config.py", "dual_encoder.py"))
