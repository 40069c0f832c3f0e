"""``dialemb corpus``: read corpora and files of one's own, check, count, show, unify, and keep splits apart."""

from __future__ import annotations

import argparse
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

from ..dialogue import ROLES, Dialogue
from ..errors import InputError
from ..runs.files import check_writable, write_json_atomically
from ..runs.frames import counted
from . import rank
from .parser import Parser, add_command, corpus_options, engine_option, named, reading_options, say


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command and its actions."""
    parser = add_command(
        commands,
        "corpus",
        "Corpora and your own conversations: list, check, convert, count, show, unify, find leaks.",
        "example: dialemb corpus stats --corpus sgd --data-dir data --split test --output sgd_test.jsonl",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="action", parser_class=Parser)
    rank.add_candidates(actions)
    for each in (_add_list, _add_check, _add_convert, _add_stats, _add_show, _add_unify, _add_leakage, _add_benchmark):
        each(actions)


def _add_list(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(actions, "list", "List the corpora that can be read.", "example: dialemb corpus list")
    parser.add_argument("--output", type=Path, help="also write the table here (JSON)")
    parser.set_defaults(run=_list)


def _list(options: argparse.Namespace) -> None:
    from ..corpora.audit.catalogue import catalogue

    print(catalogue(options.output))
    if options.output:
        say(f"Wrote {options.output}")


def _add_check(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "check",
        "List every problem in a file of conversations, its line, and how to fix it.",
        "example: dialemb corpus check calls.csv --columns id=call,role=speaker,content=text --roles Agent=assistant",
    )
    parser.add_argument("file", help="a file of conversations, a folder of transcripts, or a corpus name")
    reading_options(parser, "all")
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> None:
    from ..corpora.own.check import check
    from ..corpora.own.findings import Notes

    kinds, counts, severe = Notes(), Counter[str](), Counter[str]()
    more = named(options, "columns", "roles")
    for problem in check(options.file, options.data_dir, options.split, counts=counts, **more):
        severe[problem.severity] += 1
        kinds.put(problem)
    for problem in kinds.problems(options.file):
        say(f"{problem.place}: {problem.severity}: {problem.message}")
    found = f"errors: {severe['error']:,}, warnings: {severe['warning']:,}"
    if severe["error"]:
        raise InputError(f"{options.file}: {found}; they are listed above, each with how to fix it")
    worse = f"No errors, {counted(severe['warning'], 'warning')}" if severe["warning"] else "No problems"
    say(f"{options.file}: {_counted_in(counts)}. {worse}.")


def _counted_in(counts: Counter[str]) -> str:
    roles = {role: counts[role] for role in ROLES if counts[role]}
    read = [counted(counts[name], name) for name in ("dialogue", "item") if counts[name]]
    read += [f"{counted(sum(roles.values()), 'turn')}: "] if roles else []
    return ", ".join(read) + ", ".join(f"{role} {count:,}" for role, count in roles.items())


def _add_convert(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "convert",
        "Convert conversations from any form into JSONL, one per line, with roles instead of names.",
        "example: dialemb corpus convert calls.xlsx --output calls.jsonl",
    )
    parser.add_argument("corpus", help="a file of conversations, a folder of transcripts, or a corpus name")
    reading_options(parser, "all")
    parser.add_argument("--skip-invalid", action="store_true", help="leave out malformed dialogues and list them")
    parser.add_argument("--output", type=Path, required=True, help="the file to write, .jsonl or .jsonl.gz")
    parser.set_defaults(run=_convert)


def _convert(options: argparse.Namespace) -> None:
    from ..corpora.own.jsonl import check_target, write_jsonl

    check_target(options.output, options.corpus)
    say(f"Wrote {write_jsonl(_dialogues(options), options.output):,} dialogues to {options.output}")


def _add_stats(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "stats",
        "Count what is in a corpus; draw it, or write it as JSONL.",
        "example: dialemb corpus stats --corpus sgd --data-dir data --plot sgd.png --output sgd_test.jsonl",
    )
    corpus_options(parser)
    parser.add_argument("--skip-invalid", action="store_true", help="leave out malformed dialogues and list them")
    parser.add_argument("--plot", type=Path, help="draw histograms of lengths and labels into this PNG")
    parser.add_argument("--report", type=Path, help="write all counts here (JSON)")
    parser.add_argument("--output", type=Path, help="write the dialogues here, one JSON object per line (.gz: packed)")
    parser.set_defaults(run=_stats)


def _dialogues(options: argparse.Namespace) -> Iterator[Dialogue]:
    from ..corpora import iterate_dialogues

    more = named(options, "skip_invalid", "columns", "roles")
    return iterate_dialogues(options.corpus, options.data_dir, options.split, **more)


def _stats(options: argparse.Namespace) -> None:
    from ..corpora.audit.histograms import draw_histograms
    from ..corpora.audit.statistics import Statistics
    from ..corpora.own.jsonl import check_target, write_jsonl
    from ..drawing import check_drawing

    dialogues = _dialogues(options)
    written = [path.resolve() for path in (options.plot, options.report, options.output) if path]
    if len(set(written)) < len(written):
        raise InputError("--output, --report, --plot: got one file twice, expected a file for each; rename one")
    if options.plot:
        check_drawing()
    for path in filter(None, (options.plot, options.report)):
        check_writable(path, options.corpus)
    if options.output:
        check_target(options.output, options.corpus)
    statistics = Statistics()
    reading = statistics.counting(dialogues)
    if options.output:
        write_jsonl(reading, options.output)
    else:
        deque(reading, maxlen=0)  # reads all of them
    say(statistics.to_table())
    if options.plot:
        draw_histograms(statistics, options.plot, _title(options))
    if options.report:
        write_json_atomically(options.report, statistics.to_json())
    for written in filter(None, (options.output, options.plot, options.report)):
        say(f"Wrote {written}")


def _title(options: argparse.Namespace) -> str:
    from ..corpora import CORPORA

    return f"{options.corpus}, {options.split}" if options.corpus in CORPORA else Path(options.corpus).name


def _add_show(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "show",
        "Print one dialogue.",
        "example: dialemb corpus show --corpus sgd --data-dir data --split test --id test/1_00000",
    )
    corpus_options(parser)
    parser.add_argument("--id", required=True, help="the dialogue's id, or its number as #12")
    parser.add_argument("--skip-invalid", action="store_true", help="leave out malformed dialogues and list them")
    parser.set_defaults(run=_show)


def _show(options: argparse.Namespace) -> None:
    from ..corpora.show import find_dialogue, render_dialogue

    print(render_dialogue(find_dialogue(_dialogues(options), options.id)))


def _add_unify(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "unify",
        "Convert corpora into one form with normalised acts, slots and domains: Parquet, JSON, counts, a dataset card.",
        "example: dialemb corpus unify sgd multiwoz --data-dir data --output unified\n"
        "         dialemb corpus unify all --licence research --data-dir data --output unified",
    )
    parser.add_argument("names", nargs="+", help="corpora, or all: every labelled one you have whose licence allows it")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument("--output", type=Path, required=True, help="folder to write; must not exist yet")
    parser.add_argument(
        "--licence",
        default="share-alike",
        choices=("permissive", "share-alike", "research"),
        help="the strictest licence that a part may have (default: share-alike)",
    )
    parser.add_argument(
        "--evaluation",
        nargs="*",
        default=[],
        metavar="CORPUS/SPLIT",
        help="more sets to keep out of training, besides the dev and test splits of the parts",
    )
    parser.add_argument("--skip-invalid", action="store_true", help="leave out malformed dialogues and list them")
    engine_option(parser)
    parser.set_defaults(run=_unify)


def _unify(options: argparse.Namespace) -> None:
    from ..papers.corpora.dataset_card import excluded
    from ..papers.corpora.unify import unify

    more = named(options, "skip_invalid", "evaluation", "engine")
    stats = unify(options.names, options.data_dir, options.output, terms=options.licence, **more)
    print("\n".join(stats["table"]))
    print(excluded(stats))
    say(f"Wrote {options.output}")


def _add_leakage(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "leakage",
        "Find dialogues and utterances of evaluation sets, or near copies of them, in training sets.",
        "example: dialemb corpus leakage --train multiwoz/train titan/train --evaluation multiwoz/test clinc150/test "
        "--data-dir data --output leakage.json",
    )
    parser.add_argument("--train", nargs="+", required=True, metavar="CORPUS/SPLIT", help="sets to train on, or all")
    parser.add_argument(
        "--evaluation", nargs="+", required=True, metavar="CORPUS/SPLIT", help="sets to evaluate on, or all"
    )
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument("--skip-invalid", action="store_true", help="leave out malformed dialogues and list them")
    parser.add_argument("--output", type=Path, help="write the report here (JSON)")
    engine_option(parser)
    parser.set_defaults(run=_leakage)


def _leakage(options: argparse.Namespace) -> None:
    from ..corpora.audit.leakage import find_leakage

    more = named(options, "data_dir", "skip_invalid", "output", "engine")
    report = find_leakage(options.train, options.evaluation, **more)
    print(report.markdown())
    if options.output:
        say(f"Wrote {options.output}")


def _add_benchmark(actions: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        actions,
        "benchmark",
        "Build the six corpora of the dial2vec paper with its filters, and print its Table 1 beside ours.",
        "example: dialemb corpus benchmark --data-dir data --output benchmark",
    )
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.set_defaults(run=_benchmark)


def _benchmark(options: argparse.Namespace) -> None:
    from ..papers.corpora.benchmark_corpora import benchmark_table, build_benchmark

    result = build_benchmark(options.data_dir, options.output, say)
    print(benchmark_table(result))
    say(f"Wrote {options.output}")
