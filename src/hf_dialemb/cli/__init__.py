"""The command line ``dialemb``: parse, call, print; no logic.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..models.errors import InputError
from ..runs.files import check_not_read
from . import benchmark, card, convert, corpus, ensemble, export, flow, publish, rank
from .parser import Parser, add_command, check_split, corpus_options, say, split_option

_TRAIN_HELP = """Every setting is a line 'field: value' of the YAML file or '--field value' here; the latter wins.
Fields: those of the run, of the method's config, and of transformers.TrainingArguments; --list-settings prints them.

example: dialemb train --config dial2vec_minilm --corpus my_dialogues.jsonl --output_dir runs/mine"""

_EVALUATE_HELP = """tasks: domains, intent-classification, out-of-scope-detection, action-similarity,
  response-selection, dialogue-response-selection, next-utterance-retrieval, semantic-retrieval, dialogue-sts,
  dialogue-nli, ablations, flow-extraction, bag-of-words-probe, dialogue-act-probe; and those that fine-tune, which
  takes long: intent-fine-tuning, dialogue-action-prediction

example: dialemb evaluate --model runs/dial2vec-minilm all-MiniLM-L6-v2@utterances tfidf --corpus sgd --data-dir data
For whole papers and several at once see dialemb benchmark."""


_RESUMED = {"train", "ensemble", "embed", "benchmark", "flow"}  # what they have done already they take up again


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a corpus holds characters that a terminal may not
    try:
        if " ".join(words[:2]) in flow.COMMANDS:
            words[:2] = [" ".join(words[:2])]
        _run(words)
    except InputError as error:
        return _fail(str(error), 2)
    except KeyboardInterrupt:
        again = "to go on" if words[:1] and words[0] in _RESUMED else "to start over"
        return _fail(f"interrupted; run the same command again {again}", 130)
    except BrokenPipeError:  # whoever read our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.filename or 'I/O'}: {error.strerror or error}", 1)
    except Exception as error:
        if type(error).__module__.startswith("safetensors"):  # a full disk or a damaged file, told by the Rust side
            return _fail(f"safetensors: {error}; free space or fetch the checkpoint again", 1)
        raise
    return 0


def _run(words: list[str]) -> None:
    options, rest = _parser().parse_known_args(words)
    if rest and options.command not in ("train", "ensemble"):
        raise InputError(f"unknown argument '{rest[0]}'; see 'dialemb {options.command} --help'")
    options.rest = rest
    check_split(options)
    options.run(options)
    if sys.stdout is not None:
        sys.stdout.flush()  # here, where it is told when nobody reads any more


def _fail(message: str, code: int) -> int:
    print(f"dialemb: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="dialemb",
        description="Learn dialogue embeddings from conversations, measure them, publish them.",
        epilog="example: dialemb demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dialemb {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=Parser)
    own = (_add_demo, _add_train, _add_evaluate, _add_embed, _add_search)
    for add in own:
        add(commands)
    for module in (benchmark, card, convert, corpus, ensemble, export, flow, publish, rank):
        module.add(commands)
    return parser


def _add_demo(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "demo",
        "Train dial2vec from MiniLM on the synthetic sample corpus, measure it, export it, reload it, search with it.",
        "example: dialemb demo --output demo",
    )
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for everything the demo writes")
    parser.add_argument("--max-steps", type=int, default=None, help="shorten the training (default: the recipe's)")
    parser.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> None:
    from ..apps.demo import run_demo

    run_demo(options.output, options.max_steps, say)


def _add_train(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(commands, "train", "Train an encoder from dialogues.", _TRAIN_HELP)
    parser.add_argument("--config", help="a recipe's name, or a YAML file of settings")
    parser.add_argument("--list-settings", action="store_true", help="print every setting with its default, and stop")
    parser.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> None:
    if options.list_settings:
        from ..training.arguments import describe_settings

        print(describe_settings())
        return
    from ..training.arguments import parse
    from ..training.run import train

    settings = parse(options.config, options.rest)
    train(settings, say if settings.training.process_index == 0 else lambda line: None)


def _add_evaluate(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(commands, "evaluate", "Compare encoders on a labelled corpus.", _EVALUATE_HELP)
    parser.add_argument(
        "--model", nargs="+", required=True, help="checkpoint folders, Hub ids, or baselines; see dialemb benchmark"
    )
    parser.add_argument("--corpus", required=True, help="a corpus name, or a file, folder or Hub dataset of your own")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    split_option(parser, "test")
    parser.add_argument("--task", nargs="+", default=[], help="tasks, see below (default: what suits the corpus)")
    parser.add_argument(
        "--output", type=Path, default=Path("results.json"), help="results file (default: results.json)"
    )
    parser.add_argument("--plot", type=Path, help="draw a map of its items into this PNG")
    parser.add_argument("--limit", type=int, help="measure on a fixed random sample of so many items")
    parser.add_argument("--seeds", type=int, default=10, help="repeats of all that draws at random (default: 10)")
    parser.set_defaults(run=_evaluate)


def _evaluate(options: argparse.Namespace) -> None:
    from ..evaluation.run import evaluate_models, table_of

    for path in filter(None, (options.output, options.plot)):
        check_not_read(path, options.corpus)
    results = evaluate_models(
        options.model,
        options.corpus,
        options.data_dir,
        options.split,
        tasks=options.task,
        seeds=range(options.seeds),
        output=options.output,
        plot=options.plot,
        limit=options.limit,
    )
    print(table_of(results))
    print(f"Wrote {options.output}" + (f" and {options.plot}" if options.plot else ""))


def _add_embed(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "embed",
        "Embed a JSONL file of dialogues into a Parquet file; resumes when run again. With an encoder of texts a "
        "dialogue's embedding is the mean of its utterances' embeddings.",
        "example: dialemb embed --model runs/dial2vec-minilm --input dialogues.jsonl --output vectors.parquet",
    )
    parser.add_argument("--model", required=True, help="checkpoint folder, or a Hub id")
    parser.add_argument("--input", type=Path, required=True, help="dialogues, one JSON object a line")
    parser.add_argument("--output", type=Path, required=True, help="Parquet file with the columns id and embedding")
    parser.add_argument("--shard-size", type=int, default=2000, help="dialogues per shard (default: 2000)")
    parser.set_defaults(run=_embed)


def _embed(options: argparse.Namespace) -> None:
    from ..apps.embed import embed_file

    rows = embed_file(options.model, options.input, options.output, options.shard_size)
    print(f"Wrote {rows:,} embeddings to {options.output}")


def _add_search(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "search",
        "Find the dialogues of a corpus nearest to one of them.",
        "example: dialemb search --model runs/dial2vec-minilm --corpus dialogues.jsonl --id call-17",
    )
    parser.add_argument("--model", required=True, help="checkpoint folder, or a Hub id")
    corpus_options(parser)
    parser.add_argument("--id", required=True, help="the dialogue to start from: its id, or its number as #12")
    parser.add_argument("--top", type=int, default=5, help="how many to show (default: 5)")
    parser.set_defaults(run=_search)


def _search(options: argparse.Namespace) -> None:
    from ..apps.search import describe_nearest
    from ..corpora import load_dialogues
    from ..corpora.show import find_dialogue
    from ..encoders.specs import load_encoder

    if options.top < 1:
        raise InputError(f"--top: got {options.top}, expected at least 1")
    dialogues = load_dialogues(options.corpus, options.data_dir, options.split)
    find_dialogue(dialogues, options.id)  # before all of them are encoded
    vectors = load_encoder(options.model).encode(dialogues)
    for line in describe_nearest(dialogues, vectors, options.id, options.top):
        print(line)
