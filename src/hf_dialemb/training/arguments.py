"""The settings of a training run: one flat YAML file, and ``--field value`` on the command line on top of it.

Three kinds of setting share one namespace: what the run is (`RunArguments`), what the method is (its config's own
fields), and how it is trained (every field of `transformers.TrainingArguments`).
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from ..checkpoints.pretrained import MINILM
from ..errors import InputError, told, unknown_name
from ..methods import METHODS, get_method
from ..runs.files import check_regular
from .checks import check_method, check_training
from .early_checks import check_words, unknown_setting
from .settings import RunArguments, Settings

if TYPE_CHECKING:
    from transformers import TrainingArguments

# Where this package differs from transformers.
_DEFAULTS = {"remove_unused_columns": False, "report_to": "none", "logging_steps": 10, "output_dir": "runs/dial2vec"}

_PACKAGE = Path(__file__).parents[1]
_RECIPES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "training_scripts" / "recipes")  # a wheel's, a checkout's


def parse(config: str | None, overrides: Sequence[str]) -> Settings:
    """Reads the settings of a run."""
    check_regular(config)
    words = _joined([*_words(config), *overrides])
    check_regular(*(word.split("=")[-1] for word in words))
    name = _method_name(words)
    check_words(words, name)
    method = get_method(name)
    run, chosen, training = _parse(_settings_class(method.config_class), words)
    check_training(training)
    method.config_class(**chosen)  # the config's own checks, before any long work
    check_method(method, run, chosen, training)
    if run.backbone is None and not method.from_scratch:
        run.backbone = MINILM
    return Settings(run, chosen, training)


def _words(config: str | None) -> list[str]:
    if config is None:
        return []
    path = recipe_path(config) or Path(config)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        if not path.suffix:
            hint = str(unknown_name("recipe", config, recipe_names()))
            raise InputError(f"--config: {hint} A YAML file of settings works too.") from None
        raise InputError(f"--config {config}: {error.strerror}; expected a YAML file of settings") from None
    except ValueError as error:  # not UTF-8, or a NUL in the name
        raise InputError(f"--config {config!r}: cannot be read ({error}); write a YAML file in UTF-8") from None
    try:
        record = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"--config {config}: not YAML ({' '.join(str(error).split())})") from None
    if not record or not isinstance(record, dict):
        got = type(record).__name__ if record else "nothing"
        raise InputError(f"--config {config}: got {got}, expected lines of 'field: value'; write some")
    with told(f"--config {config}", "write lines of 'field: value'"):  # a list may hold itself
        return as_words(record)


def as_words(settings: Mapping[str, Any]) -> list[str]:
    """Writes settings as the command line takes them; None leaves one at its default."""
    words = []
    for name, value in settings.items():
        if value is not None:
            values = [json.dumps(value)] if isinstance(value, dict) else value
            words += [f"--{name}", *map(str, values if isinstance(values, list | tuple) else [values])]
    return words


def recipe_path(name: str) -> Path | None:
    """Finds a recipe that comes with the package, such as ``dial2vec_minilm``; None if there is none of this name."""
    return next((folder / f"{name}.yaml" for folder in _RECIPES if (folder / f"{name}.yaml").is_file()), None)


def recipe_names() -> list[str]:
    """Lists the recipes that come with the package."""
    return sorted(path.stem for folder in _RECIPES for path in folder.glob("*.yaml"))


def _method_name(words: Sequence[str]) -> str:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--method", nargs="?", default="dial2vec", const="dial2vec")
    return str(parser.parse_known_args(words)[0].method)


def _settings_class(config_class: type) -> type:
    """Makes a plain dataclass of a config's own settings, for the parser."""
    from transformers import PreTrainedConfig

    from ..methods.config import own_settings

    hints = {}
    for owner in reversed(config_class.__mro__):  # each in its own module, whose names its annotations are in
        if issubclass(owner, PreTrainedConfig) and owner is not PreTrainedConfig:
            hints.update(inspect.get_annotations(owner, eval_str=True))
    defaults = {item.name: item.default for item in dataclasses.fields(config_class)}
    return dataclasses.make_dataclass(
        f"{config_class.__name__}Settings",
        [(name, hints[name], field(default=defaults[name])) for name in own_settings(config_class)],
    )


def _parse(method_class: type, words: Sequence[str]) -> tuple[RunArguments, dict[str, Any], TrainingArguments]:
    import torch
    from transformers import HfArgumentParser, TrainingArguments

    class Parser(HfArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise InputError(f"{message}; see --help")

    groups: Any = (RunArguments, method_class, TrainingArguments)
    parser = Parser(groups, allow_abbrev=False, add_help=False)
    known = {word for action in parser._actions for word in action.option_strings}
    for word in words:
        if word.startswith("--") and word.split("=")[0] not in known:
            raise unknown_setting(word[2:].split("=")[0], {name.removeprefix("--") for name in known})
    # transformers refuses bf16 on a machine without accelerator unless it is told that the CPU is meant.
    parser.set_defaults(use_cpu=not torch.accelerator.is_available())
    parser.set_defaults(**_DEFAULTS)
    if words and not words[0].startswith("--"):
        raise InputError(f"unexpected argument '{words[0]}'; settings are given as --field value")
    try:
        run, chosen, training = parser.parse_args_into_dataclasses(list(words), look_for_args_file=False)
    except InputError:
        raise
    except (ValueError, TypeError, ImportError) as error:
        raise InputError(f"{' '.join(str(error).split())}; correct the setting") from None
    return run, dict(vars(chosen)), training


def _joined(words: Sequence[str]) -> list[str]:
    """Ties negative numbers to their settings, as the parser takes -1e-5 for a setting; checks what is to be JSON."""
    joined: list[str] = []
    for word in words:
        if word.startswith("{"):
            try:
                json.loads(word)
            except (ValueError, RecursionError) as error:
                setting = joined[-1] if joined else "settings"
                raise InputError(f"{setting}: got {word}, expected JSON ({error}); correct it") from None
        if re.fullmatch(r"-[\d.][\d.e+-]*", word) and joined and joined[-1].startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def describe_settings() -> str:
    """Lists every setting with its default and meaning, for ``dialemb train --list-settings``."""
    from transformers import TrainingArguments

    from ..methods.config import own_settings

    lines = ["# the run", *_described(RunArguments, [item.name for item in dataclasses.fields(RunArguments)])]
    lines.append("# transformers.TrainingArguments")
    for item in dataclasses.fields(TrainingArguments):
        if item.init:
            default = _DEFAULTS.get(item.name, _default(item))
            lines.append(f"{item.name}: {default}  # {' '.join(str(item.metadata.get('help', '')).split())}")
    for name in METHODS:
        config_class = get_method(name).config_class
        lines += [f"# {name}", *_described(config_class, own_settings(config_class))]
    return "\n".join(lines)


def _described(settings: type, names: Sequence[str]) -> list[str]:
    defaults = {item.name: _default(item) for item in dataclasses.fields(settings)}
    said = _attributes(settings)
    return [f"{name}: {defaults[name]}" + (f"  # {said[name]}" if name in said else "") for name in names]


def _default(item: dataclasses.Field[Any]) -> Any:  # noqa: ANN401 - whatever a setting may be
    if item.default is not dataclasses.MISSING:
        return item.default
    return item.default_factory() if callable(item.default_factory) else None


def _attributes(settings: type) -> dict[str, str]:
    """Reads what the docstrings of a class and of those that it extends say of their settings."""
    found: dict[str, str] = {}
    for owner in reversed(settings.__mro__):
        text = inspect.cleandoc(vars(owner).get("__doc__") or "")
        section = text.partition("Attributes:\n")[2].split("\n\n")[0]
        for item in re.split(r"\n    (?=\w+: )", f"\n{section}")[1:]:
            name, _, meaning = item.partition(": ")
            found[name] = " ".join(meaning.split())
    return found
