"""Write the page of a flow: one HTML file, to be opened without a network, that shows how dialogues go.

It has the counts of everything, and as many dialogues in full as a page can carry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ...dialogue import ROLES
from ...runs import frames
from ...runs.frames import counted
from ..clustering import Choice
from ..exports import line_of
from ..flow import Flow
from ..graph import END, START, State, steps_of
from ..naming import shortened
from ..paths import typical_path
from ..pruning import Pruning

SCRIPTS = ("graph", "layout", "draw", "move", "make", "panel", "overview", "search", "tables")
"""The parts of the page's program, in the order in which they need each other; ``page.js`` comes last."""

MOST_DIALOGUES = 2_000  # dialogues that a page has in full
MOST_CHARACTERS = 4_000_000  # of these dialogues
LONGEST_TEXT = 2_000  # characters
MOST_TEXTS = 50  # different texts that are counted for each state
MOST_TEXTS_OF_ALL = 20_000  # of all states together, about
NAMED = 20  # dialogues of each row of an insight that are there in full
SIGNIFICANT = 0.05  # a difference with a higher corrected p may be chance

_SETTINGS = {
    "model": "encoder, which says how alike utterances are",
    "vectors": "",  # a fingerprint
    "corpus": "dialogues from",
    "split": "part of them",
    "clusters": "states of each speaker",
    "chosen_by": "how many states there are was decided by",
    "names": "names of states are",
    "seed": "number that random choices begin from",
}
_VALUES = {
    "chosen": "the bend of the curve of distances",
    "number": "the number asked for",
    "threshold": "the distance asked for",
    "nearest": "their most typical utterance",
    "phrases": "their typical words",
}


@dataclass(frozen=True)
class Row:
    """A fact about a flow."""

    text: str  # a sentence
    dialogues: tuple[str, ...] = ()  # ids of dialogues that show it, the best first
    states: tuple[State, ...] = ()  # its states, in order


@dataclass(frozen=True)
class Section:
    """Facts of one kind, the most important first."""

    title: str
    explanation: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class TransitionDifference:
    """How often a transition is taken in two sets of dialogues."""

    source: State
    target: State
    counts: tuple[int, int]
    shares: tuple[float | None, float | None]  # of all from the source; None in a set that never reaches it
    difference: float | None  # the second share minus the first; None where a share is
    p: float  # of Fisher's exact test, two-sided; 1 where a share is None
    corrected_p: float  # after Holm's correction over all transitions with two shares


@dataclass(frozen=True)
class Comparison:
    """How two sets of the dialogues of a flow differ."""

    names: tuple[str, str]  # of the sets
    dialogues: tuple[int, int]  # their sizes
    differences: Sequence[TransitionDifference]
    second: Collection[str] = frozenset()  # the ids of the second set


def write_page(
    flow: Flow,
    path: Path | str,
    pruning: Pruning | None = None,
    *,
    comparison: Comparison | None = None,
    choices: Mapping[str, Choice] | None = None,
    insights: Sequence[Section] = (),
    facts: Sequence[tuple[str, str]] = (),
    back: str = "",
) -> None:
    """Write the page, whole or not at all.

    Its address keeps the view, such as ``index.html#state=user-3&nodes=0.05&weights=prob-out``.

    Args:
        flow: The flow.
        path: The file to write.
        pruning: What is shown at first; sliders change it.
        comparison: Two sets of dialogues, which colours tell apart.
        choices: How the number of clusters of each role was decided.
        insights: Facts that stand beside the map.
        facts: Names and values of how the page was made.
        back: The address of a page of topics.
    """
    folder = Path(__file__).parent
    record = _record(flow, pruning or Pruning(), comparison, choices or {}, insights, facts)
    counts = record["counts"]
    frames.write_page(
        Path(path),
        folder / "page.html.jinja",
        record,
        [*(f"page_{name}.js" for name in SCRIPTS), "page.js"],
        title=flow.title or "Dialogue flow",
        counts=" · ".join(counted(counts[f"{word}s"], word) for word in ("dialogue", "utterance", "state")),
        back=back,
        compared=comparison is not None,
    )


def _record(
    flow: Flow,
    pruning: Pruning,
    comparison: Comparison | None,
    choices: Mapping[str, Choice],
    insights: Sequence[Section],
    facts: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """Return the content of the page, as JSON has it.

    States are numbered in the order of the flow's clusters, then start and end; texts are numbers of their place in
    ``texts``, which has each text once.
    """
    numbers = {cluster.state: number for number, cluster in enumerate(flow.clusters)}
    numbers |= {START: len(numbers), END: len(numbers) + 1}
    texts: dict[str, int] = {}
    second, main = frozenset(comparison.second if comparison else ()), typical_path(flow)
    named = [dialogue for section in insights for row in section.rows for dialogue in row.dialogues[:NAMED]]
    kept = kept_dialogues(flow, [main.dialogue, *named])
    roles = {cluster.role for cluster in flow.clusters}
    return {
        "title": flow.title,
        "roles": [*(role for role in ROLES if role in roles), *sorted(roles - set(ROLES))],
        "counts": {
            "dialogues": len(flow.utterances.dialogues),
            "utterances": len(flow.utterances),
            "states": len(flow.clusters),
            "frequent": _texts_per_state(len(flow.clusters)),
        },
        "states": _states(flow, texts),
        "edges": [[numbers[source], numbers[target], count] for (source, target), count in flow.graph.edges.items()],
        "dialogues": [_dialogue(flow, place, texts, second) for place in kept],
        "main": {
            "dialogue": main.dialogue,
            "states": [numbers[state] for state in main.states],
            "texts": [_number(texts, text) for text in main.texts],
            "turns": main.turns,
            "steps": [f"{numbers[source]}>{numbers[target]}" for source, target in sorted(main.steps)],
        },
        "pruning": asdict(pruning),
        "insights": [_section(section, numbers) for section in insights],
        "comparison": _comparison(comparison, numbers) if comparison else None,
        "choices": [_choice(role, choice) for role, choice in choices.items()],
        "facts": [list(fact) for fact in facts],
        "settings": _settings(flow.settings),
        "texts": list(texts),
    }


def kept_dialogues(
    flow: Flow, named: Iterable[str] = (), seed: int = 0, most: int = MOST_DIALOGUES, characters: int = MOST_CHARACTERS
) -> list[int]:
    """Return the places of the dialogues that a page has in full, ascending.

    All of them, or the named ones first, then up to half of ``most`` that show a new transition, then others by the
    seed. A dialogue with which there would be too many characters is left out, but at least one is there.
    """
    utterances = flow.utterances
    places = {name: place for place, name in enumerate(utterances.dialogues)}
    shuffled = np.random.default_rng([seed, len(places)]).permutation(len(places)).tolist()
    order = dict.fromkeys(places[name] for name in named)
    if len(places) > most:
        seen: set[tuple[State, State]] = set()
        for place in shuffled:
            steps = set(steps_of(flow.trajectories[place]))
            if len(order) < most // 2 and not steps <= seen:
                order.setdefault(place)
                seen |= steps
    kept: list[int] = []
    order |= dict.fromkeys(shuffled)
    for place in order:
        size = sum(min(LONGEST_TEXT, len(utterances.texts[row])) for row in utterances.rows_of(place))
        if len(kept) < most and size <= characters:
            kept.append(place)
            characters -= size
    return sorted(kept or list(order)[:1])


def _texts_per_state(states: int) -> int:
    return max(5, min(MOST_TEXTS, MOST_TEXTS_OF_ALL // max(1, states)))


def _number(texts: dict[str, int], text: str) -> int:
    return texts.setdefault(shortened(text, LONGEST_TEXT), len(texts))


def _states(flow: Flow, texts: dict[str, int]) -> list[dict[str, Any]]:
    counts: list[Counter[str]] = [Counter() for _ in flow.clusters]
    for label, text in zip(flow.labels.tolist(), flow.utterances.texts, strict=True):
        counts[label][text] += 1
    places, most = flow.utterances.places, _texts_per_state(len(flow.clusters))
    pairs = np.unique(np.stack([flow.labels, places]), axis=1)
    through = np.bincount(pairs[0], minlength=len(flow.clusters)).tolist()
    firsts, lengths = np.searchsorted(places, places), np.bincount(places)[places]
    passed = np.bincount(flow.labels, (np.arange(len(places)) - firsts) / lengths, len(flow.clusters))
    when = passed / np.maximum(1, np.bincount(flow.labels, minlength=len(flow.clusters)))  # a state may have lost all
    return [
        {
            "id": cluster.id,
            "role": cluster.role,
            "name": shortened(line_of(cluster.name), LONGEST_TEXT),
            "size": flow.graph.states.get(cluster.state, 0),
            "through": through[label],
            "when": round(float(when[label]), 3),  # in [0, 1) from the beginning of dialogues to their end
            "distinct": len(counts[label]),
            "phrases": list(cluster.phrases),
            "examples": [_number(texts, text) for text in cluster.examples],
            "frequent": [[_number(texts, text), count] for text, count in counts[label].most_common(most)],
        }
        for label, cluster in enumerate(flow.clusters)
    ]


def _dialogue(flow: Flow, place: int, texts: dict[str, int], second: Collection[str]) -> dict[str, Any]:
    rows = flow.utterances.rows_of(place)
    name = flow.utterances.dialogues[place]
    return {
        "id": name,
        "states": flow.labels[rows.start : rows.stop].tolist(),
        "texts": [_number(texts, flow.utterances.texts[row]) for row in rows],
        **({"names": flow.utterances.names[rows.start : rows.stop]} if flow.utterances.names else {}),
        **({"set": int(name in second)} if second else {}),
    }


def _section(section: Section, numbers: Mapping[State, int]) -> dict[str, Any]:
    rows = []
    for row in section.rows:
        shown, states = row.dialogues[:NAMED], [numbers[state] for state in row.states]
        more = len(row.dialogues) - len(shown)
        rows.append({"text": row.text, "dialogues": shown, "more": more, "states": states})
    return {"title": section.title, "explanation": section.explanation, "rows": rows}


def _comparison(comparison: Comparison, numbers: Mapping[State, int]) -> dict[str, Any]:
    edges = []
    for change in comparison.differences:
        source, target = numbers[change.source], numbers[change.target]
        record = {"source": source, "target": target, "key": f"{source}>{target}", "p": change.corrected_p}
        edges.append({**record, "counts": change.counts, "shares": change.shares, "difference": change.difference})
    return {"names": tuple(map(line_of, comparison.names)), "dialogues": comparison.dialogues, "edges": edges}


def _choice(role: str, choice: Choice) -> dict[str, Any]:
    curve = [[number, threshold, score if isfinite(score) else None] for number, threshold, score in choice.curve]
    return {"role": role, "count": choice.count, "sentence": choice.sentence, "curve": curve}


def _settings(settings: Mapping[str, Any]) -> list[list[str]]:
    """Describe the settings of a flow, without those that are for programs alone."""
    labels = {name: _SETTINGS.get(name, name.replace("_", " ")) for name in settings}
    return [
        [labels[name], _printed(value)]
        for name, value in settings.items()
        if labels[name] and value not in (None, "", {})
    ]


def _printed(value: object) -> str:
    if isinstance(value, Mapping):
        if value and set(map(type, value.values())) == {str} and len(set(value.values())) == 1:
            return _printed(next(iter(value.values())))  # the same for every speaker
        return ", ".join(f"{name}: {_printed(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_printed, value))
    return _VALUES.get(str(value), str(value))
