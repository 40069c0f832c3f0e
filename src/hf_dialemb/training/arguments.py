"""The door of settings: named values, recipes and the words of a command line become `Settings`."""

import dataclasses
import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from transformers import TrainingArguments

from ..errors import InputError, nearest, unknown_name
from ..methods import METHODS, get_method
from ..methods.config import own_settings
from ..storage.files import check_regular
from .settings import RunArguments, Settings, TrainingSettings

_PACKAGE = Path(__file__).parents[1]
# a wheel's, a checkout's
_RECIPES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "training_scripts" / "recipes")
_ALIASES = {
    "batch_size": "per_device_train_batch_size",
    "bs": "per_device_train_batch_size",
    "lr": "learning_rate",
    "epochs": "num_train_epochs",
    "num_epochs": "num_train_epochs",
    "steps": "max_steps",
    "out": "output_dir",
    "model": "backbone",
    "base_model": "backbone",
    "data": "corpus",
    "input": "corpus",
    "dataset": "corpus",
    "dev": "dev_split",
    "split": "train_split",
    "limit": "max_dialogues",
    "warmup": "warmup_steps",
    "warmup_ratio": "warmup_steps",
    "scheduler": "lr_scheduler_type",
    "optimizer": "optim",
    "temperature": "loss_temperature",
    "max_length": "max_tokens",
    "max_seq_length": "max_tokens",
    "eval": "dev_split",
    "accumulation_steps": "gradient_accumulation_steps",
    "num_workers": "dataloader_num_workers",
    "lora_rank": "rank",
}
"""Names that other programs give to a setting."""


def make_settings(values: Mapping[str, Any], recipe: str | Path | None = None) -> Settings:
    """Fill the settings of a run from values by name, which win over those of a recipe.

    Args:
        values: Settings of `RunArguments`, of the method's config and of transformers'
            ``TrainingArguments``. A value has the type of its field, or is a text that reads as
            that type.
        recipe: The name of a recipe, such as ``dse_minilm``, or a YAML file.

    Raises:
        InputError: A name is unknown, or a value is wrong or does not fit the others.
    """
    values = {**({} if recipe is None else read_recipe(recipe)), **values}
    method = get_method(str(values.get("method", RunArguments.method)))
    parts = (_own(RunArguments), own_settings(method.config_class), _own(TrainingSettings))
    known = {name for names in parts for name in names}
    for name, value in values.items():
        if name not in known:
            raise _unknown_setting(name, known)
        check_regular(*(value if isinstance(value, list) else [value]))
    run, chosen, training = (
        {name: values[name] for name in names if name in values} for names in parts
    )
    return Settings(RunArguments(**run), chosen, TrainingSettings(**training))


def _own(settings: type) -> list[str]:
    return [item.name for item in dataclasses.fields(settings) if item.init]


def read_words(words: Sequence[str]) -> dict[str, Any]:
    """Read ``--field value ...`` from a command line as texts.

    Words before the first field name corpora.
    """
    values: dict[str, list[str]] = {}
    name = "corpus"
    for word in words:
        if word.startswith("--"):
            written, tied, value = word[2:].partition("=")
            name = {"output": "output_dir"}.get(written, written).replace("-", "_")
            values[name] = [value] if tied else []
        else:
            values.setdefault(name, []).append(word)
    return {
        name: texts[0] if len(texts) == 1 else texts or "true" for name, texts in values.items()
    }


def read_recipe(recipe: str | Path) -> dict[str, Any]:
    """Read the settings of a recipe by its name, or of a YAML file.

    Refuse what is no lines of ``field: value``.
    """
    check_regular(recipe)
    try:
        text = (recipe_path(str(recipe)) or Path(recipe)).read_text(encoding="utf-8")
        record = yaml.safe_load(text)
    except OSError as error:
        if not Path(recipe).suffix:
            unknown = unknown_name("recipe", str(recipe), recipe_names())
            raise InputError(f"{unknown} A YAML file of settings works too.") from None
        raise InputError(
            f"recipe {recipe}: {error.strerror}; expected a YAML file of settings"
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(
            f"recipe {recipe}: not YAML in UTF-8 ({' '.join(str(error).split())}); correct it"
        ) from None
    if not record or not isinstance(record, dict):
        got = type(record).__name__ if record else "nothing"
        raise InputError(
            f"recipe {recipe}: got {got}, expected lines of 'field: value'; write some"
        )
    return {str(name): value for name, value in record.items()}


def recipe_path(name: str) -> Path | None:
    """Find a recipe that comes with the package, such as ``dial2vec_minilm``.

    None if no recipe has this name.
    """
    return next(
        (folder / f"{name}.yaml" for folder in _RECIPES if (folder / f"{name}.yaml").is_file()),
        None,
    )


def recipe_names() -> list[str]:
    """List the recipes that come with the package."""
    return sorted(path.stem for folder in _RECIPES for path in folder.glob("*.yaml"))


def _unknown_setting(name: str, known: Collection[str]) -> InputError:
    """Return the error for a misspelt setting.

    It suggests a name without listing the trainer's hundred fields.
    """
    meant = _ALIASES.get(name)
    suggestion = f" Did you mean '{meant}'?" if meant in known else nearest(name, known)
    return InputError(
        f"Unknown setting '{name}'.{suggestion} `dialemb train --list-settings` lists them."
    )


def describe_settings() -> str:
    """List every setting with its default and meaning, for ``dialemb train --list-settings``."""
    helps = {
        item.name: str(item.metadata.get("help", ""))
        for item in dataclasses.fields(TrainingArguments)
    }
    lines = ["# the run", *_described(RunArguments, _own(RunArguments), _meanings(RunArguments))]
    lines += [
        "# transformers.TrainingArguments",
        *_described(TrainingSettings, _own(TrainingSettings), helps),
    ]
    for name in METHODS:
        settings = get_method(name).config_class
        lines += [f"# {name}", *_described(settings, own_settings(settings), _meanings(settings))]
    return "\n".join(lines)


def _meanings(settings: type) -> dict[str, str]:
    """Read what the docstrings of a class and of its bases say of their attributes."""
    meanings: dict[str, str] = {}
    for owner in reversed(settings.__mro__):
        section = (
            inspect.cleandoc(vars(owner).get("__doc__") or "")
            .partition("Attributes:\n")[2]
            .split("\n\n")[0]
        )
        items = re.split(r"\n    (?=\w+: )", f"\n{section}")[1:]
        meanings |= {name: meaning for name, _, meaning in (item.partition(": ") for item in items)}
    return meanings


def _described(settings: type, names: Sequence[str], meanings: Mapping[str, str]) -> list[str]:
    fields, lines = {item.name: item for item in dataclasses.fields(settings)}, []
    for name in names:
        default = fields[name].default
        if default is dataclasses.MISSING:
            factory = fields[name].default_factory
            default = factory() if callable(factory) else None
        meaning = " ".join(meanings.get(name, "").split())
        lines.append(f"{name}: {default}" + (f"  # {meaning}" if meaning else ""))
    return lines
