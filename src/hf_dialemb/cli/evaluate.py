"""The command ``dialemb evaluate``: encoders on a labelled corpus."""

import argparse

from ..runs.files import check_not_read
from .parser import Commands, add_command, chosen_model, corpus_options, model_option, named, reading_of, say


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "evaluate", _run, tasks=_tasks, fine_tuning=lambda: _tasks(fine_tunes=True))
    model_option(parser, nargs="+")
    corpus_options(parser)


def _run(options: argparse.Namespace) -> None:
    from ..evaluation.run import command_line, evaluate

    for path in filter(None, (options.output, options.plot)):
        check_not_read(path, options.corpus)
    more = named(options, "data_dir", "split", "output", "plot", "limit", "vectors") | reading_of(options)
    given = options.model or ([] if options.vectors else [None])
    models = [chosen_model(options, model) for model in given]
    if not models:
        chosen_model(options, None, needed=False)
    print(evaluate(models, options.corpus, tasks=options.task, seeds=options.seeds, command=command_line(), **more))
    say(f"Wrote {options.output}" + (f" and {options.plot}" if options.plot else ""))


def _tasks(fine_tunes: bool = False) -> list[str]:
    from ..evaluation.tasks.task import TASKS, get_task

    return [name for name in TASKS if get_task(name).fine_tunes == fine_tunes]
