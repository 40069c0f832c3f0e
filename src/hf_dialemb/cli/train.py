"""The command ``dialemb train``: an encoder from dialogues."""

import argparse

from .parser import Commands, add_command, say


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, "train", _run, recipes=_recipes).set_defaults(takes_settings=True)


def _run(options: argparse.Namespace) -> None:
    from ..methods import register
    from ..training.arguments import describe_settings, make_settings, read_words

    values = read_words(options.rest)
    if options.list_settings:
        if str(values.get("method")).endswith(".py"):
            register(values["method"])
        print(describe_settings())
        return
    settings = make_settings(values, options.config)
    from ..training.run import run_training

    run_training(settings, say if settings.training.process_index == 0 else lambda line: None)


def _recipes() -> list[str]:
    from ..training.arguments import recipe_names

    return recipe_names()
