"""``dialemb flow`` and what goes on from it: the workflow that conversations follow, as a page to read."""

from __future__ import annotations

import argparse
from pathlib import Path

from .parser import Parser, add_command, corpus_options, own_options, say, split_option

COMMANDS = ("flow next", "flow compare", "flow measure")
"""Those whose name is two words."""

_MODEL = "all-MiniLM-L6-v2"
_NAMES = "nearest (the typical utterance), phrases, api:MODEL, or a language model's folder or id (default nearest)"


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the commands.

    Args:
        commands: The commands of ``dialemb``.
    """
    _add_build(commands)
    _add_next(commands)
    _add_compare(commands)
    _add_measure(commands)


def _add_build(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "flow",
        "Find the workflow that conversations follow, and write a page to look at. Run again with other settings, it "
        "goes on from what is there.",
        "example: dialemb flow transcripts/\nthen open flow/index.html\n"
        "see also: dialemb flow next, dialemb flow compare, dialemb flow measure",
    )
    parser.add_argument("input", nargs="?", help="folder of .txt transcripts, .jsonl, .csv, .parquet, or a corpus name")
    parser.add_argument("--input", dest="named_input", metavar="INPUT", help="the same")
    parser.add_argument("--output", type=Path, default=Path("flow"), help="folder to write (default: flow)")
    parser.add_argument("--model", help=f"encoder of utterances (default: {_MODEL})")
    parser.add_argument("--vectors", type=Path, help="vectors of your own (.npy), one for each utterance in order")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    split_option(parser, "all")
    parser.add_argument("--domain", help="only dialogues of this domain alone")
    parser.add_argument("--clusters", help="how many kinds of utterance, as 12 or user=10,assistant=14")
    parser.add_argument("--threshold", help="or how far apart they may be, as 0.6 or user=0.5,assistant=0.6")
    parser.add_argument("--names", default="nearest", help=_NAMES)
    parser.add_argument("--nodes", type=float, help="leave out states rarer than this share of the most frequent")
    parser.add_argument("--edges", type=float, help="leave out transitions that weigh less than this")
    parser.add_argument("--weights", help="what transitions weigh: max, max-out or prob-out (default: max-out)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn at random for large sets (default: 0)")
    own_options(parser)
    parser.set_defaults(run=_build)


def _build(options: argparse.Namespace) -> None:
    from ..flow.run import FlowRequest, build_flow
    from ..models.errors import InputError

    given = [name for name in (options.input, options.named_input) if name]
    if len(given) != 1:
        raise InputError(f"input: got {len(given)}, expected one folder, file or corpus; see 'dialemb flow --help'")
    if options.vectors and options.model:
        raise InputError("got --vectors and --model, expected one of them; leave one out")
    request = FlowRequest(
        corpus=given[0],
        output=options.output,
        model=options.model or _MODEL,
        vectors=options.vectors,
        data_dir=options.data_dir,
        split=options.split,
        domain=options.domain,
        columns=options.columns,
        roles=options.roles,
        clusters=options.clusters,
        threshold=options.threshold,
        names=options.names,
        pruning={name: getattr(options, name) for name in ("nodes", "edges", "weights")},
        seed=options.seed,
    )
    build_flow(request, say)


def _add_next(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "flow next",
        "Say where in a flow dialogues stand that are not over, and what is likely to come next.",
        "example: dialemb flow next --flow flow/ --input call.txt",
    )
    parser.add_argument("--flow", type=Path, required=True, help="what dialemb flow wrote")
    parser.add_argument("--input", required=True, help="the dialogues so far: .txt, .jsonl or another form of your own")
    parser.add_argument("--top", type=int, default=5, help="how many actions to list (default: 5)")
    parser.add_argument("--output", type=Path, help="write them here too, a dialogue on each line (JSONL)")
    own_options(parser)
    parser.set_defaults(run=_next)


def _next(options: argparse.Namespace) -> None:
    from ..flow.next import describe_next

    for line in describe_next(
        options.flow, options.input, options.top, options.output, columns=options.columns, roles=options.roles
    ):
        (print if options.output is None else say)(line)


def _add_compare(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "flow compare",
        "Compare two sets of dialogues by the states of a flow: before and after, good and bad. Dialogues that the "
        "flow was made of are compared with the rest of them, others with all of them.",
        "example: dialemb flow compare --flow flow/ --input after/ --output comparison/",
    )
    parser.add_argument("--flow", type=Path, required=True, help="what dialemb flow wrote")
    parser.add_argument("--input", required=True, help="the second set: a folder, a file or a corpus name")
    parser.add_argument("--output", type=Path, default=Path("comparison"), help="folder to write (default: comparison)")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    split_option(parser, "all")
    parser.add_argument("--domain", help="only dialogues of this domain alone")
    own_options(parser)
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from ..flow.compare import compare_with

    for line in compare_with(
        options.flow,
        options.input,
        options.output,
        data_dir=options.data_dir,
        split=options.split,
        domain=options.domain,
        columns=options.columns,
        roles=options.roles,
    ):
        say(line)


def _add_measure(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "flow measure",
        "Compare encoders by the flows that they find in annotated dialogues: the layout of Dialog2Flow's Table 6, "
        "and what the size of a graph does not tell.",
        "example: dialemb flow measure --model runs/dialog2flow-single-minilm all-MiniLM-L6-v2 --corpus sgd "
        "--data-dir data",
    )
    parser.add_argument("--model", nargs="+", required=True, help="checkpoint folders, Hub ids, or baselines")
    corpus_options(parser)
    parser.add_argument("--limit", type=int, help="measure on a fixed random sample of so many dialogues")
    parser.add_argument("--output", type=Path, default=Path("flow.json"), help="results file (default: flow.json)")
    parser.add_argument("--cache", type=Path, help="folder where vectors are kept, such as BENCHMARK/embeddings")
    parser.set_defaults(run=_measure)


def _measure(options: argparse.Namespace) -> None:
    from ..evaluation.results.flow_tables import flow_tables
    from ..evaluation.run import evaluate_models

    results = evaluate_models(
        options.model,
        options.corpus,
        options.data_dir,
        options.split,
        tasks=["flow-extraction"],
        output=options.output,
        limit=options.limit,
        cache=options.cache,
    )
    print(flow_tables(results.results))
    print(f"Wrote {options.output}")
