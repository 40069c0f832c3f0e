"""The commands that make, measure and publish encoders.

``demo``, ``train``, ``evaluate``, ``export``, ``model``.
"""

import argparse
import time

from ...errors import InputError
from ...storage.files import check_not_read
from .parser import TEXTS, Commands, add_command, add_group, chosen_model, named, reading_of, say

RECIPE, CORPUS = "dse_demo", "star_small"
OWN = "own_minilm"
"""The recipe where neither a recipe nor a method is named."""

STEERING = {
    "max_steps",
    "num_train_epochs",
    "learning_rate",
    "lr_scheduler_type",
    "warmup_steps",
    "warmup_ratio",
    "weight_decay",
    "optim",
    "rank",
    "dropout",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "max_grad_norm",
    "num_negatives",
    "loss_temperature",
}
"""Settings of how weights move: they decide nothing in that recipe, which keeps the weights."""

QUERY = "I want to see a flat before I rent it"
SHOWN = ("semantic-relatedness", "dialogue-retrieval")
"""The tasks to print, as far as nothing is drawn.

K-means and pairs of few dialogues differ more by seed than by encoder. The results file has
everything.
"""


def add(commands: Commands) -> None:
    """Add the commands and the group."""
    add_command(commands, "demo", _demo)
    add_command(commands, "train", _train, recipes=_recipes).set_defaults(takes_settings=True)
    add_command(
        commands, "evaluate", _evaluate, tasks=_tasks, fine_tuning=lambda: _tasks(fine_tunes=True)
    )
    add_command(commands, "export", _export)
    add_command(commands, "publish", _publish)
    group = add_group(commands, "model")
    for name, run in (("distil", _distil), ("card", _card)):
        add_command(group, name, run, TEXTS["model"])


def _demo(options: argparse.Namespace) -> None:
    from ...data import load_dialogues
    from ...evaluation.evaluating import evaluate
    from ...evaluation.results.result_tables import markdown_table
    from ...hub.export import export
    from ...storage.pretrained import MINILM
    from ...training.arguments import make_settings
    from ...training.training_run import run_training
    from ..flow.extract import extract_flow
    from ..search.search import search

    output, max_steps, started = options.output, options.max_steps, time.perf_counter()
    if max_steps is not None and max_steps < 1:
        raise InputError(
            f"--max-steps: got {max_steps}, expected at least 1; leave it out for the recipe's own"
        )
    trained, published, page = output / "trained", output / "published", output / "flow.html"
    shorter = {} if max_steps is None else {"max_steps": max_steps}
    settings = make_settings({"output_dir": trained, **shorter}, RECIPE)
    say(
        f"1. Training DSE from {settings.run.backbone} on 448 conversations of STAR, without labels"
    )
    run_training(settings, say)
    say(
        "2. Measuring on 176 others of the same sixteen tasks: untrained, trained, and the "
        "encoders in the package"
    )
    models = [MINILM, str(trained), "dialogue-minilm", "dialogue-static"]
    written = output / "results.json"
    results = evaluate(models, CORPUS, output=written, command="dialemb demo")
    say(markdown_table(row for row in results.results if row.task in SHOWN and row.std is None))
    if not published.exists():
        say("3. Exporting the trained encoder, and loading the export in fresh processes")
        export(trained, published, report=lambda line: say(f"   {line}"))
    dialogues = load_dialogues(CORPUS, None, "test")
    say(f"4. Searching with it: {QUERY!r}")
    for hit in search(str(published), dialogues, QUERY, top=4, whole=True):
        say(f"   {hit}")
    say("5. How these conversations go, as a page")
    extract_flow(dialogues, "dialogue-static", title="STAR").page(page)
    say(f"Wrote {published} (the encoder), {written} and .md (the table), and {page}")
    say(f"Took {time.perf_counter() - started:.0f} s")


def _train(options: argparse.Namespace) -> None:
    from ...methods import register
    from ...training.arguments import describe_settings, make_settings, read_words

    values = read_words(options.rest)
    if options.list_settings:
        if str(values.get("method")).endswith(".py"):
            register(values["method"])
        print(describe_settings())
        return
    recipe = options.config or (None if "method" in values else OWN)
    steering = sorted(STEERING & values.keys())
    if recipe == OWN and steering and "average_with_backbone" not in values:
        raise InputError(
            f"{steering[0]}: got a setting of how weights move, but the recipe {OWN} keeps those "
            "of its backbone; say what to learn, as in --method dial2vec, or leave it out"
        )
    settings = make_settings(values, recipe)
    from ...training.training_run import run_training

    run_training(settings, say if settings.training.process_index == 0 else lambda line: None)


def _recipes() -> list[str]:
    from ...training.arguments import recipe_names

    return recipe_names()


def _evaluate(options: argparse.Namespace) -> None:
    from ...evaluation.evaluating import command_line, evaluate

    check_not_read(options.output, options.corpus)
    more = named(options, "data_dir", "split", "output", "limit", "vectors") | reading_of(options)
    given = options.model or ([] if options.vectors else [None])
    models = [chosen_model(options, model) for model in given]
    if not models:
        chosen_model(options, None, needed=False)
    print(
        evaluate(
            models,
            options.corpus,
            tasks=options.task,
            seeds=options.seeds,
            command=command_line(),
            **more,
        )
    )
    say(f"Wrote {options.output}")


def _tasks(fine_tunes: bool = False) -> list[str]:
    from ...evaluation.tasks.task import TASKS, get_task

    return [name for name in TASKS if get_task(name).fine_tunes == fine_tunes]


def _export(options: argparse.Namespace) -> None:
    from ...hub.export import export

    more = named(options, "dtype", "max_shard_size")
    say(f"Wrote {export(options.model, options.output, report=say, **more)}")


def _publish(options: argparse.Namespace) -> None:
    from ...hub.publishing import publish, push

    more = named(options, "private", "revision", "dry_run", "verify", "include")
    if options.repo_type == "model":
        push(options.path, options.repo_id, report=say, **more)
    else:
        publish(options.path, options.repo_id, repo_type=options.repo_type, report=say, **more)


def _distil(options: argparse.Namespace) -> None:
    from ...training.distil import distil

    more = named(options, "data_dir", "exclude", "dimensions", "runs", "passes", "seed")
    more |= reading_of(options)
    run = distil(options.model, options.corpus, output_dir=options.output, **more)
    say(f"Wrote {run.path}")


def _card(options: argparse.Namespace) -> None:
    from ...hub.card.card import write_card

    parts = [word.rpartition("=") for word in options.corpus_licence]
    if wrong := next((licence for name, _, licence in parts if not name), ""):
        raise InputError(
            f"--corpus-licence {wrong}: expected NAME=TERMS:LICENCE; write the corpus before a ="
        )
    more = {
        "licences": {name: licence for name, _, licence in parts},
        **named(options, "repo_id", "record"),
    }
    for path in write_card(options.model, options.training, options.results, **more):
        say(f"Wrote {path}")
