"""The commands that make, measure and publish encoders.

``demo``, ``train``, ``evaluate``, ``export``, ``model``.
"""

import argparse
import time
from pathlib import Path

from ...data import load_dialogues
from ...errors import InputError
from ...storage.files import check_not_read
from .parser import (
    LOADING,
    METHOD,
    Command,
    Options,
    chosen_model,
    conversations,
    corpus_options,
    named,
    reading_of,
    say,
)

RECIPE = "dse_demo"
CORPUS = "star_small"
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

_TRAIN = """\
Write a setting as '--field value' (this wins), or as a line 'field: value' in the YAML file.
Without --config and --method, it fits dialogue-minilm to your dialogues, in a minute.

what to learn, from what
  --method NAME           see below, or the file of a method of your own: own_method.py
  --backbone MODEL        where it starts: a folder, a Hub id, dialogue-minilm
  --corpus FILE ...       your file, a Hub dataset, or a corpus such as sgd/train
  --columns, --roles      how to read your table: id=call,role=speaker,content=text; Agent=assistant
  --dates, --gap, --sheet, --raw, --strict   see dialemb corpus check --help
  --exclude SET ...       leave out the dialogues of these evaluation sets; none leaves nothing out
  --max_dialogues N       learn from only this many, drawn at random
  --output_dir FOLDER     folder of the run (or --output); the same command resumes there

how long, how fast
  --max_steps N           total steps; overrides epochs
  --num_train_epochs N    passes over the data (default: 3)
  --per_device_train_batch_size N   examples in a step (default: 8)
  --gradient_accumulation_steps N   batches in a step, if memory is short
  --learning_rate X       (default: 5e-5)
  --warmup_steps N        steps to reach it
  --bf16 true             half the memory, if the hardware supports it
  --seed N                for everything drawn at random

what to keep
  --dev_split FILE        dialogues to choose a checkpoint by
  --checkpoint_selection SIGNAL   last, contrastive_loss, contrastive_accuracy, dev_purity, ...
  --patience N            stop after this many measurements without gain
  --save_steps N          steps between checkpoints
  --average_with_backbone X   share of the old weights in the result, 0 to 1
  --max_tokens N          where texts are cut

all settings, of every method and of transformers' Trainer: dialemb train --list-settings

methods: dial2vec (dialogues, speakers); dse, dialogue_cse, dialog2flow, turns (utterances);
  dual_encoder, transformer_dual_encoder, deep_attention_matching (which response fits)

example: dialemb train calls.csv --output_dir runs/mine"""
_EVALUATE = """\
To repeat whole papers, or several at once, see dialemb papers benchmark.

example: dialemb evaluate --model runs/dial2vec-minilm all-MiniLM-L6-v2 tfidf --corpus sgd"""
_PUBLISH = """\
The folder is that of a training, which is exported first and gets a card; or one that dialemb
export wrote. What everybody can see needs a licence and figures, or --private. If it stops, run it
again. Log in with 'hf auth login'.

example: dialemb publish runs/calls --repo-id org/calls --private"""
_CARD = """\
Figures come from dialemb papers benchmark or dialemb evaluate, for the model and for its backbone.
If the model learnt from your own file, give that file's licence:
--corpus-licence 'calls.jsonl=permissive:CC BY 4.0' (permissive, share-alike or research).

example: dialemb model card --model published/dse-minilm --run runs/dse-minilm
  --results benchmark/dse.json"""

QUERY = "I want to see a flat before I rent it"
TASK = "response-selection"
SHOWN = ("top1", "top10", "mrr")
"""What the training teaches, which turn follows, and the figures that are printed."""
_DEMO_OPTIONS: Options = {
    "--output": {
        "type": Path,
        "default": "demo",
        "help": "folder for everything the demo writes (default: demo)",
    },
    "--max-steps": {"type": int, "help": "shorten the training"},
}
_TRAIN_OPTIONS: Options = {
    "--config": {"help": "a recipe's name, or a YAML file of settings"},
    "--list-settings": {"action": "store_true", "help": "print every setting with its default"},
}
_EVALUATE_OPTIONS: Options = {
    "--model": {"nargs": "+", "help": "folders, Hub ids, encoders of the package"},
    "--level": {
        "dest": "model_level",
        "choices": ["dialogue", "utterances"],
        "help": "of models of texts: read a dialogue at once, or average its utterances",
    },
    "--task": {
        "nargs": "+",
        "default": [],
        "help": "tasks, see below (default: what suits the corpus)",
    },
    "--output": {
        "type": Path,
        "default": "results.json",
        "help": "results file (default: results.json)",
    },
    "--limit": {"type": int, "help": "measure on a fixed random sample of this many"},
    "--seeds": {
        "type": int,
        "default": 10,
        "help": "repeats with other random seeds (default: 10)",
    },
    **LOADING,
    **corpus_options("test"),
}
_EXPORT_OPTIONS: Options = {
    "--model": {"required": True, "help": "folder of the training or a checkpoint"},
    "--output": {"type": Path, "required": True, "help": "folder to write; must not exist yet"},
    **METHOD,
}
_PUBLISH_OPTIONS: Options = {
    "path": {"type": Path, "help": "the folder"},
    "--repo-id": {"required": True, "help": "where to: org/name; created if absent"},
    "--private": {"action": "store_true", "help": "create a private repository"},
    "--revision": {"help": "branch, created if absent (default: main)"},
    "--dry-run": {"action": "store_true", "help": "only list the files and what stands in the way"},
    "--include": {
        "nargs": "+",
        "default": [],
        "metavar": "PATTERN",
        "help": "send these files too, which are no part of an export",
    },
    **METHOD,
}
_CARD_OPTIONS: Options = {
    "--model": {"type": Path, "required": True, "help": "what dialemb export wrote"},
    "--run": {"dest": "training", "type": Path, "required": True, "help": "folder of the training"},
    "--results": {
        "type": Path,
        "nargs": "+",
        "default": [],
        "help": "results files of the model, if any",
    },
    "--repo-id": {"help": "where you will publish it (default: org/FOLDER)"},
    "--corpus-licence": {
        "nargs": "+",
        "default": [],
        "metavar": "NAME=TERMS:LICENCE",
        "help": "see above",
    },
    "--record": {"type": Path, "help": "keep the card's sources in this file"},
    **METHOD,
}


def _demo(options: argparse.Namespace) -> None:
    from ... import evaluate, extract_flow, search
    from ...evaluation.results.result_tables import markdown_table
    from ...hub.export import export
    from ...storage.pretrained import MINILM
    from ...training.arguments import make_settings
    from ...training.training_run import run_training

    output = options.output
    max_steps = options.max_steps
    started = time.perf_counter()
    trained = output / "trained"
    published = output / "published"
    page = output / "flow.html"
    shorter = {} if max_steps is None else {"max_steps": max_steps}
    settings = make_settings({"output_dir": trained, **shorter}, RECIPE)
    say(
        f"1. Training DSE from {settings.run.backbone} on 448 conversations of STAR, without labels"
    )
    run_training(settings, say)
    say("2. Which of a hundred turns follows? In 176 other conversations, by three encoders:")
    models = [MINILM, str(trained), "dialogue-static"]
    written = output / "results.json"
    results = evaluate(
        models, CORPUS, tasks=[TASK], seeds=2, output=written, command="dialemb demo"
    )
    say(markdown_table(row for row in results.results if row.metric in SHOWN and not row.setting))
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


def describe_settings() -> str:
    """List every setting with its default and meaning, for ``dialemb train --list-settings``."""
    from ...methods import METHODS, get_method
    from ...training.arguments import SettingsParser, parsed_settings
    from ...training.settings import RunArguments, TrainingSettings

    parts = {
        "the run": parsed_settings(RunArguments),
        "transformers.TrainingArguments": TrainingSettings,
    }
    parts |= {name: parsed_settings(get_method(name).config_class) for name in METHODS}
    texts = []
    for title, part in parts.items():
        parser = SettingsParser(part, add_help=False, usage=argparse.SUPPRESS)
        texts.append(f"# {title}\n{parser.format_help()}")
    return "\n".join(texts)


def _train(options: argparse.Namespace) -> None:
    from ...methods import register
    from ...training.arguments import make_settings, read_words

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


def _recipes() -> str:
    from ...training.arguments import recipe_names

    return f"\nrecipes: {', '.join(recipe_names())}\n"


def _evaluate(options: argparse.Namespace) -> None:
    from ...evaluation.evaluating import command_line, evaluate

    check_not_read(options.output, options.corpus)
    models = [chosen_model(options, model) for model in options.model or [None]]
    print(
        evaluate(
            models,
            options.corpus,
            tasks=options.task,
            seeds=options.seeds,
            command=command_line(),
            **named(options, "data_dir", "split", "output", "limit"),
            **reading_of(options),
        )
    )
    say(f"Wrote {options.output}")


def _tasks() -> str:
    from ...evaluation.tasks.task import TASKS

    return f"\ntasks: {', '.join(TASKS)}\n"


def _export(options: argparse.Namespace) -> None:
    from ...hub.export import export

    say(f"Wrote {export(options.model, options.output, report=say)}")


def _publish(options: argparse.Namespace) -> None:
    from ...hub.publishing import push

    push(
        options.path,
        options.repo_id,
        report=say,
        **named(options, "private", "revision", "dry_run", "include"),
    )


def _card(options: argparse.Namespace) -> None:
    from ...hub.card.card import write_card

    parts = [word.rpartition("=") for word in options.corpus_licence]
    if wrong := next((licence for name, _, licence in parts if not name), ""):
        raise InputError(
            f"--corpus-licence {wrong}: expected NAME=TERMS:LICENCE; write the corpus before a ="
        )
    for path in write_card(
        options.model,
        options.training,
        options.results,
        licences={name: licence for name, _, licence in parts},
        **named(options, "repo_id", "record"),
    ):
        say(f"Wrote {path}")


COMMANDS = (
    Command(
        "demo",
        _demo,
        "train on a part of STAR in the package; measure, export, search and draw a flow",
        "example: dialemb demo --output demo",
        _DEMO_OPTIONS,
    ),
    Command(
        "train",
        _train,
        "train an encoder from dialogues",
        _TRAIN,
        _TRAIN_OPTIONS,
        names=_recipes,
        takes_settings=True,
    ),
    Command(
        "evaluate",
        _evaluate,
        "compare encoders on a labelled corpus",
        _EVALUATE,
        _EVALUATE_OPTIONS,
        (conversations("corpus"),),
        names=_tasks,
    ),
    Command(
        "export",
        _export,
        "turn a trained checkpoint into a form that other libraries load, and check it",
        "example: dialemb export --model runs/dial2vec-minilm --output published/dial2vec",
        _EXPORT_OPTIONS,
    ),
    Command(
        "publish", _publish, "publish a model on the Hub in one commit", _PUBLISH, _PUBLISH_OPTIONS
    ),
    Command(
        "model card",
        _card,
        "write the model card of an exported folder from its results",
        _CARD,
        _CARD_OPTIONS,
    ),
)
