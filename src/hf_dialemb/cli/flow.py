"""``dialemb flow`` and what goes on from it: the workflow that conversations follow, as a page to read."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .parser import (
    Parser,
    add_command,
    chosen_model,
    conversations,
    model_option,
    named,
    own_options,
    say,
    split_option,
)

if TYPE_CHECKING:
    from ..flow.pipeline import FlowSettings
    from ..flow.run import Selection

COMMANDS = ("flow next", "flow compare")
"""Those whose name is two words."""

_NAMES = "nearest (the typical utterance), phrases, api:MODEL, or a language model's folder or id (default nearest)"


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the commands to those of ``dialemb``."""
    _add_build(commands)
    _add_next(commands)
    _add_compare(commands)


def _add_build(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "flow",
        "Find the workflow that conversations follow, and write a web page of it. Run it again with other settings, "
        "and it reuses what is there.",
        "example: dialemb flow transcripts/\nthen open flow/index.html\n"
        "see also: dialemb flow next, dialemb flow compare",
    )
    conversations(parser)
    parser.add_argument("--output", type=Path, default=Path("flow"), help="folder to write (default: flow)")
    model_option(parser)
    told = "instead of a model: vectors from dialemb embed --level utterances, or a .npy with one row each, in order"
    parser.add_argument("--vectors", type=Path, help=told)
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    split_option(parser, "all")
    parser.add_argument("--domain", help="only dialogues with this domain and no other")
    by = "topic: find topics first, and write a flow for each with five dialogues or more; all: one flow for all "
    by += "(default: topic where a file of your own is about several things)"
    parser.add_argument("--by", choices=("topic", "all"), help=by)
    parser.add_argument("--clusters", help="number of states, such as 12 or user=10,assistant=14")
    parser.add_argument(
        "--threshold", help="or how different a state may be inside, such as 0.6 or user=0.5,assistant=0.6"
    )
    parser.add_argument("--names", default="nearest", help=_NAMES)
    parser.add_argument("--nodes", type=float, help="leave out states rarer than this share of the most frequent one")
    parser.add_argument("--edges", type=float, help="leave out transitions that weigh less than this")
    parser.add_argument("--weights", help="what transitions weigh: max, max-out or prob-out (default: max-out)")
    parser.add_argument("--seed", type=int, default=0, help="for random draws in large sets (default: 0)")
    own_options(parser)
    parser.set_defaults(run=_build)


def _build(options: argparse.Namespace) -> None:
    from ..flow.pipeline import FlowSettings
    from ..flow.run import build_flow

    if options.vectors and options.model:
        raise InputError("got --vectors and --model, expected one of them; leave one out")
    try:
        settings = FlowSettings(
            clusters=_by_role("clusters", options.clusters, int),
            threshold=_by_role("threshold", options.threshold, float),
            **named(options, "names", "nodes", "edges", "weights", "seed"),
        )
        model = "" if options.vectors else chosen_model(options.model, "action")
        selection = _selection(options.input, options)
        if options.by == "topic" or (options.by is None and _is_mixed(selection, options)):
            return _by_topic(selection, options, settings, model)
        build_flow(selection, options.output, settings, say, model, options.vectors)
        from ..topics.topics import remove_topics  # slow to import: after what is wrong was told

        remove_topics(options.output)  # of a run by topic
    except InputError as error:
        raise InputError(re.sub(r"\bfield (clusters|threshold|nodes|edges|seed)\b", r"--\1", str(error))) from None


def _is_mixed(selection: Selection, options: argparse.Namespace) -> bool:
    """Says whether a file of one's own is about several things, and nothing asks for one flow."""
    from ..corpora.own.reading import is_own
    from ..flow.run import about_several_things

    asked = options.vectors, options.clusters, options.threshold, options.domain
    if any(asked) or not is_own(options.input) or not about_several_things(selection.dialogues):
        return False
    say("These dialogues are about several things: one flow a topic (--by all: one flow for all)")
    return True


def _by_topic(selection: Selection, options: argparse.Namespace, settings: FlowSettings, model: str) -> None:
    from ..flow.report import remove_report
    from ..runs.files import check_writable
    from ..topics.topics import FEWEST, FLOWS, PAGE, find_topics

    if options.vectors:
        raise InputError("got --vectors and --by topic, expected one of them; leave one out")
    check_writable(options.output / PAGE, selection.corpus)
    found = find_topics(selection.dialogues, title=f"Flows of {selection.name} by topic")
    written = found.save_flows(options.output, model, **vars(settings))
    remove_report(options.output)  # of a run without --by topic
    found.save(options.output, written)
    few = f"no flow, as it has fewer than {FEWEST} dialogues"
    for one in found.found:
        say(f"{one.size:7,} {one.name}: {options.output / FLOWS / one.id if one.id in written else few}")
    inside = sum(one.size for one in found.found if one.id in written)
    total = sum(one.size for one in found.found)
    say(f"Wrote {options.output / PAGE}: {len(written)} flows, of {inside:,} of {total:,} dialogues")


def _by_role(option: str, text: str | None, number: type[int] | type[float]) -> Any:  # noqa: ANN401 - of either kind
    """Reads ``"12"`` or ``"user=10,assistant=14"``: a number, or one for each role that is named; None for nothing."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return number(text)
        pairs = [(role.strip(), number(value)) for role, value in (part.split("=") for part in text.split(","))]
        if len(dict(pairs)) < len(pairs):
            raise ValueError
    except ValueError:
        example = "12 or user=10,assistant=14" if number is int else "0.6 or user=0.5,assistant=0.6"
        raise InputError(
            f"--{option}: got '{text}', expected a number, or one for each role once, such as {example}; correct it"
        ) from None
    return dict(pairs)


def _selection(corpus: str, options: argparse.Namespace) -> Selection:
    from ..flow.run import Selection

    return Selection(corpus, options.data_dir, options.split, options.domain, options.columns, options.roles)


def _add_next(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "flow next",
        "Say where unfinished dialogues stand in a flow, and what is likely to come next.",
        "example: dialemb flow next --flow flow/ --input call.txt",
    )
    parser.add_argument("--flow", type=Path, required=True, help="what dialemb flow wrote")
    parser.add_argument("--input", required=True, help="the dialogues so far: your file or folder")
    parser.add_argument("--top", type=int, default=5, help="how many actions to list (default: 5)")
    parser.add_argument("--output", type=Path, help="also write them here, one dialogue per line (JSONL)")
    own_options(parser)
    parser.set_defaults(run=_next)


def _next(options: argparse.Namespace) -> None:
    from ..flow.next import describe_next

    for line in describe_next(*named(options, "flow", "input", "top", "output", "columns", "roles").values()):
        (print if options.output is None else say)(line)


def _add_compare(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = add_command(
        commands,
        "flow compare",
        "Compare two sets of dialogues by the states of a flow: before and after, good and bad. Dialogues that are "
        "part of the flow are compared with the rest of it, new ones with all of it.",
        "example: dialemb flow compare --flow flow/ --input after/ --output comparison/",
    )
    parser.add_argument("--flow", type=Path, required=True, help="what dialemb flow wrote")
    parser.add_argument("--input", required=True, help="the second set: a folder, a file or a corpus name")
    parser.add_argument("--output", type=Path, default=Path("comparison"), help="folder to write (default: comparison)")
    parser.add_argument("--data-dir", help="folder that holds the corpora, unpacked or packed")
    split_option(parser, "all")
    parser.add_argument("--domain", help="only dialogues with this domain and no other")
    own_options(parser)
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from ..flow.compare import compare_with

    for line in compare_with(options.flow, _selection(options.input, options), options.output):
        say(line)
