"""Simulated dialogues sim-M (cinema tickets) and sim-R (restaurant tables): outlines of a simulator, worded by people.

Source: https://github.com/google-research-datasets/simulated-dialogue. Licence: none stated; provided "as is".
Layout: ``sim-M/{train,dev,test}.json`` and ``sim-R/{train,dev,test}.json``, each a list of dialogues.

A record's turn is what the system says, missing at the start, and the user's reply. A system act brings its slot; a
user act seldom does, so a user's slots are those that are marked in the utterance. What the user wants, such as
``BUY_MOVIE_TICKETS``, is the intent of the first turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from ..records import convert_each, field, names
from ..source.files import Source
from ..source.parsing import json_list


def _reader(folder: str) -> Callable[[Source, str], Iterator[tuple[str, Any]]]:
    return lambda source, split: json_list(source, f"{folder}/{split}.json")


def _converter(domain: str) -> Callable[[Any], Dialogue]:
    def dialogue(raw: Any) -> Dialogue:  # noqa: ANN401
        exchanges = convert_each(field(raw, "turns", list), "turns", _exchange)
        turns = tuple(turn for exchange in exchanges for turn in exchange)
        return Dialogue(turns, field(raw, "dialogue_id", str), (domain,))

    return dialogue


def _exchange(raw: Any) -> list[Turn]:  # noqa: ANN401
    turns = []
    utterance = field(raw, "user_utterance", dict)
    if "system_utterance" in raw:
        acts, slots = _system_labels(field(raw, "system_acts", list))
        turns.append(Turn("assistant", field(field(raw, "system_utterance", dict), "text", str), acts, slots))
    acts = tuple(dict.fromkeys(field(act, "type", str).lower() for act in field(raw, "user_acts", list)))
    intents = names(raw, "user_intents") if "user_intents" in raw else ()
    turns.append(Turn("user", field(utterance, "text", str), acts, _marked(utterance), intents))
    return turns


def _system_labels(acts: list[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    types, slots = [], []
    for act in acts:
        types.append(field(act, "type", str).lower())
        if "slot" in act:
            slots.append((field(act, "slot", str).lower(), field(act, "value", str) if "value" in act else ""))
    return tuple(dict.fromkeys(types)), tuple(slots)


def _marked(utterance: Any) -> tuple[tuple[str, str], ...]:  # noqa: ANN401
    spans = field(utterance, "slots", list)
    if not spans:
        return ()
    tokens = names(utterance, "tokens")
    return tuple(
        (
            field(span, "slot", str).lower(),
            " ".join(tokens[field(span, "start", int) : field(span, "exclusive_end", int)]),
        )
        for span in spans
    )


def _corpus(name: str, folder: str, domain: str, *, real: bool) -> Corpus:
    return Corpus(
        name,
        {split: (f"{folder}/{split}.json",) for split in SPLITS},
        _reader(folder),
        _converter(domain),
        source="https://github.com/google-research-datasets/simulated-dialogue",
        licence="none stated",
        terms="research",
        real=real,
    )


CORPORA = (_corpus("sim_m", "sim-M", "movie", real=True), _corpus("sim_r", "sim-R", "restaurant", real=False))
