"""The command ``dialemb train``: an encoder from dialogues."""

from __future__ import annotations

import argparse

from .parser import Parser, add_command, say

_HELP = """Every setting is a line 'field: value' of the YAML file or '--field value' here; the latter wins.
Fields: those of the run, of the method's config, and of transformers.TrainingArguments; --list-settings prints them.

methods: {methods}
recipes: {recipes}

example: dialemb train --config dial2vec_minilm --corpus my_dialogues.jsonl --output_dir runs/mine"""


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands, "train", "Train an encoder from dialogues.", _HELP, methods=_methods, recipes=_recipes
    )
    parser.add_argument("--config", help="a recipe's name, or a YAML file of settings")
    parser.add_argument("--list-settings", action="store_true", help="print every setting with its default, and stop")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.list_settings:
        from ..training.arguments import describe_settings

        print(describe_settings())
        return
    from ..training.arguments import parse
    from ..training.run import train

    settings = parse(options.config, options.rest)
    train(settings, say if settings.training.process_index == 0 else lambda line: None)


def _methods() -> list[str]:
    from ..models import METHODS, get_method

    return [name for name in METHODS if get_method(name).trained]


def _recipes() -> list[str]:
    from ..training.arguments import recipe_names

    return recipe_names()
