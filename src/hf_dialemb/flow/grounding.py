"""A flow as what an agent is grounded in: instructions for a language model, and a state machine."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from .exports import line_of
from .flow import Flow
from .graph import END, START, State
from .paths import typical_path, with_gaps
from .pruning import WeightedGraph

_EXAMPLES = 3  # so many texts show a model what a step is
_ENDS = 0.5  # of the times that a step occurs, the conversation is over so often


def policy_text(flow: Flow, graph: WeightedGraph) -> str:
    """Writes what is shown of a flow as instructions that a language model follows, in Markdown.

    What the steps are, what usually follows each, the main path, and when to end; one sentence where nothing is shown.
    What people said is quoted as JSON, each text in one line, so that it cannot pass for an instruction of its own
    heading or list.
    """
    if not graph.states:
        return f"# {line_of(flow.title)}\n\nNo step is frequent enough to be followed; lower the thresholds.\n"
    following = _following(graph)
    parts = [
        f"# {line_of(flow.title)}",
        f"Conversations usually take the steps below; {len(flow.trajectories):,} were observed. Find the step that "
        "was taken last, and go on as conversations usually do. Say what the examples say, in your own words. Where "
        "none of the steps fits, answer what was said, then come back to the main path.",
        *_main_path(flow),
        "## Steps",
        "Conversations begin with:\n\n" + _list(flow, START, following[START]),
    ]
    for state in graph.states:
        cluster = flow.by_state[state]
        examples = "".join(f"\n- {_quoted(text)}" for text in cluster.examples[:_EXAMPLES])
        parts.append(f"### {_title(flow, state)}\n\nThe {cluster.role} says something like:\n{examples}")
        parts.append("Then usually:\n\n" + _list(flow, state, following[state]))
    parts += ["## When to end", _endings(flow, graph)]
    return "\n\n".join(parts) + "\n"


def state_machine(flow: Flow, graph: WeightedGraph) -> dict[str, Any]:
    """Makes a state machine of what is shown of a flow, as JSON has it.

    ``title``, ``initial`` and ``final``, which are ids, and ``states``: from an id to role, name, examples, ``failed``,
    whether it says that something failed, and ``on``, what follows with ``target`` and ``probability``, the most likely
    first, and ``other``, how likely it is that something else does, which is not shown. Probabilities are shares of all
    that follows, as on the page.
    """
    following = _following(graph)
    return {
        "title": line_of(flow.title),
        "initial": START[1],
        "final": [END[1]],
        "states": {state[1]: _machine_state(flow, state, following[state]) for state in graph.nodes},
    }


def _machine_state(flow: Flow, state: State, targets: list[State]) -> dict[str, Any]:
    cluster = flow.by_state.get(state)
    shares = Counter({target: flow.graph.shares[state, target] for target in targets})
    return {
        "role": state[0],
        "name": line_of(cluster.name) if cluster else state[1].strip("[]"),
        "examples": list(map(line_of, cluster.examples)) if cluster else [],
        "failed": cluster is not None and cluster.failed,
        "on": [{"target": target[1], "probability": share} for target, share in shares.most_common()],
        "other": 0.0 if state == END else max(0.0, 1 - sum(shares.values())),
    }


def _following(graph: WeightedGraph) -> Mapping[State, list[State]]:
    """Lists what follows each state, the heaviest first."""
    following: dict[State, list[State]] = defaultdict(list)
    for (source, target), _ in sorted(graph.edges.items(), key=lambda item: (-item[1], item[0])):
        following[source].append(target)
    return following


def _main_path(flow: Flow) -> list[str]:
    path = typical_path(flow)
    said = (f"- {state[1]}: {_quoted(text)}" for state, text in zip(path.states, path.texts, strict=True))
    told = "A typical conversation in its own words, each with its step; … stands for turns left out:"
    return ["## Main path", told, "\n".join(with_gaps(path, said, "- …"))]


def _list(flow: Flow, source: State, targets: list[State]) -> str:
    return "\n".join(f"- {flow.graph.shares[source, target]:.0%}: {_title(flow, target)}" for target in targets)


def _endings(flow: Flow, graph: WeightedGraph) -> str:
    closing = {edge[0]: flow.graph.shares[edge] for edge in graph.edges if edge[1] == END and edge[0] != START}
    usual = [state for state, share in closing.items() if share >= _ENDS] or [max(closing, key=closing.__getitem__)]
    lines = [f"- {_title(flow, state)} ({closing[state]:.0%} of the times that it is taken)" for state in usual]
    return "\n".join(["End the conversation after:\n", *lines])


def _title(flow: Flow, state: State) -> str:
    if state == END:
        return "the conversation ends"
    cluster = flow.by_state[state]
    return f"{cluster.id} {_quoted(cluster.name)}"


def _quoted(text: str) -> str:
    return json.dumps(line_of(text), ensure_ascii=False)
