"""The commands ``dialemb flow``, ``dialemb flow next`` and ``dialemb flow compare``."""

import argparse
from pathlib import Path
from typing import Any

from ...data import load_dialogues
from ...data.corpus_names import is_own
from ...errors import InputError
from ...storage.files import check_writable
from .parser import (
    CONVERSATIONS,
    CORPUS,
    LANGUAGE,
    MODEL,
    READING,
    Command,
    Options,
    chosen_model,
    conversations,
    corpus_options,
    loaded,
    named,
    reading_of,
    say,
)

_FLOW = """\
example: dialemb flow transcripts/
then open flow/index.html; run again with other settings, it reuses the vectors
see also: dialemb flow next, dialemb flow compare"""
_COMPARE = """\
example: dialemb flow compare --flow flow/ --input after/ --output comparison/
         dialemb flow compare --flow flow/ --input calls.csv --by agent"""

_SETTINGS = ("clusters", "nodes", "edges", "language")
_FLOW_OPTIONS: Options = {
    "--output": {"type": Path, "default": "flow", "help": "folder to write (default: flow)"},
    "--by": {
        "choices": ["topic", "all"],
        "help": "topic: a flow for each topic of five dialogues or more; all: one flow for "
        "all (default: topic where a file of your own is about several things)",
    },
    "--clusters": {"help": "number of states, such as 12 or user=10,assistant=14"},
    "--nodes": {
        "type": float,
        "help": "leave out states rarer than this share of the most frequent",
    },
    "--edges": {"type": float, "help": "leave out transitions that weigh less than this"},
    **LANGUAGE,
    **MODEL,
    **corpus_options("all"),
}
_FLOW_NEXT_OPTIONS: Options = {
    "--flow": {"type": Path, "required": True, "help": "output of dialemb flow"},
    "--input": {"required": True, "help": CONVERSATIONS},
    "--top": {"type": int, "default": 5, "help": "how many actions (default: 5)"},
    **READING,
}
_FLOW_COMPARE_OPTIONS: Options = {
    "--flow": {"type": Path, "required": True, "help": "output of dialemb flow"},
    "--input": {"required": True, "help": f"the second set: {CORPUS}"},
    "--output": {
        "type": Path,
        "default": "comparison",
        "help": "folder to write (default: comparison)",
    },
    "--by": {"help": "compare the dialogues with each other: month, or a column such as team"},
    **corpus_options("all"),
}


def _build(options: argparse.Namespace) -> None:
    from ..flow.extract import extract_flow
    from ..flow.flow_folder import PAGE, UTTERANCES
    from ..flow.graph import Pruning
    from ..topics.topics import remove_topics

    options.clusters = _by_role(options.clusters)
    settings = named(options, *_SETTINGS)
    Pruning(options.nodes or 0.0, options.edges or 0.0)  # before all that takes longer
    model = chosen_model(options, options.model, "action")
    dialogues = loaded(options, options.input)
    if options.by == "topic" or (options.by is None and _is_mixed(options, dialogues)):
        return _by_topic(options, dialogues, model, settings)
    for name in (PAGE, UTTERANCES):
        check_writable(options.output / name, options.input)
    flow = extract_flow(dialogues, model, output=options.output, title=_name(options), **settings)
    for line in (*flow.lines(), f"Wrote {options.output / PAGE}"):
        say(line)
    remove_topics(options.output)  # of a run by topic


def _name(options: argparse.Namespace) -> str:
    return (Path(options.input).name if Path(options.input).exists() else "") or options.input


def _is_mixed(options: argparse.Namespace, dialogues: list[Any]) -> bool:
    """Return whether a user's own file is about several things, and no option asks for one flow."""
    from ..flow.extract import about_several_things

    is_mixed = not options.clusters and is_own(options.input) and about_several_things(dialogues)
    if is_mixed:
        say("These dialogues are about several things: one flow a topic (--by all: one for all)")
    return is_mixed


def _by_topic(
    options: argparse.Namespace, dialogues: list[Any], model: object, settings: dict[str, Any]
) -> None:
    from ...encoders import load_encoder
    from ..flow.flow_folder import remove_report
    from ..topics.model import find_topics
    from ..topics.topics import FEWEST, FLOWS, PAGE

    check_writable(options.output / PAGE, options.input)
    model = load_encoder(model)  # before the topics, which take longer, so that a mistake comes out
    topics = find_topics(
        dialogues,
        title=f"Flows of {_name(options)} by topic",
        cache=options.output / "cache",
        language=options.language,
    )
    topics = topics.save_flows(options.output, model, **settings)
    remove_report(options.output)  # of a run without --by topic
    topics.save(options.output)
    few = f"no flow, as it has fewer than {FEWEST} dialogues"
    for topic in topics.by_size:
        place = options.output / FLOWS / topic.id if topic.id in topics.flows else few
        say(f"{topic.size:7,} {topic.name}: {place}")
    say(f"Wrote {options.output / PAGE}: {len(topics.flows)} flows of {topics.counts}")


def _by_role(text: str | None) -> int | dict[str, int] | None:
    """Parse ``"12"`` or ``"user=10,assistant=14"``: a number, or a mapping of roles."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        pairs = (part.split("=") for part in text.split(","))
        return {role.strip(): int(value) for role, value in pairs}
    except ValueError:
        raise InputError(
            f"--clusters: got '{text}', expected a number, or one for each role, such as "
            "12 or user=10,assistant=14"
        ) from None


def _next(options: argparse.Namespace) -> None:
    from ..flow.extract import short
    from ..flow.new_dialogues import next_in_dialogues

    dialogues = load_dialogues(options.input, **reading_of(options))
    for name, clusters, actions in next_in_dialogues(options.flow, dialogues, options.top):
        say(f"{short(name)}: at {clusters[-1].id}, {short(clusters[-1].name)}")
        for action in actions:
            say(f"  {action.probability:6.1%}  {action.state[1]}  {short(action.name)}")


def _compare(options: argparse.Namespace) -> None:
    from ..flow.flow_comparison import compare_with
    from ..flow.flow_folder import PAGE

    check_writable(options.output / PAGE, options.flow / PAGE, options.input)
    for line in compare_with(
        options.flow, loaded(options, options.input), options.output, _name(options), options.by
    ):
        say(line)


COMMANDS = (
    Command(
        "flow",
        _build,
        "find the workflow that conversations follow, and write a web page of it",
        _FLOW,
        _FLOW_OPTIONS,
        (conversations("input", CONVERSATIONS),),
    ),
    Command(
        "flow next",
        _next,
        "say where unfinished dialogues stand in a flow, and what is likely to come next",
        "example: dialemb flow next --flow flow/ --input call.txt",
        _FLOW_NEXT_OPTIONS,
    ),
    Command(
        "flow compare",
        _compare,
        "compare two sets of dialogues by the states of a flow: before and after",
        _COMPARE,
        _FLOW_COMPARE_OPTIONS,
    ),
)
