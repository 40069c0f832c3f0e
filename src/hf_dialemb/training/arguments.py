"""The door of settings: named values, recipes and the words of a command line become `Settings`."""

import dataclasses
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn

import yaml
from transformers import HfArgumentParser, PreTrainedConfig

from ..errors import InputError, nearest, unknown_name
from ..methods import get_method, register
from ..methods.config import own_settings
from .settings import RunArguments, Settings, TrainingSettings

_PACKAGE = Path(__file__).parents[1]
# a wheel's, a checkout's
_RECIPES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "training_scripts" / "recipes")
_ALIASES = {
    "batch_size": "per_device_train_batch_size",
    "lr": "learning_rate",
    "epochs": "num_train_epochs",
    "steps": "max_steps",
    "model": "backbone",
    "data": "corpus",
    "temperature": "loss_temperature",
    "max_length": "max_tokens",
    "lora_rank": "rank",
}
"""Names that other programs give to a setting."""


class SettingsParser(HfArgumentParser):
    """A parser of dataclasses that raises InputError instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError with the parser's message."""
        raise InputError(f"{message.removeprefix('argument ')}; correct it")


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
    name = str(values.get("method", RunArguments.method))
    if name.endswith(".py"):
        register(name)
    method = get_method(name)
    parts: list[Any] = [
        parsed_settings(RunArguments),
        parsed_settings(method.config_class),
        TrainingSettings,
    ]
    parser = SettingsParser(parts, add_help=False, allow_abbrev=False)
    words: list[str] = []
    for name, value in values.items():
        if value is None or value == []:
            parser.set_defaults(**{name: value})
            continue
        items = [_word(item) for item in (value if isinstance(value, list | tuple) else [value])]
        words += [f"--{name}={items[0]}"] if len(items) == 1 else [f"--{name}", *items]
    run, chosen, training, *rest = parser.parse_args_into_dataclasses(
        words, return_remaining_strings=True, look_for_args_file=False
    )
    known = {item.name for part in parts for item in dataclasses.fields(part)}
    for name in values:
        if name not in known:
            raise _unknown_setting(name, known)
    if rest[-1]:
        raise InputError(f"got {rest[-1][0]} beside a setting of one value; leave it out")
    return Settings(RunArguments(**vars(run)), dict(vars(chosen)), training)


def _word(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value.value if isinstance(value, Enum) else value)


def parsed_settings(settings: Any) -> Any:
    """Make a dataclass of the settings that users may set, with help from docstrings."""
    hints = setting_types(settings)
    meanings = _meanings(settings)
    own = {item.name: item for item in dataclasses.fields(settings)}
    fields = []
    for name in own_settings(settings):
        more = {"help": " ".join(meanings.get(name, "").split()).replace("%", "%%")}
        copied = dataclasses.field(
            default=own[name].default, default_factory=own[name].default_factory, metadata=more
        )
        fields.append((name, hints[name], copied))
    return dataclasses.make_dataclass(settings.__name__, fields)


def setting_types(settings: type) -> dict[str, Any]:
    """Return the types of all settings of a class, each read in the module that names it."""
    hints: dict[str, Any] = {}
    for owner in reversed(settings.__mro__):
        if owner not in PreTrainedConfig.__mro__:
            hints |= inspect.get_annotations(owner, eval_str=True)
    return hints


def _meanings(settings: type) -> dict[str, str]:
    """Read what the docstrings of a class and of its bases say of their attributes."""
    meanings: dict[str, str] = {}
    for owner in reversed(settings.__mro__):
        text = inspect.cleandoc(vars(owner).get("__doc__") or "")
        section = text.partition("Attributes:\n")[2].split("\n\n")[0]
        for item in re.split(r"\n    (?=\w+: )", f"\n{section}")[1:]:
            name, _, meaning = item.partition(": ")
            meanings[name] = meaning
    return meanings


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
    """Read the settings of a recipe by its name, or of a YAML file."""
    place = recipe_path(str(recipe)) or Path(recipe)
    if not place.is_file() and not place.suffix:
        unknown = unknown_name("recipe", str(recipe), recipe_names())
        raise InputError(f"{unknown} A YAML file of settings works too.")
    try:
        record = yaml.safe_load(place.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"recipe {recipe}: not YAML in UTF-8 ({reason}); correct it") from None
    if not record or not isinstance(record, dict):
        got = type(record).__name__ if record else "nothing"
        raise InputError(
            f"recipe {recipe}: got {got}, expected lines of 'field: value'; write some"
        )
    return {str(name): value for name, value in record.items()}


def recipe_path(name: str) -> Path | None:
    """Find a recipe that comes with the package, such as ``dial2vec_minilm``."""
    places = (folder / f"{name}.yaml" for folder in _RECIPES)
    return next((place for place in places if place.is_file()), None)


def recipe_names() -> list[str]:
    """List the recipes that come with the package."""
    return sorted(path.stem for folder in _RECIPES for path in folder.glob("*.yaml"))


def _unknown_setting(name: str, known: set[str]) -> InputError:
    """Return the error for a misspelt setting, which suggests a name and does not list them all."""
    meant = _ALIASES.get(name)
    suggestion = f" Did you mean '{meant}'?" if meant in known else nearest(name, known)
    return InputError(
        f"Unknown setting '{name}'.{suggestion} `dialemb train --list-settings` lists them."
    )
