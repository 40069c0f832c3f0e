"""One form for the labels of all corpora: cleaned names, 18 dialogue acts, and actions.

This is the unified form of Dialog2Flow (its section 4 and appendix A): labels are cleaned alike,
the 44 names that its twenty corpora use for dialogue acts become 18, and an action is a turn's acts
followed by its slots. This package adds `MORE_ACTS`, keeps no label twice in a turn, and sorts acts
and slots, so that an action has a single name.
"""

import re
import reprlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ..dialogue import Dialogue, Turn, action_name
from ..errors import InputError

_TABLES = tomllib.loads(Path(__file__).with_name("acts.toml").read_text(encoding="utf-8"))

ACTS: dict[str, str] = {
    original: act for act, originals in _TABLES["acts"].items() for original in originals
}
"""The paper's map (its table A3) from 44 cleaned names of dialogue acts to 18 normalised ones."""

MORE_ACTS: dict[str, str] = _TABLES["more"]
"""Names that `ACTS` lacks and that mean the same without doubt."""

PARENTS = {
    act: act.split()[0]
    for act in _TABLES["acts"]
    if act.startswith(("inform", "request", "confirm"))
}
"""From the acts of three families to the family's name; any other act is its own parent."""

INTENT_ACTS = ("inform intent", "offer intent")
"""Acts that carry an intent as the value of a slot, and give neither act nor slot."""

_NO_LABEL = ("other", "not sure", "switch frame")
_LONGEST_FIRST = sorted(_TABLES["acts"], key=len, reverse=True)

_LOSE_THEIR_S = """
acts alts bennys bs calories casinos churchills cls demographics fas has jeans js kbs kors las logs
mls nus rosas sents showtimes us weathers
"""
_LEMMAS = {word: word.removesuffix("s") for word in _LOSE_THEIR_S.split()} | {
    "dice": "dice",
    "galleries": "gallery",
    "graffiti": "graffiti",
    "okay": "okay",
    "serves": "serf",
}
"""Where lemminflect's lemmas differ from those of WordNet 3.0, which are the paper's, among all
words of the labels of the corpora that the readers were run on. Odd ones such as "ha" and "serf"
are what WordNet's rules give.
"""


@dataclass(frozen=True)
class UnifiedTurn:
    """A turn in the unified form; no label occurs twice in a field."""

    role: str
    text: str  # without white space and quotation marks around it
    acts: tuple[str, ...] = ()  # normalised
    main_acts: tuple[str, ...] = ()  # the parents of the acts
    original_acts: tuple[str, ...] = ()  # the cleaned names that the corpus gives the acts
    slots: tuple[str, ...] = ()  # their cleaned names
    intents: tuple[str, ...] = ()  # cleaned
    action: str = ""  # the canonical name of acts and slots together; empty if the turn has neither
    values: tuple[tuple[str, str], ...] = ()  # of the slots, by cleaned name, which may occur twice


@lru_cache(maxsize=1 << 16)
def clean_label(label: str) -> str:
    """Clean the name of an act, slot, intent or domain, as the paper does.

    Return the noun lemmas of its words of two letters and more, in lower case: ``"restaurant"`` of
    ``"Restaurants_2"``. Names without a meaning ("other", "not sure", "switch frame") become empty.
    """
    cleaned = " ".join(
        _lemma(word.lower()) for word in re.findall("[a-zA-Z]+", label) if len(word) > 1
    )
    return "" if cleaned in _NO_LABEL else cleaned


def unified_turn(turn: Turn) -> UnifiedTurn:
    """Return a turn with its labels in the unified form, in the order of the turn."""
    named = _distinct(map(clean_label, turn.dialogue_acts))
    pairs = tuple((clean_label(name), value) for name, value in turn.slots)
    intents = [clean_label(intent) for intent in turn.intents]
    if not set(INTENT_ACTS).isdisjoint(named):
        intents += [clean_label(value) for name, value in pairs if name == "intent"]
        pairs = tuple(pair for pair in pairs if pair[0] != "intent")
    originals = tuple(name for name in named if name not in INTENT_ACTS)
    acts = _distinct(ACTS.get(name, MORE_ACTS.get(name, name)) for name in originals)
    slots = _distinct(name for name, _ in pairs)
    return UnifiedTurn(
        role=turn.role,
        text=turn.content.strip().strip('"'),
        acts=acts,
        main_acts=_distinct(PARENTS.get(act, act) for act in acts),
        original_acts=originals,
        slots=slots,
        intents=_distinct(intents),
        action=action_name(acts, slots),
        values=tuple(dict.fromkeys(pair for pair in pairs if pair[0])),
    )


def unified_dialogue(dialogue: Dialogue) -> Dialogue:
    """Rename domains, and the acts, slots and intents of every turn, to their unified names."""
    turns = []
    for turn in dialogue.turns:
        unified = unified_turn(turn)
        turns.append(
            replace(turn, dialogue_acts=unified.acts, slots=unified.values, intents=unified.intents)
        )
    return replace(
        dialogue, turns=tuple(turns), domains=_distinct(map(clean_label, dialogue.domains))
    )


def parse_action(label: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the name of an action into acts and slots: the inverse of `action_name`.

    Only the names of the 18 acts mark where the acts end. Of two that fit, the longer is taken:
    ``"inform success rate"`` has the act "inform success". A name that begins with none of them has
    slots alone. An InputError refuses other words after an act and a comma.
    """
    acts: list[str] = []
    rest = label
    while rest and (not acts or rest.startswith(", ")):
        rest = rest.removeprefix(", ") if acts else rest
        act = next(
            (name for name in _LONGEST_FIRST if f"{rest} ".startswith((f"{name} ", f"{name}, "))),
            "",
        )
        if not act and acts:
            raise InputError(
                f"action {reprlib.repr(label)}: got {reprlib.repr(rest)} after a comma, expected "
                f"one of {', '.join(_TABLES['acts'])}"
            )
        if not act:
            break
        acts.append(act)
        rest = rest[len(act) :]
    return tuple(acts), tuple(rest.strip().split(", ")) if rest else ()


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _lemma(word: str) -> str:
    """Return the noun lemma of a word, or the word itself; WordNet would be a download."""
    if word in _LEMMAS:
        return _LEMMAS[word]
    try:
        from lemminflect import getLemma
    except ImportError:
        raise InputError(
            'labels: the package lemminflect is missing; pip install "hf-dialemb[apps]"'
        ) from None

    lemmas: tuple[str, ...] = getLemma(word, upos="NOUN", lemmatize_oov=False)
    return lemmas[0] if lemmas else word
