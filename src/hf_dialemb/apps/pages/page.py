"""Write the page of a flow: one HTML file, to be opened without a network.

It has the counts of everything, and as many dialogues in full as a page can carry.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...dialogue import ROLES
from ..flow.differences import Difference
from ..flow.flow import Flow
from ..flow.graph import Edge, Pruning
from ..flow.paths import typical_path
from ..flow.step_names import shortened
from . import standalone_page
from .insights import insights
from .spreadsheets import line_of

SCRIPTS = ("graph", "layout", "draw", "move", "make", "panel", "overview", "search", "tables")
"""The parts of the page's program, in the order in which they need each other.

``page.js`` comes last.
"""

MOST_DIALOGUES = 2_000  # dialogues that a page has in full
MOST_CHARACTERS = 4_000_000  # of these dialogues
LONGEST_TEXT = 2_000  # characters
MOST_TEXTS = 50  # different texts that are counted for each state


@dataclass(frozen=True)
class Comparison:
    """How two sets of the dialogues of a flow differ."""

    names: tuple[str, str]  # of the sets
    dialogues: tuple[int, int]  # their sizes
    differences: Sequence[Difference]  # of transitions
    second: Collection[str] = ()  # the ids of the second set
    findings: Sequence[str] = ()  # what differs beside transitions, in sentences


def write_page(
    flow: Flow,
    path: Path,
    pruning: Pruning,
    *,
    choices: Mapping[str, str] | None = None,
    comparison: Comparison | None = None,
    back: str = "",
) -> None:
    """Write the page, whole or not at all.

    ``pruning`` is what is shown at first; sliders change it. ``choices`` say how the number of
    clusters of each role was decided. A comparison of two sets of dialogues, which colours tell
    apart, stands in place of insights. ``back`` is the address of a page of topics. The page's
    address keeps what is open, as in ``#state=user-3``.
    """
    record = _record(flow, pruning, choices or {}, comparison)
    standalone_page.write_page(
        path,
        Path(__file__).parent / "page.html.jinja",
        record,
        [*(f"page_{name}.js" for name in SCRIPTS), "page.js"],
        title=flow.title or "Dialogue flow",
        counts=flow.counts.replace(", ", " · "),
        back=back,
        compared=comparison is not None,
    )


def _record(
    flow: Flow, pruning: Pruning, choices: Mapping[str, str], comparison: Comparison | None
) -> dict[str, Any]:
    """Return the content of the page, as JSON has it.

    States are `Flow.numbers`; texts are numbers of their place in ``texts``, which has each text
    once.
    """
    numbers = flow.numbers
    texts = dict[str, int]()
    rows = [] if comparison else insights(flow)
    main = typical_path(flow)
    roles = {cluster.role for cluster in flow.clusters}
    named = [name for row in rows for name in row["dialogues"]]
    kept = kept_dialogues(flow, [main.dialogue, *named])
    return {
        "title": flow.title,
        "roles": [*(role for role in ROLES if role in roles), *sorted(roles - set(ROLES))],
        "counts": {
            "dialogues": len(flow.utterances.dialogues),
            "utterances": len(flow.utterances),
            "states": len(flow.clusters),
            "frequent": MOST_TEXTS,
        },
        "states": _states(flow, texts),
        "edges": [
            [numbers[source], numbers[target], count]
            for (source, target), count in flow.graph.edges.items()
        ],
        "dialogues": [_dialogue(flow, place, texts, comparison) for place in kept],
        "main": {
            "dialogue": main.dialogue,
            "states": [numbers[state] for state in main.states],
            "texts": [_number(texts, text) for text in main.texts],
            "turns": main.turns,
            "steps": sorted(map(_key, main.steps)),
        },
        "pruning": asdict(pruning),
        "insights": rows,
        "comparison": _comparison(comparison) if comparison else None,
        "choices": list(choices.items()),
        "texts": list(texts),
    }


def kept_dialogues(
    flow: Flow,
    named: Iterable[str] = (),
    most: int = MOST_DIALOGUES,
    characters: int = MOST_CHARACTERS,
) -> list[int]:
    """Return the places of the dialogues that a page has in full, ascending.

    All of them, or the named ones first and then others at random, as long as there are not too
    many characters, but at least one.
    """
    utterances = flow.utterances
    places = {name: place for place, name in enumerate(utterances.dialogues)}
    shuffled = np.random.default_rng([0, len(places)]).permutation(len(places)).tolist()
    order = list(dict.fromkeys([*(places[name] for name in named), *shuffled]))[:most]
    sizes = [
        sum(min(LONGEST_TEXT, len(utterances.texts[row])) for row in utterances.rows_of(place))
        for place in order
    ]
    fitting = int(np.count_nonzero(np.cumsum(sizes) <= characters))
    return sorted(order[: max(1, fitting)])


def _number(texts: dict[str, int], text: str) -> int:
    return texts.setdefault(shortened(text, LONGEST_TEXT), len(texts))


def _states(flow: Flow, texts: dict[str, int]) -> list[dict[str, Any]]:
    counts: list[Counter[str]] = [Counter() for _ in flow.clusters]
    through = [0] * len(flow.clusters)
    begun = [0.0] * len(flow.clusters)  # sum of the shares of dialogues before its utterances
    for place in range(len(flow.utterances.dialogues)):
        rows = flow.utterances.rows_of(place)
        labels = flow.labels[rows.start : rows.stop].tolist()
        for label in set(labels):
            through[label] += 1
        for turn, label in enumerate(labels):
            counts[label][flow.utterances.texts[rows[turn]]] += 1
            begun[label] += turn / len(labels)
    states = []
    for label, cluster in enumerate(flow.clusters):
        size = flow.graph.states.get(cluster.state, 0)  # a state may have lost all
        frequent = counts[label].most_common(MOST_TEXTS)
        states.append(
            {
                "id": cluster.id,
                "role": cluster.role,
                "name": shortened(line_of(cluster.name), LONGEST_TEXT),
                "size": size,
                "through": through[label],
                # in [0, 1) from the beginning of dialogues to their end
                "when": round(begun[label] / max(1, size), 3),
                "distinct": len(counts[label]),
                "phrases": list(cluster.phrases),
                "examples": [_number(texts, text) for text in cluster.examples],
                "frequent": [[_number(texts, text), times] for text, times in frequent],
            }
        )
    return states


def _dialogue(
    flow: Flow, place: int, texts: dict[str, int], comparison: Comparison | None
) -> dict[str, Any]:
    utterances = flow.utterances
    rows = flow.utterances.rows_of(place)
    name = utterances.dialogues[place]
    names = utterances.names[rows.start : rows.stop]
    record = {
        "id": name,
        "states": flow.labels[rows.start : rows.stop].tolist(),
        "texts": [_number(texts, utterances.texts[row]) for row in rows],
    }
    if any(names):
        record["names"] = names
    if comparison and comparison.second:
        record["set"] = int(name in comparison.second)
    return record


def _key(edge: Edge) -> str:
    """Return the name of a transition on the page."""
    (_, source), (_, target) = edge
    return f"{source}>{target}"


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "names": [line_of(name) for name in comparison.names],
        "dialogues": comparison.dialogues,
        "findings": [line_of(finding) for finding in comparison.findings],
        "edges": [
            {
                "key": _key(own.what),
                "p": own.p,
                "counts": own.counts,
                "shares": own.shares,
                "difference": own.gain,
            }
            for own in comparison.differences
        ],
    }
